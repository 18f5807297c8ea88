"""Means, spreads, correlations and the first eigenvector, in a fixed order of additions.

BLAS and numpy's sums give other last digits on other CPUs, which would move records between groups;
these loops add in eight fixed lanes and give the same bits everywhere.
"""

from __future__ import annotations

import numpy as np

from kohort.compiled import compiled
from kohort.methods import Floats


@compiled
def _sum_of_deviations(column: Floats, centre: float) -> float:
    lanes = np.zeros(8)
    n = column.size
    whole = n - n % 8
    for i in range(0, whole, 8):
        for lane in range(8):
            lanes[lane] += column[i + lane] - centre
    total = 0.0
    for lane in range(8):
        total += lanes[lane]
    for i in range(whole, n):
        total += column[i] - centre
    return total


@compiled
def _sum_of_products(a: Floats, a_centre: float, b: Floats, b_centre: float) -> float:
    lanes = np.zeros(8)
    n = a.size
    whole = n - n % 8
    for i in range(0, whole, 8):
        for lane in range(8):
            lanes[lane] += (a[i + lane] - a_centre) * (b[i + lane] - b_centre)
    total = 0.0
    for lane in range(8):
        total += lanes[lane]
    for i in range(whole, n):
        total += (a[i] - a_centre) * (b[i] - b_centre)
    return total


@compiled
def mean_and_std(x: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation (ddof 0) of every column of `x`.

    The mean is taken of the differences from the first value, so that a constant column has exactly
    its own value as mean and exactly 0 as standard deviation.
    """
    n, p = x.shape
    mean = np.empty(p)
    std = np.empty(p)
    for j in range(p):
        column = x[:, j]
        mean[j] = column[0] + _sum_of_deviations(column, column[0]) / n
        std[j] = np.sqrt(_sum_of_products(column, mean[j], column, mean[j]) / n)
    return mean, std


@compiled
def least_and_greatest(x: Floats) -> tuple[Floats, Floats]:
    """Minimum and maximum of every column of `x`."""
    n, p = x.shape
    low = np.empty(p)
    high = np.empty(p)
    for j in range(p):
        column = x[:, j]
        least = column[0]
        greatest = column[0]
        for i in range(1, n):
            least = min(least, column[i])
            greatest = max(greatest, column[i])
        low[j] = least
        high[j] = greatest
    return low, high


@compiled
def correlation(x: Floats, mean: Floats, std: Floats) -> Floats:
    """Correlation matrix (p, p); a constant column has only zeros, its diagonal included."""
    n, p = x.shape
    r = np.zeros((p, p))
    for a in range(p):
        if std[a] == 0.0:
            continue
        r[a, a] = 1.0
        for b in range(a):
            if std[b] != 0.0:
                products = _sum_of_products(x[:, a], mean[a], x[:, b], mean[b])
                value = products / n / std[a] / std[b]
                r[a, b] = value
                r[b, a] = value
    return r


@compiled
def covariance(x: Floats, mean: Floats) -> Floats:
    """Covariance matrix (p, p), ddof 0."""
    n, p = x.shape
    c = np.empty((p, p))
    for a in range(p):
        for b in range(a + 1):
            value = _sum_of_products(x[:, a], mean[a], x[:, b], mean[b]) / n
            c[a, b] = value
            c[b, a] = value
    return c


@compiled
def scaled(x: Floats, centre: Floats, scale: Floats) -> Floats:
    """(x - centre) / scale, Fortran-ordered; a column with scale 0 becomes 0."""
    n, p = x.shape
    out = np.empty((p, n)).T
    for j in range(p):
        if scale[j] == 0.0:
            out[:, j] = 0.0
        else:
            for i in range(n):
                out[i, j] = (x[i, j] - centre[j]) / scale[j]
    return out


@compiled
def weighted_sum(x: Floats, centre: Floats, coefficient: Floats) -> Floats:
    """sum_j (x_j - centre_j) * coefficient_j, the columns added from first to last."""
    n, p = x.shape
    out = np.empty(n)
    # A chunk of the result stays in the cache while every column is added to it.
    for start in range(0, n, 2048):
        stop = min(start + 2048, n)
        for i in range(start, stop):
            out[i] = (x[i, 0] - centre[0]) * coefficient[0]
        for j in range(1, p):
            for i in range(start, stop):
                out[i] += (x[i, j] - centre[j]) * coefficient[j]
    return out


@compiled
def eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (p,) and eigenvectors (p, p, by column) of a symmetric matrix, by cyclic Jacobi.

    LAPACK's last digits depend on the CPU, even for one and the same matrix; these rotations do not.
    """
    p = matrix.shape[0]
    a = matrix.copy()
    vectors = np.eye(p)
    for _ in range(100):
        off_diagonal = 0.0
        for i in range(p):
            for j in range(i):
                off_diagonal += a[i, j] * a[i, j]
        if off_diagonal < 1e-300:
            break
        for i in range(p - 1):
            for j in range(i + 1, p):
                if a[i, j] == 0.0:
                    continue
                theta = (a[j, j] - a[i, i]) / (2.0 * a[i, j])
                sign = 1.0 if theta >= 0.0 else -1.0
                t = sign / (abs(theta) + np.sqrt(theta * theta + 1.0))
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                for m in range(p):
                    left = a[m, i]
                    right = a[m, j]
                    a[m, i] = c * left - s * right
                    a[m, j] = s * left + c * right
                for m in range(p):
                    left = a[i, m]
                    right = a[j, m]
                    a[i, m] = c * left - s * right
                    a[j, m] = s * left + c * right
                    left = vectors[m, i]
                    right = vectors[m, j]
                    vectors[m, i] = c * left - s * right
                    vectors[m, j] = s * left + c * right
                a[i, j] = 0.0
                a[j, i] = 0.0
    values = np.empty(p)
    for i in range(p):
        values[i] = a[i, i]
    return values, vectors


@compiled
def squared_distance(x: Floats, y: Floats, scale: Floats) -> float:
    """sum ((x - y) / scale)^2 over all cells; a column with scale 0 counts for nothing."""
    n, p = x.shape
    total = 0.0
    for j in range(p):
        if scale[j] == 0.0:
            continue
        lanes = np.zeros(8)
        whole = n - n % 8
        for i in range(0, whole, 8):
            for lane in range(8):
                d = (x[i + lane, j] - y[i + lane, j]) / scale[j]
                lanes[lane] += d * d
        for i in range(whole, n):
            d = (x[i, j] - y[i, j]) / scale[j]
            lanes[0] += d * d
        for lane in range(8):
            total += lanes[lane]
    return total
