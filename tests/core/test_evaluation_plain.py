"""Every measure against a plain implementation, on random, tied, constant and duplicated data."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import cKDTree

from kohort import evaluation as ev
from kohort import protect
from kohort.blocking import Consecutive
from kohort.evaluation import NotApplicable
from kohort.evaluation.linkage import estimate_agreement, rank_patterns
from kohort.normalization import Zscore


def table(kind, n=150, p=4):
    rng = np.random.default_rng(7)
    x = np.exp(rng.normal(size=(n, p)) + rng.normal(size=(n, 1)))
    if kind == "tied":
        x = np.round(x)
    if kind == "constant":
        x[:, 1] = 3.0
    if kind == "duplicated":
        x = np.repeat(x[: n // 3], 3, axis=0)
    if kind == "signed":
        x = np.round(x - x.mean(axis=0), 1)
    if kind == "offset":
        x += 1e6
    return x


KINDS = ["random", "tied", "constant", "duplicated", "signed", "offset"]


@pytest.fixture(params=KINDS)
def release(request):
    x = table(request.param)
    protected = protect(x, k=3, blocks=Consecutive(size=2))
    return x, protected.values, protected.groups[:, 0]


def standardised(x, by=None):
    by = x if by is None else by
    std = by.std(axis=0)
    std[np.ptp(by, axis=0) == 0] = 0
    return np.divide(x - by.mean(axis=0), std, out=np.zeros_like(x), where=std > 0)


def minmax(x):
    low, width = x.min(axis=0), np.ptp(x, axis=0)
    return np.where(width > 0, (x - low) / np.where(width > 0, width, 1), 0.5)


def close(found, expected):
    if isinstance(found, NotApplicable):
        return expected is None and bool(found.reason)
    return expected is not None and math.isclose(found, expected, rel_tol=1e-7, abs_tol=1e-9)


def varies(a, b):
    a, b = np.ravel(a), np.ravel(b)
    cells = np.abs(a) > 1e-9
    return float(np.mean(np.abs(a - b)[cells] / np.abs(a[cells]))) if cells.any() else None


def correlations(x):
    if (np.ptp(x, axis=0) == 0).any():
        return None
    return np.corrcoef(x.T)[np.triu_indices(x.shape[1], 1)]


def test_loss(release):
    x, protected, _ = release
    sse = np.sum((standardised(protected, x) - standardised(x))[:, np.ptp(x, axis=0) > 0] ** 2)
    sst = np.sum(standardised(x) ** 2)
    assert close(ev.sse(x, protected), sse)
    assert close(ev.sst(x), sst)
    assert close(ev.loss(x, protected), sse / sst)
    assert close(ev.d_x(x, protected), sse / sst)
    assert close(ev.sse_minmax(x, protected), np.sum((minmax(x) - minmax(protected)) ** 2))
    assert close(ev.unchanged(x, protected), np.mean(x == protected))
    varied = np.ptp(x, axis=0) > 0
    errors = np.abs(x - protected)[:, varied] / x[:, varied].std(axis=0)
    assert close(ev.il1s(x, protected), np.mean(errors) / math.sqrt(2))
    assert close(ev.il1(x, protected, variant="mp"), np.mean(errors))


def test_information_loss_in_both_variants(release):
    x, protected, _ = release
    upper = np.triu_indices(x.shape[1])
    cov, cov_after = (np.cov(a.T, ddof=0)[upper] for a in (x, protected))
    parts = {
        "il1": varies(x, protected),
        "il2": varies(x.mean(axis=0), protected.mean(axis=0)),
        "il3": varies(cov, cov_after),
        "il4": varies(x.var(axis=0), protected.var(axis=0)),
    }
    for name, expected in parts.items():
        assert close(getattr(ev, name)(x, protected), expected), name
    r, r_after = correlations(x), correlations(protected)
    missing = r is None or r_after is None
    il5 = None if missing else np.mean(np.abs(r - r_after))
    il5_mp = None if missing else varies(r, r_after)
    assert close(ev.il5(x, protected), il5)
    assert close(ev.il5(x, protected, variant="mp"), il5_mp)
    il = None if missing else 20 * (sum(parts.values()) + il5)
    assert close(ev.il(x, protected), il)
    if not missing:
        il1_mp = ev.il1(x, protected, variant="mp")
        expected = 20 * (il1_mp + parts["il2"] + parts["il3"] + parts["il4"] + il5_mp)
        assert close(ev.il(x, protected, variant="mp"), expected)


def test_structure(release):
    x, protected, _ = release
    r, r_after = correlations(x), correlations(protected)
    names = ("delta_r", "s_delta_r", "delta_R", "delta_W", "std_kept")
    if r is None:
        for name in names:
            assert isinstance(getattr(ev, name)(x, protected), NotApplicable)
        assert ev.delta_r(x, protected).columns == (1,)
        assert isinstance(ev.fpc(protected), NotApplicable)
        return
    assert close(ev.std_kept(x, protected), standardised(protected, x).std(axis=0).mean())
    assert close(ev.delta_r(x, protected), np.abs(r_after - r).mean())
    assert close(ev.s_delta_r(x, protected), np.abs(r_after - r).std(ddof=1))
    components = []
    for part in (x, protected):
        values, vectors = np.linalg.eigh(np.corrcoef(part.T))
        scores = standardised(part) @ vectors[:, -1]
        with_first = np.array([np.corrcoef(column, scores)[0, 1] for column in part.T])
        components.append((with_first, vectors[:, -1] / np.sqrt(values[-1]), values[-1]))
    (first, weight, _), (first_after, weight_after, largest) = components
    assert close(ev.delta_R(x, protected), np.mean(np.abs(first_after / first) - 1))
    assert close(ev.delta_W(x, protected), np.mean(np.abs(np.abs(weight_after) / np.abs(weight) - 1)))
    assert close(ev.fpc(protected), 100 * largest / x.shape[1])


def plain_dld(x, protected, ties="expected", direction="to_protected", scaled=standardised):
    z, released = scaled(x), scaled(protected)
    if direction == "to_original":
        z, released = released, z
    total = 0.0
    for i, record in enumerate(z):
        distance = sum((record[j] - released[:, j]) ** 2 for j in range(z.shape[1]))
        # The plain standardisation rounds in another way: what it makes almost equal is equal.
        slack = 1e-9 * distance.min() + 1e-18 if scaled is standardised else 0.0
        nearest = np.flatnonzero(distance <= distance.min() + slack)
        total += nearest[0] == i if ties == "first" else (i in nearest) / nearest.size
    return 100 * total / len(x)


@pytest.mark.parametrize("direction", ["to_protected", "to_original"])
@pytest.mark.parametrize("ties", ["expected", "first"])
def test_dld(release, ties, direction):
    x, protected, _ = release
    expected = plain_dld(x, protected, ties, direction)
    assert close(ev.dld(x, protected, ties=ties, direction=direction), expected)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 255, 257, 700])
@pytest.mark.parametrize("p", [1, 3, 9])
def test_dld_on_trees_of_every_size(n, p):
    rng = np.random.default_rng(n * p)
    x = rng.standard_t(2, size=(n, p))
    protected = x + 0.3 * rng.normal(size=(n, p))
    assert close(ev.dld(x, protected), plain_dld(x, protected))


@pytest.mark.parametrize(
    ("n", "p", "noise"), [(1025, 2, 0.05), (2500, 6, 0.5), (33_000, 3, 0.05), (70_000, 4, 0.1)]
)
def test_dld_on_trees_of_several_levels(n, p, noise):
    # Without ties, another implementation's tree says who is nearest.
    rng = np.random.default_rng(n)
    x = rng.standard_t(3, size=(n, p))
    protected = x + noise * rng.normal(size=(n, p))
    z, released = Zscore().normalize(x), Zscore().normalize(protected)
    _, nearest = cKDTree(released).query(z)
    expected = 100 * np.mean(nearest == np.arange(n))
    assert 5 < expected < 95
    assert close(ev.dld(x, protected), expected)
    assert close(ev.dld(x, protected, ties="first"), expected)


def test_dld_is_not_fooled_by_far_away_records():
    # Single precision alone cannot tell apart what is close together and far from the mean.
    rng = np.random.default_rng(0)
    x = np.vstack([rng.normal(size=(2000, 3)), 1e7 + 1e-2 * rng.normal(size=(40, 3))])
    protected = x + 1e-2 * rng.normal(size=x.shape)
    expected = plain_dld(x, protected, scaled=Zscore().normalize)
    assert expected < 100
    assert close(ev.dld(x, protected), expected)


@pytest.mark.parametrize("ties", ["expected", "first"])
@pytest.mark.parametrize("seed", range(5))
def test_dld_counts_exact_ties_between_different_records(ties, seed):
    # On a small grid many different records are equally far, to the last bit.
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, size=(400, 3)).astype(float)
    protected = x + rng.integers(-1, 2, size=x.shape)
    expected = plain_dld(x, protected, ties, scaled=Zscore().normalize)
    assert close(ev.dld(x, protected, ties=ties), expected)


def test_id(release):
    x, protected, _ = release
    n, p = x.shape
    hits = 0
    for share, j in itertools.product(range(1, 11), range(p)):
        ascending = np.sort(protected[:, j])
        w = share * n // 100
        for i in range(n):
            rank = np.searchsorted(ascending, protected[i, j], side="right")
            low, high = ascending[max(rank - w, 1) - 1], ascending[min(rank + w, n) - 1]
            hits += low <= x[i, j] <= high
    assert close(ev.id(x, protected), 100 * hits / (10 * n * p))


def pairwise_pld(x, protected, tau):
    """The n² version: all pairs in memory, the same EM."""
    z, released = (Zscore().normalize(a) for a in (x, protected))
    n, p = x.shape
    pattern = sum(
        (np.abs(z[:, None, a] - released[None, :, a]) <= tau).astype(np.int64) << a for a in range(p)
    )
    agreement = estimate_agreement(np.bincount(pattern.ravel(), minlength=1 << p), n)
    rank = rank_patterns(agreement)[pattern]
    best = rank.min(axis=1)
    chance = (rank.diagonal() == best) / (rank == best[:, None]).sum(axis=1)
    return ev.Linkage(100 * chance.sum() / n, agreement.converged, agreement.rounds)


@pytest.mark.parametrize("tau", [0.0, 0.1, 1.0])
def test_pld(release, tau):
    x, protected, _ = release
    found, expected = ev.pld(x, protected, tau=tau), pairwise_pld(x, protected, tau)
    assert close(found.value, expected.value)
    assert (found.converged, found.rounds) == (expected.converged, expected.rounds)


@pytest.mark.parametrize(("n", "p"), [(2000, 4), (64, 1), (65, 2), (1, 1), (129, 7)])
def test_pld_equals_the_version_of_all_pairs(n, p):
    rng = np.random.default_rng(p)
    x = np.exp(rng.normal(size=(n, p)))
    protected = x + 0.1 * rng.normal(size=(n, p))
    assert close(ev.pld(x, protected).value, pairwise_pld(x, protected, 0.1).value)


def test_pld_recovers_known_probabilities():
    m, u, matches, others = np.array([0.95, 0.9, 0.8]), np.array([0.02, 0.1, 0.05]), 1e5, 1e7
    agrees = (np.arange(8)[:, None] >> np.arange(3)) & 1 == 1
    counts = sum(
        pairs * np.where(agrees, chance, 1 - chance).prod(axis=1)
        for pairs, chance in ((matches, m), (others, u))
    )
    agreement = estimate_agreement(np.round(counts).astype(np.int64), 100)
    np.testing.assert_allclose(agreement.m, m, atol=1e-3)
    np.testing.assert_allclose(agreement.u, u, atol=1e-3)


def test_pld_says_that_it_did_not_converge(monkeypatch):
    monkeypatch.setattr("kohort.evaluation.linkage.ROUNDS", 1)
    x = table("random")
    assert ev.pld(x, x * 1.01 + 0.1 * table("tied")).converged is False


def test_anonymity(release):
    x, protected, groups = release
    records = [tuple(record) for record in protected]
    sizes = {record: records.count(record) for record in records}
    assert close(ev.k_real(protected), len(x) / len(sizes))
    assert ev.min_anonymity(protected) == min(sizes.values())
    assert close(ev.unique(protected), np.mean([sizes[record] == 1 for record in records]))
    units = np.arange(len(x)) // 2
    in_class = {r: len({units[i] for i, s in enumerate(records) if s == r}) for r in sizes}
    assert ev.min_anonymity(protected, units=units) == min(in_class.values())
    assert close(ev.unique(protected, units=units), np.mean([in_class[r] == 1 for r in records]))
    assert sum(size * count for size, count in ev.group_sizes(groups).items()) == len(x)


@pytest.mark.parametrize("weighted", [False, True])
def test_dominance(release, weighted):
    x, _, groups = release
    weights = np.random.default_rng(1).uniform(1, 9, len(x)) if weighted else None
    dominated = []
    for g, j in itertools.product(range(groups.max() + 1), range(x.shape[1])):
        cells = np.abs(x[groups == g, j] * (1 if weights is None else weights[groups == g]))
        *rest, _, largest = np.sort(cells)
        dominated.append(sum(rest) < 0.1 * largest)
    assert close(ev.dominance(x, groups, weights=weights), np.mean(dominated))


def test_diversity_and_dependence(release):
    y, _, groups = release
    bins = np.floor(standardised(y) / 0.2 + 1e-12)
    members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
    fewest = [min(len(set(bins[rows, j])) for j in range(y.shape[1])) for rows in members]
    assert close(ev.l_avg(y, groups), np.mean(fewest))
    assert ev.l_min(y, groups) == min(fewest)
    assert close(ev.l_one(y, groups), np.mean(np.array(fewest) == 1))
    means = np.empty_like(y)
    for rows in members:
        means[rows] = y[rows].mean(axis=0)
    sse = np.sum((standardised(y) - standardised(means, y)) ** 2)
    assert close(ev.d_y(y, groups), sse / np.sum(standardised(y) ** 2))


@pytest.mark.parametrize("variant", ["m1d", "mp"])
def test_score(variant):
    pld = {"pld": 8.0} if variant == "mp" else {}
    risk = 0.25 * 20 + 0.25 * 8 + 0.5 * 60 if variant == "mp" else 0.5 * 20 + 0.5 * 60
    assert ev.score(il=40.0, dld=20.0, id=60.0, variant=variant, **pld) == 20 + risk / 2
