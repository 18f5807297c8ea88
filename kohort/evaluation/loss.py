"""Information loss: how far the protected values are from the original ones."""

from __future__ import annotations

import numpy as np

from kohort.evaluation.moments import as_columns
from kohort.evaluation.outcome import NotApplicable
from kohort.methods import Floats
from kohort.normalization import Minmax


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

    x = as_columns(x)
    _, std = mean_and_std(x)
    return float(squared_distance(x, as_columns(protected), std))


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

    _, std = mean_and_std(as_columns(x))
    return float(len(x) * np.count_nonzero(std))


def deviations(x: Floats, protected: Floats) -> tuple[float, float]:
    """The part of one attribute in `sse` and in `sst`.

    Parameters
    ----------
    x, protected : (n,) arrays
        Original and protected values of the attribute.

    Examples
    --------
    >>> deviations(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    (2.0, 2.0)
    """
    from kohort.kernels.statistics import mean_and_std, squared_distance

    column = np.asfortranarray(x[:, None])
    _, std = mean_and_std(column)
    off = float(squared_distance(column, np.asfortranarray(protected[:, None]), std))
    return off, float(len(x)) if std[0] > 0 else 0.0


def loss(x: Floats, protected: Floats) -> float | NotApplicable:
    """Share of the variance that protection took: sse / sst, between 0 and 1 for means.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Returns
    -------
    float or NotApplicable
        Not applicable where every column is constant, so that there is nothing to lose.

    Examples
    --------
    >>> loss(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    1.0
    """
    total = sst(x)
    return sse(x, protected) / total if total > 0 else NotApplicable("every attribute is constant")


def sse_minmax(x: Floats, protected: Floats) -> float:
    """Squared distance of the records, each file scaled to [0, 1] by its own range (M1D's "SSE").

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values; a constant column becomes 0.5.

    Examples
    --------
    >>> sse_minmax(np.array([[0.0], [1.0], [4.0]]), np.array([[1.0], [1.0], [3.0]]))
    0.0625
    """
    from kohort.kernels.statistics import squared_distance

    scale = np.ones(x.shape[1])
    return float(squared_distance(Minmax().normalize(x), Minmax().normalize(protected), scale))


def il1s(x: Floats, protected: Floats) -> float | NotApplicable:
    """Mean of abs(x - x') / (sqrt(2)·std_j): the measure of single cells that survives zeros.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values; a constant column counts for nothing.

    Examples
    --------
    >>> round(il1s(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]])), 4)
    0.7071
    """
    from kohort.kernels.moments import absolute_differences
    from kohort.kernels.statistics import mean_and_std

    x = as_columns(x)
    _, std = mean_and_std(x)
    if not std.any():
        return NotApplicable("every attribute is constant")
    sums = absolute_differences(x, as_columns(protected))
    return float(np.mean(sums[std > 0] / std[std > 0]) / len(x) / np.sqrt(2.0))


def unchanged(x: Floats, protected: Floats) -> float:
    """Share of the cells that are released as they are.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> unchanged(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[0.0, 2.0], [1.0, 2.0]]))
    0.25
    """
    from kohort.kernels.moments import equal_cells

    return int(equal_cells(as_columns(x), as_columns(protected))) / x.size
