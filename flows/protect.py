"""The flow `protect_wave`: one wave through all stages, each cached by content."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prefect import Task, flow
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from kohort.flows.manifest import build_manifest
from kohort.flows.outcome import Outcome, summary
from kohort.flows.plan import Plan
from kohort.flows.progress import Listener, Silent, StageRow
from kohort.protect import available_cores
from kohort.tasks.assemble import assemble
from kohort.tasks.blocking import assign_blocks, read_blocks
from kohort.tasks.centroids import replace
from kohort.tasks.evaluation import evaluate
from kohort.tasks.ingest import ingest
from kohort.tasks.measures import evaluation
from kohort.tasks.memory import return_large_blocks
from kohort.tasks.normalization import normalize
from kohort.tasks.partitioning import partition
from kohort.tasks.placing import release_folder
from kohort.tasks.projection import project
from kohort.tasks.publish import publish
from kohort.tasks.store import Artifact, Store
from kohort.tasks.verify import verify
from kohort.tasks.wave import Columns, digest_of, inspect_wave, newest_wave
from kohort.tasks.whole_file import whole_file

ORDER = (
    "ingest",
    "normalize",
    "assign_blocks",
    "project",
    "partition",
    "replace",
    "whole_file",
    "assemble",
    "verify",
    "evaluate",
    "publish",
)
LISTENER: Listener = Silent()
"""Who hears of finished stages: the command line sets it, a worker leaves it."""


@dataclass
class Run:
    """One run's store and the stages it has done."""

    store: Store
    finished: list[StageRow] = field(default_factory=list)

    @property
    def rows(self) -> list[StageRow]:
        """The stages done, in the order in which a wave passes them."""
        return sorted(self.finished, key=lambda row: ORDER.index(row.stage))

    def start(self, task: Task[..., Any], **inputs: Any) -> PrefectFuture[Any]:
        """Submit a stage; its record goes to this run's store."""
        cached = task.with_options(result_storage=self.store.records)
        return cached.submit(store=self.store.root, **inputs)

    def finish(
        self, task: Task[..., Any], future: PrefectFuture[Any], block: int | None = None
    ) -> Artifact:
        """Wait for a stage and note it."""
        made = future.result()
        row = StageRow(
            stage=task.name,
            block=block,
            sha256=made["sha256"],
            rows=made["rows"],
            seconds=made["seconds"],
            cached=future.state.name == "Cached",
        )
        self.finished.append(row)
        LISTENER.finished(row)
        return Artifact(made["sha256"], made["rows"])

    def do(self, task: Task[..., Any], **inputs: Any) -> Artifact:
        """One stage, start to finish."""
        return self.finish(task, self.start(task, **inputs))

    def do_blocks(self, task: Task[..., Any], inputs: Iterable[dict[str, Any]]) -> list[Artifact]:
        """One stage of all blocks, in parallel."""
        futures = [self.start(task, block=number, **each) for number, each in enumerate(inputs)]
        return [self.finish(task, future, number) for number, future in enumerate(futures)]

    def do_uncached(self, task: Task[..., Any], **inputs: Any) -> Any:
        """A stage that is done in every run."""
        started = time.perf_counter()
        result = task.submit(**inputs).result()
        seconds = round(time.perf_counter() - started, 4)
        row = StageRow(task.name, None, None, None, seconds, cached=False)
        self.finished.append(row)
        LISTENER.finished(row)
        return result


