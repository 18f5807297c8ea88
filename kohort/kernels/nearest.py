"""Is a record's own counterpart the nearest one? An exact search in a k-d tree.

A record is linked to itself unless some other record is nearer than its own counterpart: the search
starts with that distance and may stop at the first nearer record. Boxes and leaves are screened in
single precision on rotated axes, with a margin for all rounding; whatever passes is compared in double
precision by direct differences, added from the first attribute to the last. So the screen decides only
how long it takes, and the result is that of comparing all pairs, ties included.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.methods import Floats

Rows = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]
Tree = tuple[Rows, Rows, Singles, Singles, Singles]
LANES = 32  # points of a leaf and children of a branch: they are screened together in SIMD lanes


@compiled
def _select(keys: Floats, rows: Rows, start: int, stop: int, middle: int) -> None:
    """Reorder keys[start:stop] and rows with it: no key before `middle` is above one after it."""
    low = start
    high = stop - 1
    while low < high:
        a = keys[low]
        b = keys[(low + high) // 2]
        c = keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i = low
        j = high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@compiled
def _enclose(points: Floats, rows: Rows, low: Floats, high: Floats) -> int:
    """Write the box around the points of `rows`; returns its widest axis."""
    d = points.shape[1]
    for j in range(d):
        low[j] = np.inf
        high[j] = -np.inf
    for i in rows:
        for j in range(d):
            low[j] = min(low[j], points[i, j])
            high[j] = max(high[j], points[i, j])
    widest = 0
    for j in range(1, d):
        if high[j] - low[j] > high[widest] - low[widest]:
            widest = j
    return widest


@compiled
def _bundle(low: Floats, high: Floats, leaves: int) -> tuple[Rows, Singles, Singles]:
    """Boxes of a binary tree as a tree of 32 children a branch: five of its levels are one here.

    Returns where the branches of each level start, from the ones above the leaves to the root, and the
    corners of every branch's children (branches, d, 32), infinite where there is no child.
    """
    d = low.shape[1]
    starts = [0]
    children = leaves
    while True:
        starts.append(starts[-1] + (children + LANES - 1) // LANES)
        if children <= LANES:
            break
        children //= LANES
    bundled_low = np.full((starts[-1], d, LANES), np.inf, np.float32)
    bundled_high = np.full((starts[-1], d, LANES), -np.inf, np.float32)
    children = leaves
    for level in range(len(starts) - 1):
        for child in range(children):
            branch = starts[level] + child // LANES
            for j in range(d):
                bundled_low[branch, j, child % LANES] = low[children - 1 + child, j]
                bundled_high[branch, j, child % LANES] = high[children - 1 + child, j]
        children //= LANES
    return np.array(starts), bundled_low, bundled_high


@compiled
def plant(points: Floats) -> Tree:
    """A balanced tree over the rotated `points` (m, d), row-ordered.

    Returns the point in every place of every leaf (leaves, 32), -1 where a place is empty; the branches
    as `_bundle` gives them; and the leaves' points (leaves, d, 32), infinite where a place is empty.
    """
    m, d = points.shape
    leaves = 1
    while leaves * LANES < m:
        leaves *= 2
    nodes = 2 * leaves - 1  # node i has the children 2i+1 and 2i+2; the leaves come last
    starts = np.zeros(nodes, np.int64)
    stops = np.zeros(nodes, np.int64)
    stops[0] = m
    low = np.empty((nodes, d))
    high = np.empty((nodes, d))
    rows = np.arange(m)
    keys = np.empty(m)
    places = np.full((leaves, LANES), -1, np.int64)
    packed = np.full((leaves, d, LANES), np.inf, np.float32)
    for node in range(nodes):
        start = starts[node]
        stop = stops[node]
        widest = _enclose(points, rows[start:stop], low[node], high[node])
        if node < leaves - 1:
            middle = (start + stop) // 2
            for i in range(start, stop):
                keys[i] = points[rows[i], widest]
            _select(keys, rows, start, stop, middle)
            starts[2 * node + 1] = start
            stops[2 * node + 1] = middle
            starts[2 * node + 2] = middle
            stops[2 * node + 2] = stop
        else:
            leaf = node - (leaves - 1)
            for i in range(start, stop):
                places[leaf, i - start] = rows[i]
                for j in range(d):
                    packed[leaf, j, i - start] = points[rows[i], j]
    branches, branch_low, branch_high = _bundle(low, high, leaves)
    return places, branches, branch_low, branch_high, packed


@compiled
def _box_distances(query: Singles, low: Singles, high: Singles, distances: Singles) -> None:
    """Squared distances to the boxes of the children of a branch, in SIMD lanes."""
    zero = np.float32(0.0)
    distances[:] = zero
    for j in range(query.size):
        value = query[j]
        lows = low[j]
        highs = high[j]
        for t in range(distances.size):
            below = lows[t] - value
            above = value - highs[t]
            beyond = below if below > above else above
            beyond = beyond if beyond > zero else zero
            distances[t] += beyond * beyond


@compiled
def _point_distances(query: Singles, points: Singles, limit: np.float32, distances: Singles) -> bool:
    """Squared distances to the points of a leaf, in SIMD lanes; whether any is within `limit`."""
    distances[:] = np.float32(0.0)
    for j in range(query.size):
        value = query[j]
        column = points[j]
        for t in range(distances.size):
            difference = value - column[t]
            distances[t] += difference * difference
    within = 0
    for t in range(distances.size):
        within += distances[t] <= limit
    return within > 0


@compiled
def _direct_distance(a: Floats, b: Floats) -> float:
    """Sum of squared differences, from the first attribute to the last: what decides."""
    total = 0.0
    for j in range(a.size):
        difference = a[j] - b[j]
        total += difference * difference
    return total


@compiled
def _screen_limit(rotated: Singles, reach: float) -> np.float32:
    """What a squared distance of `reach` can become at most by rotation and single precision.

    A coordinate of size c is off by 6e-8 c; no point within reach is longer than the query plus reach.
    """
    length = 0.0
    for j in range(rotated.size):
        length += float(rotated[j]) * float(rotated[j])
    radius = np.sqrt(reach)
    radius += 1e-6 * (2.0 * np.sqrt(length) + radius)
    return np.float32(radius * radius * (1.0 + 1e-6 * (rotated.size + 4)) + 1e-30)


@compiled
def _push_children(boxes: Singles, limit: np.float32, first_child: int, stack: Rows, depth: int) -> int:
    """Push the branches whose boxes are within `limit`, the nearest last; returns the depth."""
    nearest = 0
    for lane in range(1, LANES):
        if boxes[lane] < boxes[nearest]:
            nearest = lane
    for lane in range(LANES):
        if boxes[lane] <= limit and lane != nearest:
            stack[depth] = first_child + lane
            depth += 1
    if boxes[nearest] <= limit:
        stack[depth] = first_child + nearest
        depth += 1
    return depth


@compiled
def _compare(
    query: Floats, reach: float, points: Floats, within: Rows, sizes: Rows, first: Rows, best: Rows
) -> bool:
    """Whether one of the points `within` is nearer than `reach`; those as near are added to `best`."""
    for point in within:
        distance = _direct_distance(query, points[point])
        if distance < reach:
            return True
        if distance == reach:
            best[0] += sizes[point]
            best[1] = min(best[1], first[point])
    return False


@compiled
def own_is_nearest(
    queries: Floats,
    rotated: Singles,
    points: Floats,
    own: npt.NDArray[np.int32],
    sizes: Rows,
    first: Rows,
    tree: Tree,
    order: Rows,
    tied: Rows,
    lowest: Rows,
) -> None:
    """Write how many records are at the least distance of a query, and the lowest row among them.

    `points` (m, d) are distinct; `sizes` records of the file have each, from row `first` on. `own` (n,)
    is the point of every query's own counterpart; `rotated` (n, d) are the queries on the tree's axes.
    Where another point is nearer than a query's own, `tied` is 0. Only the queries in `order` are run,
    in that order, so that neighbours in the tree follow each other.
    """
    places, branches, branch_low, branch_high, packed = tree
    above_leaves = branches[1]
    stack = np.empty(LANES * branches.size, np.int64)
    boxes = np.empty(LANES, np.float32)
    distances = np.empty(LANES, np.float32)
    best = np.empty(2, np.int64)
    for i in order:
        query = rotated[i]
        reach = _direct_distance(queries[i], points[own[i]])
        limit = _screen_limit(query, reach)
        best[0] = 0
        best[1] = queries.shape[0]
        nearer = False
        depth = 1
        stack[0] = branches[-1] - 1  # the root
        while depth > 0 and not nearer:
            depth -= 1
            branch = stack[depth]
            _box_distances(query, branch_low[branch], branch_high[branch], boxes)
            if branch >= above_leaves:
                level = np.searchsorted(branches, branch, side="right") - 1
                first_child = branches[level - 1] + (branch - branches[level]) * LANES
                depth = _push_children(boxes, limit, first_child, stack, depth)
                continue
            for lane in range(LANES):
                leaf = branch * LANES + lane
                if boxes[lane] > limit or not _point_distances(query, packed[leaf], limit, distances):
                    continue
                near = places[leaf][(distances <= limit) & (places[leaf] >= 0)]
                if _compare(queries[i], reach, points, near, sizes, first, best):
                    nearer = True
                    break
        tied[i] = 0 if nearer else best[0]
        lowest[i] = best[1]
