"""Project: one number a record of a block."""

from __future__ import annotations

from pathlib import Path

from kohort.projection import Projection
from kohort.protect import axis_of_block
from kohort.tasks.points import read_points
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("project")
def project(
    store: Path,
    *,
    block: int,
    x: Artifact | None,
    z: Artifact | None,
    names: list[str],
    method: Projection,
    confidential: list[str],
    dependence: float | None,
) -> Artifact:
    """The axis of one block: of its original values `x`, or of its extended points from `z`."""
    files = Store(store)
    part = None if x is None else files.read_floats(x, names)
    points = None if z is None else read_points(files, z, names, confidential, dependence)
    return files.write({"axis": axis_of_block(method, part, points, names)})
