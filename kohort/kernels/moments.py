"""Covariances and cell-by-cell differences of two tables, in a fixed order of additions."""

from __future__ import annotations

import numpy as np

from kohort.compiled import compiled
from kohort.methods import Floats

CHUNK = 512  # rows whose centred values stay in the cache while all pairs of columns are multiplied


@compiled
def _product(a: Floats, b: Floats, size: int) -> float:
    lanes = np.zeros(8)
    whole = size - size % 8
    for i in range(0, whole, 8):
        for lane in range(8):
            lanes[lane] += a[i + lane] * b[i + lane]
    total = 0.0
    for lane in range(8):
        total += lanes[lane]
    for i in range(whole, size):
        total += a[i] * b[i]
    return total


@compiled
def covariance(x: Floats, mean: Floats) -> Floats:
    """Covariance matrix (p, p) of `x` (n, p), with ddof 0."""
    n, p = x.shape
    sums = np.zeros((p, p))
    centred = np.empty((p, CHUNK))
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        for j in range(p):
            for i in range(size):
                centred[j, i] = x[start + i, j] - mean[j]
        for a in range(p):
            for b in range(a + 1):
                sums[a, b] += _product(centred[a], centred[b], size)
    for a in range(p):
        for b in range(a + 1):
            sums[a, b] /= n
            sums[b, a] = sums[a, b]
    return sums


@compiled
def relative_differences(x: Floats, y: Floats) -> tuple[float, int]:
    """Sum of abs(x - y) / abs(x) over the cells where x is not 0, and the number of those cells."""
    n, p = x.shape
    total = 0.0
    cells = 0
    for j in range(p):
        column = 0.0
        for i in range(n):
            if x[i, j] != 0.0:
                column += abs(x[i, j] - y[i, j]) / abs(x[i, j])
                cells += 1
        total += column
    return total, cells


@compiled
def absolute_differences(x: Floats, y: Floats) -> Floats:
    """Sum of abs(x - y) of every column (p,)."""
    n, p = x.shape
    sums = np.zeros(p)
    for j in range(p):
        for i in range(n):
            sums[j] += abs(x[i, j] - y[i, j])
    return sums


@compiled
def equal_cells(x: Floats, y: Floats) -> int:
    """Number of cells that are the same in both tables."""
    n, p = x.shape
    cells = 0
    for j in range(p):
        for i in range(n):
            cells += x[i, j] == y[i, j]
    return cells
