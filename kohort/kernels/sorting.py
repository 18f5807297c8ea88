"""A stable argsort of floats: ties keep the order of the file, on every CPU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.methods import Floats


@compiled
def _sortable(axis: Floats) -> npt.NDArray[np.uint64]:
    """Bits of the floats, turned so that they order as unsigned integers do."""
    bits = axis.view(np.uint64)
    keys = np.empty(axis.size, np.uint64)
    top = np.uint64(1) << np.uint64(63)
    for i in range(axis.size):
        b = bits[i]
        if b == top:  # -0.0 ties with 0.0
            b = np.uint64(0)
        keys[i] = ~b if b & top else b | top
    return keys


@compiled
def stable_order(axis: Floats) -> tuple[npt.NDArray[np.uint32], Floats]:
    """Positions that sort `axis`, and the sorted values (-0.0 comes back as 0.0): a radix sort."""
    n = axis.size
    keys = _sortable(axis)
    order = np.empty(n, np.uint32)
    for i in range(n):
        order[i] = i
    counts = np.zeros((6, 2048), np.int64)
    mask = np.uint64(2047)
    for i in range(n):
        key = keys[i]
        for digit in range(6):
            counts[digit, (key >> np.uint64(11 * digit)) & mask] += 1
    other_keys = np.empty(n, np.uint64)
    other_order = np.empty(n, np.uint32)
    for digit in range(6):
        shift = np.uint64(11 * digit)
        count = counts[digit]
        if n == 0 or count[(keys[0] >> shift) & mask] == n:
            continue  # every key has this digit
        start = 0
        for bucket in range(2048):
            size = count[bucket]
            count[bucket] = start
            start += size
        for i in range(n):
            key = keys[i]
            bucket = (key >> shift) & mask
            place = count[bucket]
            count[bucket] = place + 1
            other_keys[place] = key
            other_order[place] = order[i]
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
    top = np.uint64(1) << np.uint64(63)
    for i in range(n):
        key = keys[i]
        keys[i] = key ^ top if key & top else ~key
    return order, keys.view(np.float64)


@compiled
def equal_runs(values: Floats) -> npt.NDArray[np.int64]:
    """Start and stop (m, 2) of every run of two or more equal neighbours."""
    runs = np.empty((values.size // 2, 2), np.int64)
    count = 0
    start = 0
    for i in range(1, values.size + 1):
        if i == values.size or values[i] != values[start]:
            if i - start > 1:
                runs[count, 0] = start
                runs[count, 1] = i
                count += 1
            start = i
    return runs[:count].copy()


@compiled
def sort_runs(
    order: npt.NDArray[np.uint32], runs: npt.NDArray[np.int64], column: Floats
) -> npt.NDArray[np.int64]:
    """Sort the rows of every run by the next column, in place, and return the runs that are left."""
    left = np.empty((order.size // 2, 2), np.int64)
    count = 0
    for r in range(runs.shape[0]):
        start, stop = runs[r]
        rows = order[start:stop]
        values = column[rows]
        first = values[0]
        same = True
        for i in range(1, values.size):
            if values[i] != first:
                same = False
                break
        if not same:
            by_value = np.argsort(values, kind="mergesort")
            rows[:] = rows[by_value]
            values = values[by_value]
        begin = 0
        for i in range(1, values.size + 1):
            if i == values.size or values[i] != values[begin]:
                if i - begin > 1:
                    left[count, 0] = start + begin
                    left[count, 1] = start + i
                    count += 1
                begin = i
    return left[:count].copy()