@flow(
    name="protect-wave",
    task_runner=ThreadPoolTaskRunner(max_workers=available_cores()),  # type: ignore[arg-type]
    log_prints=False,
    persist_result=False,
)
def protect_wave(
    plan: Plan, wave: Path, out: Path, store: Path | None = None, force: bool = False
) -> dict[str, Any]:
    """Protect one wave of a survey and release it to a folder.

    Parameters
    ----------
    plan : Plan
        How the survey's waves are protected.
    wave : Path
        The wave's Parquet file, or a folder whose last one by name is taken.
    out : Path
        The folder for protected.parquet, evaluation.json and manifest.json; where `wave` is a folder,
        they go to a folder in it that has the name of the wave's file.
    store : Path, optional
        Where intermediate results are kept; by default under KOHORT_HOME.
    force : bool
        Whether another release in the folder is replaced.
    """
    return_large_blocks()
    wave, out = newest_wave(wave, out)
    run = Run(Store(store).prepare())
    columns, digest = inspect_wave(wave, plan.roles.build()), digest_of(wave)
    with release_folder(out):
        x = run.do(
            ingest,
            wave=wave,
            digest=digest,
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
            wave=wave,
            protected=parts.protected,
            digest=digest,
            columns=columns,
            release=plan.release.build(),
        )
        measured = run.start(
            evaluate,
            wave=wave,
            x=x,
            protected=parts.protected,
            groups=parts.groups,
            blocks=parts.attributes,
            digest=digest,
            others=list(columns.open_to_intruders),
            unit=plan.roles.unit,
        )
        partial = run.do_uncached(
            verify,
            store=run.store.root,
            candidate=candidate,
            out=out,
            blocks=parts.blocks,
            columns=columns,
            k=plan.k,
        )
        measures = run.store.read(run.finish(evaluate, measured))
        report = evaluation(measures, parts.attributes, k=plan.k, rows=columns.rows)
        manifest = build_manifest(
            plan,
            wave_digest=digest,
            columns=columns,
            blocks=parts.blocks,
            reasons=parts.reasons,
            released=candidate,
            stages=run.rows,
            how="prefect",
        )
        written = run.do_uncached(
            publish,
            partial=Path(partial),
            out=out,
            sha256=candidate.sha256,
            evaluation=report,
            manifest=manifest,
            force=force,
        )
    return summary(Outcome(out=out, written=written, manifest=manifest, evaluation=report), run.rows)


@dataclass(frozen=True)
class Parts:
    """The protected parts of a wave: its blocks, or the file as one."""

    attributes: list[list[str]]
    """What is in each part."""
    reasons: list[str]
    """Why each block is what it is; empty where there are no blocks."""
    groups: list[Artifact | None]
    protected: list[Artifact]

    @property
    def blocks(self) -> list[list[str]]:
        """The blocks within which records are identical: none for a file protected as a whole."""
        return self.attributes if self.reasons else []


def _protect_whole_file(run: Run, plan: Plan, x: Artifact, columns: Columns) -> Parts:
    """All values at once; there are no groups of records."""
    LISTENER.expect(6)
    names = list(columns.quasi_identifiers)
    protected = run.do(
        whole_file,
        x=x,
        names=names,
        method=plan.stages.whole_file,
        k=plan.k,
        integers=list(columns.integers) if plan.release.round_integers else [],
    )
    return Parts([names], [], [None], [protected])


def _protect_blocks(run: Run, plan: Plan, x: Artifact, columns: Columns) -> Parts:
    """Groups and protected values of every block, the blocks in parallel."""
    stages, names = plan.stages, list(columns.quasi_identifiers)
    confidential = list(plan.roles.confidential) if stages.extends else []
    extension = {
        "confidential": confidential,
        "dependence": stages.dependence if stages.extends else None,
    }
    normalizing = run.start(normalize, x=x, names=names + confidential, method=stages.normalize)
    given = x if stages.blocks.uses_values else None
    assigning = run.start(assign_blocks, x=given, names=names, method=stages.blocks)
    blocks, reasons = read_blocks(run.store, run.finish(assign_blocks, assigning))
    stages.check_blocks(blocks)
    LISTENER.expect(3 + len(blocks) * (3 if stages.partitioner.needs_axis else 2) + 4)
    needed = stages.partitioner.uses_normalized or stages.extends
    z = run.finish(normalize, normalizing) if needed else None

    axes: list[Artifact | None] = [None] * len(blocks)
    if stages.partitioner.needs_axis:
        source = {"x": None, "z": z} if stages.extends else {"x": x, "z": None}
        axes[:] = run.do_blocks(
            project,
            [
                {"names": each, "method": stages.projection_of(each), **source, **extension}
                for each in blocks
            ],
        )
    settings = {"method": stages.partitioner, "k": plan.k, **extension}
    used = z if stages.partitioner.uses_normalized else None
    groups = run.do_blocks(
        partition,
        [
            {"z": used, "axis": axis, "names": each, **settings}
            for each, axis in zip(blocks, axes, strict=True)
        ],
    )
    if not needed:  # it ran beside the blocks; see docs/decisions/0005
        run.finish(normalize, normalizing)
    return Parts(blocks, reasons, [*groups], _replace(run, plan, x, columns, blocks, groups))


def _replace(
    run: Run, plan: Plan, x: Artifact, columns: Columns, blocks: list[list[str]], groups: list[Artifact]
) -> list[Artifact]:
    """Protected values of every block."""
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
