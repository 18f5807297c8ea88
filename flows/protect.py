"""The flow `protect_wave`: one wave through all stages, each cached by content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from kohort.flows import running
from kohort.flows.evaluation import Pair, run_measures
from kohort.flows.journal import Journal
from kohort.flows.manifest import build_manifest, promise_of, public_manifest, with_claim
from kohort.flows.memory_estimate import check_memory
from kohort.flows.outcome import Outcome, summary
from kohort.flows.plan import Plan
from kohort.flows.running import Run, quoting_nothing, running_on
from kohort.protect import available_cores
from kohort.tasks.assemble import assemble
from kohort.tasks.blocking import assign_blocks, read_blocks
from kohort.tasks.centroids import Protected, replace
from kohort.tasks.evaluation import evaluate
from kohort.tasks.gate import gate
from kohort.tasks.housekeeping import seconds_of
from kohort.tasks.ingest import ingest
from kohort.tasks.measures import evaluation, with_details
from kohort.tasks.memory import return_large_blocks
from kohort.tasks.normalization import normalize
from kohort.tasks.partitioning import partition
from kohort.tasks.placing import release_folder
from kohort.tasks.points import Points
from kohort.tasks.projection import project
from kohort.tasks.publish import publish
from kohort.tasks.released import evaluation_inputs
from kohort.tasks.store import Artifact, Store
from kohort.tasks.verify import verify
from kohort.tasks.wave import Columns, digest_of, inspect_wave, newest_wave
from kohort.tasks.whole_file import whole_file

FLOW = "protect-wave"


@flow(
    name=FLOW,
    task_runner=ThreadPoolTaskRunner(max_workers=available_cores()),  # type: ignore[arg-type]
    log_prints=False,
    persist_result=False,
)
def protect_wave(
    plan: Plan, wave: Path, out: Path, store: Path | None = None, discard: bool = False
) -> dict[str, Any]:
    """Protect one wave of a survey and release it to a folder.

    Parameters
    ----------
    plan : Plan
        How the survey's waves are protected.
    wave : Path
        The wave's Parquet file, or a folder whose last one by name is taken.
    out : Path
        The folder of the wave's releases, each a version of its own in it; where `wave` is a folder,
        they go to a folder in it that has the name of the wave's file.
    store : Path, optional
        Where intermediate results are kept; by default under KOHORT_HOME.
    discard : bool
        Whether the run leaves no intermediate file behind, and so uses none of earlier runs.
    """
    with quoting_nothing():
        return_large_blocks()
        path, out = newest_wave(wave, out)
        columns = inspect_wave(path, plan.roles.build())
        check_memory(plan, path, columns, in_memory=False)
        given = Wave(path, digest_of(path), columns)
        keep = None if plan.store is None else seconds_of(plan.store.keep)
        with running_on(store, keep=keep, discard=discard) as run:
            run.journal = Journal.start(
                flow=FLOW,
                plan=plan,
                wave=path,
                wave_sha256=given.digest,
                out=out,
                store=Store(store).root,
                discard=discard,
            )
            with run.journal, release_folder(out) as staging:
                return _release(run, plan, given, out, staging)


@dataclass(frozen=True)
class Wave:
    """The file that is protected."""

    path: Path
    digest: str
    columns: Columns


def _release(run: Run, plan: Plan, wave: Wave, out: Path, staging: Path) -> dict[str, Any]:
    """All stages, from the wave to its release."""
    columns = wave.columns
    x = run.do(
        ingest,
        wave=wave.path,
        digest=wave.digest,
        roles=plan.roles.build(),
        weighted=plan.stages.centroid.takes_weights,
        extended=plan.stages.extends,
    )
    if plan.stages.whole_file is None:
        parts = _protect_blocks(run, plan, x, columns)
    else:
        parts = _protect_whole_file(run, plan, x, columns)
    candidate = run.do(
        assemble,
        wave=wave.path,
        protected=parts.protected,
        digest=wave.digest,
        columns=columns,
        release=plan.release.build(),
    )
    measured = _start_evaluation(run, plan, wave, x, parts)
    counted = run.do_uncached(
        verify,
        store=run.store.root,
        candidate=candidate,
        staging=staging,
        promise=promise_of(plan, columns, parts.blocks),
    )
    report = _evaluation(run, plan, wave, x, parts, measured)
    report = with_claim(report, plan, columns, parts.blocks)
    manifest = build_manifest(
        plan,
        wave=wave.path,
        wave_digest=wave.digest,
        columns=columns,
        blocks=parts.blocks,
        reasons=parts.reasons,
        released=candidate,
        evaluation=report,
        stages=run.rows,
        how="prefect",
    )
    papers = {"evaluation": report, "manifest": manifest}
    run.do_uncached(gate, out=out, bounds=plan.bounds, counted=counted, **papers)
    placed = run.do_uncached(
        publish,
        staging=staging,
        out=out,
        public_manifest=public_manifest(manifest, report),
        log=run.lines,
        **papers,
    )
    return summary(Outcome(placed=placed, manifest=manifest, evaluation=report), run.rows)


@dataclass(frozen=True)
class Parts:
    """The protected parts of a wave: its blocks, or the file as one."""

    attributes: list[list[str]]
    """What is in each part."""
    reasons: list[str]
    """Why each block is what it is; empty where there are no blocks."""
    protected: list[Protected]

    @property
    def blocks(self) -> list[list[str]]:
        """The blocks within which records are identical: none for a file protected as a whole."""
        return self.attributes if self.reasons else []


def _start_evaluation(run: Run, plan: Plan, wave: Wave, x: Artifact, parts: Parts) -> PrefectFuture[Any]:
    """The measures that every release has; they are computed while the file is verified."""
    return run.start(
        evaluate,
        wave=wave.path,
        x=x,
        protected=parts.protected,
        blocks=parts.attributes,
        digest=wave.digest,
        others=list(wave.columns.open_to_intruders),
        unit=plan.roles.unit,
    )


def _evaluation(
    run: Run, plan: Plan, wave: Wave, x: Artifact, parts: Parts, measured: PrefectFuture[Any]
) -> dict[str, Any]:
    """evaluation.json: the measures of every release, and those that the plan asks for or bounds."""
    columns = wave.columns
    measures = run.store.read(run.finish(evaluate, measured))
    report = evaluation(measures, parts.attributes, k=plan.k, rows=columns.rows)
    if plan.measured is None:
        return report
    inputs = evaluation_inputs(wave.path, plan.roles.build(), columns)
    names = columns.quasi_identifiers
    pair = Pair(wave.path, wave.digest, x, parts.protected, names, parts.attributes, inputs)
    return with_details(report, run_measures(run, plan.measured, pair, seed=plan.seed))


def _protect_whole_file(run: Run, plan: Plan, x: Artifact, columns: Columns) -> Parts:
    """All values at once; there are no groups of records."""
    running.LISTENER.expect(7)
    names = list(columns.quasi_identifiers)
    protected = run.do(
        whole_file,
        x=x,
        names=names,
        method=plan.stages.whole_file,
        k=plan.k,
        integers=list(columns.integers) if plan.release.round_integers else [],
    )
    return Parts([names], [], [Protected(protected, None)])


def _protect_blocks(run: Run, plan: Plan, x: Artifact, columns: Columns) -> Parts:
    """Groups and protected values of every block, the blocks in parallel."""
    stages, names = plan.stages, list(columns.quasi_identifiers)
    confidential = list(plan.roles.confidential) if stages.extends else []
    normalizing = run.start(normalize, x=x, names=names + confidential, method=stages.normalize)
    given = x if stages.blocks.uses_values else None
    assigning = run.start(assign_blocks, x=given, names=names, method=stages.blocks)
    blocks, reasons = read_blocks(run.store, run.finish(assign_blocks, assigning))
    plan.check_blocks(blocks)
    running.LISTENER.expect(3 + len(blocks) * (3 if stages.partitioner.needs_axis else 2) + 5)

    needed = stages.partitioner.uses_normalized or stages.extends
    points = None
    if needed:
        points = Points(
            z=run.finish(normalize, normalizing),
            method=stages.normalize,
            confidential=tuple(confidential),
            dependence=stages.dependence if stages.extends else None,
        )
    axes: list[Artifact | None] = [None] * len(blocks)
    if stages.partitioner.needs_axis:
        extended = points if stages.extends else None
        axes[:] = run.do_blocks(
            project,
            [
                {"x": x, "names": each, "method": stages.projection_of(each), "points": extended}
                for each in blocks
            ],
        )
    used = stages.partitioner.uses_normalized
    source = {"x": x if used else None, "points": points if used else None}
    groups = run.do_blocks(
        partition,
        [
            {"axis": axis, "names": each, "method": stages.partitioner, "k": plan.k, **source}
            for each, axis in zip(blocks, axes, strict=True)
        ],
    )
    centroids = _replace(run, plan, x, columns, blocks, groups)
    if not needed:  # it ran beside the blocks; see docs/decisions/0005
        run.finish(normalize, normalizing)
    protected = [Protected(*pair) for pair in zip(centroids, groups, strict=True)]
    return Parts(blocks, reasons, protected)


def _replace(
    run: Run, plan: Plan, x: Artifact, columns: Columns, blocks: list[list[str]], groups: list[Artifact]
) -> list[Artifact]:
    """Centroids of every block."""
    centroid = plan.stages.centroid
    settings = {"method": centroid, "weight": plan.roles.weight if centroid.takes_weights else None}
    whole = columns.integers if plan.release.round_integers else ()
    return run.do_blocks(
        replace,
        [
            {
                "x": x,
                "groups": group,
                "names": each,
                "integers": [name for name in whole if name in each],
                **settings,
            }
            for each, group in zip(blocks, groups, strict=True)
        ],
    )
