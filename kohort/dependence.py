"""Microaggregation that preserves statistical dependence on confidential attributes.

Records are partitioned on the points (x, beta·y): the larger lambda, the more the members of a group
agree in their confidential attributes y, which are released as they are. That keeps the relation between
x and y, and makes a group's confidential values less diverse.
"""

from __future__ import annotations

import numpy as np

from kohort.errors import PlanError
from kohort.methods import Floats, check_number


def check_dependence(weight: object) -> None:
    """Refuse a lambda that is no number from 0 to 1."""
    holds = isinstance(weight, (int, float, np.number)) and bool(0 <= weight <= 1)
    check_number("dependence", weight, rule="a number from 0 to 1", holds=holds)


def extend(z: Floats, y: Floats, weight: float) -> Floats:
    """Points (x, beta·y) of a block, beta = sqrt(lambda / (1 - lambda) · m_x / m_y).

    Parameters
    ----------
    z : (n, m_x) array
        The block's standardised quasi-identifiers.
    y : (n, m_y) array
        The standardised confidential attributes.
    weight : float
        Lambda: 0 uses x alone, 1 uses y alone.

    Returns
    -------
    (n, m_x + m_y) array
        Fortran-ordered; not standardised again, which would cancel beta.

    Examples
    --------
    >>> extend(np.array([[1.0], [-1.0]]), np.array([[2.0], [-2.0]]), 0.5)
    array([[ 1.,  2.],
           [-1., -2.]])
    """
    if y.shape[1] == 0:
        raise PlanError("dependence needs confidential attributes; name them or leave it out")
    if weight == 0:
        return z
    if weight == 1:
        return np.asfortranarray(y)
    beta = np.sqrt(weight / (1 - weight) * z.shape[1] / y.shape[1])
    return np.asfortranarray(np.hstack([z, beta * y]))
