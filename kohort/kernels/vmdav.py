"""V-MDAV: MDAV with groups that grow where the records lie closer to them than to each other.

`x` is (n, p) C-ordered here: a record is one query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.kernels.kdtree import (
    Near,
    Rows,
    Tree,
    find_nearest,
    open_up,
    plant,
    precedes,
    take_nearest,
    take_out,
)
from kohort.kernels.rim import distance_between, sum_of_all
from kohort.kernels.sorting import stable_order
from kohort.methods import Floats, Labels

SLACK = 1e-9  # of a squared length, far above what rounding takes from it
TINY = 1e-300  # where squares underflow


class Frontier(NamedTuple):
    """The members of a growing group, and what is known of the free record nearest to each.

    No free record precedes (distance, row), by distance and then row: what was free can only be
    taken, so that a bound once found stays one and most members need no search when the group grows.
    """

    members: Rows
    """Rows of the members (2k - 1,)."""
    distances: Floats
    """Squared distance that none precedes, -1 before the first search."""
    rows: Rows
    """The row that belongs to it."""
    exact: npt.NDArray[np.bool_]
    """Whether that row is itself the nearest one, as long as it is free."""


@compiled
def _outermost_first(x: Floats) -> Rows:
    """Rows by their distance from the centroid of the whole file, the farthest first."""
    n = x.shape[0]
    centroid = sum_of_all(x)[0] / n
    nearness = np.empty(n)
    for i in range(n):
        nearness[i] = -distance_between(x[i], centroid)
    order, _ = stable_order(nearness)
    return order.astype(np.int64)


@compiled
def _nearest_to_any(
    tree: Tree, x: Floats, groups: Labels, frontier: Frontier, size: int, near: Near
) -> None:
    """Let the free record nearest to any of the first `size` members into a list of one place."""
    distances, rows, exact = frontier.distances, frontier.rows, frontier.exact
    for i in range(size):
        exact[i] = exact[i] and groups[rows[i]] < 0
        if exact[i] and precedes(distances[i], rows[i], near.distances[0], near.rows[0]):
            near.distances[0] = distances[i]
            near.rows[0] = rows[i]
    for i in range(size):
        if not exact[i] and precedes(distances[i], rows[i], near.distances[0], near.rows[0]):
            before = near.rows[0]
            distance_before = near.distances[0]
            find_nearest(tree, x[frontier.members[i]], near)
            exact[i] = near.rows[0] != before or near.distances[0] != distance_before
            distances[i] = near.distances[0]
            rows[i] = near.rows[0]


@compiled
def _reach(gamma: float, widest: float, second: float) -> float:
    """Squared distance beyond which no record can join a new group.

    `widest` is the squared distance of the seed's farthest member, `second` that of the second of the
    free records nearest to it. One of these two is not the candidate, so by the triangle inequality
    d_out <= d_in + sqrt(widest) + sqrt(second), and d_in < gamma * d_out bounds d_in where gamma < 1.
    Most groups do not grow, and this spares them most of the search.
    """
    if gamma >= 1.0:
        return np.inf
    reach: float = gamma / (1.0 - gamma) * (np.sqrt(widest) + np.sqrt(second))
    return reach * reach * (1.0 + SLACK) + TINY


@compiled
def _extend(
    tree: Tree,
    x: Floats,
    groups: Labels,
    label: int,
    gamma: float,
    frontier: Frontier,
    size: int,
    reach: float,
) -> int:
    """Let a group of `size` grow by the rule of gamma; its size in the end."""
    n = x.shape[0]
    near = Near(np.empty(1), np.empty(1, np.int64))
    pair = Near(np.empty(2), np.empty(2, np.int64))
    while size < frontier.members.size:
        near.distances[0] = reach
        near.rows[0] = n
        reach = np.inf  # it holds for the group as it was made
        _nearest_to_any(tree, x, groups, frontier, size, near)
        candidate = near.rows[0]
        if candidate == n:
            break
        # The candidate itself or an identical record comes first, at 0: the second is what counts.
        # A candidate that is the only free record has nobody outside: infinitely far.
        open_up(pair, n)
        find_nearest(tree, x[candidate], pair)
        if not np.sqrt(near.distances[0]) < gamma * np.sqrt(pair.distances[1]):
            break
        take_out(tree, candidate)
        groups[candidate] = label
        other = 1 if pair.rows[0] == candidate else 0
        frontier.members[size] = candidate
        frontier.distances[size] = pair.distances[other]
        frontier.rows[size] = pair.rows[other]
        frontier.exact[size] = pair.rows[other] < n
        size += 1
    return size


@compiled
def vmdav_groups(x: Floats, k: int, gamma: float) -> tuple[Labels, int]:
    """Labels in the order in which the groups are made, -1 for fewer than k left over; the number."""
    n = x.shape[0]
    groups = np.full(n, -1, np.int32)
    order = _outermost_first(x)
    tree = plant(x)
    near = Near(np.empty(k + 1), np.empty(k + 1, np.int64))  # the group's and two beyond
    room = 2 * k - 1
    frontier = Frontier(
        np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64), np.empty(room, np.bool_)
    )
    left = n
    count = 0
    place = 0
    while left >= k:
        while groups[order[place]] >= 0:
            place += 1
        seed = order[place]
        take_nearest(tree, x, seed, near, k - 1)
        frontier.members[0] = seed
        frontier.members[1:k] = near.rows[: k - 1]
        for i in range(k):
            groups[frontier.members[i]] = count
            frontier.distances[i] = -1.0
            frontier.rows[i] = n
            frontier.exact[i] = False
        size = k
        if gamma > 0.0:
            reach = _reach(gamma, near.distances[k - 2], near.distances[k])
            size = _extend(tree, x, groups, count, gamma, frontier, k, reach)
        left -= size
        count += 1
    return groups, count


@compiled
def join_nearest(x: Floats, groups: Labels, centroids: Floats) -> None:
    """Give every record with label -1 the label of the nearest centroid; of equal ones, the first."""
    for i in range(x.shape[0]):
        if groups[i] < 0:
            nearest = np.inf
            for g in range(centroids.shape[0]):
                distance = distance_between(x[i], centroids[g])
                if distance < nearest:
                    nearest = distance
                    groups[i] = g
