"""Means, variances and correlations of a table: what several measures compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohort.methods import Floats

ROUNDING = 1e-12  # a mean or covariance below this share of the standard deviations is zero


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, standard deviation (p,), covariance and correlation (p, p), all with ddof 0.

    A constant column has a standard deviation of exactly 0 and only zeros as correlations.
    """

    mean: Floats
    std: Floats
    covariance: Floats
    correlation: Floats


def moments(x: Floats) -> Moments:
    """Moments of `x` (n, p)."""
    from kohort.kernels.moments import covariance
    from kohort.kernels.statistics import mean_and_std

    x = as_columns(x)
    mean, std = mean_and_std(x)
    products = covariance(x, mean)
    scale = np.outer(std, std)
    correlation = np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0.0)
    np.fill_diagonal(correlation, std > 0.0)
    return Moments(mean, std, products, correlation)


def as_columns(x: npt.ArrayLike) -> Floats:
    """`x` as floats with each column contiguous, as the kernels take it."""
    return np.asfortranarray(x, dtype=np.float64)


def pairs(matrix: Floats) -> Floats:
    """The entries i < j of a symmetric matrix."""
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)])
