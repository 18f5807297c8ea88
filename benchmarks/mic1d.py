"""Mic1D-k against the two sorts that it cannot do without."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Row, best_seconds, print_table, synthetic
from kohort.whole_file import Mic1d


def main() -> None:
    """Print the table."""
    print_table("mic1d on 1e6 x 13", [against_two_sorts(k) for k in (5, 5_000)])


def against_two_sorts(k: int) -> Row:
    """Protect all values, against numpy's argsort of the same two vectors; k divides their length."""
    x = synthetic()
    vector = x.ravel(order="F")
    chunks = np.sort(vector).reshape(-1, k)
    low, high = chunks[:, :1], chunks[:, -1:]
    scaled = ((chunks - low) / (high - low)).ravel()

    def two_argsorts() -> None:
        np.argsort(vector)
        np.argsort(scaled)

    return Row(
        f"mic1d, k = {k:,} values",
        best_seconds(lambda: Mic1d().protect_values(x, k=k), repeat=3),
        "its two argsorts of 13e6 values",
        best_seconds(two_argsorts, repeat=3),
        "at most 3",
    )
