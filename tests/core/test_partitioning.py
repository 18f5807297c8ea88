"""`fixed` and `optimal` against brute force, plain dynamic programmes and microagg1d."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort import PlanError
from kohort.methods import Floats, Labels
from kohort.partitioning import Fixed, Optimal

RNG = np.random.default_rng(2003)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_draws_when_run_alone() -> None:
    RNG.bit_generator.state = START


def labels(cuts: Sequence[int]) -> list[int]:
    """Labels of contiguous groups that end at the given positions."""
    return [
        g
        for g, (start, stop) in enumerate(zip((0, *cuts), cuts, strict=False))
        for _ in range(start, stop)
    ]


def cost(x: Floats, groups: Labels | Sequence[int]) -> float:
    """Squared error within groups, in more digits than any kernel has."""
    terms = []
    x = x.reshape(len(x), -1)
    order = np.argsort(groups, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(groups))[:-1]):
        for column in x[members].T:
            centred = column - math.fsum(column) / len(column)
            # The second term is what the rounding of the mean has added to the first.
            terms += [*(centred * centred), -(math.fsum(centred) ** 2) / len(column)]
    return math.fsum(terms)


def divisions(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """Ends of the groups of every division of n records into groups of k to 2k-1."""
    if k <= n < 2 * k:
        yield (n,)
    for last in range(k, min(2 * k - 1, n - k) + 1):
        for cuts in divisions(n - last, k):
            yield (*cuts, n)


def plain_programme(columns: Floats, k: int) -> list[int]:
    """Hansen and Mukherjee's programme on (n, v) ordered records: two passes over every window."""
    n = len(columns)
    windows = {}
    for size in range(k, min(2 * k - 1, n) + 1):
        window = np.lib.stride_tricks.sliding_window_view(columns, size, axis=0)
        window = window - window[..., :1]
        window = window - window.mean(axis=-1, keepdims=True)
        windows[size] = (window * window).sum(axis=(1, 2))
    best = [0.0] + [math.inf] * n
    start = [0] * (n + 1)
    for j in range(k, n + 1):
        for size in range(min(2 * k - 1, j), k - 1, -1):
            total = best[j - size] + windows[size][j - size]
            if total < best[j]:
                best[j], start[j] = total, j - size
    cuts = [n]
    while start[cuts[-1]] > 0:
        cuts.append(start[cuts[-1]])
    return labels(cuts[::-1])


def exact_programme(values: Sequence[int], k: int) -> tuple[list[int], dict[tuple[int, int], Fraction]]:
    """The same on integers, in rational arithmetic; also the costs of all windows."""
    n = len(values)
    windows = {}
    for i in range(n):
        total = squares = 0
        for j in range(i + 1, min(i + 2 * k - 1, n) + 1):
            total += values[j - 1]
            squares += values[j - 1] ** 2
            windows[i, j] = squares - Fraction(total * total, j - i)
    best: list[Fraction | None] = [Fraction(0)] + [None] * n
    start = [0] * (n + 1)
    for j in range(k, n + 1):
        for i in range(max(0, j - 2 * k + 1), j - k + 1):
            before = best[i]
            if before is not None:
                so_far = best[j]
                if so_far is None or before + windows[i, j] < so_far:
                    best[j], start[j] = before + windows[i, j], i
    cuts = [n]
    while start[cuts[-1]] > 0:
        cuts.append(start[cuts[-1]])
    return cuts[::-1], windows


def check_contiguous(groups: Labels, axis: Floats, k: int) -> None:
    """Groups of k to 2k-1 neighbours, numbered along the axis."""
    along = groups[np.argsort(axis, kind="stable")]
    assert (np.isin(np.diff(along), (0, 1))).all()
    sizes = np.bincount(groups)
    assert k <= sizes.min() <= sizes.max() <= max(2 * k - 1, k)


# Fixed


def test_fixed_takes_k_at_a_time_and_leaves_the_remainder_to_the_last() -> None:
    axis = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 7.0, 6.0, 8.0])
    x = axis[:, None]
    assert Fixed().partition(x, k=3, axis=axis).tolist() == [1, 0, 1, 0, 0, 1, 1, 1]
    descending = Fixed(order="descending").partition(x, k=3, axis=axis)
    assert descending.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("sign", [1, -1])
def test_fixed_follows_a_stable_sort(k: int, sign: int) -> None:
    axis = RNG.integers(-4, 5, 100).astype(float)
    order = np.argsort(sign * axis, kind="stable")
    expected = np.empty(100, int)
    expected[order] = np.minimum(np.arange(100) // k, 100 // k - 1)
    method = Fixed(order="ascending" if sign == 1 else "descending")
    np.testing.assert_array_equal(method.partition(axis[:, None], k=k, axis=axis), expected)


def test_fixed_on_equal_values_follows_the_file_in_both_orders() -> None:
    axis = np.array([0.0, -0.0, 0.0, -0.0, 0.0, -0.0])
    for order in ("ascending", "descending"):
        groups = Fixed(order=order).partition(axis[:, None], k=2, axis=axis)  # type: ignore[arg-type]
        assert groups.tolist() == [0, 0, 1, 1, 2, 2]


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(PlanError, match="order must be one of 'ascending', 'descending', got 'up'"):
        Fixed(order="up")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="cost must be one of 'axis', 'block', got 'sse'"):
        Optimal(cost="sse")  # type: ignore[arg-type]


