"""The flow `evaluate_files`: any pair of files, each measure and scenario cached by content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from kohort.evaluation.jobs import with_parts
from kohort.flows import running
from kohort.flows.comparison import Comparison, compare_files
from kohort.flows.evaluated import Evaluated, write_evaluation
from kohort.flows.evaluation import Pair, run_measures
from kohort.flows.plan import Plan
from kohort.flows.running import Run, quoting_nothing, running_on
from kohort.protect import available_cores
from kohort.tasks.blocking import assign_blocks, read_blocks
from kohort.tasks.centroids import Protected
from kohort.tasks.memory import return_large_blocks
from kohort.tasks.pairing import (
    match_rows,
    open_name,
    read_inputs,
    read_key,
    read_open,
    read_original,
    read_protected,
)
from kohort.tasks.released import Inputs
from kohort.tasks.store import Artifact
from kohort.tasks.wave import digest_of


@flow(
    name="evaluate-files",
    task_runner=ThreadPoolTaskRunner(max_workers=available_cores()),  # type: ignore[arg-type]
    log_prints=False,
    persist_result=False,
)
def evaluate_files(
    original: Path,
    protected: Path,
    plan: Plan | None = None,
    key: str | None = None,
    measures: list[str] | None = None,
    out: Path | None = None,
    store: Path | None = None,
) -> Evaluated:
    """Measure what a protected file loses and what it still reveals, whoever made it.

    Parameters
    ----------
    original, protected : Path
        The Parquet files.
    plan : Plan, optional
        Roles, blocks and measures; without it all numeric columns of both files are one block.
    key : str, optional
        A column of both files that names every record once; by default rows are matched by position.
    measures : list of str, optional
        Names of measures, where the plan does not say; all by default.
    out : Path, optional
        A folder for evaluation.json.
    store : Path, optional
        Where intermediate results are kept; by default under KOHORT_HOME.
    """
    with quoting_nothing():
        return_large_blocks()
        comparison = compare_files(original, protected, plan=plan, key=key, measures=measures)
        running.LISTENER.expect(_stages(comparison))
        digests = digest_of(original), digest_of(protected)
        with running_on(store) as run:
            pair = _read_pair(run, comparison, *digests)
            evaluated = Evaluated(
                comparison=comparison,
                blocks=pair.blocks,
                digests=digests,
                results=run_measures(run, comparison.request, pair, seed=comparison.seed),
                stages=run.finished,
            )
        if out is not None:
            write_evaluation(evaluated, out)
        return evaluated


def _read_pair(run: Run, comparison: Comparison, before: str, after: str) -> Pair:
    """Both files in the store, row by row the same records."""
    names, inputs = list(comparison.names), comparison.inputs
    original = {"wave": comparison.original, "digest": before}
    protected = {"wave": comparison.protected, "digest": after}
    rows = None
    if comparison.key is not None:
        keys = [run.do(read_key, **each, key=comparison.key) for each in (original, protected)]
        rows = run.do(match_rows, original=keys[0], protected=keys[1], key=comparison.key)
    x = run.do(read_original, **original, names=names)
    values = run.do(read_protected, **protected, names=names, rows=rows)
    given = x if comparison.blocker.uses_values else None
    blocks, _ = read_blocks(
        run.store, run.do(assign_blocks, x=given, names=names, method=comparison.blocker)
    )
    beside = x
    if inputs != Inputs():
        opened = None
        if inputs.others:
            opened = run.do(read_open, **protected, names=list(inputs.others), rows=rows)
        beside = run.do(read_inputs, **original, inputs=inputs, opened=opened)
    return Pair(
        wave=run.store.path(beside),
        digest=beside.sha256,
        x=x,
        protected=_by_block(values, blocks),
        names=comparison.names,
        blocks=blocks,
        inputs=replace(inputs, others=tuple(open_name(name) for name in inputs.others)),
    )


def _by_block(values: Artifact, blocks: list[list[str]]) -> list[Protected]:
    """The protected values as every block's; no groups are known, so identical records are one."""
    return [Protected(values, None) for _ in blocks]


def _stages(comparison: Comparison) -> int:
    """How many stages there will be, a measure counted once."""
    reading = 3 + 3 * (comparison.key is not None)
    reading += (comparison.inputs != Inputs()) + bool(comparison.inputs.others)
    measures = {
        measure.name
        for measure in with_parts(comparison.request.asked)
        if measure.compute is not None and set(measure.needs) <= comparison.inputs.given
    }
    return reading + len(measures)
