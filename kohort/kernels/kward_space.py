"""k-Ward in space: the cheapest merge of any two groups, of which one at least is smaller than k.

Small groups remember their cheapest merge. A merge is told to all of them, in one pass; a group whose
partner changed keeps its old cost, which no other merge can beat, and looks for a new partner only
when that cost is the lowest of all. So every merge is the one that a search of all pairs would find,
rounding and ties included, without a matrix of costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kohort.compiled import compiled, compiled_minimum
from kohort.kernels.kward import Places, ward_factor
from kohort.kernels.maximum_distance import (
    CHUNK,
    Rows,
    columns_of,
    distant_start,
    squared_distances,
)
from kohort.methods import Floats, Labels


class Cloud(NamedTuple):
    """Groups in space, each known by its first record in the file: its name.

    Small groups (fewer than k records) each know their cheapest merge; those of k or more need not,
    because one of two that merge is small. A group that is gone is at infinity, with an infinite cost.
    """

    small: Floats  # (v, m) centroids
    small_name: Places
    small_size: Floats
    cost: Floats  # no larger than that of the cheapest merge
    partner: Places  # the name of the group it is with, at exactly that cost; -1 where unknown
    large: Floats  # (v, m // k) centroids
    large_name: Places
    large_size: Floats
    slot: Places  # by name: the slot among small groups, or -1 - the slot among large ones
    parent: Places  # by record: an earlier record of its group, or itself


@compiled
def _single_records(x: Floats, starts: Labels, k: int) -> tuple[Cloud, int]:
    """The records of `x` (m, v) on their own, but for two starting groups; and the number of those."""
    m, v = x.shape
    alone = np.flatnonzero(starts < 0).astype(np.uint32)
    cloud = Cloud(
        columns_of(x, alone),
        alone.astype(np.int32),
        np.ones(alone.size),
        np.zeros(alone.size),
        np.full(alone.size, -1, np.int32),
        np.full((v, m // k), np.inf),
        np.full(m // k, -1, np.int32),
        np.ones(m // k),
        np.empty(m, np.int32),
        np.arange(m).astype(np.int32),
    )
    for i in range(alone.size):
        cloud.slot[alone[i]] = i
    for label in range(2):
        members = np.flatnonzero(starts == label)
        mean = x[members[0]].copy()
        for i in range(1, members.size):
            for c in range(v):
                mean[c] += (x[members[i], c] - mean[c]) / (i + 1.0)
            cloud.parent[members[i]] = members[0]
        cloud.large[:, label] = mean
        cloud.large_name[label] = members[0]
        cloud.large_size[label] = k
        cloud.slot[members[0]] = -1 - label
    return cloud, 2


@compiled_minimum
def _costs(
    centroids: Floats, sizes: Floats, start: int, point: Floats, size: float, out: Floats
) -> None:
    """Costs of a merge with as many groups as `out` has, from the slot `start` on."""
    squared_distances(centroids, start, point, out)
    others = sizes[start : start + out.size]
    for i in range(out.size):
        out[i] *= ward_factor(size, others[i])


@compiled_minimum
def _cheapest(
    centroids: Floats,
    names: Places,
    sizes: Floats,
    point: Floats,
    size: float,
    cost: float,
    partner: int,
) -> tuple[float, int]:
    """The cheapest merge with any of these groups, if it beats `cost`, `partner`; ties by name."""
    buffer = np.empty(CHUNK)
    for start in range(0, names.size, CHUNK):
        chunk = buffer[: min(CHUNK, names.size - start)]
        _costs(centroids, sizes, start, point, size, chunk)
        lowest = np.inf
        for i in range(chunk.size):
            lowest = min(lowest, chunk[i])
        if lowest > cost or lowest == np.inf:
            continue
        for i in range(chunk.size):
            name = names[start + i]
            if chunk[i] < cost or (chunk[i] == cost and name < partner):
                cost = chunk[i]
                partner = name
    return cost, partner


@compiled
def _find_merge(cloud: Cloud, used: int, large: int, slot: int) -> None:
    """Find the cheapest merge of the small group in a slot."""
    point = cloud.small[:, slot].copy()
    size = cloud.small_size[slot]
    cloud.small[:, slot] = np.inf  # not with itself
    cost, partner = _cheapest(
        cloud.small, cloud.small_name[:used], cloud.small_size, point, size, np.inf, -1
    )
    cost, partner = _cheapest(
        cloud.large, cloud.large_name[:large], cloud.large_size, point, size, cost, partner
    )
    cloud.small[:, slot] = point
    cloud.cost[slot] = cost
    cloud.partner[slot] = partner


@compiled_minimum
def _next_merge(cloud: Cloud, used: int, large: int) -> tuple[int, int]:
    """Names of the two groups that merge next, the lower first; of equal costs, the lowest names."""
    cost = cloud.cost[:used]
    while True:
        lowest = np.inf
        for s in range(used):
            lowest = min(lowest, cost[s])
        first = -1
        second = -1
        unknown = -1
        for s in range(used):
            if cost[s] == lowest:
                if cloud.partner[s] < 0:
                    unknown = s
                    break
                low = min(cloud.small_name[s], cloud.partner[s])
                high = max(cloud.small_name[s], cloud.partner[s])
                if first < 0 or low < first or (low == first and high < second):
                    first = low
                    second = high
        if unknown < 0:
            return first, second
        _find_merge(cloud, used, large, unknown)


@compiled_minimum
def _tell_small(cloud: Cloud, used: int, first: int, second: int, point: Floats, size: float) -> None:
    """Let small groups know that `second` is now part of `first`, with this centroid and size."""
    buffer = np.empty(CHUNK)
    for start in range(0, used, CHUNK):
        chunk = buffer[: min(CHUNK, used - start)]
        _costs(cloud.small, cloud.small_size, start, point, size, chunk)
        known = cloud.cost[start : start + chunk.size]
        partner = cloud.partner[start : start + chunk.size]
        concerned = 0  # most chunks have none, which a loop in SIMD lanes finds out
        for i in range(chunk.size):
            is_near = (chunk[i] <= known[i]) & (chunk[i] < np.inf)
            concerned += is_near | (partner[i] == first) | (partner[i] == second)
        if concerned == 0:
            continue
        for i in range(chunk.size):
            if (partner[i] == first) | (partner[i] == second):
                # At no higher cost it stays the cheapest: others of that cost have later names.
                partner[i] = first if chunk[i] <= known[i] else -1
                known[i] = min(chunk[i], known[i])
            elif chunk[i] < known[i]:
                partner[i] = first
                known[i] = chunk[i]
            elif chunk[i] == known[i] and first < partner[i]:
                partner[i] = first


@compiled
def _take_out(cloud: Cloud, name: int) -> tuple[Floats, float]:
    """Centroid and size of a group, which is gone from the small ones if it was small."""
    s = cloud.slot[name]
    if s < 0:
        return cloud.large[:, -1 - s].copy(), cloud.large_size[-1 - s]
    point = cloud.small[:, s].copy()
    cloud.small[:, s] = np.inf
    cloud.cost[s] = np.inf
    cloud.partner[s] = -1
    return point, cloud.small_size[s]


@compiled
def _merge(cloud: Cloud, first: int, second: int, k: int, used: int, large: int) -> int:
    """Merge the group `second` into `first`; returns the number of large groups."""
    place, other = cloud.slot[first], cloud.slot[second]
    point, size = _take_out(cloud, first)
    towards, added = _take_out(cloud, second)
    size += added
    for c in range(point.size):
        point[c] += (towards[c] - point[c]) * (added / size)
    cloud.parent[second] = first
    _tell_small(cloud, used, first, second, point, size)
    if place >= 0 and other >= 0 and size < k:
        cloud.small[:, place] = point
        cloud.small_size[place] = size
        _find_merge(cloud, used, large, place)
        return large
    if place >= 0 and other >= 0:
        place = -1 - large
        large += 1
    else:
        place = min(place, other)
    cloud.large[:, -1 - place] = point
    cloud.large_name[-1 - place] = first
    cloud.large_size[-1 - place] = size
    cloud.slot[first] = place
    return large


@compiled
def _close_ranks(cloud: Cloud, used: int) -> int:
    """Move small groups into the slots of those that are gone; returns the number of slots in use."""
    place = 0
    for s in range(used):
        if cloud.cost[s] < np.inf:
            cloud.small[:, place] = cloud.small[:, s]
            cloud.small_name[place] = cloud.small_name[s]
            cloud.small_size[place] = cloud.small_size[s]
            cloud.cost[place] = cloud.cost[s]
            cloud.partner[place] = cloud.partner[s]
            cloud.slot[cloud.small_name[s]] = place
            place += 1
    return place


@compiled
def merge_in_space(x: Floats, starts: Labels, k: int) -> Places:
    """For each record of `x` (m, v), the first record of its group, once no group is below k.

    `starts` has the labels 0 and 1 of the two groups of k that start, -1 elsewhere. Of equal costs,
    the pair of groups whose first records come first in the file.
    """
    cloud, large = _single_records(x, starts, k)
    used = cloud.small_name.size
    for s in range(used):
        _find_merge(cloud, used, large, s)
    below = used
    while below > 0:
        first, second = _next_merge(cloud, used, large)
        small_ones = (cloud.slot[first] >= 0) + (cloud.slot[second] >= 0)
        large = _merge(cloud, first, second, k, used, large)
        below -= small_ones - (cloud.slot[first] >= 0)
        if below < 0.8 * used:
            used = _close_ranks(cloud, used)
    for i in range(cloud.parent.size):
        cloud.parent[i] = cloud.parent[cloud.parent[i]]
    return cloud.parent


@compiled
def _axis_start(rank: Rows, members: Rows, k: int) -> Labels:
    """Labels 0 of the first and 1 of the last k members on the axis, -1 of the others."""
    starts = np.full(members.size, -1, np.int32)
    order = np.argsort(rank[members])
    starts[order[:k]] = 0
    starts[order[order.size - k :]] = 1
    return starts


@compiled
def _are_equal(x: Floats) -> bool:
    for c in range(x.shape[1]):
        for i in range(1, x.shape[0]):
            if x[i, c] != x[0, c]:
                return False
    return True


@compiled
def space_groups(x: Floats, rank: Rows, k: int) -> Labels:
    """Labels 0..g-1 of the records of `x` (n, v), numbered by their first records.

    `rank` (n,) orders the records on the axis that decides which come first and last; where it is
    empty, the two groups start from the most distant records.
    """
    n = x.shape[0]
    members = np.arange(n).astype(np.uint32)
    first_of = np.empty(n, np.uint32)  # by record: the first record of its group
    pending = [(0, n)]
    while len(pending) > 0:
        start, stop = pending.pop()
        part = members[start:stop].copy()
        if part.size < 2 * k:
            first_of[part] = part[0]
            continue
        block = columns_of(x, part).T
        ascending = rank.size == 0 or np.all(np.diff(rank[part].astype(np.int64)) > 0)
        if ascending and _are_equal(block):
            _divide_equal(part, rank.size > 0, k, first_of)
            continue
        starts = distant_start(block, k) if rank.size == 0 else _axis_start(rank, part, k)
        parent = merge_in_space(block, starts, k)
        order = np.argsort(parent, kind="mergesort")
        members[start:stop] = part[order]
        begin = 0
        for i in range(1, order.size + 1):
            if i == order.size or parent[order[i]] != parent[order[begin]]:
                pending.append((start + begin, start + i))
                begin = i
    return _numbered(first_of)


@compiled
def _divide_equal(part: Rows, on_axis: bool, k: int, first_of: Rows) -> None:
    """What recursion makes of equal records, in one pass.

    Every merge costs nothing, so that the group of the first record takes all but the other starting
    group, time after time. On the axis that one is the last k. With the most distant records it is
    the second record and the k-1 that follow the first group's.
    """
    start, stop = 0, part.size
    while stop - start >= 2 * k:
        if on_axis:
            first_of[part[stop - k : stop]] = part[stop - k]
            stop -= k
        else:
            other = part[start + 1]
            first_of[other] = other
            first_of[part[start + k + 1 : start + 2 * k]] = other
            kept = part[start + k]
            for i in range(start + k - 1, start + 1, -1):
                part[i + k - 1] = part[i]
            part[start + 2 * k - 1] = kept
            part[start + k] = part[start]
            start += k
    first_of[part[start:stop]] = part[start]


@compiled
def _numbered(first_of: Rows) -> Labels:
    """Labels 0..g-1 in the order of the groups' first records."""
    groups = np.empty(first_of.size, np.int32)
    count = 0
    for i in range(first_of.size):
        if first_of[i] == i:
            groups[i] = count
            count += 1
        else:
            groups[i] = groups[first_of[i]]
    return groups
