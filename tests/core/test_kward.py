"""k-Ward against plain searches of all merges, label by label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import kohort
from kohort.errors import PlanError, WaveError
from kohort.partitioning import Kward

SPACE = Kward(cost="block", start="axis")
DISTANT = Kward(cost="block", start="md")


def squared_distance(a, b):
    total = 0.0
    for c in range(len(a)):
        total += (a[c] - b[c]) * (a[c] - b[c])
    return total


def mean_of(x, rows):
    mean = x[rows[0]].copy()
    for size, row in enumerate(rows[1:], start=2):
        mean += (x[row] - mean) / size
    return mean


def plain_two_groups(x, rows, k):
    """The two groups of k with which maximum distance starts, among ascending `rows`."""
    pairs = [(i, j) for i in rows for j in rows if i < j]
    first, second = max(pairs, key=lambda pair: squared_distance(x[pair[0]], x[pair[1]]))
    groups = [first], [second]
    for group in groups:
        while len(group) < k:
            centre = x[group].sum(axis=0) / len(group)
            free = [row for row in rows if row not in groups[0] and row not in groups[1]]
            group.append(min(free, key=lambda row: squared_distance(x[row], centre)))
    return groups


def plain_merges(groups, k, *, neighbours):
    """Merge [rows, centroid] in the given order until none is below k; of equal costs, the first."""
    while any(len(rows) < k for rows, _ in groups):
        cheapest = np.inf
        for i in range(len(groups) - 1):
            for j in [i + 1] if neighbours else range(i + 1, len(groups)):
                a, b = len(groups[i][0]), len(groups[j][0])
                if a >= k and b >= k:
                    continue
                cost = a * b / (a + b) * squared_distance(groups[i][1], groups[j][1])
                if cost < cheapest:
                    cheapest, pair = cost, (i, j)
        i, j = pair
        rows, centre = groups[i]
        other, towards = groups.pop(j)
        share = len(other) / (len(rows) + len(other))
        groups[i] = [rows + other, centre + (towards - centre) * share]
    return [rows for rows, _ in groups]


def plain_kward(x, k, axis, *, neighbours):
    """Labels of k-Ward; `axis=None` starts from the most distant records."""
    finished = []
    pending = [list(range(len(x)))]
    while pending:
        rows = sorted(pending.pop())
        if len(rows) < 2 * k:
            finished.append(rows)
            continue
        if axis is None:
            first, last = plain_two_groups(x, rows, k)
        else:
            rows.sort(key=lambda row: axis[row])
            first, last = rows[:k], rows[-k:]
        starts = [first, *([row] for row in rows if row not in first + last), last]
        if not neighbours:
            starts = sorted(sorted(group) for group in starts)
        pending += plain_merges(
            [[group, mean_of(x, group)] for group in starts], k, neighbours=neighbours
        )
    labels = np.empty(len(x), np.int32)
    in_order = min if not neighbours else lambda rows: min((axis[row], row) for row in rows)
    for label, rows in enumerate(sorted(finished, key=in_order)):
        labels[rows] = label
    return labels


def samples(rng, n, v):
    """Data of every kind that makes ties or skew."""
    yield "random", rng.normal(size=(n, v))
    yield "tied", rng.integers(0, 3, (n, v)).astype(float)
    yield "skewed", rng.lognormal(sigma=3.0, size=(n, v))
    yield "duplicated", rng.normal(size=(n // 4 + 1, v))[rng.integers(0, n // 4 + 1, n)]
    yield "offset", 1e9 + rng.integers(0, 5, (n, v)) * 0.1
    yield "constant", np.full((n, v), 0.1)


def sizes_around(k):
    return k, 2 * k - 1, 2 * k, 2 * k + 1, 3 * k, 5 * k + 1


@pytest.mark.parametrize("k", [2, 3, 5])
def test_on_an_axis_equals_the_plain_search(k):
    rng = np.random.default_rng(k)
    for n in (*sizes_around(k), 60, 150):
        for kind, x in samples(rng, n, 1):
            axis = x[:, 0]
            np.testing.assert_array_equal(
                Kward().partition(x, k=k, axis=axis),
                plain_kward(x, k, axis, neighbours=True),
                err_msg=f"{kind}, {n} records",
            )


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("v", [1, 2, 5])
def test_in_space_equals_the_plain_search(k, v):
    rng = np.random.default_rng(10 * k + v)
    for n in (*sizes_around(k), 32):
        for kind, x in samples(rng, n, v):
            for axis in (x.sum(axis=1), rng.integers(0, 3, n).astype(float)):
                np.testing.assert_array_equal(
                    SPACE.partition(x, k=k, axis=axis),
                    plain_kward(x, k, axis, neighbours=False),
                    err_msg=f"{kind}, {n} records",
                )
            np.testing.assert_array_equal(
                DISTANT.partition(x, k=k),
                plain_kward(x, k, None, neighbours=False),
                err_msg=f"{kind}, {n} records, most distant",
            )


small_tables = arrays(
    float, st.tuples(st.integers(4, 14), st.integers(1, 3)), elements=st.integers(-2, 2)
)


@settings(max_examples=100, deadline=None)
@given(x=small_tables, k=st.integers(2, 4))
def test_all_equal_the_plain_search_on_small_tied_tables(x, k):
    axis = x[:, 0] - x[:, -1]
    on_axis = Kward().partition(x, k=k, axis=axis)
    np.testing.assert_array_equal(on_axis, plain_kward(axis[:, None], k, axis, neighbours=True))
    in_space = SPACE.partition(x, k=k, axis=axis)
    np.testing.assert_array_equal(in_space, plain_kward(x, k, axis, neighbours=False))
    distant = DISTANT.partition(x, k=k)
    np.testing.assert_array_equal(distant, plain_kward(x, k, None, neighbours=False))


@pytest.mark.parametrize("method", [Kward(), SPACE, DISTANT])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_groups_have_k_to_2k_minus_1_records(method, k):
    rng = np.random.default_rng(3)
    for _, x in samples(rng, 700, 4):
        axis = x.sum(axis=1) if method.needs_axis else None
        sizes = np.bincount(method.partition(x, k=k, axis=axis))
        assert sizes.min() >= k
        assert sizes.max() < 2 * k


def test_many_equal_values_are_divided_in_one_pass():
    # A recursion that peels k equal values a time would need 50 000 passes over the rest.
    axis = np.repeat([0.0, 1.0, 2.0], 50_000)
    groups = Kward().partition(axis[:, None], k=3, axis=axis)
    assert np.bincount(groups).max() <= 5


def test_values_far_apart_are_not_merged_on_the_way():
    # Fixed groups of 3 would tear both clusters apart (CS, Figure 1).
    axis = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 9.0, 9.1, 9.2, 9.3])
    assert Kward().partition(axis[:, None], k=3, axis=axis).tolist() == [0] * 5 + [1] * 4


def test_the_axis_decides_first_and_last_in_space():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    assert (
        SPACE.partition(x, k=3, axis=x[:, 0]).tolist() != SPACE.partition(x, k=3, axis=x[:, 1]).tolist()
    )


def test_a_start_without_effect_is_refused():
    with pytest.raises(PlanError, match="start='md' has no effect with cost='axis'"):
        Kward(cost="axis", start="md")


@pytest.mark.parametrize(("name", "value"), [("cost", "space"), ("start", "first")])
def test_unknown_choices_are_refused(name, value):
    with pytest.raises(PlanError, match=f"{name} must be one of"):
        Kward(**{name: value})


def test_a_missing_axis_is_refused():
    with pytest.raises(PlanError, match="needs an axis"):
        SPACE.partition(np.zeros((6, 2)), k=3)


def test_fewer_records_than_k_are_refused():
    with pytest.raises(WaveError, match="3 records but k = 4"):
        DISTANT.partition(np.zeros((3, 2)), k=4)


def test_protect_knows_which_starts_need_a_projection():
    x = np.random.default_rng(2).normal(size=(30, 3))
    with pytest.raises(PlanError, match="project 'pcp' has no effect"):
        kohort.protect(x, k=3, partition=DISTANT, project="pcp")
    with pytest.raises(PlanError, match="normalize 'minmax' has no effect"):
        kohort.protect(x, k=3, partition="kward", normalize="minmax")
    groups = kohort.protect(x, k=3, partition=SPACE, project="zscores").groups
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    expected = plain_kward(z, 3, z.sum(axis=1), neighbours=False)
    np.testing.assert_array_equal(groups[:, 0], expected)
