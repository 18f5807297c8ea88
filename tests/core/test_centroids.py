"""Centroids against plain definitions, group by group."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort import PlanError
from kohort.centroids import Centroid, Mean, Median, WeightedMean
from kohort.methods import Floats

RNG = np.random.default_rng(3)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_draws_when_run_alone() -> None:
    RNG.bit_generator.state = START


def middle(values: Floats) -> float:
    """Mean of the two (even) or three (odd) middle values."""
    ordered = sorted(values)
    while len(ordered) > 3:
        ordered = ordered[1:-1]
    return math.fsum(ordered) / len(ordered)


def mean(values: Floats) -> float:
    return math.fsum(values) / len(values)


@pytest.mark.parametrize(("method", "define"), [(Mean(), mean), (Median(), middle)])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_values_of_each_group(
    method: Centroid, define: Callable[[Floats], float], offset: float
) -> None:
    sizes = [2, 3, 4, 5, 6, 9, 1]
    groups = RNG.permutation(np.repeat(np.arange(7), sizes)).astype(np.int32)
    x = RNG.lognormal(0, 2, (30, 3)) + offset
    values = method.replace(x, groups)
    for i in range(30):
        for j in range(3):
            expected = define(x[groups == groups[i], j])
            assert values[i, j] == pytest.approx(expected, rel=1e-13 if offset == 0 else 4e-16)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([1.0, 9.0], 5.0),
        ([1.0, 2.0, 9.0], 4.0),
        ([1.0, 2.0, 4.0, 99.0], 3.0),
        ([-99.0, 1.0, 2.0, 6.0, 99.0], 3.0),
        ([5.0, 5.0, 5.0], 5.0),
        ([8.0], 8.0),
    ],
)
def test_median_is_the_mean_of_the_two_or_three_middle_values(
    members: list[float], expected: float
) -> None:
    x = RNG.permutation(members)[:, None]
    values = Median().replace(x, np.zeros(len(members), np.int32))
    assert values.ravel().tolist() == [expected] * len(members)


def test_a_median_releases_no_members_own_value() -> None:
    for size in range(2, 12):
        x = RNG.normal(size=(size, 1))
        assert Median().replace(x, np.zeros(size, np.int32))[0, 0] not in x


def test_weighted_mean() -> None:
    x = np.array([[1.0], [3.0], [10.0], [2.0], [20.0]])
    groups = np.array([0, 0, 1, 0, 1], np.int32)
    weights = np.array([1.0, 2.0, 1.0, 1.0, 4.0])
    values = WeightedMean().replace(x, groups, weights=weights)
    assert values.ravel().tolist() == [2.25, 2.25, 18.0, 2.25, 18.0]


def test_weighted_mean_against_its_definition() -> None:
    x = RNG.normal(size=(60, 2)) + 1e6
    groups = RNG.permutation(np.arange(60) // 6).astype(np.int32)
    weights = RNG.lognormal(0, 2, 60)
    values = WeightedMean().replace(x, groups, weights=weights)
    for g in range(10):
        here = groups == g
        expected = np.average(x[here], axis=0, weights=weights[here])
        np.testing.assert_allclose(values[here], np.tile(expected, (6, 1)), rtol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_only_the_ratio_of_weights_counts(scale: float) -> None:
    x = RNG.normal(size=(12, 2))
    groups = (np.arange(12) % 3).astype(np.int32)
    weights = np.arange(1.0, 13.0) / 16
    expected = WeightedMean().replace(x, groups, weights=weights)
    values = WeightedMean().replace(x, groups, weights=weights * scale)
    np.testing.assert_allclose(values, expected, rtol=1e-13, atol=1e-15)
    equal = WeightedMean().replace(x, groups, weights=np.full(12, scale))
    np.testing.assert_allclose(equal, Mean().replace(x, groups), rtol=1e-13, atol=1e-15)


def test_weights_are_asked_for_by_name() -> None:
    x, groups = np.ones((4, 1)), np.zeros(4, np.int32)
    with pytest.raises(PlanError, match="centroid 'weighted_mean' needs weights"):
        WeightedMean().replace(x, groups)
    for method in (Mean(), Median()):
        with pytest.raises(PlanError, match=f"weights have no effect on centroid '{method.method}'"):
            method.replace(x, groups, weights=np.ones(4))


@pytest.mark.parametrize("method", [Mean(), Median(), WeightedMean()], ids=repr)
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.just(1)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 5e-324, -1e150, 1e150])
        | st.floats(min_value=-1e150, max_value=1e150),
    )
)
def test_a_centroid_is_among_its_members(method: Centroid, x: Floats) -> None:
    weights = np.linspace(0.5, 3.0, len(x)) if method.takes_weights else None
    value = method.replace(x, np.zeros(len(x), np.int32), weights=weights)[0, 0]
    slack = 1e-13 * np.abs(x).max()
    assert x.min() - slack <= value <= x.max() + slack
