"""Blocks from the data's own correlations, against the rule written down in plain Python."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from kohort import PlanError, protect
from kohort.blocking import Correlated, Decorrelated, Explicit
from kohort.methods import Blocks, Floats
from kohort.partitioning import Optimal

NAMES = ["age", "income", "rent", "tax", "debt", "gifts", "fuel", "food", "other"]
TIE = 1e-10  # correlations closer than this are equal


def absolute_r(x: Floats) -> list[list[float]]:
    """abs(r) of every pair, 0 for a constant."""
    p = x.shape[1]
    r = [[0.0] * p for _ in range(p)]
    for i, j in combinations(range(p), 2):
        if np.ptp(x[:, i]) > 0 and np.ptp(x[:, j]) > 0:
            r[i][j] = r[j][i] = abs(float(np.corrcoef(x[:, i], x[:, j])[0, 1]))
    return r


def first_largest(candidates: list[tuple[float, Any]]) -> Any:
    """What has the largest figure; of equal ones, what comes first."""
    largest = max(figure for figure, _ in candidates)
    return next(what for figure, what in candidates if figure > largest - TIE)


def plain_clusters(x: Floats, size: int) -> Blocks:
    r = absolute_r(x)
    free = list(range(x.shape[1]))
    clusters = []
    while free:
        cluster = [free[0]]
        if size > 1 and len(free) > 1:
            cluster = list(first_largest([(r[i][j], (i, j)) for i, j in combinations(free, 2)]))
        free = [j for j in free if j not in cluster]
        while free and len(cluster) < size:
            joins = first_largest([(sum(r[i][j] for i in cluster) / len(cluster), j) for j in free])
            cluster.append(joins)
            free.remove(joins)
        clusters.append(tuple(cluster))
    return tuple(clusters)


def plain_decorrelated(x: Floats, size: int) -> Blocks:
    width = int(np.ceil(x.shape[1] / size))
    clusters = plain_clusters(x, width)
    return tuple(tuple(c[j] for c in clusters if len(c) > j) for j in range(width))


def correlated(seed: int, p: int, n: int = 60) -> Floats:
    rng = np.random.default_rng([seed, p])
    return rng.normal(size=(n, p)) + rng.normal(size=(n, 3)) @ rng.normal(size=(3, p))


def block(method: Correlated | Decorrelated, x: Floats) -> Blocks:
    return method.assign_blocks(x, names=NAMES[: x.shape[1]])


every_shape = pytest.mark.parametrize(
    ("p", "size"), [(p, size) for p in (2, 3, 4, 5, 7, 9) for size in range(2, p + 1)]
)


@every_shape
def test_blocks_are_those_of_the_rule(p: int, size: int) -> None:
    for seed in range(10):
        x = correlated(seed, p)
        assert block(Correlated(size=size), x) == plain_clusters(x, size)
        assert block(Decorrelated(size=size), x) == plain_decorrelated(x, size)


@every_shape
def test_every_attribute_is_in_one_block_of_at_most_size(p: int, size: int) -> None:
    x = correlated(1, p)
    for method in (Correlated(size=size), Decorrelated(size=size)):
        blocks = block(method, x)
        assert sorted(j for members in blocks for j in members) == list(range(p))
        assert max(map(len, blocks)) <= size
        assert len(blocks) == -(-p // size)
    sizes = [len(members) for members in block(Correlated(size=size), x)]
    assert sizes == [size] * (p // size) + ([p % size] if p % size else [])


@every_shape
def test_a_decorrelated_block_has_one_attribute_of_each_cluster_at_most(p: int, size: int) -> None:
    for seed in range(10):
        x = correlated(seed, p)
        blocks = block(Decorrelated(size=size), x)
        for cluster in plain_clusters(x, len(blocks)):
            assert all(len(set(cluster) & set(members)) <= 1 for members in blocks)


def test_it_finds_the_clusters_that_are_there() -> None:
    rng = np.random.default_rng(3)
    factors = rng.normal(size=(500, 3))
    x = factors[:, [0, 1, 2, 0, 1, 2, 0, 1, 2]] + 0.1 * rng.normal(size=(500, 9))
    together = {frozenset(members) for members in block(Correlated(size=3), x)}
    assert together == {frozenset({0, 3, 6}), frozenset({1, 4, 7}), frozenset({2, 5, 8})}
    for members in block(Decorrelated(size=3), x):
        assert {j % 3 for j in members} == {0, 1, 2}


# Ties


def test_duplicated_attributes_go_by_file_order() -> None:
    """Their correlation is 1 whatever the last bits of the sums are."""
    for seed in range(100):
        a, b, c = np.random.default_rng(seed).lognormal(size=(3, 40))
        pairs = np.column_stack([a, b, a, b])
        assert block(Correlated(size=2), pairs) == ((0, 2), (1, 3))
        assert block(Decorrelated(size=2), pairs) == ((0, 1), (2, 3))
        scaled = np.column_stack([a, b, 3.7 - 0.3 * a, 1e5 * b, c])
        assert block(Correlated(size=2), scaled) == ((0, 2), (1, 3), (4,))


def test_of_two_attributes_that_may_join_as_well_the_first_in_the_file_does() -> None:
    """Each record comes twice, the two attributes exchanged: they correlate equally with the others."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        s, c, d = rng.lognormal(size=(3, 40))
        t = s + 0.01 * rng.normal(size=40)
        x = np.vstack([np.column_stack([c, s, d, t]), np.column_stack([d, s, c, t])])
        assert block(Correlated(size=3), x) == ((1, 3, 0), (2,))
        assert block(Correlated(size=4), x) == ((1, 3, 0, 2),)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_constants_only_go_by_file_order(size: int) -> None:
    x = np.full((10, 5), 3.3)
    expected = tuple(tuple(range(start, min(start + size, 5))) for start in range(0, 5, size))
    assert block(Correlated(size=size), x) == expected


