"""The measures that a plan asks for, as cached stages: one a measure and scenario.

`protect_wave` runs them on the wave it has just protected, `evaluate_files` on any pair of files. An
added measure or scenario costs only itself, and what is interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.evaluation.jobs import BY_NAME, Job, jobs, results
from kohort.evaluation.measures import Measure
from kohort.evaluation.outcome import Outcome
from kohort.evaluation.report import Result
from kohort.flows.evaluating import EvaluateSection
from kohort.flows.running import Run
from kohort.tasks.centroids import Protected
from kohort.tasks.measuring import measure_one
from kohort.tasks.released import Inputs, as_outcome, blocks_within
from kohort.tasks.store import Artifact


@dataclass(frozen=True)
class Pair:
    """An original table and its release, as artifacts, and the columns that go with them."""

    wave: Path
    digest: str
    x: Artifact
    protected: list[Protected]
    names: Sequence[str]
    blocks: list[list[str]]
    inputs: Inputs


def run_measures(run: Run, request: EvaluateSection, pair: Pair, *, seed: int) -> tuple[Result, ...]:
    """All measures asked for, each scenario a stage of its own."""
    blocks = blocks_within(pair.blocks, pair.names)
    strata = request.knows.scenarios(names=pair.names, blocks=blocks, seed=seed)
    given = pair.inputs.given
    by_measure: dict[str, list[Job]] = {}
    for job in jobs(request.asked, strata, given):
        by_measure.setdefault(job.measure, []).append(job)
    outcomes: dict[Job, Outcome] = {}
    for name, of_measure in by_measure.items():
        settings = _settings(request, pair, BY_NAME[name])
        artifacts = run.do_many(
            measure_one,
            [{**settings, "columns": _columns(pair, job)} for job in of_measure],
            label=f"measure {name}",
        )
        for job, artifact in zip(of_measure, artifacts, strict=True):
            outcomes[job] = as_outcome(run.store.read(artifact))
    return results(request.asked, strata, given, outcomes)


def _columns(pair: Pair, job: Job) -> list[str]:
    return list(pair.names) if job.known is None else [pair.names[j] for j in job.known]


def _settings(request: EvaluateSection, pair: Pair, measure: Measure) -> dict[str, Any]:
    """What the stages of one measure have in common: only what the measure takes note of."""
    inputs = pair.inputs.used_by({*measure.uses, *measure.needs})
    return {
        "wave": pair.wave,
        "x": pair.x,
        "protected": pair.protected,
        "blocks": pair.blocks,
        "measure": measure.name,
        "grouped": "groups" in measure.uses,
        "parameters": request.parameters(measure),
        "digest": pair.digest if inputs != Inputs() else None,
        "inputs": inputs,
    }
