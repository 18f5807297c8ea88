"""Structure: spreads, correlations and the first component after protection (CS, Tables 2 to 4)."""

from __future__ import annotations

import numpy as np

from kohort.evaluation.moments import Moments, as_columns, moments, pairs
from kohort.evaluation.outcome import NotApplicable
from kohort.evaluation.variation import why_constant, why_no_correlations
from kohort.methods import Floats
from kohort.projection import GAP, NEGLIGIBLE


def std_kept(x: Floats, protected: Floats) -> float | NotApplicable:
    """Mean over the attributes of the share of the standard deviation that is kept (CS, Table 2).

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> std_kept(np.array([[0.0], [4.0]]), np.array([[1.0], [3.0]]))
    0.5
    """
    from kohort.kernels.statistics import mean_and_std

    _, before = mean_and_std(as_columns(x))
    _, after = mean_and_std(as_columns(protected))
    if not before.all():
        return why_constant(before, "an attribute is constant in the original file")
    return float(np.mean(after / before))


def delta_r(x: Floats, protected: Floats) -> float | NotApplicable:
    """Mean of abs(r' - r) over the pairs of attributes (CS, Table 4).

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> delta_r(x, np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]))
    2.0
    """
    changes = _correlation_changes(x, protected)
    return changes if isinstance(changes, NotApplicable) else float(changes.mean())


def s_delta_r(x: Floats, protected: Floats) -> float | NotApplicable:
    """Standard deviation (ddof 1) of abs(r' - r) over the pairs of attributes (CS, Table 4).

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> x = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 2.0], [2.0, 2.0, 1.0]])
    >>> s_delta_r(x, x)
    0.0
    """
    changes = _correlation_changes(x, protected)
    if isinstance(changes, NotApplicable):
        return changes
    if changes.size < 2:
        return NotApplicable("there is one pair of attributes only")
    return float(changes.std(ddof=1))


def delta_R(x: Floats, protected: Floats) -> float | NotApplicable:  # noqa: N802  # the paper's name
    """Mean over the attributes of abs(r'/r) - 1, r the correlation with the first component.

    CS's Table 3 prints it in per cent.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    >>> delta_R(x, x)
    0.0
    """
    both = _first_components(x, protected)
    if isinstance(both, NotApplicable):
        return both
    # The correlation with the component is the loading times the component's standard deviation.
    (value, loadings), (value_after, loadings_after) = both
    ratio = np.abs(loadings_after / loadings) * np.sqrt(value_after / value)
    return float(np.mean(ratio - 1.0))


def delta_W(x: Floats, protected: Floats) -> float | NotApplicable:  # noqa: N802  # the paper's name
    """Mean over the attributes of abs(abs(w')/abs(w) - 1), w the weight in the first component.

    The weight is the eigenvector over the square root of the eigenvalue; CS's Table 3 prints per cent.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values.

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    >>> delta_W(x, x)
    0.0
    """
    both = _first_components(x, protected)
    if isinstance(both, NotApplicable):
        return both
    (value, loadings), (value_after, loadings_after) = both
    ratio = np.abs(loadings_after / loadings) * np.sqrt(value / value_after)
    return float(np.mean(np.abs(ratio - 1.0)))


def fpc(x: Floats) -> float | NotApplicable:
    """Per cent of the variance that the first component carries (CS, Table 3).

    Parameters
    ----------
    x : (n, p) array
        Values of one file, original or protected: protection is good where the two are close.

    Examples
    --------
    >>> round(fpc(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])), 6)
    100.0
    """
    from kohort.kernels.statistics import eigen

    table = moments(x)
    if not table.std.all():
        return why_constant(table.std, "an attribute is constant")
    values, _ = eigen(table.correlation)
    return 100.0 * float(values.max()) / values.size


def _correlation_changes(x: Floats, protected: Floats) -> Floats | NotApplicable:
    before, after = moments(x), moments(protected)
    missing = why_no_correlations(before, after)
    if missing:
        return missing
    return np.abs(pairs(after.correlation) - pairs(before.correlation))


def _first_components(
    x: Floats, protected: Floats
) -> tuple[tuple[float, Floats], tuple[float, Floats]] | NotApplicable:
    """Largest eigenvalue and its eigenvector, of both files."""
    before, after = moments(x), moments(protected)
    missing = why_no_correlations(before, after)
    if missing:
        return missing
    original, released = _first_component(before), _first_component(after)
    if original is None or released is None:
        file = "original" if original is None else "protected"
        return NotApplicable(f"the two largest eigenvalues of the {file} file are equal")
    absent = np.flatnonzero(np.abs(original[1]) <= NEGLIGIBLE)
    if absent.size:
        reason = "an attribute has no part in the original file's first component"
        return NotApplicable(reason, tuple(int(j) for j in absent))
    return original, released


def _first_component(table: Moments) -> tuple[float, Floats] | None:
    from kohort.kernels.statistics import eigen

    values, vectors = eigen(table.correlation)
    second, first = np.argsort(values)[-2:]
    if values[first] - values[second] <= GAP * values[first]:
        return None
    return float(values[first]), vectors[:, first]
