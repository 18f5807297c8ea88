"""Evaluate: what the release loses, and how many records look alike in it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kohort.errors import WaveError
from kohort.tasks.measures import Block, measure
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import digest_of, read_codes


@stage("evaluate")
def evaluate(
    store: Path,
    wave: Path,
    x: Artifact,
    protected: list[Artifact],
    groups: list[Artifact | None],
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

    views = [
        Block(
            names,
            x=partial(files.read_floats, x, names),
            protected=partial(files.read_floats, values),
            groups=None if labels is None else partial(files.read_labels, labels),
        )
        for names, values, labels in zip(blocks, protected, groups, strict=True)
    ]
    units = None if unit is None else files.read(x, [unit]).column(0).to_numpy()
    return files.write(measure(views, read_codes(wave, others), units))
