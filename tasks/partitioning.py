"""Partition: groups of at least k records of a block."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kohort.partitioning import Partitioner
from kohort.tasks.points import read_points
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
    confidential: list[str],
    dependence: float | None,
) -> Artifact:
    """Labels of one block; `z` (normalised) and `axis` are given where the method uses them."""
    files = Store(store)
    line = None if axis is None else files.read_floats(axis)[:, 0]
    if z is None:
        points = np.empty((0 if line is None else line.size, 0))
    else:
        points = read_points(files, z, names, confidential, dependence)
    return files.write({"group": method.partition(points, k=k, axis=line)})
