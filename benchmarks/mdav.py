"""MDAV against a straightforward NumPy one: `python -m benchmarks.mdav [--large]`.

NumPy's time grows with n²/k; it is measured on 1e4 records and extrapolated to 1e5, in the same run.
`--large` adds a million records.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from kohort.methods import Floats, Labels
from kohort.partitioning import Mdav, Vmdav

SMALL = 10_000
RECORDS = 100_000
TARGETS = ((4, 3, 30), (13, 10, 8))  # attributes, k, times as fast as NumPy


def main() -> None:
    """Print the tables."""
    rng = np.random.default_rng(0)
    warm_up = rng.normal(size=(100, 2))
    Mdav().partition(warm_up, k=3)
    Vmdav().partition(warm_up, k=3)
    _against_numpy(rng)
    _by_kind_of_data(rng)
    if "--large" in sys.argv:
        _large(rng)


def _against_numpy(rng: np.random.Generator) -> None:
    print("\n## MDAV on normal records, against NumPy extrapolated from 1e4 by n²\n")
    print("| records | k | kohort | NumPy | times as fast | target |")
    print("| --- | --- | --- | --- | --- | --- |")
    for p, k, target in TARGETS:
        x = rng.normal(size=(RECORDS, p))
        if not np.array_equal(numpy_mdav(x[:2000], k), Mdav().partition(x[:2000], k=k)):
            raise SystemExit("the two MDAV that are compared differ")
        reference = _seconds(lambda x=x, k=k: numpy_mdav(x[:SMALL], k)) * (RECORDS / SMALL) ** 2
        measured = _seconds(lambda x=x, k=k: Mdav().partition(x, k=k), repeat=3)
        ratio = reference / measured
        print(
            f"| 1e5 x {p} | {k} | {measured:.2f} s | {reference:.1f} s | {ratio:.0f} | {target} |",
            flush=True,
        )


def _by_kind_of_data(rng: np.random.Generator) -> None:
    normal = rng.normal(size=(RECORDS, 13))
    factors = rng.normal(size=(RECORDS, 3)) @ rng.normal(size=(3, 13)) + 0.3 * normal
    tables = {
        "normal, 1e5 x 4": normal[:, :4],
        "lognormal, 1e5 x 4": np.exp(normal[:, :4]),
        "answers from 1 to 5, 1e5 x 4": rng.integers(1, 6, (RECORDS, 4)).astype(float),
        "normal, 1e5 x 13": normal,
        "three factors, 1e5 x 13": factors,
    }
    print("\n## mdav and vmdav, k = 10\n")
    print("| records | mdav | vmdav, gamma = 0.2 |")
    print("| --- | --- | --- |")
    for name, x in tables.items():
        mdav = _seconds(lambda x=x: Mdav().partition(x, k=10))
        vmdav = _seconds(lambda x=x: Vmdav().partition(x, k=10))
        print(f"| {name} | {mdav:.2f} s | {vmdav:.2f} s |", flush=True)


def _large(rng: np.random.Generator) -> None:
    x = rng.normal(size=(1_000_000, 4))
    print("\n## 1e6 x 4, k = 10\n")
    for method in (Mdav(), Vmdav()):
        print(f"{method.method}: {_seconds(lambda m=method: m.partition(x, k=10)):.1f} s", flush=True)


def _seconds(work: Callable[[], object], *, repeat: int = 1) -> float:
    """The least time of a few runs: what the machine can do when left alone."""
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def numpy_mdav(x: Floats, k: int) -> Labels:
    """MDAV as one writes it with NumPy: four passes over the remaining records in every round."""
    groups = np.empty(len(x), np.int32)
    rows = np.arange(len(x))
    label = 0

    def distances_from(point: Floats) -> Floats:
        return np.asarray(((x - point) ** 2).sum(axis=1))

    def close_group_around(seed: int) -> None:
        nonlocal x, rows, label
        members = np.argpartition(distances_from(x[seed]), k - 1)[:k]
        groups[rows[members]] = label
        label += 1
        x = np.delete(x, members, axis=0)
        rows = np.delete(rows, members)

    while len(x) >= 3 * k:
        seed = int(np.argmax(distances_from(x.mean(axis=0))))
        r = x[seed]
        close_group_around(seed)
        close_group_around(int(np.argmax(distances_from(r))))
    if len(x) >= 2 * k:
        close_group_around(int(np.argmax(distances_from(x.mean(axis=0)))))
    groups[rows] = label
    return groups


if __name__ == "__main__":
    main()
