"""A kd-tree of records that are taken out one by one: nearest and farthest, exact to the last tie.

Distances are squared, taken from direct differences and added from the first attribute to the last.
Rounding is monotone, so a bound from a box that adds in the same order is never on the wrong side of
a record's distance: branches are cut without a margin, and what is found is what a loop over all
records would find. Of equal distances the record that comes first in the file counts; each node
knows its first record, so that ties are cut as well, and of two equally good branches the one with
the earlier record is searched first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.methods import Floats

Rows = npt.NDArray[np.int64]

LEAF = 16  # records of a leaf at most; their distances are computed in SIMD lanes


class Near(NamedTuple):
    """The nearest records found so far, by distance and then row; an open place has inf and n."""

    distances: Floats
    """Squared distances."""
    rows: Rows
    """Rows in the file."""


class Tree(NamedTuple):
    """A complete binary tree: node i has the children 2i + 1 and 2i + 2, leaves come last."""

    points: Floats
    """Records of each leaf (leaves, p, LEAF); the first `sizes[leaf]` lanes hold those still in."""
    rows: Rows
    """Their rows in the file (leaves, LEAF)."""
    sizes: Rows
    """Records still in each leaf (leaves,)."""
    places: Rows
    """leaf * LEAF + lane of every row (n,)."""
    low: Floats
    """Least values of the records still in each node (nodes, p)."""
    high: Floats
    """Greatest values (nodes, p)."""
    first: Rows
    """First row still in each node (nodes,); n where none is."""
    stack: Rows
    """Nodes to visit in a search."""
    stack_bounds: Floats
    """Their bounds."""
    distances: Floats
    """Distances of a leaf's lanes (LEAF,)."""
    visits: Rows
    """Leaves that searches have visited so far (1,)."""


@compiled
def precedes(value: float, row: int, other_value: float, other_row: int) -> bool:
    """Whether a record comes before another: the lesser value, of equal ones the first in the file."""
    return value < other_value or (value == other_value and row < other_row)


@compiled
def _select(values: Floats, rows: Rows, start: int, stop: int, middle: int) -> None:
    """Bring the least records of start..stop, by value and then row, before position `middle`."""
    left = start
    right = stop - 1
    while left < right:
        a, b, c = left, (left + right) // 2, right
        if precedes(values[b], rows[b], values[a], rows[a]):
            a, b = b, a
        if precedes(values[c], rows[c], values[b], rows[b]):
            b = a if precedes(values[c], rows[c], values[a], rows[a]) else c
        pivot = values[b]
        pivot_row = rows[b]
        i = left
        j = right
        while i <= j:
            while precedes(values[i], rows[i], pivot, pivot_row):
                i += 1
            while precedes(pivot, pivot_row, values[j], rows[j]):
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@compiled
def _widest(x: Floats, rows: Rows) -> int:
    """The attribute of `x` with the greatest range over the given rows."""
    widest = 0
    width = -1.0
    for j in range(x.shape[1]):
        low = np.inf
        high = -np.inf
        for row in rows:
            low = min(low, x[row, j])
            high = max(high, x[row, j])
        if high - low > width:
            widest = j
            width = high - low
    return widest


@compiled
def _halved(x: Floats, levels: int) -> tuple[Rows, Rows]:
    """Rows in the order of the leaves, and where each leaf starts (leaves + 1,).

    Each node is halved at the median of its widest attribute, ties by row: so halves differ by one
    record at most, and identical records lie in file order.
    """
    n = x.shape[0]
    rows = np.arange(n)
    values = np.empty(n)
    starts = np.array([0, n])
    for _ in range(levels):
        halves = np.empty(2 * starts.size - 1, np.int64)
        halves[-1] = n
        for node in range(starts.size - 1):
            start = starts[node]
            stop = starts[node + 1]
            middle = (start + stop) // 2
            attribute = _widest(x, rows[start:stop])
            for i in range(start, stop):
                values[i] = x[rows[i], attribute]
            _select(values, rows, start, stop, middle)
            halves[2 * node] = start
            halves[2 * node + 1] = middle
        starts = halves
    return rows, starts


