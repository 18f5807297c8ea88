"""What the measures cost, as ratios within one run: `python -m benchmarks.measures [--large]`."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from kohort import evaluation as ev
from kohort import protect
from kohort.blocking import Consecutive
from kohort.compiled import compiled
from kohort.evaluation.linkage import estimate_agreement, rank_patterns
from kohort.methods import Floats
from kohort.normalization import Zscore


def survey(n: int, p: int, seed: int = 0) -> Floats:
    """Skewed attributes with a common factor, as incomes and expenses have it."""
    rng = np.random.default_rng(seed)
    return np.asfortranarray(np.exp(0.6 * rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, p))))


def seconds(run: Callable[[], object], repeats: int = 1) -> float:
    """The best of some repeats."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def peak_gigabytes() -> float:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


@compiled
def _all_pairs(z: Floats, released: Floats) -> float:
    """Records linked to themselves, z by row and released by column: the leanest loop over all pairs."""
    n, p = z.shape
    distance = np.empty(n)
    linked = 0.0
    for i in range(n):
        distance[:] = 0.0
        for j in range(p):
            value = z[i, j]
            column = released[:, j]
            for t in range(n):
                difference = value - column[t]
                distance[t] += difference * difference
        own = distance[i]
        nearer = 0
        tied = 0
        for t in range(n):
            nearer += distance[t] < own
            tied += distance[t] == own
        if nearer == 0:
            linked += 1.0 / tied
    return linked


def compiled_dld(x: Floats, protected: Floats) -> float:
    """All pairs by direct differences, in a compiled loop with SIMD on one core."""
    z = np.ascontiguousarray(Zscore().normalize(x))
    return 100.0 * _all_pairs(z, Zscore().normalize(protected)) / len(z)


def scipy_dld(x: Floats, protected: Floats) -> float:
    """All pairs by direct differences, in SciPy's C on one core."""
    from scipy.spatial.distance import cdist

    z, released = (np.ascontiguousarray(Zscore().normalize(a)) for a in (x, protected))
    linked = 0.0
    for start in range(0, len(z), 500):
        distance = cdist(z[start : start + 500], released, "sqeuclidean")
        least = distance.min(axis=1)
        own = distance[np.arange(len(least)), np.arange(start, start + len(least))]
        linked += np.sum((own == least) / (distance == least[:, None]).sum(axis=1))
    return 100.0 * linked / len(z)


def all_pairs_pld(x: Floats, protected: Floats, tau: float = 0.1) -> float:
    """The n² version, with every pair in memory."""
    z, released = Zscore().normalize(x), Zscore().normalize(protected)
    n, p = x.shape
    pattern = np.zeros((n, n), np.int64)
    for a in range(p):
        pattern |= (np.abs(z[:, a, None] - released[None, :, a]) <= tau).astype(np.int64) << a
    rank = rank_patterns(estimate_agreement(np.bincount(pattern.ravel(), minlength=1 << p), n))[pattern]
    best = rank.min(axis=1)
    return float(100.0 * np.mean((rank.diagonal() == best) / (rank == best[:, None]).sum(axis=1)))


def probabilistic_linkage() -> None:
    """pld at 1e5 x 4, and against all pairs at 2,000."""
    x = survey(2_000, 4)
    protected = protect(x, k=3, blocks=Consecutive(size=2)).values
    linkage = ev.pld(x, protected)
    gap = abs(linkage.value - all_pairs_pld(x, protected))
    print(f"pld, 2,000 x 4: differs by {gap:.1e} points from all pairs in memory (0)")
    x = survey(100_000, 4)
    protected = protect(x, k=3, blocks=Consecutive(size=2)).values
    duration = seconds(lambda: ev.pld(x, protected))
    print(f"pld, 1e5 x 4: {duration:.2f} s, peak {peak_gigabytes():.2f} GB (at most 2)")


def distance_linkage() -> None:
    """dld at 1e5 x 13 (on all cores) against two brute forces, extrapolated from 1e4."""
    for size in (2, 4):
        small = survey(10_000, 13)
        released = protect(small, k=3, blocks=Consecutive(size=size)).values
        x = survey(100_000, 13)
        protected = protect(x, k=3, blocks=Consecutive(size=size)).values
        distinct = len(x) / ev.k_real(protected)
        duration = seconds(lambda x=x, y=protected: ev.dld(x, y), 3)
        print(f"dld, 1e5 x 13, blocks of {size}, {distinct:.0f} distinct: {duration:.2f} s")
        for brute in (compiled_dld, scipy_dld):
            gap = abs(ev.dld(small, released) - brute(small, released))
            extrapolated = 100 * seconds(lambda f=brute, x=small, y=released: f(x, y), 3)
            print(
                f"  {brute.__name__}: {extrapolated:.0f} s, {extrapolated / duration:.0f} times as long "
                f"(at least 20); differs by {gap:.1e} points"
            )


def linear_measures() -> None:
    """id, il, k_real and the structure at 1e6 x 13, against one argsort of every column."""
    x = survey(1_000_000, 13)
    protected = protect(x, k=5, blocks=Consecutive(size=4)).values
    sort = seconds(lambda: [np.argsort(x[:, j]) for j in range(13)], 3)
    print(f"argsort of every column, 1e6 x 13: {sort:.2f} s")
    structure = ("std_kept", "delta_r", "s_delta_r", "delta_R", "delta_W")
    runs: dict[str, Callable[[], object]] = {
        "id": lambda: ev.id(x, protected),
        "il": lambda: ev.il(x, protected),
        "k_real": lambda: ev.k_real(protected),
        **{name: (lambda name=name: getattr(ev, name)(x, protected)) for name in structure},
        "fpc": lambda: ev.fpc(protected),
    }
    for name, run in runs.items():
        duration = seconds(run, 2)
        print(f"{name}, 1e6 x 13: {duration:.2f} s, {duration / sort:.1f} argsorts (at most 8)")


def large_distance_linkage() -> None:
    """dld at 1e6 x 13."""
    x = survey(1_000_000, 13)
    protected = protect(x, k=3, blocks=Consecutive(size=4)).values
    duration = seconds(lambda: ev.dld(x, protected))
    print(f"dld, 1e6 x 13, blocks of 4: {duration:.1f} s, peak {peak_gigabytes():.1f} GB (at most 8)")


def main() -> None:
    """Run and print all ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="dld at 1e6 x 13 too")
    large = parser.parse_args().large
    warm = survey(500, 4)
    ev.evaluate(warm, protect(warm, k=3, blocks=Consecutive(size=2)).values)  # compile
    probabilistic_linkage()
    distance_linkage()
    linear_measures()
    if large:
        large_distance_linkage()


if __name__ == "__main__":
    main()
