"""The record farthest from the centroid of the records that remain, while groups are taken away.

`x` is (n, p) C-ordered: a record is one query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.kernels.grouping import identical_rows, members_by_group
from kohort.methods import Floats, Labels

Rows = npt.NDArray[np.int64]

SLACK = 1e-10  # of lengths: far above what rounding takes from them, far below what it costs in time


@compiled
def distance_between(a: Floats, b: Floats) -> float:
    """Squared distance of two points, the attributes added from first to last."""
    total = 0.0
    for j in range(a.size):
        d = a[j] - b[j]
        total += d * d
    return total


@compiled
def add_record(total: Floats, record: Floats, sign: float) -> None:
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
def sum_of_all(x: Floats) -> Floats:
    """High and low part (2, p) of the sum of all records."""
    total = np.zeros((2, x.shape[1]))
    for i in range(x.shape[0]):
        add_record(total, x[i], 1.0)
    return total


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
    entry = int(rim.heap[0])
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
            rim.bounds[entry] = np.sqrt(distance_between(record, centroid))
            rim.heap[size] = entry
            size += 1
    rim.size[0] = size
    for place in range(size // 2 - 1, -1, -1):
        _sift_down(rim.heap, rim.bounds, size, place)


@compiled
def _head(rim: Rim, entry: int, groups: Labels) -> int:
    """First row of a distinct record that is not taken, -1 if all are."""
    while rim.heads[entry] < rim.stops[entry]:
        row = int(rim.members[rim.heads[entry]])
        if groups[row] < 0:
            return row
        rim.heads[entry] += 1
    return -1


@compiled
def rim_of(x: Floats, codes: npt.NDArray[np.uint64], groups: Labels, total: Floats) -> Rim:
    """The rim of all records of `x`, whose bits are `codes` and whose sum is `total`."""
    classes, sizes = identical_rows(codes, np.ones(codes.shape[1], np.bool_))
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
def farthest_from_centroid(rim: Rim, x: Floats, groups: Labels, total: Floats, left: int) -> int:
    """Row of the record farthest from the centroid of the `left` records that remain."""
    centroid = total[0] / left
    way = np.sqrt(distance_between(centroid, rim.centroid))
    rim.centroid[:] = centroid
    rim.travelled[0] += way
    held = 0
    best = -1.0
    best_row: int = x.shape[0]
    reach = -1.0
    while rim.size[0] > 0:
        travelled = rim.travelled[0]
        if rim.bounds[rim.heap[0]] + travelled < reach - SLACK * (reach + travelled):
            break
        entry = _pop(rim)
        row = _head(rim, entry, groups)
        if row < 0:
            continue
        distance = distance_between(x[row], centroid)
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
