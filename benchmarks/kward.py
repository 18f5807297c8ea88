"""How k-Ward on an axis grows with the table, and what md and k-Ward in space take."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from kohort.methods import Floats
from kohort.partitioning import Kward, Md, Partitioner

RUNS = 5
K = 3


def best_seconds(partitioner: Partitioner, x: Floats, axis: Floats | None, runs: int) -> float:
    """Least time of several runs, which other processes disturb least."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        partitioner.partition(x, k=K, axis=axis)
        times.append(time.perf_counter() - begin)
    return min(times)


def peak_megabytes() -> float:
    """The most memory that this process has had, interpreter and compiler included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def measure_space(n: int = 20_000, v: int = 13) -> None:
    """Time md and k-Ward in space on correlated, skewed records."""
    rng = np.random.default_rng(0)
    x = np.asfortranarray(np.exp(rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, v))))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    for name, partitioner in (
        ("md", Md()),
        ("kward, cost=block, start=axis", Kward(cost="block")),
        ("kward, cost=block, start=md", Kward(cost="block", start="md")),
    ):
        axis = x.sum(axis=1) if partitioner.needs_axis else None
        few = None if axis is None else axis[:100]
        partitioner.partition(np.asfortranarray(x[:100]), k=K, axis=few)  # compiles
        seconds = best_seconds(partitioner, x, axis, runs=1)
        print(f"{name}: {n} x {v}, k = {K}: {seconds:.2f} s, peak {peak_megabytes():.0f} MB")


def measure_axis() -> None:
    """Compare k-Ward on an axis at 1e5 and at 1e6 records."""
    axis = np.random.default_rng(1).lognormal(size=1_000_000)
    x = axis[:, None]
    Kward().partition(x[:100], k=K, axis=axis[:100])  # compiles
    small = best_seconds(Kward(), x[:100_000], axis[:100_000], RUNS)
    large = best_seconds(Kward(), x, axis, RUNS)
    print(
        f"kward, cost=axis: 1e5 {1e3 * small:.1f} ms, 1e6 {1e3 * large:.1f} ms, "
        f"ratio {large / small:.1f} (at most 20)"
    )


def main() -> None:
    """Measure in space first, so that its peak is not that of the longer axis."""
    measure_space()
    measure_axis()


if __name__ == "__main__":
    main()
