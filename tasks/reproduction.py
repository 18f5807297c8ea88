"""Reproduce: the figures of one configuration of a paper."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow as pa

from kohort.errors import WaveError
from kohort.tasks.reference import Place, figures_of
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import digest_of

PLACE = ("paper", "table", "row", "column")


@stage("reproduce")
def reproduce(
    store: Path, wave: Path | None, configuration: Any, *, digest: str | None, code: str, block: str
) -> Artifact:
    """Figures of a configuration on a reference file; `code` is the digest of its module."""
    if wave is not None and digest_of(wave) != digest:
        raise WaveError(f"{wave} changed during the run; run it again")
    figures = figures_of(configuration, wave)
    places = zip(*(astuple(place) for place in figures), strict=True)
    columns = dict(zip(PLACE, map(pa.array, places), strict=True))
    return Store(store).write({**columns, "value": list(figures.values())})


def read_figures(store: Store, made: Artifact) -> dict[Place, float]:
    """The figures that the stage wrote."""
    table = store.read(made)
    *place, values = (table.column(name).to_pylist() for name in (*PLACE, "value"))
    return dict(zip(map(Place, *place), values, strict=True))
