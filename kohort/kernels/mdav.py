"""MDAV (maximum distance to average vector) by a kd-tree and by brute force, and V-MDAV.

Both ways of MDAV give the same labels: they share the centroid and the search for the record farthest
from it, and they compute every distance alike (see `kdtree`). `x` is (n, p) C-ordered here: a record
is one query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled, compiled_minimum
from kohort.kernels.grouping import identical_rows, members_by_group
from kohort.kernels.kdtree import Rows, find_farthest, find_nearest, offer, plant, take_out
from kohort.methods import Floats, Labels

CHUNK = 256  # records whose distances stay in the first-level cache in a brute-force pass
SLACK = 1e-10  # of lengths: far above what rounding takes from them, far below what it costs in time


@compiled
def _squared_distance(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(a.size):
        d = a[j] - b[j]
        total += d * d
    return total


# The centroid of the records that remain -------------------------------------------------------------


@compiled
def _add(total: Floats, record: Floats, sign: float) -> None:
    """Add a record to a running sum (2, p), or take it away: high and low part of twice 53 bits.

    The low part takes up what rounding loses (Knuth's two-sum), so that the sum after n steps is off
    by less than n * 2^-104 of the largest sum on the way: its high part is the sum of the remaining
    records, correctly rounded, as if it were computed anew.
    """
    for j in range(record.size):
        value = sign * record[j]
        high = total[0, j]
        rounded = high + value
        part = rounded - high
        low = total[1, j] + ((high - (rounded - part)) + (value - part))
        total[0, j] = rounded + low
        total[1, j] = low - (total[0, j] - rounded)


@compiled
def _sum_of_all(x: Floats) -> Floats:
    total = np.zeros((2, x.shape[1]))
    for i in range(x.shape[0]):
        _add(total, x[i], 1.0)
    return total


# The record farthest from a centroid that moves ------------------------------------------------------


class Rim(NamedTuple):
    """Distinct records in a heap by an upper bound of their distance from the moving centroid.

    When the centroid has travelled a length l since a distance d was measured, the distance is d + l
    at most. Each round thus measures only the few records whose bound reaches the farthest one.
    Identical records are one entry, or else ties would be measured all over again in every round.
    """

    members: Rows
    """Rows, those of identical records together, in file order."""
    heads: Rows
    """Position in `members` of each distinct record's first row that is not taken."""
    stops: Rows
    """Position in `members` past its last row."""
    bounds: Floats
    """Distance when measured less the length travelled until then, by distinct record."""
    heap: Rows
    """Distinct records, the greatest bound on top."""
    size: Rows
    """Number of entries in the heap (1,)."""
    held: Rows
    """Entries measured in this round."""
    centroid: Floats
    """The centroid of the last round (p,)."""
    travelled: Floats
    """The length of its way (1,)."""


@compiled
def _sift_down(heap: Rows, bounds: Floats, size: int, place: int) -> None:
    entry = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and bounds[heap[child + 1]] > bounds[heap[child]]:
            child += 1
        if bounds[heap[child]] <= bounds[entry]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = entry


@compiled
def _push(rim: Rim, entry: int) -> None:
    heap, bounds = rim.heap, rim.bounds
    place = rim.size[0]
    rim.size[0] += 1
    while place > 0 and bounds[heap[(place - 1) // 2]] < bounds[entry]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = entry


@compiled
def _pop(rim: Rim) -> int:
    entry = rim.heap[0]
    rim.size[0] -= 1
    rim.heap[0] = rim.heap[rim.size[0]]
    _sift_down(rim.heap, rim.bounds, rim.size[0], 0)
    return entry


@compiled
def _measure_all(rim: Rim, x: Floats, groups: Labels, centroid: Floats) -> None:
    """Start anew: measure every distinct record that is left and build the heap."""
    rim.travelled[0] = 0.0
    size = 0
    for entry in range(rim.heads.size):
        if _head(rim, entry, groups) >= 0:
            record = x[rim.members[rim.heads[entry]]]
            rim.bounds[entry] = np.sqrt(_squared_distance(record, centroid))
            rim.heap[size] = entry
            size += 1
    rim.size[0] = size
    for place in range(size // 2 - 1, -1, -1):
        _sift_down(rim.heap, rim.bounds, size, place)


@compiled
def _head(rim: Rim, entry: int, groups: Labels) -> int:
    """First row of a distinct record that is not taken, -1 if all are."""
    while rim.heads[entry] < rim.stops[entry]:
        row = rim.members[rim.heads[entry]]
        if groups[row] < 0:
            return row
        rim.heads[entry] += 1
    return -1


@compiled
def _rim_of(x: Floats, codes: npt.NDArray[np.uint64], groups: Labels, total: Floats) -> Rim:
    classes, sizes = identical_rows(codes)
    members, starts = members_by_group(classes, sizes.size)
    rim = Rim(
        members,
        starts[:-1].copy(),
        starts[1:].copy(),
        np.empty(sizes.size),
        np.empty(sizes.size, np.int64),
        np.zeros(1, np.int64),
        np.empty(sizes.size, np.int64),
        total[0] / x.shape[0],
        np.zeros(1),
    )
    _measure_all(rim, x, groups, rim.centroid)
    return rim


@compiled
def _farthest_from_centroid(rim: Rim, x: Floats, groups: Labels, total: Floats, left: int) -> int:
    """Row of the record farthest from the centroid of the `left` records that remain."""
    centroid = total[0] / left
    way = np.sqrt(_squared_distance(centroid, rim.centroid))
    rim.centroid[:] = centroid
    rim.travelled[0] += way
    held = 0
    best = -1.0
    best_row = x.shape[0]
    reach = -1.0
    while rim.size[0] > 0:
        travelled = rim.travelled[0]
        if rim.bounds[rim.heap[0]] + travelled < reach - SLACK * (reach + travelled):
            break
        entry = _pop(rim)
        row = _head(rim, entry, groups)
        if row < 0:
            continue
        distance = _squared_distance(x[row], centroid)
        if distance > best or (distance == best and row < best_row):
            best = distance
            best_row = row
            reach = np.sqrt(best)
        rim.bounds[entry] = np.sqrt(distance) - travelled
        rim.held[held] = entry
        held += 1
    # Bounds that have become loose all over cost more than a fresh start.
    if held > 64 and 8 * held > rim.size[0]:
        _measure_all(rim, x, groups, centroid)
    else:
        for i in range(held):
            _push(rim, rim.held[i])
    return best_row


# MDAV by a kd-tree -----------------------------------------------------------------------------------


@compiled
def mdav_tree(x: Floats, codes: npt.NDArray[np.uint64], k: int) -> Labels:
    """Labels of MDAV, in the order in which the groups are made. `codes` are the bits of `x`."""
    n = x.shape[0]
    groups = np.full(n, -1, np.int32)
    total = _sum_of_all(x)
    rim = _rim_of(x, codes, groups, total)
    tree = plant(x)
    distances = np.empty(k - 1)
    rows = np.empty(k - 1, np.int64)
    left = n
    count = 0
    while left >= 2 * k:
        seed = _farthest_from_centroid(rim, x, groups, total, left)
        pair = left >= 3 * k
        for turn in range(2 if pair else 1):
            if turn == 1:
                seed = find_farthest(tree, x[seed])
            take_out(tree, seed)
            distances[:] = np.inf
            rows[:] = n
            find_nearest(tree, x[seed], distances, rows)
            for row in rows:
                take_out(tree, row)
            _close_group(x, seed, rows, count, groups, total)
            count += 1
            left -= k
    _label_rest(groups, count)
    return groups


@compiled
def _close_group(
    x: Floats, seed: int, rows: Rows, label: int, groups: Labels, total: Floats
) -> None:
    """Label a group and take its records out of the sum, the seed first, then from near to far."""
    groups[seed] = label
    _add(total, x[seed], -1.0)
    for row in rows:
        groups[row] = label
        _add(total, x[row], -1.0)


@compiled
def _label_rest(groups: Labels, label: int) -> None:
    for i in range(groups.size):
        if groups[i] < 0:
            groups[i] = label


# MDAV by brute force ---------------------------------------------------------------------------------


class Table(NamedTuple):
    """The remaining records side by side, column by column: a removed one gives its place to the last."""

    columns: Floats
    """(p, n) C-ordered."""
    rows: Rows
    """Rows in the file (n,)."""
    places: Rows
    """Where each row stands (n,)."""
    distances: Floats
    """Distances of a chunk (CHUNK,)."""


@compiled
def _remove(table: Table, row: int, left: int) -> None:
    """Take a row out of a table of `left` records."""
    place = table.places[row]
    last = left - 1
    for j in range(table.columns.shape[0]):
        table.columns[j, place] = table.columns[j, last]
    moved = table.rows[last]
    table.rows[place] = moved
    table.places[moved] = place


@compiled
def _measure_chunk(table: Table, start: int, stop: int, point: Floats) -> None:
    """Squared distances of a chunk, the attributes added from first to last, four a pass."""
    p = point.size
    size = stop - start
    distances = table.distances[:size]
    distances[:] = 0.0
    whole = p - p % 4
    for j in range(0, whole, 4):
        x0 = table.columns[j, start:stop]
        x1 = table.columns[j + 1, start:stop]
        x2 = table.columns[j + 2, start:stop]
        x3 = table.columns[j + 3, start:stop]
        q0, q1, q2, q3 = point[j], point[j + 1], point[j + 2], point[j + 3]
        for i in range(size):
            d0 = x0[i] - q0
            d1 = x1[i] - q1
            d2 = x2[i] - q2
            d3 = x3[i] - q3
            distances[i] = (((distances[i] + d0 * d0) + d1 * d1) + d2 * d2) + d3 * d3
    for j in range(whole, p):
        x0 = table.columns[j, start:stop]
        q0 = point[j]
        for i in range(size):
            d0 = x0[i] - q0
            distances[i] += d0 * d0


@compiled_minimum
def _extremes(distances: Floats) -> tuple[float, float]:
    least = np.inf
    greatest = 0.0
    for i in range(distances.size):
        least = min(least, distances[i])
        greatest = max(greatest, distances[i])
    return least, greatest


@compiled
def _scan(table: Table, left: int, point: Floats, distances: Floats, rows: Rows) -> int:
    """Fill the list with the nearest of `left` records and return the farthest row, in one pass."""
    last = rows.size - 1
    distances[:] = np.inf
    rows[:] = table.rows.size
    farthest = -1.0
    farthest_row = table.rows.size
    for start in range(0, left, CHUNK):
        stop = min(start + CHUNK, left)
        _measure_chunk(table, start, stop, point)
        chunk = table.distances[: stop - start]
        least, greatest = _extremes(chunk)
        if greatest >= farthest:
            for i in range(chunk.size):
                row = table.rows[start + i]
                if chunk[i] > farthest or (chunk[i] == farthest and row < farthest_row):
                    farthest = chunk[i]
                    farthest_row = row
        if least <= distances[last]:
            for i in range(chunk.size):
                row = table.rows[start + i]
                if chunk[i] < distances[last] or (chunk[i] == distances[last] and row < rows[last]):
                    offer(distances, rows, chunk[i], row)
    return farthest_row


@compiled
def mdav_brute(x: Floats, codes: npt.NDArray[np.uint64], k: int) -> Labels:
    """Labels of MDAV, those of `mdav_tree`, by passes over all records that remain."""
    n = x.shape[0]
    groups = np.full(n, -1, np.int32)
    total = _sum_of_all(x)
    rim = _rim_of(x, codes, groups, total)
    table = Table(x.T.copy(), np.arange(n), np.arange(n), np.empty(CHUNK))
    distances = np.empty(k - 1)
    rows = np.empty(k - 1, np.int64)
    left = n
    count = 0
    opposite = n
    while left >= 2 * k:
        seed = _farthest_from_centroid(rim, x, groups, total, left)
        pair = left >= 3 * k
        for turn in range(2 if pair else 1):
            if turn == 1:
                if groups[opposite] >= 0:  # all others were equally far: look among the rest
                    opposite = _scan(table, left, x[seed], distances, rows)
                seed = opposite
            _remove(table, seed, left)
            opposite = _scan(table, left - 1, x[seed], distances, rows)
            for i in range(k - 1):
                _remove(table, rows[i], left - 1 - i)
            _close_group(x, seed, rows, count, groups, total)
            count += 1
            left -= k
    _label_rest(groups, count)
    return groups