@compiled
def plant(x: Floats) -> Tree:
    """The tree of all records of `x` (n, p)."""
    n, p = x.shape
    levels = 0
    while n > LEAF << levels:
        levels += 1
    leaves = 1 << levels
    order, starts = _halved(x, levels)
    tree = Tree(
        np.zeros((leaves, p, LEAF)),
        np.full((leaves, LEAF), n),
        np.zeros(leaves, np.int64),
        np.empty(n, np.int64),
        np.empty((2 * leaves - 1, p)),
        np.empty((2 * leaves - 1, p)),
        np.empty(2 * leaves - 1, np.int64),
        np.empty(levels + 2, np.int64),
        np.empty(levels + 2),
        np.empty(LEAF),
        np.zeros(1, np.int64),
    )
    for leaf in range(leaves):
        tree.sizes[leaf] = starts[leaf + 1] - starts[leaf]
        for lane in range(tree.sizes[leaf]):
            row = order[starts[leaf] + lane]
            tree.rows[leaf, lane] = row
            tree.places[row] = leaf * LEAF + lane
            for j in range(p):
                tree.points[leaf, j, lane] = x[row, j]
        _tighten_leaf(tree, leaf)
    for node in range(leaves - 2, -1, -1):
        _tighten(tree, node)
    return tree


@compiled
def _tighten_leaf(tree: Tree, leaf: int) -> None:
    """Set the box and the first row of a leaf from its records."""
    node = tree.sizes.size - 1 + leaf
    size = tree.sizes[leaf]
    first = tree.places.size
    for lane in range(size):
        first = min(first, tree.rows[leaf, lane])
    tree.first[node] = first
    for j in range(tree.low.shape[1]):
        low = np.inf
        high = -np.inf
        for lane in range(size):
            low = min(low, tree.points[leaf, j, lane])
            high = max(high, tree.points[leaf, j, lane])
        tree.low[node, j] = low
        tree.high[node, j] = high


@compiled
def _tighten(tree: Tree, node: int) -> bool:
    """Set the box and the first row of a node from its children; whether anything changed."""
    a = 2 * node + 1
    b = a + 1
    first = min(tree.first[a], tree.first[b])
    changed = bool(first != tree.first[node])
    tree.first[node] = first
    for j in range(tree.low.shape[1]):
        low = min(tree.low[a, j], tree.low[b, j])
        high = max(tree.high[a, j], tree.high[b, j])
        if low != tree.low[node, j] or high != tree.high[node, j]:
            changed = True
            tree.low[node, j] = low
            tree.high[node, j] = high
    return changed


@compiled
def take_out(tree: Tree, row: int) -> None:
    """Remove a record; boxes shrink as far up as it touched them."""
    leaf = tree.places[row] // LEAF
    lane = tree.places[row] % LEAF
    node = tree.sizes.size - 1 + leaf
    touches = tree.first[node] == row
    tree.sizes[leaf] -= 1
    last = tree.sizes[leaf]
    for j in range(tree.low.shape[1]):
        value = tree.points[leaf, j, lane]
        touches = touches or value == tree.low[node, j] or value == tree.high[node, j]
        tree.points[leaf, j, lane] = tree.points[leaf, j, last]
    moved = tree.rows[leaf, last]
    tree.rows[leaf, lane] = moved
    tree.places[moved] = leaf * LEAF + lane
    if touches:
        _tighten_leaf(tree, leaf)
        while node > 0:
            node = (node - 1) // 2
            if not _tighten(tree, node):
                break


@compiled
def _least_distance(tree: Tree, node: int, point: Floats) -> float:
    """No record of the node is nearer to the point."""
    total = 0.0
    for j in range(point.size):
        d = max(max(tree.low[node, j] - point[j], point[j] - tree.high[node, j]), 0.0)
        total += d * d
    return total


@compiled
def _greatest_distance(tree: Tree, node: int, point: Floats) -> float:
    """No record of the node is farther from the point; -1 where the node has none."""
    if tree.first[node] == tree.places.size:
        return -1.0
    total = 0.0
    for j in range(point.size):
        d = max(tree.high[node, j] - point[j], point[j] - tree.low[node, j])
        total += d * d
    return total