# Optimal: against all divisions


def test_divisions_are_all_of_them() -> None:
    assert sorted(divisions(10, 3)) == [(3, 6, 10), (3, 7, 10), (4, 7, 10), (5, 10)]


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_optimal_has_the_least_cost_of_all_divisions(k: int, offset: float) -> None:
    for n in range(k, 11):
        for draw in (RNG.normal(size=(n, 3)), RNG.lognormal(0, 3, (n, 3)), RNG.integers(0, 4, (n, 3))):
            x = np.asarray(draw, float) + offset
            axis = x[:, 0].copy()
            order = np.argsort(axis, kind="stable")
            for method, counted in ((Optimal(), axis), (Optimal(cost="block"), x)):
                groups = method.partition(x, k=k, axis=axis)
                check_contiguous(groups, axis, k)
                least = min(cost(counted[order], labels(cuts)) for cuts in divisions(n, k))
                scale = cost(counted, [0] * n)
                assert cost(counted, groups) <= least + 1e-12 * least + 1e-28 * scale


def test_of_equal_costs_the_last_group_starts_earliest() -> None:
    # Constant records: every division costs nothing, so every last group is as long as it may be.
    axis = np.full(11, 0.1)
    for method in (Optimal(), Optimal(cost="block")):
        assert method.partition(axis[:, None], k=3, axis=axis).tolist() == [0] * 3 + [1] * 3 + [2] * 5


@pytest.mark.parametrize("method", [Optimal(), Optimal(cost="block")], ids=repr)
@pytest.mark.parametrize(
    ("k", "values", "sizes"),
    [
        (2, range(5), [2, 3]),  # 0.5 + 2 = 2 + 0.5
        (2, range(7), [2, 2, 3]),
        (3, range(7), [3, 4]),  # 2 + 5 = 5 + 2
        (2, [0, 0, 0, 0, 0, 8, 8, 8, 8, 8], [2, 3, 2, 3]),
        (4, [0] * 9 + [8] * 8, [4, 5, 4, 4]),
    ],
)
def test_ties_between_divisions_that_cost_something(
    method: Optimal, k: int, values: Sequence[int], sizes: list[int]
) -> None:
    cuts, _ = exact_programme(values, k)
    assert np.diff([0, *cuts]).tolist() == sizes
    axis = np.array(values, float)
    assert np.bincount(method.partition(axis[:, None], k=k, axis=axis)).tolist() == sizes


@pytest.mark.parametrize("method", [Optimal(), Optimal(cost="block")], ids=repr)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_runs_of_equal_values_are_divided_by_the_rule(method: Optimal, k: int) -> None:
    values = [0] * 9 + [4] * 10 + [8] * 11
    for n in range(k, len(values) + 1):
        cuts, _ = exact_programme(values[:n], k)
        axis = np.array(values[:n], float)
        assert method.partition(axis[:, None], k=k, axis=axis).tolist() == labels(cuts)


# Optimal: against other programmes


