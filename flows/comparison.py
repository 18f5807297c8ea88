"""Which columns of two files are compared, and how: decided from the files' footers alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kohort.blocking import Blocker, Whole
from kohort.errors import PlanError, WaveError
from kohort.evaluation.evaluate import asked_for
from kohort.evaluation.jobs import with_parts
from kohort.flows.evaluating import EvaluateSection
from kohort.flows.plan import Plan
from kohort.tasks.available import available_memory
from kohort.tasks.placing import EVALUATION, MANIFEST
from kohort.tasks.released import Inputs, evaluation_inputs
from kohort.tasks.wave import check_room, digest_of, inspect_wave, is_number, read_footer

Types = dict[str, Any]
COPIES = 2  # of both tables: measured at 1e6 x 13 the peak is 3.6 tables


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """An original file and a protected one, and what is measured on them."""

    original: Path
    protected: Path
    rows: int
    key: str | None
    """The column by which rows are matched; by position without one."""
    names: tuple[str, ...]
    """The quasi-identifiers."""
    blocker: Blocker
    inputs: Inputs
    """Columns of the original file; `others` are of the protected one, whose readers see them."""
    request: EvaluateSection
    seed: int
    notes: tuple[str, ...]
    """What the result's reader should know: names and counts."""


def compare_files(
    original: Path,
    protected: Path,
    *,
    plan: Plan | None = None,
    key: str | None = None,
    measures: Sequence[str] | None = None,
) -> Comparison:
    """Decide every refusal that needs no cell.

    Parameters
    ----------
    original, protected : Path
        The Parquet files.
    plan : Plan, optional
        Roles, blocks and measures; without it all numeric columns of both files are one block.
    key : str, optional
        A column of both files that names every record once.
    measures : sequence of str, optional
        Names of measures; all by default.
    """
    request = _request(plan, measures)
    _refuse_positions(plan, key)
    before, rows = read_footer(original)
    after, released = read_footer(protected)
    for path, count in ((original, rows), (protected, released)):
        if count == 0:
            raise WaveError(f"{path} has no records")
    if key is None and rows != released:
        raise WaveError(
            f"{original} has {rows} records but {protected} has {released}, so that rows cannot be "
            "matched by position; name a column of both with --key"
        )
    for path, types in ((original, before), (protected, after)):
        if key is not None and key not in types:
            raise WaveError(f"{path} has no column {key!r} to match rows by; check the name")
    chosen = (
        _by_types(before, after, key) if plan is None else _by_plan(plan, original, protected, after)
    )
    if any("groups" in measure.uses for measure in request.asked):
        chosen["notes"] += (
            "groups are taken to be the records with the same protected values in a block",
        )
    comparison = Comparison(
        original=original,
        protected=protected,
        rows=rows,
        key=key,
        request=request,
        seed=0 if plan is None else plan.seed,
        **chosen,
    )
    if measures is not None:
        _refuse_missing(request, comparison.inputs)
    if key is None:
        _refuse_sorted_release(protected)
    _refuse_past_memory(comparison)
    return comparison


def _refuse_sorted_release(protected: Path) -> None:
    """A release of kohort's own says beside it that its rows are in another order."""
    try:
        beside = json.loads((protected.parent / MANIFEST).read_bytes())
        is_sorted = beside["methods"]["release"]["order"] == "sorted"
        its_own = beside["output"]["sha256"] == digest_of(protected)
    except (OSError, ValueError, KeyError, TypeError):
        return
    if is_sorted and its_own:
        raise PlanError(
            f"{protected} is released in sorted order, so that rows cannot be matched by position; its "
            f"measures are in the release's {EVALUATION}, or release it with order = 'input'"
        )


def _refuse_past_memory(comparison: Comparison) -> None:
    """Both tables, and what measures make of them, must fit."""
    common = [*filter(None, [comparison.key]), *comparison.names]
    needed = COPIES * (
        check_room(comparison.original, [*common, *comparison.inputs.of_original])
        + check_room(comparison.protected, [*common, *comparison.inputs.others])
    )
    free = available_memory()
    if needed > free:
        raise PlanError(
            f"the evaluation needs about {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are "
            "free; evaluate fewer columns by a plan, fewer records, or use a larger machine"
        )


