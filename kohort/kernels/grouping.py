"""Groups of records: their sizes, their centroids, and the classes of identical records."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.methods import Floats, Labels


@compiled
def group_sizes(groups: Labels, count: int) -> npt.NDArray[np.int64]:
    """Number of records of every label 0..count-1."""
    sizes = np.zeros(count, np.int64)
    for i in range(groups.size):
        sizes[groups[i]] += 1
    return sizes


@compiled
def group_means(x: Floats, groups: Labels, count: int) -> Floats:
    """Mean of each group (count, p), as the first member plus the mean difference from it.

    So a group of equal values keeps exactly that value, and a large offset costs no digits.
    """
    n, p = x.shape
    sizes = group_sizes(groups, count)
    means = np.empty((count, p))
    first = np.empty(count)
    total = np.empty(count)
    seen = np.empty(count, np.bool_)
    for j in range(p):
        seen[:] = False
        for i in range(n):
            g = groups[i]
            if seen[g]:
                total[g] += x[i, j] - first[g]
            else:
                seen[g] = True
                first[g] = x[i, j]
                total[g] = 0.0
        for g in range(count):
            means[g, j] = first[g] + total[g] / sizes[g]
    return means


@compiled
def group_weighted_means(x: Floats, groups: Labels, count: int, weights: Floats) -> Floats:
    """Weighted mean of each group (count, p), taken from the first member like the plain one."""
    n, p = x.shape
    means = np.empty((count, p))
    mass = np.zeros(count)
    for i in range(n):
        mass[groups[i]] += weights[i]
    first = np.empty(count)
    total = np.empty(count)
    seen = np.empty(count, np.bool_)
    for j in range(p):
        seen[:] = False
        for i in range(n):
            g = groups[i]
            if not seen[g]:
                seen[g] = True
                first[g] = x[i, j]
                total[g] = 0.0
            total[g] += weights[i] * (x[i, j] - first[g])
        for g in range(count):
            means[g, j] = first[g] + total[g] / mass[g]
    return means


@compiled
def members_by_group(groups: Labels, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows listed group by group in file order, and where each group's list starts (count + 1,)."""
    starts = np.zeros(count + 1, np.int64)
    for i in range(groups.size):
        starts[groups[i] + 1] += 1
    for g in range(count):
        starts[g + 1] += starts[g]
    place = starts[:-1].copy()
    members = np.empty(groups.size, np.int64)
    for i in range(groups.size):
        g = groups[i]
        members[place[g]] = i
        place[g] += 1
    return members, starts


@compiled
def group_middles(x: Floats, groups: Labels, count: int) -> Floats:
    """Mean of the two (even) or three (odd) middle values of each group (count, p)."""
    p = x.shape[1]
    members, starts = members_by_group(groups, count)
    middles = np.empty((count, p))
    for g in range(count):
        rows = members[starts[g] : starts[g + 1]]
        size = rows.size
        values = np.empty(size)
        for j in range(p):
            for i in range(size):
                values[i] = x[rows[i], j]
            values.sort()
            low = (size - 1) // 2 if size % 2 == 0 else max(size // 2 - 1, 0)
            high = size // 2 if size % 2 == 0 else min(size // 2 + 1, size - 1)
            total = 0.0
            for i in range(low, high + 1):
                total += values[i] - values[low]
            middles[g, j] = values[low] + total / (high - low + 1)
    return middles


@compiled
def spread_to_members(centroids: Floats, groups: Labels) -> Floats:
    """Every record's own group's centroid, (n, p) Fortran-ordered."""
    n = groups.size
    p = centroids.shape[1]
    out = np.empty((p, n)).T
    for start in range(0, n, 4096):
        stop = min(start + 4096, n)
        for j in range(p):
            for i in range(start, stop):
                out[i, j] = centroids[groups[i], j]
    return out


@compiled
def _bits_of(bits: np.uint64, is_float: bool) -> np.uint64:
    """The bits that stand for a value: -0.0 is 0.0."""
    return np.uint64(0) if is_float and bits == np.uint64(1) << np.uint64(63) else bits


@compiled
def _same_row(codes: npt.NDArray[np.uint64], floats: npt.NDArray[np.bool_], a: int, b: int) -> bool:
    for j in range(codes.shape[1]):
        if codes[a, j] != codes[b, j] and _bits_of(codes[a, j], floats[j]) != _bits_of(
            codes[b, j], floats[j]
        ):
            return False
    return True


@compiled
def identical_rows(
    codes: npt.NDArray[np.uint64], floats: npt.NDArray[np.bool_]
) -> tuple[Labels, npt.NDArray[np.int64]]:
    """Class of every row of `codes` (n, p) among the rows identical to it, and each class's size.

    Classes are numbered by their first row. Rows are hashed and then compared in full, so that a
    collision cannot join two classes and overstate anonymity. `floats` says which columns hold the
    bits of floats.
    """
    n, p = codes.shape
    capacity = 16
    while capacity < 2 * n:
        capacity *= 2
    slots = np.full(capacity, -1, np.int32)
    hashes = np.zeros(n, np.uint64)
    for j in range(p):
        for i in range(n):
            h = hashes[i] ^ _bits_of(codes[i, j], floats[j])
            h *= np.uint64(0x9E3779B97F4A7C15)
            hashes[i] = h ^ (h >> np.uint64(29))
    classes = np.empty(n, np.int32)
    first = np.empty(n, np.int32)
    sizes = np.zeros(n, np.int64)
    count = 0
    for i in range(n):
        slot = (hashes[i] * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) & np.uint64(capacity - 1)
        while True:
            c = slots[slot]
            if c < 0:
                slots[slot] = count
                classes[i] = count
                first[count] = i
                sizes[count] = 1
                count += 1
                break
            if hashes[first[c]] == hashes[i] and _same_row(codes, floats, first[c], i):
                classes[i] = c
                sizes[c] += 1
                break
            slot = (slot + np.uint64(1)) & np.uint64(capacity - 1)
    return classes, sizes[:count]
