"""Anonymity against dictionaries of tuples."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort import PlanError
from kohort.evaluation import group_sizes, k_real, min_anonymity, unique
from kohort.evaluation.anonymity import classes
from kohort.kernels.grouping import identical_rows

RNG = np.random.default_rng(13)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_draws_when_run_alone() -> None:
    RNG.bit_generator.state = START


def classes_by_dictionary(rows: list[tuple[Any, ...]]) -> tuple[list[int], list[int]]:
    names: dict[tuple[Any, ...], int] = {}
    labels = [names.setdefault(row, len(names)) for row in rows]
    return labels, [count for _, count in sorted(Counter(labels).items())]


def check(released: Any) -> None:
    columns = released.T if isinstance(released, np.ndarray) else released
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    labels, sizes = classes(released)
    assert (labels.tolist(), sizes.tolist()) == classes_by_dictionary(rows)
    assert labels.dtype == np.int32
    assert min_anonymity(released) == min(sizes)
    assert k_real(released) == len(rows) / len(sizes)
    counts = Counter(rows)
    assert unique(released) == pytest.approx(sum(counts[row] == 1 for row in rows) / len(rows))


@pytest.mark.parametrize("n", [1, 2, 17, 3000])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_classes_are_those_of_equal_tuples(n: int, p: int) -> None:
    check(RNG.integers(0, 4, (n, p)).astype(float))
    check(RNG.integers(-3, 3, (n, p)))
    check(RNG.normal(size=(n, p)))


def test_many_classes() -> None:
    """Hashes of regular bit patterns: all distinct rows must stay apart, however they collide."""
    n = 50_000
    for codes in (
        np.arange(n, dtype=np.uint64)[:, None],
        np.arange(n, dtype=np.uint64)[:, None] << np.uint64(44),
        np.arange(n, dtype=np.float64)[:, None].view(np.uint64),
        np.column_stack([np.arange(n) % 200, np.arange(n) // 200]).astype(np.uint64),
    ):
        labels, sizes = identical_rows(np.vstack([codes, codes[::-1]]), np.zeros(codes.shape[1], bool))
        assert labels[:n].tolist() == list(range(n))
        assert labels[n:].tolist() == list(range(n))[::-1]
        assert sizes.tolist() == [2] * n


def test_rows_whose_hashes_are_equal_are_still_told_apart() -> None:
    # h <- mix((h ^ code) * odd): any first code has a second one that leads back to the same hash.
    odd = 0x9E3779B97F4A7C15
    full = 2**64 - 1

    def mix(h: int, code: int) -> int:
        h = (h ^ code) * odd & full
        return h ^ h >> 29

    first = [int(code) for code in RNG.integers(0, 2**63, 500)]
    rows = [(code, mix(0, code)) for code in first]  # the second step starts from h ^ code = 0
    assert len({mix(mix(0, a), b) for a, b in rows}) == 1
    labels, sizes = identical_rows(np.array(rows + rows, np.uint64), np.zeros(2, bool))
    assert labels.tolist() == [*range(500), *range(500)]
    assert sizes.tolist() == [2] * 500


def test_columns_of_several_kinds() -> None:
    n = 500
    check(
        [
            RNG.integers(0, 3, n).astype(np.int8),
            RNG.integers(0, 2, n).astype(bool),
            RNG.integers(0, 2, n).astype(np.float32),
            RNG.choice(np.array([0, 1, 2**64 - 1], np.uint64), n),
        ]
    )


def test_days_are_told_apart() -> None:
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-01"], "datetime64[D]")
    assert classes([days])[0].tolist() == [0, 1, 0]


def test_zeros_of_either_sign_are_one_value() -> None:
    assert min_anonymity(np.array([[0.0], [-0.0]])) == 2
    assert k_real(np.array([[0.0, 1.0], [-0.0, 1.0], [-0.0, 1.0]])) == 3.0


def test_neighbouring_floats_are_two_values() -> None:
    assert min_anonymity(np.array([[1.0], [np.nextafter(1.0, 2.0)]])) == 1


@pytest.mark.parametrize("column", [["01", "1"], [1j, 2j], [None, None]])
def test_what_has_no_number_is_refused_unseen(column: list[Any]) -> None:
    with pytest.raises(PlanError, match="released columns must be numbers or codes, got") as refusal:
        min_anonymity([np.array(column)])
    assert "01" not in str(refusal.value)


def test_units_count_once_in_a_class() -> None:
    released = np.array([[1.0], [1.0], [1.0], [2.0], [2.0], [3.0], [3.0]])
    households = np.array([7, 7, 8, 5, 5, 7, 9])
    assert min_anonymity(released) == 2
    assert min_anonymity(released, units=households) == 1
    assert unique(released) == 0.0
    assert unique(released, units=households) == pytest.approx(2 / 7)


def test_units_against_sets() -> None:
    released = RNG.integers(0, 12, (200, 1)).astype(float)
    units = RNG.integers(0, 15, 200)
    members: dict[float, set[int]] = {}
    for value, unit in zip(released[:, 0].tolist(), units.tolist(), strict=True):
        members.setdefault(value, set()).add(unit)
    assert min_anonymity(released, units=units) == min(map(len, members.values()))
    everyone = np.arange(200)
    assert min_anonymity(released, units=everyone) == min_anonymity(released)


def test_group_sizes() -> None:
    groups = RNG.permutation(np.repeat(np.arange(6), [3, 3, 4, 5, 3, 4])).astype(np.int32)
    assert group_sizes(groups) == {3: 3, 4: 2, 5: 1}


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 3)),
        elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1e150, 0.1, 0.1 + 2**-55]),
    )
)
def test_classes_of_any_floats(released: np.ndarray) -> None:
    check(released)
