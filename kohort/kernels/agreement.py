"""Agreement patterns of all pairs of records, counted without listing the pairs.

The released records that agree with a record on an attribute are neighbours in that attribute's order.
As bits, 64 records a word, the sets of several attributes are intersected and counted in one pass:
n²·2^p/64 steps instead of n²·p, and memory for a few hundred sets only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from kohort.compiled import compiled
from kohort.methods import Floats

Words = npt.NDArray[np.uint64]
Ranks = npt.NDArray[np.int64]


def _count_ones(typing_context: Any, word: Any) -> Any:
    signature = types.uint64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return signature, generate


# Number of set bits of a word, in one instruction: numpy's bitwise_count is not known to numba.
_ones: Callable[[np.uint64], np.uint64] = cast(Any, intrinsic)(_count_ones)


@compiled
def agreeing_ranks(z: Floats, released: Floats, tau: float) -> tuple[Ranks, Ranks]:
    """Ranks from..to (exclusive) of the sorted `released` values within `tau` of every value of `z`."""
    n = z.size
    begins = np.empty(n, np.int64)
    ends = np.empty(n, np.int64)
    for i in range(n):
        low = 0
        high = released.size
        while low < high:  # the first that is not too low
            middle = (low + high) // 2
            if released[middle] < z[i] and abs(z[i] - released[middle]) > tau:
                low = middle + 1
            else:
                high = middle
        begins[i] = low
        high = released.size
        while low < high:  # the first that is too high
            middle = (low + high) // 2
            if released[middle] > z[i] and abs(z[i] - released[middle]) > tau:
                high = middle
            else:
                low = middle + 1
        ends[i] = low
    return begins, ends


@compiled
def prefix_sets(order: npt.NDArray[np.uint32], step: int) -> Words:
    """The sets of the first 0, step, 2·step, ... records of an order, as bits."""
    n = order.size
    sets = np.zeros((n // step + 1, (n + 63) // 64), np.uint64)
    for number in range(1, n // step + 1):
        sets[number] = sets[number - 1]
        for rank in range((number - 1) * step, number * step):
            sets[number, order[rank] >> 6] |= np.uint64(1) << np.uint64(order[rank] & 63)
    return sets


@compiled
def _ranks_as_set(
    order: npt.NDArray[np.uint32], prefixes: Words, step: int, begin: int, end: int, out: Words
) -> None:
    """Write the set of the records with ranks begin..end: two prefixes, and the odd ranks flipped."""
    left = prefixes[begin // step]
    right = prefixes[end // step]
    for word in range(out.size):
        out[word] = left[word] ^ right[word]
    for edge in (begin, end):
        for rank in range(edge - edge % step, edge):
            out[order[rank] >> 6] ^= np.uint64(1) << np.uint64(order[rank] & 63)


@compiled
def _intersect(a: Words, b: Words, out: Words) -> int:
    """Write the records in both sets; returns how many they are."""
    members = np.uint64(0)
    for word in range(out.size):
        out[word] = a[word] & b[word]
        members += _ones(out[word])
    return int(members)


@compiled
def _split(agreeing: Words, sets: Words, n: int, found: Ranks) -> int:
    """Write the patterns that occur (found[0]) and how often (found[1]); returns how many do.

    Bit a of a pattern says that attribute a agrees. `agreeing` (p, words) are the records that agree on
    each attribute. sets[a] is the set of one combination of the attributes before a, sets[0] being all
    records: it is split into those that agree on a and those that do not, and each part that is not
    empty is split further. (By hand: numba cannot cache a function that calls itself.)
    """
    p = agreeing.shape[0]
    members = np.empty(p, np.int64)
    agreed = np.empty(p, np.int64)
    turn = np.zeros(p, np.int64)
    members[0] = n
    pattern = 0
    size = 0
    level = 0
    while level >= 0:
        if turn[level] == 0:
            agreed[level] = _intersect(sets[level], agreeing[level], sets[level + 1])
            part = agreed[level]
            pattern |= 1 << level
        elif turn[level] == 1:
            part = members[level] - agreed[level]
            pattern &= (1 << level) - 1
            if part > 0 and level < p - 1:
                for word in range(sets.shape[1]):
                    sets[level + 1, word] = sets[level, word] & ~agreeing[level, word]
        else:
            level -= 1
            continue
        turn[level] += 1
        if part > 0 and level == p - 1:
            found[0, size] = pattern
            found[1, size] = part
            size += 1
        elif part > 0:
            level += 1
            members[level] = part
            turn[level] = 0
    return size


@compiled
def patterns_of(
    i: int,
    orders: npt.NDArray[np.uint32],
    prefixes: Words,
    step: int,
    begins: Ranks,
    ends: Ranks,
    agreeing: Words,
    sets: Words,
    found: Ranks,
) -> int:
    """Write the patterns of record i with every released one; `agreeing` and `sets` are room for it."""
    p, n = orders.shape
    words = sets.shape[1]
    for a in range(p):
        _ranks_as_set(orders[a], prefixes[a], step, begins[a, i], ends[a, i], agreeing[a])
    for word in range(words):
        sets[0, word] = ~np.uint64(0)
    if n % 64:
        sets[0, words - 1] = (np.uint64(1) << np.uint64(n % 64)) - np.uint64(1)
    return _split(agreeing, sets, n, found)


@compiled
def count_patterns(
    orders: npt.NDArray[np.uint32], prefixes: Words, step: int, begins: Ranks, ends: Ranks
) -> Ranks:
    """How many of the n² pairs have each of the 2^p patterns."""
    p, n = orders.shape
    agreeing = np.empty((p, prefixes.shape[2]), np.uint64)
    sets = np.empty((p + 1, prefixes.shape[2]), np.uint64)
    found = np.empty((2, min(1 << p, n)), np.int64)
    totals = np.zeros(1 << p, np.int64)
    for i in range(n):
        size = patterns_of(i, orders, prefixes, step, begins, ends, agreeing, sets, found)
        for s in range(size):
            totals[found[0, s]] += found[1, s]
    return totals


@compiled
def expected_links(
    orders: npt.NDArray[np.uint32],
    prefixes: Words,
    step: int,
    begins: Ranks,
    ends: Ranks,
    own: Ranks,
    rank: Ranks,
) -> Floats:
    """Chance of every record to be linked to itself, given its `own` pattern with itself.

    It is linked to a released record whose pattern has the least `rank`, each with the same chance.
    """
    p, n = orders.shape
    agreeing = np.empty((p, prefixes.shape[2]), np.uint64)
    sets = np.empty((p + 1, prefixes.shape[2]), np.uint64)
    found = np.empty((2, min(1 << p, n)), np.int64)
    chance = np.zeros(n)
    for i in range(n):
        size = patterns_of(i, orders, prefixes, step, begins, ends, agreeing, sets, found)
        best = rank[own[i]]
        at_best = 0
        for s in range(size):
            other = rank[found[0, s]]
            if other < best:
                at_best = 0
                break
            if other == best:
                at_best += found[1, s]
        if at_best > 0:
            chance[i] = 1.0 / at_best
    return chance
