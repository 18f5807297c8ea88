"""Loss against its definition: both tables scaled by the original mean and standard deviation."""

from __future__ import annotations

import numpy as np
import pytest

from kohort import protect
from kohort.evaluation import NotApplicable, loss, sse, sst

RNG = np.random.default_rng(11)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_draws_when_run_alone() -> None:
    RNG.bit_generator.state = START


@pytest.mark.parametrize("n", [3, 8, 9, 250])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_sse_sst_and_loss(n: int, offset: float) -> None:
    near = np.round(RNG.lognormal(0, 1, (n, 4)) * 2.0**20) / 2.0**20
    released = np.round(near + RNG.normal(size=(n, 4)))
    expected = (((near - released) / near.std(axis=0)) ** 2).sum()
    assert sse(near + offset, released + offset) == pytest.approx(expected, rel=1e-12)
    assert sst(near + offset) == 4 * n
    assert loss(near + offset, released + offset) == pytest.approx(expected / (4 * n), rel=1e-12)


def test_a_constant_column_counts_for_nothing() -> None:
    x = np.array([[0.0, 0.1], [2.0, 0.1], [4.0, 0.1]])
    released = np.array([[2.0, 0.1], [2.0, 0.1], [2.0, 5.0]])
    assert sst(x) == 3
    assert loss(x, released) == pytest.approx(1.0, rel=1e-15)


def test_a_table_of_constants_has_nothing_to_lose() -> None:
    x = np.full((5, 2), 0.1)
    assert sse(x, x) == 0.0
    assert sst(x) == 0.0
    assert loss(x, x) == NotApplicable("every attribute is constant")


def test_loss_goes_from_0_to_1_as_groups_grow() -> None:
    x = RNG.normal(size=(60, 3))
    assert loss(x, x) == 0.0
    everyone_alike = protect(x, k=60).values
    assert loss(x, everyone_alike) == pytest.approx(1.0, rel=1e-13)
    losses = [loss(x, protect(x, k=k).values) for k in (2, 6, 30, 60)]
    assert losses == sorted(losses, key=float)  # type: ignore[arg-type]


def test_the_tables_are_left_alone() -> None:
    x, released = RNG.normal(size=(9, 2)), RNG.normal(size=(9, 2))
    before = x.copy(), released.copy()
    x.flags.writeable = released.flags.writeable = False
    loss(x, released)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(released, before[1])
