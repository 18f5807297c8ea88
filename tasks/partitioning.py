"""Partition: groups of at least k records of a block."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kohort.partitioning import Partitioner
from kohort.tasks.points import Points
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("partition")
def partition(
    store: Path,
    *,
    block: int,
    x: Artifact | None,
    axis: Artifact | None,
    names: list[str],
    method: Partitioner,
    k: int,
    points: Points | None,
) -> Artifact:
    """Labels of one block; `x` with `points`, and `axis`, are given where the method uses them."""
    files = Store(store)
    line = None if axis is None else files.read_floats(axis)[:, 0]
    if x is None or points is None:
        records = np.empty((0 if line is None else line.size, 0))
    else:
        records = points.read(files, x, names)
    return files.write({"group": method.partition(records, k=k, axis=line)})
