"""Normalize: all quasi-identifiers on one scale."""

from __future__ import annotations

from pathlib import Path

from kohort.normalization import Normalizer
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("normalize")
def normalize(store: Path, x: Artifact, *, names: list[str], method: Normalizer) -> Artifact:
    """Normalised quasi-identifiers, under their names."""
    files = Store(store)
    z = method.normalize(files.read_floats(x, names))
    return files.write({name: z[:, j] for j, name in enumerate(names)})
