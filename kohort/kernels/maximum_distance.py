"""Groups around the two most distant records, without a matrix of distances.

Records lie in shells: in the order of their distance from one centre, the farthest first. By the
triangle inequality the shells of two records bound their distance from both sides, so that searches
for the farthest and for the nearest record leave out most of the table, and yet find what a search of
all pairs would. Distances are sums of squared differences, attribute by attribute from first to last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled, compiled_minimum
from kohort.methods import Floats, Labels

CHUNK = 256  # records whose distances are computed together, in SIMD lanes
SLACK = 1e-9  # far more than rounding takes from the bounds of the triangle inequality

Rows = npt.NDArray[np.uint32]


class Shells(NamedTuple):
    """Records in shells; a record that is taken is at infinity and has the bound -1."""

    centre: Floats  # (v, 1)
    columns: Floats  # (v, m), C-ordered
    rows: Rows  # (m,) the place of each in the table
    reach: Floats  # (m,) distance from the centre, from large to small
    bound: Floats  # (m,) no smaller than the squared distance to the farthest free record
    partner: npt.NDArray[np.int64]  # (m,) row at exactly that distance, -1 where none is known


@compiled_minimum
def squared_distances(columns: Floats, start: int, point: Floats, out: Floats) -> None:
    """Squared distances from `point` of as many records as `out` has, from `start` on."""
    v = columns.shape[0]
    stop = start + out.size
    out[:] = 0.0
    whole = v - v % 4
    for c in range(0, whole, 4):
        x0, x1 = columns[c, start:stop], columns[c + 1, start:stop]
        x2, x3 = columns[c + 2, start:stop], columns[c + 3, start:stop]
        p0, p1, p2, p3 = point[c], point[c + 1], point[c + 2], point[c + 3]
        for i in range(out.size):
            d0 = x0[i] - p0
            d1 = x1[i] - p1
            d2 = x2[i] - p2
            d3 = x3[i] - p3
            out[i] = out[i] + d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
    for c in range(whole, v):
        x0 = columns[c, start:stop]
        p0 = point[c]
        for i in range(out.size):
            d0 = x0[i] - p0
            out[i] += d0 * d0


@compiled
def columns_of(x: Floats, rows: Rows) -> Floats:
    """Those rows of `x` (n, v), as (v, m) C-ordered."""
    columns = np.empty((x.shape[1], rows.size))
    for c in range(x.shape[1]):
        for i in range(rows.size):
            columns[c, i] = x[rows[i], c]
    return columns


@compiled
def in_shells(x: Floats, rows: Rows, bound: Floats, partner: npt.NDArray[np.int64]) -> Shells:
    """The given rows of `x` around their mean, with what is known of every row of `x`."""
    columns = columns_of(x, rows)
    centre = np.empty((x.shape[1], 1))
    for c in range(x.shape[1]):
        centre[c, 0] = columns[c, 0] + (columns[c] - columns[c, 0]).sum() / rows.size
    reach = np.empty(rows.size)
    squared_distances(columns, 0, centre[:, 0].copy(), reach)
    reach = np.sqrt(reach)
    order = np.argsort(-reach, kind="mergesort")
    rows = rows[order]
    columns = columns_of(x, rows)
    return Shells(centre, columns, rows, reach[order], bound[rows], partner[rows])


@compiled_minimum
def _find_partner(shells: Shells, slot: int) -> None:
    """Find the farthest free record from a slot; of equal distances, the lowest row."""
    point = shells.columns[:, slot].copy()
    distances = np.empty(CHUNK)
    farthest = -1.0
    partner = np.int64(-1)
    for start in range(0, shells.rows.size, CHUNK):
        widest = shells.reach[slot] + shells.reach[start]
        if widest * widest * (1.0 + SLACK) < farthest:
            break
        chunk = distances[: min(CHUNK, shells.rows.size - start)]
        squared_distances(shells.columns, start, point, chunk)
        if start <= slot < start + CHUNK:
            chunk[slot - start] = np.inf  # it is no partner of its own
        for i in range(chunk.size):
            chunk[i] = chunk[i] if chunk[i] < np.inf else -1.0
        highest = -1.0
        for i in range(chunk.size):
            highest = max(highest, chunk[i])
        if highest < farthest or highest < 0.0:
            continue
        for i in range(chunk.size):
            row = np.int64(shells.rows[start + i])
            if chunk[i] > farthest or (chunk[i] == farthest and row < partner):
                farthest = chunk[i]
                partner = row
    shells.bound[slot] = farthest
    shells.partner[slot] = partner
    _lower_bounds_of_equals(shells, slot)


@compiled
def _lower_bounds_of_equals(shells: Shells, slot: int) -> None:
    """Records equal to the one in a slot have its farthest distance, and need not be asked for it."""
    for step in (-1, 1):
        s = slot + step
        while 0 <= s < shells.rows.size and shells.reach[s] == shells.reach[slot]:
            if shells.bound[s] > shells.bound[slot]:
                equal = True
                for c in range(shells.columns.shape[0]):
                    equal = equal and shells.columns[c, s] == shells.columns[c, slot]
                if equal:
                    shells.bound[s] = shells.bound[slot]
            s += step


@compiled_minimum
def _find_nearest(shells: Shells, point: Floats, reach: float) -> int:
    """Slot of the free record nearest to a point; of equal distances, the lowest row.

    `reach` is the point's distance from the centre of the shells.
    """
    m = shells.rows.size
    distances = np.empty(CHUNK)
    least = np.inf
    nearest = -1
    for start in range(0, m, CHUNK):
        chunk = distances[: min(CHUNK, m - start)]
        outer = shells.reach[start]
        inner = shells.reach[start + chunk.size - 1]
        apart = max(reach - outer, inner - reach) - SLACK * (reach + outer)
        if apart > 0.0 and apart * apart > least:
            if reach > outer:
                break
            continue
        squared_distances(shells.columns, start, point, chunk)
        lowest = np.inf
        for i in range(chunk.size):
            lowest = min(lowest, chunk[i])
        if lowest > least or lowest == np.inf:
            continue
        for i in range(chunk.size):
            if chunk[i] < least or (chunk[i] == least and shells.rows[start + i] < shells.rows[nearest]):
                least = chunk[i]
                nearest = start + i
    return nearest


@compiled
def _find_extremes(shells: Shells, groups: Labels) -> tuple[int, int]:
    """Slots of the two most distant free records: of equal pairs, the lowest row, then partner.

    From outside in, records whose bound reaches the largest distance so far are asked for their
    farthest partner, unless the one they know is still free.
    """
    bound = shells.bound
    outermost = 0
    while bound[outermost] < 0.0:
        outermost += 1
    best = outermost
    for s in range(outermost, bound.size):
        widest = shells.reach[s] + shells.reach[outermost]
        bound[s] = min(bound[s], widest * widest * (1.0 + SLACK))
        if s == best or _comes_first(shells, s, best):
            if shells.partner[s] < 0 or groups[shells.partner[s]] >= 0:
                _find_partner(shells, s)
            if _comes_first(shells, s, best):
                best = s
    other = outermost
    while shells.rows[other] != shells.partner[best]:
        other += 1
    return best, other


@compiled
def _comes_first(shells: Shells, slot: int, best: int) -> bool:
    """Whether a slot has a larger bound than the best, or the same and a lower row."""
    if shells.bound[slot] == shells.bound[best]:
        return bool(shells.rows[slot] < shells.rows[best])
    return bool(shells.bound[slot] > shells.bound[best])


@compiled
def _grow(x: Floats, shells: Shells, seed: int, k: int, groups: Labels, label: int) -> None:
    """Let a group grow from a seed to k records, each the nearest to the mean of those before."""
    total = np.zeros(x.shape[1])
    mean = np.empty(x.shape[1])
    reach = np.empty(1)
    slot = seed
    for size in range(1, k + 1):
        row = shells.rows[slot]
        groups[row] = label
        shells.columns[:, slot] = np.inf
        shells.bound[slot] = -1.0
        if size < k:
            for c in range(total.size):
                total[c] += x[row, c]
                mean[c] = total[c] / size
            squared_distances(shells.centre, 0, mean, reach)
            slot = _find_nearest(shells, mean, np.sqrt(reach[0]))


@compiled
def _take_two(x: Floats, shells: Shells, k: int, groups: Labels, label: int) -> None:
    """Label the groups of the two most distant free records `label` and `label` + 1."""
    first, second = _find_extremes(shells, groups)
    shells.columns[:, second] = np.inf  # kept out of the first group
    _grow(x, shells, first, k, groups, label)
    shells.columns[:, second] = x[shells.rows[second]]
    _grow(x, shells, second, k, groups, label + 1)


@compiled
def distant_start(x: Floats, k: int) -> Labels:
    """Labels 0 and 1 of the first two groups among `x` (n, v), -1 elsewhere; n >= 2k."""
    n = x.shape[0]
    groups = np.full(n, -1, np.int32)
    rows = np.arange(n).astype(np.uint32)
    shells = in_shells(x, rows, np.full(n, np.inf), np.full(n, -1))
    _take_two(x, shells, k, groups, 0)
    return groups


@compiled
def distant_groups(x: Floats, k: int) -> Labels:
    """Labels 0..g-1 of the records of `x` (n, v), two groups after two; fewer than 2k are left over.

    Those are a group of their own, or if fewer than k, part of the nearer of the last two.
    """
    n = x.shape[0]
    groups = np.full(n, -1, np.int32)
    rows = np.arange(n).astype(np.uint32)
    bound = np.full(n, np.inf)
    partner = np.full(n, -1)
    count = 0
    while rows.size >= 2 * k:
        # What is left shrinks from outside: new shells now and then fit it better, and are smaller.
        shells = in_shells(x, rows, bound, partner)
        left = rows.size
        while left >= max(2 * k, 0.9 * rows.size):
            _take_two(x, shells, k, groups, count)
            count += 2
            left -= 2 * k
        bound[shells.rows] = shells.bound
        partner[shells.rows] = shells.partner
        rows = rows[groups[rows] < 0]
    if rows.size >= k:
        groups[rows] = count
    elif rows.size > 0:
        rest = _mean_of(x, groups, -1)
        distance = np.empty(2)
        for last in range(2):
            mean = _mean_of(x, groups, count - 2 + last)
            squared_distances(mean.reshape(-1, 1), 0, rest, distance[last : last + 1])
        groups[rows] = count - 2 if distance[0] <= distance[1] else count - 1
    return groups


@compiled
def _mean_of(x: Floats, groups: Labels, label: int) -> Floats:
    """Mean of a group's records, added in the order of the file."""
    total = np.zeros(x.shape[1])
    size = 0
    for i in range(groups.size):
        if groups[i] == label:
            size += 1
            for c in range(total.size):
                total[c] += x[i, c]
    return total / size
