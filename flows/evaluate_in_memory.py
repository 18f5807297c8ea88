"""The same evaluation without Prefect and without intermediate files; the same numbers come out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from kohort.evaluation.jobs import jobs, results
from kohort.evaluation.measures import Release
from kohort.evaluation.report import Result
from kohort.flows.comparison import Comparison
from kohort.flows.evaluated import Evaluated, write_evaluation
from kohort.flows.evaluating import DEFAULTS
from kohort.flows.progress import Listener, Stopwatch
from kohort.tasks.matching import match_keys, of_file
from kohort.tasks.wave import digest_of, read_codes, read_keys, read_values


def evaluate_in_memory(
    comparison: Comparison, *, out: Path | None = None, listener: Listener
) -> Evaluated:
    """Evaluate two files in this process.

    Parameters
    ----------
    comparison : Comparison
        The files and what is measured on them.
    out : Path, optional
        A folder for evaluation.json.
    listener : Listener
        Who hears of finished stages.
    """
    watch = Stopwatch(listener)
    listener.expect(2)
    with watch.stage("read"):
        digests = digest_of(comparison.original), digest_of(comparison.protected)
        release = _read_release(comparison)
    with watch.stage("measure"):
        found = _measures(comparison, release)
    evaluated = Evaluated(
        comparison=comparison,
        blocks=[[release.names[j] for j in block] for block in release.blocks],
        digests=digests,
        results=found,
        stages=watch.rows,
    )
    if out is not None:
        write_evaluation(evaluated, out)
    return evaluated


def _read_release(comparison: Comparison) -> Release:
    """Both files, row by row the same records."""
    original, protected, names = comparison.original, comparison.protected, comparison.names
    inputs, order = comparison.inputs, None
    if comparison.key is not None:
        keys = []
        for path in (original, protected):
            with of_file(path):
                keys.append(read_keys(path, comparison.key))
        order = match_keys(*keys, key=comparison.key)
    with of_file(original):
        x = read_values(original, names)
        beside = replace(inputs, others=()).read(original)
    with of_file(protected):
        values = read_values(protected, names)
        opened = [codes.astype(np.int64) for codes in read_codes(protected, inputs.others)]
    if order is not None:
        values = np.asfortranarray(values[order])
        opened = [codes[order] for codes in opened]
    request = comparison.request
    return Release(
        x=x,
        protected=values,
        names=names,
        blocks=comparison.blocker.assign_blocks(x, names=names),
        **{**beside, "others": tuple(opened)},
        **{name: getattr(request, name) for name in DEFAULTS},
    )


def _measures(comparison: Comparison, release: Release) -> tuple[Result, ...]:
    """The measures asked for, scenario by scenario."""
    request, given = comparison.request, comparison.inputs.given
    strata = request.knows.scenarios(names=release.names, blocks=release.blocks, seed=comparison.seed)
    outcomes = {job: job.compute(release) for job in jobs(request.asked, strata, given)}
    return results(request.asked, strata, given, outcomes)
