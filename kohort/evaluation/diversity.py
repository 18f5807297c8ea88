"""Diversity: how different the confidential values of one group are (SD, section V.B)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.methods import Floats, Labels
from kohort.normalization import Zscore

BIN = 0.2  # of a standard deviation


def l_avg(confidential: Floats, groups: Labels) -> float:
    """Mean over the groups of the number of distinct confidential values.

    Values count as one where they share a bin of 0.2 standard deviations; of several confidential
    attributes, a group's least diverse one counts.

    Parameters
    ----------
    confidential : (n, q) array
        Confidential values, released as they are.
    groups : (n,) array
        Labels 0..g-1.

    Examples
    --------
    >>> y = np.array([[0.0], [0.0], [0.0], [5.0], [10.0], [10.0]])
    >>> l_avg(y, np.array([0, 0, 0, 1, 1, 1], dtype=np.int32))
    1.5
    """
    return float(distinct_values(confidential, groups).mean())


def l_min(confidential: Floats, groups: Labels) -> int:
    """The least number of distinct confidential values in a group, in the bins of `l_avg`.

    Parameters
    ----------
    confidential : (n, q) array
        Confidential values, released as they are.
    groups : (n,) array
        Labels 0..g-1.

    Examples
    --------
    >>> y = np.array([[0.0], [0.0], [0.0], [5.0], [10.0], [10.0]])
    >>> l_min(y, np.array([0, 0, 0, 1, 1, 1], dtype=np.int32))
    1
    """
    return int(distinct_values(confidential, groups).min())


def l_one(confidential: Floats, groups: Labels) -> float:
    """Share of the groups with one confidential value only, in the bins of `l_avg`.

    Parameters
    ----------
    confidential : (n, q) array
        Confidential values, released as they are.
    groups : (n,) array
        Labels 0..g-1.

    Examples
    --------
    >>> y = np.array([[0.0], [0.0], [0.0], [5.0], [10.0], [10.0]])
    >>> l_one(y, np.array([0, 0, 0, 1, 1, 1], dtype=np.int32))
    0.5
    """
    return float(np.mean(distinct_values(confidential, groups) == 1))


def distinct_values(confidential: Floats, groups: Labels) -> npt.NDArray[np.int64]:
    """Distinct bins in every group (g,), of the confidential attribute with the fewest."""
    from kohort.kernels.disclosure import fewest_distinct

    bins = np.floor(Zscore().normalize(confidential) / BIN).astype(np.int64)
    return fewest_distinct(bins, groups, int(groups.max()) + 1)