def test_a_constant_correlates_with_nothing() -> None:
    x = correlated(5, 4)
    x[:, 0] = 0.1
    blocks = block(Correlated(size=2), x)
    assert blocks == plain_clusters(x, 2)
    assert 0 in blocks[-1]
    assert "is 0.000" in Correlated(size=2).reasons(x, blocks, names=NAMES[:4])[-1]


def test_one_record_is_constant_everywhere() -> None:
    assert block(Correlated(size=2), np.array([[1.0, 2.0, 3.0]])) == ((0, 1), (2,))


# What does not matter


@every_shape
def test_order_of_records_sign_and_unit_of_attributes_do_not_matter(p: int, size: int) -> None:
    rng = np.random.default_rng(p)
    for seed in range(5):
        x = correlated(seed, p)
        x[:, -1] = x[:, 0]  # a tie that rounding must not decide
        units = rng.choice([-1.0, 1.0], p) * rng.lognormal(0, 3, p)
        for method in (Correlated(size=size), Decorrelated(size=size)):
            expected = block(method, x)
            assert block(method, x[rng.permutation(len(x))]) == expected
            assert block(method, x * units + rng.normal(size=p)) == expected


def test_layout_does_not_matter_and_the_input_is_left_alone() -> None:
    x = correlated(2, 7)
    expected = block(Correlated(size=3), x)
    by_column = np.asfortranarray(x)
    by_column.flags.writeable = False
    assert block(Correlated(size=3), by_column) == expected


# Reasons


def test_reasons_name_attributes_and_figures() -> None:
    x = correlated(4, 7)
    r = absolute_r(x)
    blocks = block(Correlated(size=3), x)
    reasons = Correlated(size=3).reasons(x, blocks, names=NAMES[:7])
    for (i, j, m), reason in zip(blocks[:2], reasons, strict=False):
        assert reason == (
            f"abs(r) of {NAMES[i]} and {NAMES[j]} is {r[i][j]:.3f}; "
            f"{NAMES[m]} joins with a mean abs(r) of {(r[i][m] + r[j][m]) / 2:.3f}"
        )
    assert len(blocks) == 3
    assert reasons[2] == "left over"


def test_reasons_of_decorrelated_blocks_say_what_correlation_is_left() -> None:
    x = correlated(4, 7)
    r = absolute_r(x)
    blocks = block(Decorrelated(size=2), x)
    assert [len(members) for members in blocks] == [2, 2, 2, 1]
    reasons = Decorrelated(size=2).reasons(x, blocks, names=NAMES[:7])
    for (i, j), reason in zip(blocks[:3], reasons, strict=False):
        assert reason == (
            f"one attribute of each correlated cluster; mean abs(r) within the block {r[i][j]:.3f}"
        )
    assert reasons[3] == "one attribute of each correlated cluster"
    (three, *_) = block(Decorrelated(size=3), x)
    left = np.mean([r[i][j] for i, j in combinations(three, 2)])
    reason = Decorrelated(size=3).reasons(x, (three,), names=NAMES[:7])[0]
    assert re.search(r"within the block (.*)$", reason)[1] == f"{left:.3f}"  # type: ignore[index]


# In protect, and what is refused


@pytest.mark.parametrize("method", [Correlated, Decorrelated])
def test_a_size_beyond_the_table_or_that_is_none_is_refused(method: Any) -> None:
    with pytest.raises(PlanError, match="size = 6 but there are 5 quasi-identifiers; lower size"):
        block(method(size=6), correlated(1, 5))
    for size in (1, 0, -2, 2.0, "2", None, True):
        with pytest.raises(PlanError, match="size must be a whole number of at least 2, got"):
            method(size=size)


@pytest.mark.parametrize("method", [Correlated(size=3), Decorrelated(size=3)], ids=repr)
def test_protect_is_that_of_the_same_blocks_written_down(method: Any) -> None:
    x = correlated(8, 7)
    protected = protect(x, k=3, blocks=method)
    named = tuple(tuple(str(j) for j in members) for members in block(method, x))
    written = protect(x, k=3, blocks=Explicit(blocks=named))
    assert protected.blocks == written.blocks == block(method, x)
    np.testing.assert_array_equal(protected.groups, written.groups)
    np.testing.assert_array_equal(protected.values, written.values)


@pytest.mark.parametrize("cost", ["axis", "block"])
def test_one_block_in_another_order_goes_back_to_its_own_columns(cost: Any) -> None:
    """The order of the attributes within the only block changes neither groups nor columns."""
    x = correlated(9, 5) * [1.0, 10.0, 100.0, 1e3, 1e4]
    asked: dict[str, Any] = {"k": 3, "project": "zscores", "partition": Optimal(cost=cost)}
    expected = protect(x, **asked)
    for method in (Correlated(size=5), Explicit(blocks=(("2", "0", "4", "1", "3"),))):
        protected = protect(x, **asked, blocks=method)
        assert protected.blocks[0] != (0, 1, 2, 3, 4)
        np.testing.assert_array_equal(protected.groups, expected.groups)
        np.testing.assert_array_equal(protected.values, expected.values)
