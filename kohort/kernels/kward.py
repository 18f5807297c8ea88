"""k-Ward on an axis: the cheapest merge of two neighbours, one of them smaller than k, until none is.

A merge costs ni·nj/(ni+nj)·|ci-cj|² (Ward 1963), by direct differences. The centroid moves from one
group's towards the other's, so that equal records keep exactly their value and cost exactly nothing.

A merge raises the costs of the two beside it and allows none that was not allowed: means on an axis
move apart, sizes grow, and rounding keeps both orders. So a merge that is cheaper than the two beside
it stays so until it happens, and can happen now. No queue of all costs is needed, and after the sort
the time grows as the number of records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.methods import Floats, Labels

Places = npt.NDArray[np.int32]


class Line(NamedTuple):
    """Neighbouring groups on an axis; each ends where the next starts.

    The cost of the first is infinite: it merges with none before it. From there on costs fall.
    """

    start: Places
    mean: Floats
    cost: Floats  # of a merge with the group before


@compiled
def neighbour_groups(values: Floats, order: npt.NDArray[np.uint32], k: int) -> Labels:
    """Labels 0..g-1 along the axis, given the sorted `values` (n,) and the records in that order.

    Of equal costs, the lowest position merges first.
    """
    n = values.size
    line = Line(np.empty(n, np.int32), np.empty(n), np.empty(n))
    ahead = Line(np.empty(n, np.int32), np.empty(n), np.empty(n))
    begins = np.zeros(n, np.bool_)
    pending = [(0, n)]
    while len(pending) > 0:
        start, stop = pending.pop()
        begins[start] = True
        if values[start] == values[stop - 1]:
            # All merges cost nothing: the first group takes all but the last k, time after time.
            while stop - start >= 2 * k:
                stop -= k
                begins[stop] = True
        elif stop - start >= 2 * k:
            _merge_neighbours(line, ahead, values, start, stop, k, begins, pending)
    groups = np.empty(n, np.int32)
    label = -1
    for i in range(n):
        label += begins[i]
        groups[order[i]] = label
    return groups


@compiled
def _merge_neighbours(
    line: Line,
    ahead: Line,
    values: Floats,
    start: int,
    stop: int,
    k: int,
    begins: npt.NDArray[np.bool_],
    pending: list[tuple[int, int]],
) -> None:
    """Merge until no allowed merge is left; groups of 2k records or more are then pending.

    At first the k lowest are a group, the k highest too, and every record between them its own. The
    next group is the last of `ahead`, where groups of the line wait, else the next unread records.
    """
    last = -1
    waiting = 0
    unread = start
    while True:
        begin = unread
        if waiting > 0:
            begin = int(ahead.start[waiting - 1])
            end = unread if waiting == 1 else int(ahead.start[waiting - 2])
            mean = ahead.mean[waiting - 1]
        elif begin < stop:
            end = begin + (k if begin == start or begin == stop - k else 1)
            mean = _mean(values, begin, end)
        cost = np.inf
        if last >= 0 and begin < stop:
            cost = _cost(line, last, begin, mean, end, k)
        if last > 0 and line.cost[last] <= cost:
            last, waiting = _merge_last(line, ahead, last, waiting, begin, k)
            continue
        if last == 0 and cost == np.inf:  # nothing merges over this border, and all before it is done
            last = -1
            begins[line.start[0]] = True
            if begin - line.start[0] >= 2 * k:
                pending.append((int(line.start[0]), begin))
        if begin == stop:
            return
        last += 1
        line.start[last] = begin
        line.mean[last] = mean
        line.cost[last] = cost
        waiting = max(waiting - 1, 0)
        unread = max(unread, end)


@compiled
def _merge_last(line: Line, ahead: Line, last: int, waiting: int, stop: int, k: int) -> tuple[int, int]:
    """Merge the last two groups of the line, which ends at `stop`; returns its last, and waiting.

    If the merge before them is now the cheaper one, the new group waits until that is done.
    """
    share = float(stop - line.start[last]) / float(stop - line.start[last - 1])
    line.mean[last - 1] += (line.mean[last] - line.mean[last - 1]) * share
    last -= 1
    if last > 0:
        begin = int(line.start[last])
        line.cost[last] = _cost(line, last - 1, begin, line.mean[last], stop, k)
        if line.cost[last - 1] <= line.cost[last]:
            ahead.start[waiting] = begin
            ahead.mean[waiting] = line.mean[last]
            return last - 1, waiting + 1
    return last, waiting


@compiled
def _mean(values: Floats, start: int, stop: int) -> float:
    mean = values[start]
    for i in range(start + 1, stop):
        mean += (values[i] - mean) / (i + 1.0 - start)
    return float(mean)


@compiled
def _cost(line: Line, group: int, begin: int, mean: float, end: int, k: int) -> float:
    """The cost of a merge of a group of the line with the one from `begin` to `end` behind it."""
    size = begin - int(line.start[group])
    if size >= k and end - begin >= k:
        return np.inf
    d = float(mean - line.mean[group])
    return ward_factor(size, end - begin) * (d * d)


@compiled
def ward_factor(size: float, other: float) -> float:
    """ni·nj/(ni+nj)."""
    return float(size) * float(other) / (float(size) + float(other))
