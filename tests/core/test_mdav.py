"""MDAV and V-MDAV against plain versions of themselves, label by label, and published figures."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort import protect
from kohort.errors import PlanError, WaveError
from kohort.evaluation.loss import loss
from kohort.kernels.kdtree import Near, find_farthest, find_nearest, open_up, plant, take_out
from kohort.kernels.mdav import PATIENCE, mdav_groups
from kohort.kernels.rim import add_record, farthest_from_centroid, rim_of, sum_of_all
from kohort.kernels.vmdav import vmdav_groups
from kohort.partitioning import PARTITIONERS, Mdav, Vmdav

# How long MDAV stays with its kd-tree: not at all, as long as it pays, throughout.
PATIENCES = {"brute force": 0.0, "as it pays": PATIENCE, "hasty": 1e-3, "kd-tree": np.inf}


def squared_distances(x, point):
    total = np.zeros(len(x))
    for j in range(x.shape[1]):
        total += (x[:, j] - point[j]) ** 2
    return total


def mean_of(x):
    return [math.fsum(column) / len(x) for column in x.T]


def farthest(x, rows, point):
    """The first of the farthest, because `rows` are in file order."""
    return rows[np.argmax(squared_distances(x[rows], point))]


def nearest(x, rows, point, count):
    return rows[np.argsort(squared_distances(x[rows], point), kind="stable")[:count]]


def plain_mdav(x, k):
    """MDAV word by word as it is defined: centroids anew in every round, a full sort for every group."""
    groups = np.full(len(x), -1)
    label = 0

    def free():
        return np.flatnonzero(groups < 0)

    def close_group_around(seed):
        nonlocal label
        rows = free()
        groups[nearest(x, rows[rows != seed], x[seed], k - 1)] = label
        groups[seed] = label
        label += 1

    while free().size >= 3 * k:
        r = farthest(x, free(), mean_of(x[free()]))
        s = farthest(x, free(), x[r])
        close_group_around(r)
        if groups[s] >= 0:
            s = farthest(x, free(), x[r])
        close_group_around(s)
    if free().size >= 2 * k:
        close_group_around(farthest(x, free(), mean_of(x[free()])))
    groups[free()] = label
    return groups


def plain_vmdav(x, k, gamma):
    """V-MDAV as it is defined, with all distances between members and free records in every step."""
    groups = np.full(len(x), -1)
    centre = mean_of(x)
    label = 0
    while (groups < 0).sum() >= k:
        free = np.flatnonzero(groups < 0)
        seed = farthest(x, free, centre)
        groups[seed] = label
        groups[nearest(x, free[free != seed], x[seed], k - 1)] = label
        while (groups == label).sum() < 2 * k - 1 and (groups < 0).any():
            free = np.flatnonzero(groups < 0)
            members = x[groups == label]
            d_in = np.min([squared_distances(x[free], member) for member in members], axis=0)
            e = free[np.argmin(d_in)]
            others = free[free != e]
            d_out = np.sqrt(squared_distances(x[others], x[e]).min()) if others.size else np.inf
            if gamma == 0 or not np.sqrt(d_in.min()) < gamma * d_out:
                break
            groups[e] = label
        label += 1
    centroids = []
    for g in range(label):
        members = x[groups == g]
        differences = np.zeros(x.shape[1])
        for member in members:
            differences += member - members[0]
        centroids.append(members[0] + differences / len(members))
    for e in np.flatnonzero(groups < 0):
        groups[e] = np.argmin(squared_distances(np.array(centroids), x[e]))
    return groups


def mdav_by(patience, x, k):
    records = np.array(x, order="C")
    return mdav_groups(records, records.view(np.uint64), k, PATIENCES[patience])


def table(kind, n, p, seed):
    rng = np.random.default_rng(seed)
    if kind == "normal":
        return rng.normal(size=(n, p))
    if kind == "grid":
        return rng.integers(0, 4, (n, p)).astype(float)
    if kind == "skewed":
        return np.exp(3 * rng.normal(size=(n, p)))
    if kind == "duplicated":
        return rng.normal(size=(n // 5 + 1, p))[rng.integers(0, n // 5 + 1, n)]
    if kind == "clustered":
        return np.round(rng.normal(size=(5, p)) * 10)[rng.integers(0, 5, n)] + rng.normal(size=(n, p))
    if kind == "offset":
        return 1e9 + rng.normal(size=(n, p))
    return np.full((n, p), 0.1)


KINDS = ["normal", "grid", "skewed", "duplicated", "clustered", "offset", "constant"]


@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("kind", KINDS)
def test_mdav_is_the_plain_one(kind, patience):
    for p in range(1, 15):
        for n, k in ((250, 3), (131, 7), (60, 2)):
            x = table(kind, n, p, seed=100 * p + k)
            np.testing.assert_array_equal(mdav_by(patience, x, k), plain_mdav(x, k), f"{n} x {p}, {k}")


@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_mdav_where_groups_just_fit(k, patience):
    sizes = {m * k + d for m in (1, 2, 3, 4, 5) for d in (-1, 0, 1)} - {k - 1}
    for n in sizes:
        for kind in ("normal", "grid", "constant"):
            x = table(kind, n, 3, seed=n)
            np.testing.assert_array_equal(mdav_by(patience, x, k), plain_mdav(x, k), f"{n} {kind}")


@pytest.mark.parametrize("kind", ["normal", "grid", "skewed"])
@pytest.mark.parametrize("p", [1, 4, 13])
def test_kd_tree_and_brute_force_agree_on_more_records(kind, p):
    x = table(kind, 5000, p, seed=p)
    by_pass = mdav_by("brute force", x, 4)
    for patience in ("as it pays", "hasty", "kd-tree"):
        np.testing.assert_array_equal(mdav_by(patience, x, 4), by_pass)


def test_mdav_where_the_centroid_travels_far():
    """A few huge records drag the centroid; when they are gone, no digit of the rest may be lost."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 2))
    x[::40] *= 10.0 ** np.arange(1, 11)[:, None]
    for patience in PATIENCES:
        np.testing.assert_array_equal(mdav_by(patience, x, 3), plain_mdav(x, 3))


