"""Information loss: how far the protected values are from the original ones."""

from __future__ import annotations

import numpy as np

from kohort.methods import Floats


def sse(x: Floats, protected: Floats) -> float:
    """Squared distance of the protected records from the original ones, in standard deviations.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values, row by row the same records. Both are scaled by the original
        mean and standard deviation; a constant column counts for nothing.

    Examples
    --------
    >>> sse(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    2.0
    """
    from kohort.kernels.statistics import mean_and_std, squared_distance

    x = np.asfortranarray(x)
    _, std = mean_and_std(x)
    return float(squared_distance(x, np.asfortranarray(protected), std))


def sst(x: Floats) -> float:
    """Squared distance of the records from their mean, in standard deviations.

    That is the number of records times the number of columns that are not constant.

    Parameters
    ----------
    x : (n, p) array
        Original values.

    Examples
    --------
    >>> sst(np.array([[0.0, 7.0], [2.0, 7.0]]))
    2.0
    """
    from kohort.kernels.statistics import mean_and_std

    _, std = mean_and_std(np.asfortranarray(x))
    return float(len(x) * np.count_nonzero(std))


def loss(x: Floats, protected: Floats) -> float | None:
    """Share of the variance that protection took: sse / sst, between 0 and 1 for means.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Returns
    -------
    float or None
        None where every column is constant, so that there is nothing to lose.

    Examples
    --------
    >>> loss(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    1.0
    """
    total = sst(x)
    return sse(x, protected) / total if total > 0 else None
