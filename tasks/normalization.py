"""Normalize: all quasi-identifiers on one scale."""

from __future__ import annotations

from pathlib import Path

from kohort.normalization import Normalizer
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("normalize")
def normalize(store: Path, x: Artifact, *, names: list[str], method: Normalizer) -> Artifact:
    """Normalised attributes, under their names; one at a time, to hold the table only once."""
    files = Store(store)
    return files.write({name: method.normalize(files.read_floats(x, [name]))[:, 0] for name in names})
