"""Evaluate: what the release loses, and how many records look alike in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kohort.errors import WaveError
from kohort.methods import Floats
from kohort.tasks.centroids import Protected
from kohort.tasks.measures import Block, measure
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import digest_of, read_codes


@stage("evaluate")
def evaluate(
    store: Path,
    wave: Path,
    x: Artifact,
    protected: list[Protected],
    *,
    blocks: list[list[str]],
    digest: str,
    others: list[str],
    unit: str | None,
) -> Artifact:
    """Measures of the release; `others` are released columns that an intruder may know too."""
    files = Store(store)
    if others and digest_of(wave) != digest:
        raise WaveError(f"{wave} changed during the run; run it again")

    views = (_view(files, x, part, names) for names, part in zip(blocks, protected, strict=True))
    units = None if unit is None else files.read(x, [unit]).column(0).to_numpy()
    return files.write(measure(views, read_codes(wave, others), units))


def _view(files: Store, x: Artifact, part: Protected, names: list[str]) -> Block:
    """One block, whose centroids and groups are read once and whose values attribute by attribute."""
    centroids = files.read_floats(part.values, names)
    groups = None if part.groups is None else files.read_labels(part.groups)

    def column(name: str) -> tuple[Floats, Floats]:
        after = centroids[:, names.index(name)]
        return files.read_floats(x, [name])[:, 0], after if groups is None else np.take(after, groups)

    return Block(names, column, centroids, groups)
