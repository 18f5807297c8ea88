"""The radix sort against numpy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort.kernels.sorting import stable_order
from kohort.methods import Floats

RNG = np.random.default_rng(0)
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, -1.0, 1e150, -1e150, 1.7e308, -1.7e308]

CASES = {
    "none": np.empty(0),
    "one": np.array([-3.5]),
    "random": RNG.normal(size=5000),
    "tied": RNG.integers(-3, 4, 5000).astype(float),
    "constant": np.full(1000, -7.25),
    "sorted": np.sort(RNG.normal(size=1000)),
    "reversed": np.sort(RNG.normal(size=1000))[::-1].copy(),
    "zeros of both signs": RNG.choice([0.0, -0.0], 1000),
    "subnormal": RNG.integers(-9, 10, 1000) * 5e-324,
    "huge": RNG.normal(size=1000) * 1e307,
    "infinite": RNG.choice([np.inf, -np.inf, 1.0], 100),
    "many scales": RNG.normal(size=5000) * 10.0 ** RNG.integers(-300, 300, 5000),
    "extremes": RNG.choice(EXTREMES, 2000),
    "neighbouring floats": 1.0 + RNG.integers(0, 5, 1000) * 2.0**-52,
}


def check(axis: Floats) -> None:
    before = axis.copy()
    order, values = stable_order(axis)
    expected = np.argsort(axis, kind="stable")
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(values, axis[expected])
    np.testing.assert_array_equal(axis.view(np.uint64), before.view(np.uint64))


@pytest.mark.parametrize("case", CASES)
def test_order_is_the_stable_one(case: str) -> None:
    check(CASES[case])


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    arrays(
        np.float64,
        st.integers(0, 60),
        elements=st.floats(allow_nan=False) | st.sampled_from(EXTREMES),
    )
)
def test_order_is_the_stable_one_for_any_floats(axis: Floats) -> None:
    check(axis)
