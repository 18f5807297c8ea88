"""Evaluate: what the release loses, and how many records look alike in it."""

from __future__ import annotations

from collections.abc import Iterator
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
    groups: list[Artifact],
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

    def each_block() -> Iterator[Block]:
        for names, values, labels in zip(blocks, protected, groups, strict=True):
            group = files.read(labels).column("group").to_numpy()
            yield Block(names, files.read_floats(x, names), files.read_floats(values), group)

    units = None if unit is None else files.read(x, [unit]).column(0).to_numpy()
    return files.write(measure(each_block(), read_codes(wave, others), units))
