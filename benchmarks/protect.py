"""The core: `kohort.protect` with its Parquet, and exact partitioning on an axis."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import kohort
from benchmarks.measuring import K, Row, best_seconds, print_table, synthetic, write_wave
from kohort.blocking import Consecutive
from kohort.partitioning import Optimal
from kohort.projection import Pcp
from kohort.tasks.release import write_release
from kohort.tasks.wave import read_values

SIZE = 4


def main() -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as folder:
        print_table("kohort.protect with Parquet in and out, 1e6 x 13, k = 5", [whole_way(Path(folder))])
    print_table("optimal on an axis, 1e6 records", [against_wilber(k) for k in (3, 10, 100)])


def whole_way(folder: Path) -> Row:
    """Read, protect and write, against sorting the axes and copying the same Parquet."""
    wave, copy = folder / "wave.parquet", folder / "copy.parquet"
    names = write_wave(wave)

    def protect() -> None:
        x = pd.DataFrame(read_values(wave, names), columns=names, copy=False)
        protected = kohort.protect(x, k=K, blocks=Consecutive(size=SIZE)).values.to_numpy()
        write_release(pa.table({n: protected[:, j] for j, n in enumerate(names)}), copy)

    x = read_values(wave, names)
    axes = [
        Pcp().project(x[:, start : start + SIZE], names=names[start : start + SIZE])
        for start in range(0, len(names), SIZE)
    ]

    def sort_and_copy() -> None:
        for axis in axes:
            np.argsort(axis)
        write_release(pq.read_table(wave), copy)

    return Row(
        "read + protect + write, blocks of 4",
        best_seconds(protect),
        "argsort of each block's axis + read + write",
        best_seconds(sort_and_copy),
        "at most 2.5",
    )


def against_wilber(k: int) -> Row:
    """Ours against the O(n) programme of microagg1d, both with their sort."""
    import microagg1d

    axis = synthetic(attributes=1)[:, 0]

    def wilber() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            microagg1d.univariate_microaggregation(axis, k, method="wilber")

    ours = best_seconds(lambda: Optimal().partition(axis[:, None], k=k, axis=axis))
    theirs = best_seconds(wilber, repeat=3)
    return Row(f"microagg1d wilber, k = {k}", theirs, "kohort optimal", ours, "at least 5")
