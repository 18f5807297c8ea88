"""The information loss of Domingo-Ferrer and Torra: how far cells and moments vary, relative to them.

Two papers write it in two variants, and both are here: "m1d" (mic1d, section 2.3) and "mp" (modeling
projections, section 2.4). They differ in the first and the fifth component.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from kohort.evaluation.moments import ROUNDING, Moments, as_columns, moments, pairs
from kohort.evaluation.outcome import NotApplicable
from kohort.methods import Floats, check_choice

Variant = Literal["m1d", "mp"]


def il1(x: Floats, protected: Floats, *, variant: Variant = "m1d") -> float | NotApplicable:
    """How far the cells vary.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.
    variant : {"m1d", "mp"}
        "m1d": mean of abs(x - x') / abs(x) over cells that are not 0. "mp": mean of abs(x - x') in
        standard deviations of the original columns; the paper's "mean absolute error" has no scale, and
        its figures are none of raw values.

    Examples
    --------
    >>> il1(np.array([[1.0], [2.0], [0.0]]), np.array([[1.5], [1.5], [0.0]]))
    0.375
    """
    from kohort.kernels.moments import absolute_differences, relative_differences
    from kohort.kernels.statistics import mean_and_std

    check_choice("variant", variant, get_args(Variant))
    x, protected = as_columns(x), as_columns(protected)
    if variant == "m1d":
        total, cells = relative_differences(x, protected)
        return total / cells if cells else NotApplicable("every cell is zero")
    _, std = mean_and_std(x)
    if not std.any():
        return NotApplicable("every attribute is constant")
    return float(np.mean(absolute_differences(x, protected)[std > 0] / std[std > 0]) / len(x))


def il2(x: Floats, protected: Floats) -> float | NotApplicable:
    """How far the means vary: mean of abs(a - a') / abs(a) over the attributes' means that are not 0.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> il2(np.array([[1.0], [3.0]]), np.array([[1.0], [4.0]]))
    0.25
    """
    before, after = moments(x), moments(protected)
    zero = np.abs(before.mean) <= ROUNDING * before.std
    return _variation(before.mean, after.mean, zero, "mean")


def il3(x: Floats, protected: Floats) -> float | NotApplicable:
    """How far the covariances (i <= j) vary, in the same way.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> il3(np.array([[1.0], [3.0]]), np.array([[2.0], [2.0]]))
    1.0
    """
    before, after = moments(x), moments(protected)
    upper = np.triu_indices(len(before.std))
    zero = np.abs(before.covariance) <= ROUNDING * np.outer(before.std, before.std)
    return _variation(before.covariance[upper], after.covariance[upper], zero[upper], "covariance")


def il4(x: Floats, protected: Floats) -> float | NotApplicable:
    """How far the variances vary, in the same way.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> il4(np.array([[1.0], [3.0]]), np.array([[1.5], [2.5]]))
    0.75
    """
    before, after = moments(x), moments(protected)
    variances = np.diag(before.covariance)
    return _variation(variances, np.diag(after.covariance), variances == 0.0, "variance")


def il5(x: Floats, protected: Floats, *, variant: Variant = "m1d") -> float | NotApplicable:
    """How far the correlations (i < j) vary.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.
    variant : {"m1d", "mp"}
        "m1d": mean of abs(r - r'). "mp": mean of abs(r - r') / abs(r) over correlations that are not 0.

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> il5(x, np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]))
    2.0
    """
    check_choice("variant", variant, get_args(Variant))
    before, after = moments(x), moments(protected)
    missing = why_no_correlations(before, after)
    if missing:
        return missing
    r, r_after = pairs(before.correlation), pairs(after.correlation)
    if variant == "m1d":
        return float(np.abs(r - r_after).mean())
    return _variation(r, r_after, np.abs(r) <= ROUNDING, "correlation")


def il(x: Floats, protected: Floats, *, variant: Variant = "m1d") -> float | NotApplicable:
    """Information loss in per cent: 100 times the mean of il1 to il5.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.
    variant : {"m1d", "mp"}
        Whose il1 and il5.

    Examples
    --------
    >>> x = np.array([[1.0, 1.0], [2.0, 5.0], [3.0, 6.0]])
    >>> il(x, x)
    0.0
    """
    components = (
        il1(x, protected, variant=variant),
        il2(x, protected),
        il3(x, protected),
        il4(x, protected),
        il5(x, protected, variant=variant),
    )
    return mean_of_five(*components)


def mean_of_five(*components: float | NotApplicable) -> float | NotApplicable:
    """`il` of its five components; the first one that is missing says why there is none."""
    total = 0.0
    for number, component in enumerate(components, start=1):
        if isinstance(component, NotApplicable):
            return replace(component, reason=f"il{number}: {component.reason}")
        total += component
    return 100.0 * total / 5.0


def why_no_correlations(before: Moments, after: Moments) -> NotApplicable | None:
    """Why there are no correlations to compare, if there are none."""
    if before.std.size < 2:
        return NotApplicable("there is one attribute only")
    for file, std in (("original", before.std), ("protected", after.std)):
        if not std.all():
            return why_constant(std, f"an attribute is constant in the {file} file")
    return None


def why_constant(std: Floats, reason: str) -> NotApplicable:
    """The reason with the columns whose standard deviation is 0."""
    return NotApplicable(reason, tuple(int(j) for j in np.flatnonzero(std == 0.0)))


def _variation(
    before: Floats, after: Floats, zero: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], what: str
) -> float | NotApplicable:
    if zero.all():
        return NotApplicable(f"every {what} is zero")
    return float(np.mean(np.abs(before - after)[~zero] / np.abs(before[~zero])))
