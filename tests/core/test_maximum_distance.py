"""Maximum distance against a plain search of all pairs, label by label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort.errors import WaveError
from kohort.partitioning import Md


def squared_distances(x, point):
    total = np.zeros(len(x))
    for c in range(x.shape[1]):
        total = total + (x[:, c] - point[c]) * (x[:, c] - point[c])
    return total


def grown(x, seed, free, k):
    group = [seed]
    free = [row for row in free if row != seed]
    while len(group) < k:
        distances = squared_distances(x[free], x[group].sum(axis=0) / len(group))
        group.append(free.pop(int(distances.argmin())))
    return group


def two_groups(x, left, k):
    """The first two groups among the rows `left`, in ascending order."""
    farthest = -1.0
    for position, i in enumerate(left[:-1]):
        distances = squared_distances(x[left[position + 1 :]], x[i])
        if distances.max() > farthest:
            farthest = distances.max()
            pair = i, left[position + 1 + int(distances.argmax())]
    first = grown(x, pair[0], [row for row in left if row != pair[1]], k)
    second = grown(x, pair[1], [row for row in left if row not in first], k)
    return first, second


def plain_md(x, k):
    left = list(range(len(x)))
    groups = []
    while len(left) >= 2 * k:
        groups += two_groups(x, left, k)
        left = [row for row in left if row not in groups[-1] and row not in groups[-2]]
    if len(left) >= k:
        groups.append(left)
    elif left:
        rest = x[left].sum(axis=0) / len(left)
        means = [x[sorted(group)].sum(axis=0) / k for group in groups[-2:]]
        first, second = squared_distances(np.array(means), rest)
        groups[-2 if first <= second else -1] += left
    labels = np.empty(len(x), np.int32)
    for label, group in enumerate(groups):
        labels[group] = label
    return labels


def samples(rng, n, v):
    """Data of every kind that makes ties or skew."""
    yield "random", rng.normal(size=(n, v))
    yield "tied", rng.integers(0, 3, (n, v)).astype(float)
    yield "skewed", rng.lognormal(sigma=3.0, size=(n, v))
    yield "duplicated", rng.normal(size=(n // 4 + 1, v))[rng.integers(0, n // 4 + 1, n)]
    yield "offset", 1e9 + rng.integers(0, 5, (n, v)) * 0.1
    yield "constant", np.full((n, v), 0.1)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("v", [1, 4, 6])
def test_equals_the_plain_search(k, v):
    rng = np.random.default_rng(10 * k + v)
    for n in (k, 2 * k - 1, 2 * k, 2 * k + 1, 3 * k - 1, 3 * k, 4 * k + 1, 47):
        for kind, x in samples(rng, n, v):
            np.testing.assert_array_equal(
                Md().partition(x, k=k), plain_md(x, k), err_msg=f"{kind}, {n} records"
            )


def test_equals_the_plain_search_over_several_chunks_and_shells():
    rng = np.random.default_rng(7)
    for kind, x in samples(rng, 400, 3):
        np.testing.assert_array_equal(Md().partition(x, k=4), plain_md(x, 4), err_msg=kind)


@settings(max_examples=150, deadline=None)
@given(
    x=arrays(float, st.tuples(st.integers(4, 16), st.integers(1, 3)), elements=st.integers(-2, 2)),
    k=st.integers(2, 4),
)
def test_equals_the_plain_search_on_small_tied_tables(x, k):
    np.testing.assert_array_equal(Md().partition(x, k=k), plain_md(x, k))


def test_the_second_extreme_stays_out_of_the_first_group():
    # Corners of a simplex, the second shifted towards the third: it is among the most distant from
    # the first, and yet the nearest to the mean of the first and the third.
    x = np.eye(6)
    x[1, 2] = 0.5
    distances = squared_distances(x, (x[0] + x[2]) / 2)
    assert distances[1] < distances[3:].min()
    assert Md().partition(x, k=3).tolist() == [0, 1, 0, 0, 1, 1]


def test_groups_grow_by_their_current_centroid():
    # Record 3 is nearer to the seed 0 than record 2 is, but not to the mean of 0 and 1.
    near = [[0.0, 0.0], [3.0, 0.0], [4.6, 0.0]]
    beside = [[2.0, 4.0], [2.0, 5.0], [2.0, 5.5]]
    far = [[40.0, 0.0], [39.0, 0.0], [38.0, 0.0]]
    x = np.array(near + beside + far)
    distances = squared_distances(x, x[0])
    assert distances[3] < distances[2]
    assert Md().partition(x, k=3).tolist() == [0, 0, 0, 2, 2, 2, 1, 1, 1]


def test_leftover_records_join_the_nearer_of_the_last_two_groups():
    x = np.array([[0.0], [1.0], [10.0], [11.0], [4.0]])
    assert Md().partition(x, k=2).tolist() == [0, 0, 1, 1, 0]
    assert Md().partition(11.0 - x, k=2).tolist() == [0, 0, 1, 1, 0]


def test_fewer_records_than_k_are_refused():
    with pytest.raises(WaveError, match="3 records but k = 4"):
        Md().partition(np.zeros((3, 2)), k=4)
