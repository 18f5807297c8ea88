"""The same wave without Prefect and without intermediate files; the same bytes come out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kohort.evaluation.jobs import BY_NAME, jobs, results
from kohort.evaluation.measures import Release
from kohort.evaluation.report import Result
from kohort.flows.manifest import build_manifest, promise_of, public_manifest, with_claim
from kohort.flows.memory_estimate import check_memory
from kohort.flows.outcome import Outcome, summary
from kohort.flows.plan import Plan
from kohort.flows.progress import Listener, StageRow
from kohort.protect import Protected, protect
from kohort.tasks.bounds import check_bounds
from kohort.tasks.measures import Block, evaluation, measure, with_details
from kohort.tasks.placing import PUBLIC, place, release_folder
from kohort.tasks.release import NAME, count_identical, release_table, rounded, write_release
from kohort.tasks.released import Inputs, evaluation_inputs
from kohort.tasks.store import Artifact, file_digest
from kohort.tasks.wave import (
    check_keys,
    digest_of,
    inspect_wave,
    newest_wave,
    read_codes,
    read_confidential,
    read_units,
    read_values,
    read_weights,
)


def protect_in_memory(plan: Plan, wave: Path, out: Path, *, listener: Listener) -> dict[str, Any]:
    """Protect one wave in this process and release it to a folder.

    Parameters
    ----------
    plan : Plan
        How the survey's waves are protected.
    wave, out : Path
        The wave's Parquet file, and the folder for the release; or a folder of waves, of which the
        last by name is taken, and the folder of their releases.
    listener : Listener
        Who hears of finished stages.
    """
    wave, out = newest_wave(wave, out)
    rows: list[StageRow] = []

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds = round(time.perf_counter() - started, 4)
        row = StageRow(stage, None, None, None, seconds, cached=False)
        rows.append(row)
        listener.finished(row)

    listener.expect(7)
    roles, release = plan.roles.build(), plan.release.build()
    columns = inspect_wave(wave, roles)
    check_memory(plan, wave, columns, in_memory=True)
    names = columns.quasi_identifiers
    with release_folder(out) as staging:
        path = staging / PUBLIC / NAME
        with timed("ingest"):
            digest = digest_of(wave)
            x, weights, y, units = _ingest(plan, wave, names)
        with timed("protect"):
            protected = _protect(plan, x, names, weights, y)
            values = rounded(
                protected.values.to_numpy(), names, columns.integers if release.round_integers else ()
            )
            blocks = [[names[j] for j in block] for block in protected.blocks]
            plan.check_blocks(blocks or [list(names)])
            reasons = plan.stages.blocks.reasons(x, protected.blocks, names=names) if blocks else ()
        with timed("assemble"):
            arrays = {name: values[:, j] for j, name in enumerate(names)}
            write_release(release_table(wave, columns, arrays, release), path)
        with timed("verify"):
            counted = count_identical(path, promise_of(plan, columns, blocks))
        with timed("evaluate"):
            views = _views(x, values, protected, names)
            table = measure(views, read_codes(wave, columns.open_to_intruders), units)
        report = evaluation(table, [view.names for view in views], k=plan.k, rows=columns.rows)
        if plan.measured is not None:
            with timed("measure"):
                inputs = evaluation_inputs(wave, roles, columns)
                found = _measures(plan, wave, x, values, protected, names, inputs)
            report = with_details(report, found)
        report = with_claim(report, plan, columns, blocks)
        manifest = build_manifest(
            plan,
            wave=wave,
            wave_digest=digest,
            columns=columns,
            blocks=blocks,
            reasons=reasons,
            released=Artifact(file_digest(path), columns.rows),
            evaluation=report,
            stages=rows,
            how="in memory",
        )
        with timed("gate"):
            check_bounds(out, bounds=plan.bounds, evaluation=report, manifest=manifest, counted=counted)
        with timed("publish"):
            placed = place(
                staging,
                out,
                public_manifest=public_manifest(manifest, report),
                manifest=manifest,
                evaluation=report,
                log=[json.dumps(row.as_json()) for row in rows],
            )
    return summary(Outcome(placed=placed, manifest=manifest, evaluation=report), rows)


def _views(x: Any, values: Any, protected: Protected, names: tuple[str, ...]) -> list[Block]:
    """What is evaluated: each block, or the file as a whole where there are none."""

    def column(name: str) -> tuple[Any, Any]:
        return x[:, names.index(name)], values[:, names.index(name)]

    if not protected.blocks:
        return [Block(names, column, values, None)]
    return [
        Block(
            [names[j] for j in block],
            column,
            _centroids(values[:, block], protected.groups[:, number]),
            protected.groups[:, number],
        )
        for number, block in enumerate(protected.blocks)
    ]


def _measures(
    plan: Plan,
    wave: Path,
    x: Any,
    values: Any,
    protected: Protected,
    names: Sequence[str],
    inputs: Inputs,
) -> tuple[Result, ...]:
    """The measures that the plan asks for, scenario by scenario."""
    request = plan.measured
    blocks = protected.blocks or (tuple(range(len(names))),)
    strata = request.knows.scenarios(names=names, blocks=blocks, seed=plan.seed)
    groups = tuple(np.ascontiguousarray(labels) for labels in protected.groups.T)
    everything = inputs.read(wave)
    outcomes = {}
    for job in jobs(request.asked, strata, inputs.given):
        measure = BY_NAME[job.measure]
        used = {*measure.uses, *measure.needs}
        release = Release(
            x=x,
            protected=values,
            names=tuple(names),
            blocks=blocks,
            groups=groups if groups and "groups" in used else None,
            **{name: value for name, value in everything.items() if name in used},
            **request.parameters(measure),
        )
        outcomes[job] = job.compute(release)
    return results(request.asked, strata, inputs.given, outcomes)


def _centroids(values: Any, groups: Any) -> Any:
    """The values of one member of each group."""
    member = np.empty(int(groups.max()) + 1, np.int64)
    member[groups] = np.arange(len(groups))
    return values[member]


def _ingest(plan: Plan, wave: Path, names: tuple[str, ...]) -> tuple[Any, Any, Any, Any]:
    """Quasi-identifiers, and what else takes part: weights, confidential values, unit codes."""
    roles = plan.roles
    if roles.key is not None:
        check_keys(wave, roles.key)
    x = read_values(wave, names)
    weights = None if roles.weight is None else read_weights(wave, roles.weight)
    units = None if roles.unit is None else read_units(wave, roles.unit)
    y = None if plan.dependence is None else read_confidential(wave, roles.confidential)
    return x, weights if plan.stages.centroid.takes_weights else None, y, units


def _protect(plan: Plan, x: Any, names: tuple[str, ...], weights: Any, confidential: Any) -> Any:
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
        confidential=confidential,
        dependence=stages.dependence,
    )
