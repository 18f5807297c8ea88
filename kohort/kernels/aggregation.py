"""Aggregation functions over a record's attributes."""

from __future__ import annotations

import numpy as np

from kohort.compiled import compiled
from kohort.methods import Floats


@compiled
def _descending_scaled_rows(
    x: Floats, low: Floats, high: Floats, start: int, stop: int, out: Floats
) -> None:
    """Rows start..stop of minmax(x), each sorted from large to small, into `out` (p, rows)."""
    p = x.shape[1]
    rows = stop - start
    for j in range(p):
        if low[j] == high[j]:
            for i in range(rows):
                out[j, i] = 0.5
        else:
            for i in range(rows):
                out[j, i] = (x[start + i, j] - low[j]) / (high[j] - low[j])
    # Odd-even transposition: the same exchanges for every record, so that they run in SIMD lanes.
    for turn in range(p):
        for j in range(turn % 2, p - 1, 2):
            for i in range(rows):
                a = out[j, i]
                b = out[j + 1, i]
                out[j, i] = a if a >= b else b
                out[j + 1, i] = b if a >= b else a


@compiled
def sugeno_integral(x: Floats, low: Floats, high: Floats, quantified: Floats) -> Floats:
    """max_i min(Q(i/N), a_(i)) of every record of minmax(x)."""
    n, p = x.shape
    chunk = 512
    rows = np.empty((p, chunk))
    axis = np.empty(n)
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        _descending_scaled_rows(x, low, high, start, stop, rows)
        for i in range(stop - start):
            axis[start + i] = min(quantified[0], rows[0, i])
        for j in range(1, p):
            for i in range(stop - start):
                axis[start + i] = max(axis[start + i], min(quantified[j], rows[j, i]))
    return axis


@compiled
def ordered_weighted_average(x: Floats, low: Floats, high: Floats, steps: Floats) -> Floats:
    """sum_i steps_i a_(i) of every record of minmax(x), a in descending order."""
    n, p = x.shape
    chunk = 512
    rows = np.empty((p, chunk))
    axis = np.zeros(n)
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        _descending_scaled_rows(x, low, high, start, stop, rows)
        for j in range(p):
            for i in range(stop - start):
                axis[start + i] += steps[j] * rows[j, i]
    return axis