def test_mdav_when_the_opposite_record_fell_into_the_first_group():
    """All others are equally far from r, so that s is r's nearest as well and has to be chosen anew."""
    x = np.zeros((9, 9))
    np.fill_diagonal(x, 1.0)
    for patience in PATIENCES:
        np.testing.assert_array_equal(mdav_by(patience, x, 3), [0, 0, 0, 1, 1, 1, 2, 2, 2])


tied = arrays(
    np.float64,
    st.tuples(st.integers(4, 40), st.integers(1, 3)),
    elements=st.sampled_from([-2.0, -1.0, 0.0, -0.0, 0.1, 1.0, 2.0, 1e6]),
)


@settings(deadline=None, max_examples=150)
@given(x=tied, k=st.integers(2, 4))
def test_mdav_with_ties(x, k):
    expected = plain_mdav(x, k)
    for patience in PATIENCES:
        np.testing.assert_array_equal(mdav_by(patience, x, k), expected)


@settings(deadline=None, max_examples=150)
@given(x=tied, k=st.integers(2, 4), gamma=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0, 1.5, 10.0]))
def test_vmdav_with_ties(x, k, gamma):
    np.testing.assert_array_equal(Vmdav(gamma=gamma).partition(x, k=k), plain_vmdav(x, k, gamma))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.6, 0.95, 1.1, 5.0])
def test_vmdav_is_the_plain_one(kind, gamma):
    for p in (1, 2, 4, 9, 14):
        for n, k in ((120, 3), (71, 5), (40, 2)):
            x = table(kind, n, p, seed=100 * p + k)
            got = Vmdav(gamma=gamma).partition(x, k=k)
            np.testing.assert_array_equal(got, plain_vmdav(x, k, gamma), f"{n} x {p}, {k}")


@pytest.mark.parametrize("k", [2, 3, 5])
def test_vmdav_where_groups_just_fit(k):
    for n in {m * k + d for m in (1, 2, 3) for d in (-1, 0, 1)} - {k - 1}:
        for kind in ("normal", "grid", "constant"):
            for gamma in (0.2, 0.8, 1.5):
                x = table(kind, n, 2, seed=n)
                got = Vmdav(gamma=gamma).partition(x, k=k)
                np.testing.assert_array_equal(got, plain_vmdav(x, k, gamma), f"{n} {kind}")


def test_vmdav_groups_grow_with_gamma():
    x = table("clustered", 600, 3, seed=1)
    counts = [Vmdav(gamma=gamma).partition(x, k=4).max() + 1 for gamma in (0.0, 1.1, 1e6)]
    assert counts[0] == 600 // 4
    assert counts[0] > counts[1] > counts[2]
    assert counts[2] == math.ceil((600 - 3) / 7)


def test_vmdav_leaves_only_the_last_few_to_the_nearest_groups():
    x = table("normal", 203, 2, seed=3)
    groups, count = vmdav_groups(x, 5, 0.0)
    assert count == 40
    assert (groups < 0).sum() == 3


