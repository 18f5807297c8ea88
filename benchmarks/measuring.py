"""Timing, peak memory, the table, and the synthetic wave that benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RECORDS = 1_000_000
ATTRIBUTES = 13
K = 5


def best_seconds(work: Callable[[], object], *, repeat: int = 5) -> float:
    """The least time of a few runs after a warm-up: what the machine can do when left alone."""
    work()
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


@dataclass(frozen=True)
class Row:
    """One comparison."""

    what: str
    measured: float
    against: str
    reference: float
    bound: str
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """How many times the reference."""
        return self.measured / self.reference


def print_table(title: str, rows: list[Row]) -> None:
    """The rows as a Markdown table."""
    print(f"\n## {title}\n")
    print("| what | measured | against | reference | ratio | bound |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row.what} | {row.measured:.3f} {row.unit} | {row.against} "
            f"| {row.reference:.3f} {row.unit} | {row.ratio:.2f} | {row.bound} |",
            flush=True,
        )


def synthetic(records: int = RECORDS, attributes: int = ATTRIBUTES) -> np.ndarray:
    """Skewed, correlated attributes (n, p), Fortran-ordered."""
    rng = np.random.default_rng(20260101)
    factors = rng.normal(size=(records, 4))
    x = np.empty((records, attributes), order="F")
    for j in range(attributes):
        x[:, j] = np.exp(0.5 * (factors[:, j % 4] + 0.6 * rng.normal(size=records)))
    return x


def write_wave(path: Path) -> list[str]:
    """The synthetic table as a Parquet file; returns its columns."""
    x = synthetic()
    names = [f"a{j}" for j in range(x.shape[1])]
    pq.write_table(pa.table({n: x[:, j] for j, n in enumerate(names)}), path, use_dictionary=False)
    return names
