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
from kohort.kernels.optimal import Starts
from kohort.methods import Floats

Places = npt.NDArray[np.int32]


class Line(NamedTuple):
    """Neighbouring groups on an axis, from the first on; each ends where the next starts.

    Costs fall from group to group, up to the last, as far as they are finite; where a merge is not
    allowed its cost is infinite, and none is left to do before it.
    """

    start: Places
    mean: Floats
    cost: Floats  # of a merge with the group before


@compiled
def neighbour_starts(values: Floats, k: int) -> Starts:
    """For every final group of sorted `values` (n,): its start, at the index of its end.

    Of equal costs, the lowest position merges first.
    """
    n = values.size
    line = Line(np.empty(n, np.int32), np.empty(n), np.empty(n))
    ahead = Line(np.empty(n, np.int32), np.empty(n), np.empty(n))
    starts = np.zeros(n + 1, np.int64)
    pending = [(0, n)]
    while len(pending) > 0:
        start, stop = pending.pop()
        if values[start] == values[stop - 1]:
            # All merges cost nothing: the first group takes all but the last k, time after time.
            while stop - start >= 2 * k:
                starts[stop] = stop - k
                stop -= k
        if stop - start < 2 * k:
            starts[stop] = start
            continue
        count = _merge_neighbours(line, ahead, values, start, stop, k)
        for g in range(count - 1, -1, -1):
            if stop - line.start[g] < 2 * k:
                starts[stop] = line.start[g]
            else:
                pending.append((int(line.start[g]), stop))
            stop = int(line.start[g])
    return starts


@compiled
def _merge_neighbours(line: Line, ahead: Line, values: Floats, start: int, stop: int, k: int) -> int:
    """Merge until no allowed merge is left; returns the number of groups, which are in `line`.

    At first the k lowest are a group, the k highest too, and every record between them its own.
    `ahead` holds groups that were taken back from the line, the next one last.
    """
    last = 0
    line.start[0] = start
    line.mean[0] = _mean(values, start, start + k)
    line.cost[0] = np.inf
    waiting = 0
    unread = start + k
    while True:
        if waiting > 0:
            begin = int(ahead.start[waiting - 1])
            mean = ahead.mean[waiting - 1]
            end = unread if waiting == 1 else int(ahead.start[waiting - 2])
        else:
            begin = unread
            end = begin + 1 if begin < stop - k else stop
            mean = _mean(values, begin, end) if begin < stop else 0.0
        cost = _cost(line, last, begin, mean, end, k) if begin < stop else np.inf
        if line.cost[last] < np.inf and line.cost[last] <= cost:
            if line.cost[last - 1] <= line.cost[last]:
                last, waiting = _take_back(line, ahead, last, waiting)
                continue
            share = float(begin - line.start[last]) / float(begin - line.start[last - 1])
            line.mean[last - 1] += (line.mean[last] - line.mean[last - 1]) * share
            last -= 1
            if last > 0:
                here = int(line.start[last])
                line.cost[last] = _cost(line, last - 1, here, line.mean[last], begin, k)
                if line.cost[last] == np.inf and line.cost[last - 1] < np.inf:
                    last, waiting = _take_back(line, ahead, last, waiting)
        elif begin == stop:
            return last + 1
        else:
            last += 1
            line.start[last] = begin
            line.mean[last] = mean
            line.cost[last] = cost
            if waiting > 0:
                waiting -= 1
            else:
                unread = end


@compiled
def _take_back(line: Line, ahead: Line, last: int, waiting: int) -> tuple[int, int]:
    """Let the last group of the line wait, so that the one before it is the last."""
    ahead.start[waiting] = line.start[last]
    ahead.mean[waiting] = line.mean[last]
    return last - 1, waiting + 1


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