def _request(plan: Plan | None, measures: Sequence[str] | None) -> EvaluateSection:
    if measures is not None:
        asked_for(measures)  # in its own words, not as a mistake in a plan
        if plan is not None and plan.evaluate is not None:
            raise PlanError(
                "--measures has no effect with a plan that has [evaluate]; leave one of them out"
            )
        return EvaluateSection(measures=list(measures))
    if plan is not None and plan.evaluate is not None:
        return plan.evaluate
    return EvaluateSection(measures="all")


def _refuse_positions(plan: Plan | None, key: str | None) -> None:
    """Refuse to compare row by row what the plan has put into another order."""
    if plan is None:
        return
    if key is None and plan.release.order == "sorted":
        raise PlanError(
            'the plan\'s release has order = "sorted", so that rows of the two files cannot be matched '
            'by position; name a column of both with --key, or release with order = "input" (kohort '
            "releases no key: the measures of its own release are in the evaluation.json made with it)"
        )
    if key in plan.roles.quasi_identifiers:
        raise PlanError(
            f"key {key!r} is a quasi-identifier, which protection changes; name another column"
        )


def _refuse_missing(request: EvaluateSection, inputs: Inputs) -> None:
    for measure in with_parts(request.asked):
        for need in measure.needs:
            if need not in inputs.given:
                raise PlanError(
                    f"measure {measure.name!r} needs {need} attributes that are numbers; name them in "
                    f"roles.{need} of a plan and pass it with --plan"
                )


def _by_types(before: Types, after: Types, key: str | None) -> dict[str, Any]:
    """Without a plan: every column that is numeric in both files."""
    common = [name for name in before if name in after and name != key]
    names = tuple(name for name in common if is_number(before[name]) and is_number(after[name]))
    if not names:
        raise WaveError(
            "the files have no numeric column in common; name columns alike and code them as numbers"
        )
    notes = (
        _ignored("that only the original file has", [n for n in before if n not in after]),
        _ignored("that only the protected file has", [n for n in after if n not in before]),
        _ignored("that are not numeric in both files", [n for n in common if n not in names]),
    )
    return {
        "names": names,
        "blocker": Whole(),
        "inputs": Inputs(),
        "notes": tuple(note for note in notes if note),
    }


def _by_plan(plan: Plan, original: Path, protected: Path, after: Types) -> dict[str, Any]:
    """With a plan: its roles and blocks."""
    roles = plan.roles.build()
    columns = inspect_wave(original, roles)
    absent = [name for name in columns.quasi_identifiers if name not in after]
    if absent:
        raise WaveError(
            f"{protected} has no column {_listed(absent)}, which the plan has as quasi-identifiers; "
            "check the names"
        )
    for name in columns.quasi_identifiers:
        if not is_number(after[name]):
            raise WaveError(
                f"quasi-identifier {name!r} is not numeric but {after[name]} in {protected}; "
                "code it as numbers, or give it another role"
            )
    inputs = evaluation_inputs(original, roles, columns)
    notes = (
        _ignored(
            "that the plan releases but the protected file does not have",
            [name for name in inputs.others if name not in after],
        ),
        _ignored(
            "that are confidential but not numeric",
            [name for name in roles.confidential if name not in inputs.confidential],
        ),
    )
    stages = plan.stages
    return {
        "names": columns.quasi_identifiers,
        "blocker": Whole() if stages.whole_file is not None else stages.blocks,
        "inputs": replace(inputs, others=tuple(name for name in inputs.others if name in after)),
        "notes": tuple(note for note in notes if note),
    }


def _ignored(which: str, names: Sequence[str]) -> str:
    """A note on columns that are left out; nothing where there are none."""
    if not names:
        return ""
    number = "1 column" if len(names) == 1 else f"{len(names)} columns"
    return f"ignored {number} {which}: {', '.join(names)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
