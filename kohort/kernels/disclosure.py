"""What a column or a group gives away: intervals around released values, dominance, diversity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.kernels.grouping import members_by_group
from kohort.kernels.sorting import stable_order
from kohort.methods import Floats, Labels


@compiled
def interval_hits(x: Floats, protected: Floats, widths: npt.NDArray[np.int64]) -> int:
    """Records whose value lies within `widths` ranks of their released one, summed over the widths.

    The widths ascend, so that each interval holds the ones before it: the first hit settles the rest.
    """
    n = x.size
    order, released = stable_order(protected)
    hits = 0
    start = 0
    while start < n:
        last = start  # equal released values share the last of their ranks
        while last + 1 < n and released[last + 1] == released[start]:
            last += 1
        for place in range(start, last + 1):
            value = x[order[place]]
            for turn in range(widths.size):
                low = released[max(last - widths[turn], 0)]
                high = released[min(last + widths[turn], n - 1)]
                if low <= value <= high:
                    hits += widths.size - turn
                    break
        start = last + 1
    return hits


@compiled
def dominated_cells(
    x: Floats, groups: Labels, count: int, weights: Floats, share: float
) -> npt.NDArray[np.int64]:
    """Groups, for every column of `x`, where all but the two largest add up to less than `share`.

    That is a share of the largest. The rest is added up by itself: a total minus the two largest
    would be rounding only where they dominate.
    """
    n, p = x.shape
    dominated = np.zeros(p, np.int64)
    for j in range(p):
        largest = np.zeros(count)
        second = np.zeros(count)
        rest = np.zeros(count)
        for i in range(n):
            g = groups[i]
            value = abs(weights[i] * x[i, j])
            if value > largest[g]:
                rest[g] += second[g]
                second[g] = largest[g]
                largest[g] = value
            elif value > second[g]:
                rest[g] += second[g]
                second[g] = value
            else:
                rest[g] += value
        for g in range(count):
            dominated[j] += rest[g] < share * largest[g]
    return dominated


@compiled
def fewest_distinct(codes: npt.NDArray[np.int64], groups: Labels, count: int) -> npt.NDArray[np.int64]:
    """Number of distinct codes in each group (count,), in the column of `codes` where it is least."""
    n, p = codes.shape
    members, starts = members_by_group(groups, count)
    fewest = np.full(count, n, np.int64)
    for g in range(count):
        rows = members[starts[g] : starts[g + 1]]
        values = np.empty(rows.size, np.int64)
        for j in range(p):
            for i in range(rows.size):
                values[i] = codes[rows[i], j]
            values.sort()
            distinct = 1
            for i in range(1, rows.size):
                distinct += values[i] != values[i - 1]
            fewest[g] = min(fewest[g], distinct)
    return fewest
