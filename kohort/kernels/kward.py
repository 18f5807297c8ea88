"""k-Ward on an axis: the cheapest merge of two neighbours, one of them smaller than k, until none is.

A merge costs ni·nj/(ni+nj)·|ci-cj|² (Ward 1963), by direct differences. The centroid moves from one
group's towards the other's, so that equal records keep exactly their value and cost exactly nothing.
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
    """Groups on an axis, each known by the position of its first record."""

    after: Places  # the next group: where this one ends
    before: Places  # the group before, -1 for the first
    mean: Floats
    cost: Floats  # of a merge with the next group; infinite where it is not allowed


@compiled
def neighbour_starts(values: Floats, k: int) -> Starts:
    """For every final group of sorted `values` (n,): its start, at the index of its end.

    Only neighbours merge; of equal costs, the lowest position.
    """
    n = values.size
    line = Line(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.empty(n))
    starts = np.zeros(n + 1, np.int64)
    pending = [(0, n)]
    while len(pending) > 0:
        start, stop = pending.pop()
        if stop - start < 2 * k:
            starts[stop] = start
        elif values[start] == values[stop - 1]:
            # All merges cost nothing: the first group takes all but the last k, time after time.
            while stop - start >= 2 * k:
                starts[stop] = stop - k
                stop -= k
            starts[stop] = start
        else:
            _begin(line, values, start, stop, k)
            _merge_neighbours(line, start, stop, k)
            group = start
            while group < stop:
                after = int(line.after[group])
                pending.append((group, after))
                group = after
    return starts


@compiled
def _begin(line: Line, values: Floats, start: int, stop: int, k: int) -> None:
    """A group of the first k, one of the last k, and every record between them on its own."""
    group = start
    previous = -1
    while group < stop:
        size = k if group == start or group == stop - k else 1
        mean = values[group]
        for i in range(1, size):
            mean += (values[group + i] - mean) / (i + 1.0)
        line.mean[group] = mean
        line.before[group] = previous
        line.after[group] = group + size
        previous = group
        group += size
    group = start
    while group < stop:
        _price(line, group, stop, k)
        group = line.after[group]


@compiled
def _price(line: Line, group: int, stop: int, k: int) -> None:
    """Set the cost of a merge of a group with the next one."""
    after = line.after[group]
    line.cost[group] = np.inf
    if after < stop:
        size = after - group
        other = line.after[after] - after
        if size < k or other < k:
            d = line.mean[after] - line.mean[group]
            line.cost[group] = ward_factor(size, other) * (d * d)


@compiled
def ward_factor(size: float, other: float) -> float:
    """ni·nj/(ni+nj)."""
    return float(size) * float(other) / (float(size) + float(other))


@compiled
def _merge_neighbours(line: Line, start: int, stop: int, k: int) -> None:
    """Merge until no allowed merge is left, in time that grows as the number of records.

    A merge raises the costs of the two beside it and allows none that was not allowed (means on an
    axis move apart, sizes grow, and rounding keeps both orders). So a merge that is cheaper than the
    two beside it stays so until it happens, and can happen now: no queue of all costs is needed.
    """
    group = start
    while True:
        cost = line.cost[group]
        left = np.inf if line.before[group] < 0 else line.cost[line.before[group]]
        after = line.after[group]
        if left < np.inf and left <= cost:
            group = line.before[group]
        elif after >= stop:
            return
        elif cost == np.inf or line.cost[after] < cost:
            group = after
        else:
            end = line.after[after]
            share = float(end - after) / float(end - group)
            line.mean[group] += (line.mean[after] - line.mean[group]) * share
            line.after[group] = end
            if end < stop:
                line.before[end] = group
            _price(line, group, stop, k)
            before = line.before[group]
            if before >= 0:
                _price(line, before, stop, k)
                if line.cost[before] == np.inf:  # the one before it may now be the cheapest
                    group = before
