"""Project: one number a record of a block."""

from __future__ import annotations

from pathlib import Path

from kohort.projection import Projection
from kohort.protect import axis_of_block
from kohort.tasks.points import Points
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("project")
def project(
    store: Path, x: Artifact, *, block: int, names: list[str], method: Projection, points: Points | None
) -> Artifact:
    """The axis of one block: of its original values, or of its points where those are extended."""
    files = Store(store)
    part = files.read_floats(x, names) if points is None else None
    extended = None if points is None else points.read(files, x, names)
    return files.write({"axis": axis_of_block(method, part, extended, names)})