@pytest.mark.parametrize("method", [Mdav(), Vmdav(), Vmdav(gamma=1.5)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_input_stays_as_it_is_and_the_result_is_the_same_twice(method, order):
    x = np.array(table("skewed", 500, 5, seed=2), order=order)
    before = x.copy()
    x.flags.writeable = False
    first = method.partition(x, k=4)
    np.testing.assert_array_equal(method.partition(x, k=4), first)
    np.testing.assert_array_equal(x, before)
    assert first.dtype == np.int32
    sizes = np.bincount(first)
    assert sizes.min() >= 4
    assert sizes.max() <= 7 or isinstance(method, Vmdav)


@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_kd_tree_finds_what_a_loop_finds_while_records_are_taken_out(kind):
    x = table(kind, 700, 3, seed=8)
    rng = np.random.default_rng(9)
    tree = plant(x)
    free = np.arange(700)
    near = Near(np.empty(6), np.empty(6, np.int64))
    for gone in rng.permutation(700)[:690]:
        take_out(tree, gone)
        free = free[free != gone]
        point = rng.normal(size=3) if gone % 2 else x[gone]
        open_up(near, 700)
        find_nearest(tree, point, near)
        np.testing.assert_array_equal(near.rows, nearest(x, free, point, 6))
        np.testing.assert_array_equal(near.distances, squared_distances(x[near.rows], point))
        assert find_farthest(tree, point) == farthest(x, free, point)
    for gone in free:
        take_out(tree, gone)
    assert find_farthest(tree, np.zeros(3)) == 700


def test_the_sum_of_what_remains_does_not_drift():
    x = np.array(table("skewed", 3000, 2, seed=4), order="C")
    x[0] = 1e17
    total = sum_of_all(x)
    for i in range(2500):
        add_record(total, x[i], -1.0)
    assert total[0].tolist() == [math.fsum(column) for column in x[2500:].T]


@pytest.mark.parametrize("kind", ["normal", "skewed", "grid"])
def test_the_rim_knows_the_farthest_record_whatever_is_taken(kind):
    x = np.array(table(kind, 600, 3, seed=6), order="C")
    groups = np.full(600, -1, np.int32)
    total = sum_of_all(x)
    rim = rim_of(x, x.view(np.uint64), groups, total)
    for gone in np.random.default_rng(7).permutation(600)[:590]:
        free = np.flatnonzero(groups < 0)
        found = farthest_from_centroid(rim, x, groups, total, free.size)
        assert found == farthest(x, free, mean_of(x[free]))
        groups[gone] = 0
        add_record(total, x[gone], -1.0)


@pytest.mark.parametrize("method", [Mdav(), Vmdav()])
def test_what_has_no_effect_or_cannot_be_is_refused(method):
    x = table("normal", 10, 2, seed=0)
    with pytest.raises(PlanError, match="axis has no effect"):
        method.partition(x, k=2, axis=x[:, 0])
    with pytest.raises(PlanError, match="project 'pcp' has no effect"):
        protect(x, k=2, project="pcp", partition=method)
    with pytest.raises(WaveError, match="10 records but k = 11"):
        method.partition(x, k=11)
    with pytest.raises(PlanError, match="k must be"):
        method.partition(x, k=1)


@pytest.mark.parametrize("gamma", [-0.1, np.nan, np.inf, "0.2", None, True])
def test_gamma_is_a_finite_number_of_at_least_0(gamma):
    with pytest.raises(PlanError, match="gamma must be a number of at least 0"):
        Vmdav(gamma=gamma)


def test_both_are_partitioners():
    assert {Mdav, Vmdav} <= set(PARTITIONERS)
    assert not Mdav.needs_axis
    assert not Vmdav.needs_axis


def reference(name):
    folder = Path(os.environ.get("KOHORT_REFERENCE", "data/reference"))
    path = folder / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"no {name}.csv in the folder that KOHORT_REFERENCE names, nor in data/reference")
    return np.loadtxt(path, delimiter=",", skiprows=1)


@pytest.mark.parametrize(
    ("name", "k", "expected"),
    [
        ("tarragona", 3, 16.9326),
        ("tarragona", 4, 19.5460),
        ("tarragona", 5, 22.4619),
        ("census", 3, 5.6922),
        ("census", 4, 7.4947),
        ("census", 5, 9.0884),
    ],
)
def test_mdav_loss_on_reference_files(name, k, expected):
    """100 SSE/SST, the figures that the literature on MDAV prints for these two files."""
    x = reference(name)
    protected = protect(x, k=k, partition="mdav")
    assert 100 * loss(x, protected.values) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("name", ["tarragona", "census"])
def test_both_are_the_plain_ones_on_reference_files(name):
    x = reference(name)
    z = (x - x.mean(0)) / x.std(0)
    expected = plain_mdav(z, 3)
    for patience in PATIENCES:
        np.testing.assert_array_equal(mdav_by(patience, z, 3), expected)
    for gamma in (0.2, 0.7, 1.1):
        got = Vmdav(gamma=gamma).partition(z, k=3)
        np.testing.assert_array_equal(got, plain_vmdav(z, 3, gamma))
