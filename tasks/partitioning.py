"""Partition: groups of at least k records of a block."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kohort.partitioning import Partitioner
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("partition")
def partition(
    store: Path,
    *,
    block: int,
    z: Artifact | None,
    axis: Artifact | None,
    names: list[str],
    method: Partitioner,
    k: int,
) -> Artifact:
    """Labels of one block; `z` (normalised) and `axis` are given where the method uses them."""
    files = Store(store)
    line = None if axis is None else files.read_floats(axis)[:, 0]
    x = files.read_floats(z, names) if z is not None else np.empty((0 if line is None else line.size, 0))
    return files.write({"group": method.partition(x, k=k, axis=line)})