@compiled
def _measure_leaf(tree: Tree, leaf: int, point: Floats) -> None:
    """Squared distances of a leaf's lanes, the attributes added from first to last."""
    tree.visits[0] += 1
    distances = tree.distances
    points = tree.points[leaf]
    for lane in range(LEAF):
        distances[lane] = 0.0
    for j in range(point.size):
        for lane in range(LEAF):
            d = points[j, lane] - point[j]
            distances[lane] += d * d


@compiled
def open_up(near: Near, n: int) -> None:
    """Clear the list."""
    for i in range(near.rows.size):
        near.distances[i] = np.inf
        near.rows[i] = n


@compiled
def offer(near: Near, distance: float, row: int) -> None:
    """Let in a record that precedes the last one of the list."""
    i = near.rows.size - 1
    while i > 0 and precedes(distance, row, near.distances[i - 1], near.rows[i - 1]):
        near.distances[i] = near.distances[i - 1]
        near.rows[i] = near.rows[i - 1]
        i -= 1
    near.distances[i] = distance
    near.rows[i] = row


@compiled
def find_nearest(tree: Tree, point: Floats, near: Near) -> None:
    """Fill the list with the nearest records; what it holds already has to be beaten."""
    inner = tree.sizes.size - 1
    distances, rows = near.distances, near.rows
    last = rows.size - 1
    height = 1
    tree.stack[0] = 0
    tree.stack_bounds[0] = _least_distance(tree, 0, point)
    while height > 0:
        height -= 1
        node = tree.stack[height]
        if not precedes(tree.stack_bounds[height], tree.first[node], distances[last], rows[last]):
            continue
        if node >= inner:
            leaf = node - inner
            _measure_leaf(tree, leaf, point)
            for lane in range(tree.sizes[leaf]):
                distance = tree.distances[lane]
                row = tree.rows[leaf, lane]
                if precedes(distance, row, distances[last], rows[last]):
                    offer(near, distance, row)
            continue
        closer, other = 2 * node + 1, 2 * node + 2
        closer_bound = _least_distance(tree, closer, point)
        other_bound = _least_distance(tree, other, point)
        if precedes(other_bound, tree.first[other], closer_bound, tree.first[closer]):
            closer, other = other, closer
            closer_bound, other_bound = other_bound, closer_bound
        tree.stack[height] = other
        tree.stack_bounds[height] = other_bound
        tree.stack[height + 1] = closer
        tree.stack_bounds[height + 1] = closer_bound
        height += 2


@compiled
def take_nearest(tree: Tree, x: Floats, seed: int, near: Near, count: int) -> None:
    """Fill the list with the records nearest to a row of `x`; take that row and `count` of them out."""
    take_out(tree, seed)
    open_up(near, x.shape[0])
    find_nearest(tree, x[seed], near)
    for i in range(count):
        take_out(tree, near.rows[i])


@compiled
def find_farthest(tree: Tree, point: Floats) -> int:
    """The row farthest from the point; n if no record is left."""
    inner = tree.sizes.size - 1
    best = -1.0
    best_row = tree.places.size
    height = 1
    tree.stack[0] = 0
    tree.stack_bounds[0] = np.inf
    while height > 0:
        height -= 1
        node = tree.stack[height]
        # Signs are turned: the farther one precedes.
        if not precedes(-tree.stack_bounds[height], tree.first[node], -best, best_row):
            continue
        if node >= inner:
            leaf = node - inner
            _measure_leaf(tree, leaf, point)
            for lane in range(tree.sizes[leaf]):
                if precedes(-tree.distances[lane], tree.rows[leaf, lane], -best, best_row):
                    best = tree.distances[lane]
                    best_row = tree.rows[leaf, lane]
            continue
        near, far = 2 * node + 1, 2 * node + 2
        near_bound = _greatest_distance(tree, near, point)
        far_bound = _greatest_distance(tree, far, point)
        if precedes(-near_bound, tree.first[near], -far_bound, tree.first[far]):
            near, far = far, near
            near_bound, far_bound = far_bound, near_bound
        tree.stack[height] = near
        tree.stack_bounds[height] = near_bound
        tree.stack[height + 1] = far
        tree.stack_bounds[height + 1] = far_bound
        height += 2
    return best_row
