"""Anonymity: how many records look alike in the release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kohort.errors import PlanError
from kohort.evaluation.moments import as_columns
from kohort.methods import Floats, Labels, check_number

Released = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]


def classes(released: Released) -> tuple[Labels, npt.NDArray[np.int64]]:
    """Class of every record among the records identical to it, and the size of each class.

    Parameters
    ----------
    released : (n, p) array, or a sequence of (n,) arrays
        Released columns, numbers of any kind: text is passed as codes.

    Examples
    --------
    >>> labels, sizes = classes(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> labels, sizes
    (array([0, 1, 0], dtype=int32), array([2, 1]))
    """
    from kohort.kernels.grouping import identical_rows

    if isinstance(released, np.ndarray) and released.dtype == np.float64:
        table = np.asfortranarray(released)
        return identical_rows(table.T.view(np.uint64).T, np.ones(table.shape[1], np.bool_))
    columns = released.T if isinstance(released, np.ndarray) else released
    codes = np.empty((len(columns), len(columns[0])), np.uint64)
    for j, column in enumerate(columns):
        codes[j] = _bits(np.asarray(column))
    return identical_rows(codes.T, np.array([np.asarray(c).dtype.kind == "f" for c in columns]))


def _bits(column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """64 bits a value, equal exactly where the values are."""
    if column.dtype.kind not in "biufmM":  # numpy would read the texts "1" and "01" as one number
        raise PlanError(f"released columns must be numbers or codes, got {column.dtype}")
    if column.dtype.kind == "f":
        return np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
    return column if column.dtype == np.uint64 else column.astype(np.int64).view(np.uint64)


def k_real(released: Released) -> float:
    """Records divided by distinct released records: the k an intruder meets on average (M1D's k').

    Parameters
    ----------
    released : (n, p) array, or a sequence of (n,) arrays
        The released columns that the intruder knows.

    Examples
    --------
    >>> k_real(np.array([[1.0], [1.0], [2.0], [2.0], [2.0], [3.0]]))
    2.0
    """
    labels, sizes = classes(released)
    return len(labels) / len(sizes)


def min_anonymity(released: Released, *, units: npt.NDArray[Any] | None = None) -> int:
    """Size of the smallest class of identical released records: the guarantee, not the average.

    Parameters
    ----------
    released : (n, p) array, or a sequence of (n,) arrays
        Every released column that is not confidential.
    units : (n,) array, optional
        Household or enterprise of every record as an integer code; classes then count distinct units.

    Examples
    --------
    >>> records = np.array([[1.0], [1.0], [2.0], [2.0], [2.0]])
    >>> min_anonymity(records)
    2
    >>> min_anonymity(records, units=np.array([7, 7, 1, 2, 3]))
    1
    """
    return int(class_sizes(released, units)[1].min())


def unique(released: Released, *, units: npt.NDArray[Any] | None = None) -> float:
    """Share of records that are alone in their class, or whose class is one unit's only.

    Parameters
    ----------
    released : (n, p) array, or a sequence of (n,) arrays
        Every released column that is not confidential.
    units : (n,) array, optional
        Household or enterprise of every record as an integer code.

    Examples
    --------
    >>> unique(np.array([[1.0], [1.0], [2.0], [3.0]]))
    0.5
    """
    labels, sizes = class_sizes(released, units)
    return float(np.mean(sizes[labels] == 1))


def class_sizes(
    released: Released, units: npt.NDArray[Any] | None
) -> tuple[Labels, npt.NDArray[np.int64]]:
    """Class of every record, and the records or distinct units in each class."""
    labels, sizes = classes(released)
    if units is None:
        return labels, sizes
    _, pair_sizes = pairs = classes([labels, units])
    first_of_pair = np.empty(len(pair_sizes), np.int64)
    first_of_pair[pairs[0][::-1]] = np.arange(len(labels))[::-1]
    return labels, np.bincount(labels[first_of_pair], minlength=len(sizes))


def group_sizes(groups: Labels) -> dict[int, int]:
    """How many groups there are of each size.

    Parameters
    ----------
    groups : (n,) array
        Labels 0..g-1 of one block.

    Examples
    --------
    >>> group_sizes(np.array([0, 0, 1, 1, 1, 2, 2], dtype=np.int32))
    {2: 2, 3: 1}
    """
    sizes, counts = np.unique(np.bincount(groups), return_counts=True)
    return {int(size): int(count) for size, count in zip(sizes, counts, strict=True)}


def dominance(
    x: Floats, groups: Labels, *, weights: Floats | None = None, percent: float = 10.0
) -> float:
    """Share of group x attribute cells that one or two records dominate (CS, section 1).

    A cell is dominated if abs(w·x), added up over all but the two largest contributors, is less than
    `percent` per cent of the largest: the second largest can then estimate the largest that closely.

    Parameters
    ----------
    x : (n, p) array
        Original values of one block.
    groups : (n,) array
        Labels 0..g-1 of that block.
    weights : (n,) array, optional
        Survey weights w.
    percent : float
        How close an estimate is too close.

    Examples
    --------
    >>> dominance(np.array([[90.0, 3.0], [5.0, 3.0], [5.0, 3.0]]), np.zeros(3, dtype=np.int32))
    0.5
    """
    dominated, cells = dominated_of(x, groups, weights=weights, percent=percent)
    return dominated / cells


def dominated_of(
    x: Floats, groups: Labels, *, weights: Floats | None, percent: float
) -> tuple[int, int]:
    """Dominated cells and all cells, so that blocks can be added up."""
    from kohort.kernels.disclosure import dominated_cells

    check_number("percent", percent, rule="a number above 0", holds=percent > 0)
    count = int(groups.max()) + 1
    mass = np.ones(len(groups)) if weights is None else weights
    x = as_columns(x)
    dominated = dominated_cells(x, groups, count, mass, percent / 100.0)
    return int(dominated.sum()), count * x.shape[1]
