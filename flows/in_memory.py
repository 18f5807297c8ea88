"""The same wave without Prefect and without intermediate files; the same bytes come out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from kohort.flows.manifest import build_manifest
from kohort.flows.outcome import Outcome, summary
from kohort.flows.plan import Plan
from kohort.flows.progress import Listener, StageRow
from kohort.protect import protect
from kohort.tasks.measures import Block, evaluation, measure
from kohort.tasks.placing import partial_beside, place, release_folder
from kohort.tasks.release import count_identical, release_table, rounded, write_release
from kohort.tasks.store import Artifact
from kohort.tasks.wave import (
    check_keys,
    digest_of,
    inspect_wave,
    read_codes,
    read_units,
    read_values,
    read_weights,
)


def protect_in_memory(
    plan: Plan, wave: Path, out: Path, *, force: bool, listener: Listener
) -> dict[str, Any]:
    """Protect one wave in this process and release it to a folder.

    Parameters
    ----------
    plan : Plan
        How the survey's waves are protected.
    wave, out : Path
        The wave's Parquet file, and the folder for the release.
    force : bool
        Whether another release in the folder is replaced.
    listener : Listener
        Who hears of finished stages.
    """
    rows: list[StageRow] = []

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds = round(time.perf_counter() - started, 4)
        row = StageRow(stage, None, None, None, seconds, cached=False)
        rows.append(row)
        listener.finished(row)

    listener.expect(6)
    roles, release = plan.roles.build(), plan.release.build()
    columns = inspect_wave(wave, roles)
    names = columns.quasi_identifiers
    with release_folder(out), partial_beside(out) as partial:
        with timed("ingest"):
            digest = digest_of(wave)
            x, weights, units = _ingest(plan, wave, names)
        with timed("protect"):
            protected = _protect(plan, x, names, weights)
            values = rounded(
                protected.values.to_numpy(), names, columns.integers if release.round_integers else ()
            )
            blocks = [[names[j] for j in block] for block in protected.blocks]
        with timed("assemble"):
            arrays = {name: values[:, j] for j, name in enumerate(names)}
            write_release(release_table(wave, columns, arrays, release), partial.path)
        with timed("verify"):
            count_identical(partial.path, blocks, columns, plan.k)
        with timed("evaluate"):
            views = (
                Block(members, x[:, block], values[:, block], protected.groups[:, number])
                for number, (members, block) in enumerate(zip(blocks, protected.blocks, strict=True))
            )
            table = measure(views, read_codes(wave, columns.open_to_intruders), units)
        report = evaluation(table, blocks, k=plan.k, rows=columns.rows)
        released = Artifact(digest_of(partial.path), columns.rows)
        manifest = build_manifest(
            plan,
            wave_digest=digest,
            columns=columns,
            blocks=blocks,
            released=released,
            stages=rows,
            how="in memory",
        )
        with timed("publish"):
            written = place(
                partial.hand_over(),
                out,
                sha256=released.sha256,
                evaluation=report,
                manifest=manifest,
                force=force,
            )
    return summary(Outcome(out=out, written=written, manifest=manifest, evaluation=report), rows)


def _ingest(plan: Plan, wave: Path, names: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """Quasi-identifiers, weights where centroids are weighted, unit codes."""
    roles = plan.roles
    if roles.key is not None:
        check_keys(wave, roles.key)
    x = read_values(wave, names)
    weights = None if roles.weight is None else read_weights(wave, roles.weight)
    units = None if roles.unit is None else read_units(wave, roles.unit)
    return x, weights if plan.stages.centroid.takes_weights else None, units


def _protect(plan: Plan, x: Any, names: tuple[str, ...], weights: Any) -> Any:
    stages = plan.stages
    return protect(
        pd.DataFrame(x, columns=list(names), copy=False),
        k=plan.k,
        normalize=stages.normalize,
        blocks=stages.blocks,
        project=stages.project,
        partition=stages.partition,
        centroid=stages.centroid,
        weights=weights,
    )
