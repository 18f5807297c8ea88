"""Measure: one measure of a release, on what one intruder knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kohort.errors import WaveError
from kohort.evaluation.jobs import Job
from kohort.evaluation.measures import Release
from kohort.methods import Floats
from kohort.tasks.centroids import Protected
from kohort.tasks.released import Inputs, as_row, blocks_within
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import digest_of


@stage("measure")
def measure_one(
    store: Path,
    wave: Path,
    x: Artifact,
    protected: list[Protected],
    *,
    measure: str,
    columns: list[str],
    blocks: list[list[str]],
    grouped: bool,
    parameters: dict[str, Any],
    digest: str | None,
    inputs: Inputs,
) -> Artifact:
    """One row of value, note and reason; `columns` are what the intruder knows."""
    if digest is not None and digest_of(wave) != digest:
        raise WaveError(f"{wave} changed during the run; run it again")
    files = Store(store)
    groups = [part.groups for part in protected if part.groups is not None]
    release = Release(
        x=files.read_floats(x, columns),
        protected=_read_protected(files, protected, blocks, columns),
        names=tuple(columns),
        blocks=blocks_within(blocks, columns),
        groups=tuple(files.read_labels(labels) for labels in groups) if grouped and groups else None,
        **inputs.read(wave),
        **parameters,
    )
    return files.write(as_row(Job(measure, None).compute(release)))


def _read_protected(
    files: Store, protected: Sequence[Protected], blocks: Sequence[Sequence[str]], columns: Sequence[str]
) -> Floats:
    """Protected columns in the order asked for, from the parts that hold them."""
    read = {}
    for part, block in zip(protected, blocks, strict=True):
        inside = [name for name in block if name in columns]
        if inside:
            values = part.read(files, inside)
            read.update({name: values[:, j] for j, name in enumerate(inside)})
    return np.asfortranarray(np.column_stack([read[name] for name in columns]))
