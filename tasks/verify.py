"""Verify: put the release beside its destination and count it there, as it was written."""

from __future__ import annotations

from pathlib import Path

from kohort.tasks.placing import partial_beside
from kohort.tasks.release import count_identical
from kohort.tasks.stage import uncached_stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import Columns


@uncached_stage("verify")
def verify(
    store: Path, candidate: Artifact, out: Path, *, blocks: list[list[str]], columns: Columns, k: int
) -> str:
    """Path of the verified copy on the destination's own file system; a broken one is deleted."""
    source = Store(store).path(candidate)
    with partial_beside(out) as partial:
        partial.copy(source, expected=candidate.sha256)
        count_identical(partial.path, blocks, columns, k)
        return str(partial.hand_over())
