"""Project: one number a record of a block."""

from __future__ import annotations

from pathlib import Path

from kohort.projection import Projection
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("project")
def project(store: Path, x: Artifact, *, block: int, names: list[str], method: Projection) -> Artifact:
    """The axis of one block."""
    files = Store(store)
    return files.write({"axis": method.project(files.read_floats(x, names), names=names)})
