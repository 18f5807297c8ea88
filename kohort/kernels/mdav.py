"""MDAV (maximum distance to average vector): searches in a kd-tree, or by passes over all records.

Both ways give the same labels: they share the centroid and the search for the record farthest from
it (see `rim`), and they compute every distance alike (see `kdtree`). `x` is (n, p) C-ordered here: a
record is one query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled, compiled_minimum
from kohort.kernels.kdtree import (
    LEAF,
    Near,
    Rows,
    find_farthest,
    offer,
    open_up,
    plant,
    precedes,
    take_nearest,
)
from kohort.kernels.rim import add_record, farthest_from_centroid, rim_of, sum_of_all
from kohort.methods import Floats, Labels

CHUNK = 256  # records whose distances stay in the first-level cache in a pass
TRIAL = 32  # searches between two verdicts on the tree
# The share of the records that a search may visit in the tree before a pass over all of them is faster.
# The number of attributes alone does not tell: with 13, a kd-tree halves the time if they hang together
# and takes three to five times as long if they are independent. Measured on 3e4 records with 4 to 13
# attributes (normal, three factors, lognormal, answers from 1 to 5; k = 3 and 10), shares of 0.15 and
# 0.25 both come within about a tenth of the better way or ahead of it.
PATIENCE = 0.2


class Table(NamedTuple):
    """The remaining records, column by column without gaps: the last one takes a removed one's place."""

    columns: Floats
    """(p, n) C-ordered."""
    rows: Rows
    """Rows in the file (n,)."""
    places: Rows
    """Where each row stands (n,)."""
    distances: Floats
    """Distances of a chunk (CHUNK,)."""


@compiled
def _tabulate(x: Floats, groups: Labels, left: int) -> Table:
    """The table of the `left` records without a label."""
    n, p = x.shape
    table = Table(np.empty((p, left)), np.empty(left, np.int64), np.empty(n, np.int64), np.empty(CHUNK))
    place = 0
    for row in range(n if left > 0 else 0):
        if groups[row] < 0:
            table.rows[place] = row
            table.places[row] = place
            for j in range(p):
                table.columns[j, place] = x[row, j]
            place += 1
    return table


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
    table.places[row] = last


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
def _scan(table: Table, left: int, point: Floats, near: Near) -> int:
    """Fill the list with the nearest of `left` records and return the farthest row, in one pass."""
    n = table.places.size
    open_up(near, n)
    reach = np.inf if near.rows.size > 0 else -1.0
    farthest = -1.0
    farthest_row = n
    for start in range(0, left, CHUNK):
        stop = min(start + CHUNK, left)
        _measure_chunk(table, start, stop, point)
        chunk = table.distances[: stop - start]
        least, greatest = _extremes(chunk)
        if greatest >= farthest:
            for i in range(chunk.size):
                row = table.rows[start + i]
                if precedes(-chunk[i], row, -farthest, farthest_row):
                    farthest = chunk[i]
                    farthest_row = row
        if least <= reach:
            for i in range(chunk.size):
                row = table.rows[start + i]
                if precedes(chunk[i], row, near.distances[-1], near.rows[-1]):
                    offer(near, chunk[i], row)
            reach = near.distances[-1]
    return farthest_row


@compiled
def _take_nearest_by_pass(table: Table, x: Floats, seed: int, near: Near, left: int) -> int:
    """Take the seed and its nearest out of a table of `left` records; the farthest of the rest."""
    size = near.rows.size
    _remove(table, seed, left)
    farthest = _scan(table, left - 1, x[seed], near)
    for i in range(size):
        _remove(table, near.rows[i], left - 1 - i)
    if table.places[farthest] >= left - 1 - size:  # all were equally far: look among the rest
        nobody = Near(np.empty(0), np.empty(0, np.int64))
        farthest = _scan(table, left - 1 - size, x[seed], nobody)
    return farthest


@compiled
def _close_group(x: Floats, seed: int, rows: Rows, label: int, groups: Labels, total: Floats) -> None:
    """Label a group and take its records out of the sum, the seed first, then from near to far."""
    groups[seed] = label
    add_record(total, x[seed], -1.0)
    for row in rows:
        groups[row] = label
        add_record(total, x[row], -1.0)


@compiled
def mdav_groups(x: Floats, codes: npt.NDArray[np.uint64], k: int, patience: float) -> Labels:
    """Labels of MDAV, in the order in which the groups are made. `codes` are the bits of `x`.

    Searches go to a kd-tree as long as they visit less than a share `patience` of the records, and
    then to passes over all records: 0 is brute force from the start, 1 or more the tree throughout.
    Labels are the same, whatever the patience.
    """
    n = x.shape[0]
    groups = np.full(n, -1, np.int32)
    total = sum_of_all(x)
    rim = rim_of(x, codes, groups, total)
    tree = plant(x)
    table = _tabulate(x, groups, 0)
    near = Near(np.empty(k - 1), np.empty(k - 1, np.int64))
    by_tree = True
    passed = 0  # records that brute force would have looked at since the last verdict
    opposite = n
    left = n
    count = 0
    while left >= 2 * k:
        if by_tree and (passed >= TRIAL * left or patience == 0.0):
            by_tree = tree.visits[0] * LEAF < patience * passed
            tree.visits[0] = 0
            passed = 0
            if not by_tree:
                table = _tabulate(x, groups, left)
        seed = farthest_from_centroid(rim, x, groups, total, left)
        for turn in range(2 if left >= 3 * k else 1):
            if by_tree:
                seed = find_farthest(tree, x[seed]) if turn == 1 else seed
                take_nearest(tree, x, seed, near, k - 1)
                passed += left
            else:
                seed = opposite if turn == 1 else seed
                opposite = _take_nearest_by_pass(table, x, seed, near, left)
            _close_group(x, seed, near.rows, count, groups, total)
            count += 1
            left -= k
    for row in range(n):
        if groups[row] < 0:
            groups[row] = count
    return groups
