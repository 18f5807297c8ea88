"""Dependence: how much is lost of the quasi-identifiers, and of what they say about the confidential."""

from __future__ import annotations

import numpy as np

from kohort.evaluation.loss import loss
from kohort.evaluation.moments import as_columns
from kohort.evaluation.outcome import NotApplicable
from kohort.methods import Floats, Labels


def d_x(x: Floats, protected: Floats) -> float | NotApplicable:
    """Distortion of the quasi-identifiers: SSE / SST (SD; the same as `loss`).

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> d_x(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    1.0
    """
    return loss(x, protected)


def d_y(confidential: Floats, groups: Labels) -> float | NotApplicable:
    """Distortion of the confidential attributes: SSE / SST against the means of their groups (SD).

    They are released as they are; this is what a user loses who predicts them from the protected
    quasi-identifiers.

    Parameters
    ----------
    confidential : (n, q) array
        Confidential values.
    groups : (n,) array
        Labels 0..g-1.

    Examples
    --------
    >>> round(d_y(np.array([[0.0], [2.0], [4.0], [6.0]]), np.array([0, 0, 1, 1])), 6)
    0.2
    """
    from kohort.kernels.grouping import group_means, spread_to_members

    y = as_columns(confidential)
    labels = np.asarray(groups, np.int32)
    means = group_means(y, labels, int(labels.max()) + 1)
    return loss(y, spread_to_members(means, labels))