def skewed(n: int) -> dict[str, Floats]:
    """A table's columns of every kind that costs some way of summing its digits."""
    rng = np.random.default_rng(n)
    far = np.array([1e8, 2e8, 4e8, -1e8, -3e8, -9e8])[: n // 2]
    return {
        "normal": rng.normal(size=n),
        "ties": np.round(rng.normal(size=n), 1),
        "offset": rng.normal(size=n) + 1e9,
        "lognormal": rng.lognormal(0, 3, n),
        "negative lognormal": -rng.lognormal(0, 3, n),
        "two far clusters": np.concatenate([rng.normal(size=n // 2), 1e8 + rng.normal(size=n - n // 2)]),
        "outliers": np.concatenate([rng.normal(size=n - far.size), far]),
    }


CASES = list(skewed(100))


@pytest.mark.parametrize("case", [case for case in CASES if case != "two far clusters"])
@pytest.mark.parametrize("k", [2, 3, 5, 10, 40])
def test_optimal_on_an_axis_costs_what_wilber_costs(case: str, k: int) -> None:
    """Where microagg1d keeps its digits: at an offset it divides the records moved back to 0.

    Its prefix sums give groups of fewer than k at 1e9, and three times the cost in far clusters.
    """
    import microagg1d  # here, because it compiles all of itself when it is imported

    for n in (2 * k + 1, 5 * k + 2, 1500):
        axis = RNG.permutation(skewed(n)[case])
        groups = Optimal().partition(axis[:, None], k=k, axis=axis)
        check_contiguous(groups, axis, k)
        near = axis - 1e9 if case == "offset" else axis
        other = microagg1d.univariate_microaggregation(near, k, method="wilber")
        assert np.bincount(other).min() >= k
        assert cost(axis, groups) == pytest.approx(cost(axis, other), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_optimal_on_a_long_axis_is_exactly_what_wilber_finds(k: int) -> None:
    """Long enough for near ties between divisions."""
    import microagg1d

    axis = np.sort(RNG.normal(size=30_000))
    groups = Optimal().partition(axis[:, None], k=k, axis=axis)
    other = microagg1d.univariate_microaggregation(axis, k, method="wilber")
    assert cost(axis, groups) == pytest.approx(cost(axis, other), rel=1e-13)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("k", [2, 3, 5, 10, 40])
def test_optimal_on_an_axis_costs_what_the_plain_programme_costs(case: str, k: int) -> None:
    axis = RNG.permutation(skewed(1200)[case])
    groups = Optimal().partition(axis[:, None], k=k, axis=axis)
    plain = plain_programme(np.sort(axis)[:, None], k)
    assert cost(axis, groups) == pytest.approx(cost(np.sort(axis), plain), rel=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("v", [1, 2, 3, 4, 5, 9])
def test_optimal_in_several_dimensions_costs_what_the_plain_programme_costs(case: str, v: int) -> None:
    for k, n in ((2, 130), (3, 700), (5, 257), (10, 400), (70, 300)):
        x = np.column_stack([RNG.permutation(skewed(n)[case]) for _ in range(v)])
        axis = RNG.normal(size=n)
        order = np.argsort(axis)
        groups = Optimal(cost="block").partition(x, k=k, axis=axis)
        check_contiguous(groups, axis, k)
        plain = plain_programme(x[order], k)
        assert cost(x, groups) == pytest.approx(cost(x[order], plain), rel=1e-12)


@pytest.mark.parametrize("method", [Optimal(), Optimal(cost="block")], ids=repr)
@pytest.mark.parametrize("k", [3, 5, 12])
@pytest.mark.parametrize("far", [[-(10**12), -5 * 10**11, -(10**11)], [10**11, 10**12], []])
def test_outliers_do_not_spoil_the_groups_of_the_rest(method: Optimal, k: int, far: list[int]) -> None:
    """A total is blind to this: the outliers' group costs 1e23, all the others together 1e6."""
    rng = np.random.default_rng(k)
    values = sorted([*far, *rng.integers(-(2**12), 2**12, 600).tolist()])
    cuts, windows = exact_programme(values, k)
    axis = np.array(values, float)
    groups = method.partition(axis[:, None], k=k, axis=axis)
    ends = [*(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(values)]
    ours = sum(windows[pair] for pair in zip([0, *ends], ends, strict=False))
    least = sum(windows[pair] for pair in zip([0, *cuts], cuts, strict=False))
    dense = sum(w for w in (windows[p] for p in zip([0, *cuts], cuts, strict=False)) if w < 10**9)
    assert ours - least <= Fraction(dense) / 10**12


def test_a_division_that_becomes_cheaper_with_one_record_more_is_found() -> None:
    # Five records cost 1e18, the sixth makes two groups that cost next to nothing.
    for scale in (1e9, 1e100, -1e9):
        axis = np.array([0.0, 0.0, 1.0, scale, scale, scale, 2 * scale, 2 * scale, 2 * scale])
        expected = np.argsort(np.argsort(axis, kind="stable"), kind="stable") // 3
        for method in (Optimal(), Optimal(cost="block")):
            assert method.partition(axis[:, None], k=3, axis=axis).tolist() == expected.tolist()


def test_cost_decides_what_is_counted() -> None:
    axis = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    x = np.array([[0.0], [0.0], [0.0], [0.0], [9.0], [9.0], [9.0]])
    assert Optimal().partition(x, k=3, axis=axis).tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert Optimal(cost="block").partition(x, k=3, axis=axis).tolist() == [0, 0, 0, 0, 1, 1, 1]


EXTREMES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1e-160, 1e150, -1e150, 1e9]) | st.floats(
    min_value=-1e150, max_value=1e150
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.data(), st.integers(2, 5), st.integers(0, 40))
def test_any_finite_records_are_divided_and_none_worse_than_by_count(
    data: st.DataObject, k: int, more: int
) -> None:
    x = data.draw(arrays(np.float64, (k + more, 2), elements=EXTREMES))
    axis = x[:, 0].copy()
    by_count = Fixed().partition(x, k=k, axis=axis)
    for method, counted in ((Optimal(), axis), (Optimal(cost="block"), x)):
        groups = method.partition(x, k=k, axis=axis)
        check_contiguous(groups, axis, k)
        assert cost(counted, groups) <= cost(counted, by_count) * (1 + 1e-9) + 1e-300
