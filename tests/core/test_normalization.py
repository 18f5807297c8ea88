"""Normalizers against numpy and scipy, and the constants of the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from kohort.methods import Floats
from kohort.normalization import NORMALIZERS, Minmax, Rank, Robust, Unchanged, Zscore

RNG = np.random.default_rng(1)
X = np.column_stack(
    [RNG.normal(3, 2, 101), RNG.lognormal(0, 2, 101), RNG.integers(0, 4, 101), np.full(101, 0.1)]
)


def test_zscore_is_in_standard_deviations_of_ddof_0() -> None:
    z = Zscore().normalize(X)
    np.testing.assert_allclose(z[:, :3], stats.zscore(X[:, :3]), rtol=1e-12, atol=1e-14)
    assert (z[:, 3] == 0.0).all()


def test_minmax_reaches_0_and_1() -> None:
    z = Minmax().normalize(X)
    expected = (X[:, :3] - X[:, :3].min(axis=0)) / np.ptp(X[:, :3], axis=0)
    np.testing.assert_array_equal(z[:, :3], expected)
    assert (z[:, :3].min(axis=0) == 0.0).all()
    assert (z[:, :3].max(axis=0) == 1.0).all()
    assert (z[:, 3] == 0.5).all()


def test_rank_is_the_average_rank_over_n() -> None:
    z = Rank().normalize(np.array([[5.0], [-1.0], [5.0], [9.0], [0.0], [-0.0]]))
    assert (z[:, 0] * 6).tolist() == [4.5, 1.0, 4.5, 6.0, 2.5, 2.5]
    below = (X[:, None, :] > X[None, :, :]).sum(axis=1)
    equal = (X[:, None, :] == X[None, :, :]).sum(axis=1)
    np.testing.assert_allclose(Rank().normalize(X), (below + (equal + 1) / 2) / 101, rtol=1e-15)


def test_robust_is_in_interquartile_ranges() -> None:
    z = Robust().normalize(X)
    for j in range(3):
        low, middle, high = np.quantile(X[:, j], [0.25, 0.5, 0.75])
        np.testing.assert_allclose(z[:, j], (X[:, j] - middle) / (high - low), rtol=1e-13)
    assert (z[:, 3] == 0.0).all()


def test_robust_takes_the_std_where_the_interquartile_range_is_0() -> None:
    x = np.array([[0.0]] * 9 + [[10.0]])
    np.testing.assert_allclose(Robust().normalize(x), x / 3.0, rtol=1e-15)


def test_robust_does_not_divide_by_a_vanishing_range() -> None:
    x = np.array([[0.0], [5e-324], [1e-323], [1.5e-323], [2e-323], [1e150]])
    np.testing.assert_allclose(Robust().normalize(x), x / np.sqrt(5 / 36) / 1e150, rtol=1e-14)


def test_none_is_a_copy() -> None:
    x = X.copy()
    z = Unchanged().normalize(x)
    z[0, 0] = 99.0
    np.testing.assert_array_equal(x, X)


def test_zscore_keeps_its_digits_at_an_offset() -> None:
    x = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    np.testing.assert_array_equal(Zscore().normalize(x + 1e15), Zscore().normalize(x))


@pytest.mark.parametrize("cls", NORMALIZERS)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e-160, -1e150, 1e150])
        | st.floats(min_value=-1e150, max_value=1e150),
    )
)
def test_normalized_values_are_finite_and_in_order(cls: type, x: Floats) -> None:
    z = cls().normalize(x)
    assert np.isfinite(z).all()
    for before, after in zip(x.T, z.T, strict=True):
        assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0.0).all()
