"""The same wave without Prefect and without intermediate files; the same bytes come out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
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
from kohort.flows.progress import Listener, Stopwatch
from kohort.methods import Floats, Labels
from kohort.protect import Protected, protect
from kohort.tasks.bounds import check_bounds
from kohort.tasks.measures import Block, evaluation, measure, with_details
from kohort.tasks.placing import PUBLIC, place, release_folder
from kohort.tasks.release import NAME, count_identical, release_table, rounded, write_release
from kohort.tasks.released import Inputs, evaluation_inputs
from kohort.tasks.store import Artifact, file_digest
from kohort.tasks.wave import (
    Columns,
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
    watch = Stopwatch(listener)
    listener.expect(7)
    columns = inspect_wave(wave, plan.roles.build())
    check_memory(plan, wave, columns, in_memory=True)
    with release_folder(out) as staging:
        path = staging / PUBLIC / NAME
        with watch.stage("ingest"):
            digest = digest_of(wave)
            table = _ingest(plan, wave, columns.quasi_identifiers)
        with watch.stage("protect"):
            made = _protect(plan, columns, table)
        with watch.stage("assemble"):
            arrays = {name: made.values[:, j] for j, name in enumerate(columns.quasi_identifiers)}
            write_release(release_table(wave, columns, arrays, plan.release.build()), path)
        with watch.stage("verify"):
            counted = count_identical(path, promise_of(plan, columns, made.blocks))
        report = _evaluate(plan, wave, columns, table, made, watch)
        manifest = build_manifest(
            plan,
            wave=wave,
            wave_digest=digest,
            columns=columns,
            blocks=made.blocks,
            reasons=made.reasons,
            released=Artifact(file_digest(path), columns.rows),
            evaluation=report,
            stages=watch.rows,
            how="in memory",
        )
        papers = {"evaluation": report, "manifest": manifest}
        with watch.stage("gate"):
            check_bounds(out, bounds=plan.bounds, counted=counted, **papers)
        with watch.stage("publish"):
            log = [json.dumps(row.as_json()) for row in watch.rows]
            public = public_manifest(manifest, report)
            placed = place(staging, out, public_manifest=public, log=log, **papers)
    return summary(Outcome(placed=placed, manifest=manifest, evaluation=report), watch.rows)


@dataclass(frozen=True)
class Table:
    """What takes part in the protection."""

    x: Floats
    weights: Floats | None
    confidential: Floats | None
    units: Labels | None


@dataclass(frozen=True)
class Made:
    """What the protection gave."""

    values: Floats
    protected: Protected
    blocks: list[list[str]]
    reasons: Sequence[str]


def _evaluate(
    plan: Plan, wave: Path, columns: Columns, table: Table, made: Made, watch: Stopwatch
) -> dict[str, Any]:
    """evaluation.json: the measures of every release, and those that the plan asks for or bounds."""
    names = columns.quasi_identifiers
    with watch.stage("evaluate"):
        views = _views(table.x, made.values, made.protected, names)
        measures = measure(views, read_codes(wave, columns.open_to_intruders), table.units)
    report = evaluation(measures, [view.names for view in views], k=plan.k, rows=columns.rows)
    if plan.measured is not None:
        with watch.stage("measure"):
            inputs = evaluation_inputs(wave, plan.roles.build(), columns)
            found = _measures(plan, wave, table.x, made.values, made.protected, names, inputs)
        report = with_details(report, found)
    return with_claim(report, plan, columns, made.blocks)


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


def _ingest(plan: Plan, wave: Path, names: tuple[str, ...]) -> Table:
    """Quasi-identifiers, and what else takes part."""
    roles = plan.roles
    if roles.key is not None:
        check_keys(wave, roles.key)
    x = read_values(wave, names)
    weights = None if roles.weight is None else read_weights(wave, roles.weight)
    return Table(
        x=x,
        weights=weights if plan.stages.centroid.takes_weights else None,
        confidential=None if plan.dependence is None else read_confidential(wave, roles.confidential),
        units=None if roles.unit is None else read_units(wave, roles.unit),
    )


def _protect(plan: Plan, columns: Columns, table: Table) -> Made:
    """Groups and centroids of all blocks; refuses blocks that do not fit the claim."""
    stages, names = plan.stages, columns.quasi_identifiers
    protected = protect(
        pd.DataFrame(table.x, columns=list(names), copy=False),
        k=plan.k,
        normalize=stages.normalize,
        blocks=stages.blocks,
        project=stages.project,
        partition=stages.partition,
        centroid=stages.centroid,
        weights=table.weights,
        confidential=table.confidential,
        dependence=stages.dependence,
    )
    blocks = [[names[j] for j in block] for block in protected.blocks]
    plan.check_blocks(blocks or [list(names)])
    whole = columns.integers if plan.release.round_integers else ()
    return Made(
        values=rounded(protected.values.to_numpy(), names, whole),
        protected=protected,
        blocks=blocks,
        reasons=stages.blocks.reasons(table.x, protected.blocks, names=names) if blocks else (),
    )
