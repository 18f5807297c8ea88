"""The dynamic programme of Hansen and Mukherjee over groups of k to 2k-1 neighbours.

The squared error of a group grows record by record by Welford's rule: every term is positive, so that
nothing cancels and an offset of 1e9 or a skewed tail costs no digits, as it does with prefix sums. For
the same reason the costs of the open starts are moved back to 0 before they drown the errors that are
added to them: after one group of far outliers the rest of the file is still divided at its own scale.

Both kernels return, for j = 0..n, the start of the last group of the best division of the first j
records; of equal costs, the earliest start.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled, compiled_minimum
from kohort.methods import Floats, Labels

Starts = npt.NDArray[np.int64]

DROWNED = 1024.0  # a cost so many times an error may still be added to it: 10 of 53 bits are lost


@compiled_minimum
def axis_starts(values: Floats, k: int) -> Starts:
    """Best starts where the cost is the squared error of sorted `values` (n,).

    That cost is Monge, so the best start never moves back as j grows: starts before it are dropped
    for good. The open ones lie in a sliding window, newest first, one contiguous loop to update.
    """
    n = values.size
    widest = 2 * k - 1
    room = max(8 * widest, 1024)
    mean = np.empty(room)
    error = np.empty(room)
    before = np.empty(room)  # the cost of all that comes before a start
    share = 1.0 / np.arange(1.0, widest + 1.0)
    gain = np.arange(0.0, widest) * share
    starts = np.zeros(n + 1, np.int64)
    newest = room
    size = 0
    cost = 0.0
    for j in range(1, n + 1):
        if newest == 0:  # move the window back to the end of its room
            newest = room - size
            mean[newest:] = mean[:size]
            error[newest:] = error[:size]
            before[newest:] = before[:size]
        newest -= 1
        size = min(size + 1, widest)
        value = values[j - 1]
        mean[newest] = value
        error[newest] = 0.0
        before[newest] = cost
        means = mean[newest : newest + size]
        errors = error[newest : newest + size]
        befores = before[newest : newest + size]
        for m in range(size):
            d = value - means[m]
            means[m] += d * share[m]
            errors[m] += d * d * gain[m]
        cost = np.inf
        for m in range(k - 1, size):
            cost = min(cost, befores[m] + errors[m])
        if size >= k:
            if cost > DROWNED * errors[k - 1]:  # loops, because a call here costs a third of the time
                base = np.inf
                for m in range(size):
                    base = min(base, befores[m])
                for m in range(size):
                    befores[m] -= base
                cost = np.inf
                for m in range(k - 1, size):
                    cost = min(cost, befores[m] + errors[m])
            longest = size - 1
            while befores[longest] + errors[longest] > cost:
                longest -= 1
            starts[j] = j - 1 - longest
            size = longest + 1
    return starts


@compiled_minimum
def block_starts(columns: Floats, k: int) -> Starts:
    """Best starts where the cost is the squared error of `columns` (v, n), C-ordered.

    In several dimensions the cost is not Monge, so all k group sizes are tried. Neighbouring starts
    run in SIMD lanes: the errors of a chunk of starts are computed size by size, then used in turn.
    """
    v, n = columns.shape
    widest = 2 * k - 1
    chunk = 128
    mean = np.empty((v, chunk))
    error = np.empty(chunk)
    errors = np.empty((k, chunk))  # by group size, from k on
    starts = np.zeros(n + 1, np.int64)
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    for first in range(0, n - k + 1, chunk):
        lanes = min(chunk, n - first)
        error[:] = 0.0
        mean[:, :lanes] = columns[:, first : first + lanes]
        for size in range(2, widest + 1):
            lanes = min(lanes, n - first - size + 1)
            if lanes <= 0:
                break
            _add_next(columns, first + size - 1, lanes, size, mean, error)
            if size >= k:
                errors[size - k, :lanes] = error[:lanes]
        for lane in range(min(chunk, n - first)):
            start = first + lane
            if best[start] < np.inf:
                if best[start] > DROWNED * errors[0, lane]:
                    reached = best[start : start + widest]
                    reached -= reached.min()
                for size in range(k, min(widest, n - start) + 1):
                    cost = best[start] + errors[size - k, lane]
                    if cost < best[start + size]:
                        best[start + size] = cost
                        starts[start + size] = start
    return starts


@compiled
def _add_next(
    columns: Floats, next_one: int, lanes: int, size: int, mean: Floats, error: Floats
) -> None:
    """Let the group of every lane grow to `size` by its next record; four attributes a pass."""
    v = columns.shape[0]
    share = 1.0 / size
    gain = (size - 1.0) * share
    whole = v - v % 4
    for c in range(0, whole, 4):
        x0 = columns[c, next_one : next_one + lanes]
        x1 = columns[c + 1, next_one : next_one + lanes]
        x2 = columns[c + 2, next_one : next_one + lanes]
        x3 = columns[c + 3, next_one : next_one + lanes]
        m0, m1, m2, m3 = mean[c], mean[c + 1], mean[c + 2], mean[c + 3]
        for i in range(lanes):
            d0 = x0[i] - m0[i]
            d1 = x1[i] - m1[i]
            d2 = x2[i] - m2[i]
            d3 = x3[i] - m3[i]
            m0[i] += d0 * share
            m1[i] += d1 * share
            m2[i] += d2 * share
            m3[i] += d3 * share
            error[i] += (d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3) * gain
    for c in range(whole, v):
        x0 = columns[c, next_one : next_one + lanes]
        m0 = mean[c]
        for i in range(lanes):
            d0 = x0[i] - m0[i]
            m0[i] += d0 * share
            error[i] += d0 * d0 * gain


@compiled
def ordered_columns(x: Floats, order: npt.NDArray[np.uint32]) -> Floats:
    """The columns of `x` (n, v) in the given order of records, as (v, n) C-ordered."""
    n, v = x.shape
    columns = np.empty((v, n))
    for c in range(v):
        for i in range(n):
            columns[c, i] = x[order[i], c]
    return columns


@compiled
def label_contiguous(starts: Starts, order: npt.NDArray[np.uint32]) -> Labels:
    """Labels 0..g-1 along the axis, followed back from the last group's start."""
    n = order.size
    groups = np.empty(n, np.int32)
    count = 0
    stop = n
    while stop > 0:
        stop = starts[stop]
        count += 1
    stop = n
    for g in range(count - 1, -1, -1):
        start = starts[stop]
        for i in range(start, stop):
            groups[order[i]] = g
        stop = start
    return groups
