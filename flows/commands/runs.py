"""`kohort runs [RUN]`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kohort.errors import on_one_line
from kohort.flows.saying import say, say_json

if TYPE_CHECKING:
    from kohort.flows.runs import PastRun

HEADINGS = ("RUN", "STATE", "STAGES", "HOLDS", "AGE", "WAVE", "TITLE")


def add_to(commands: Any) -> None:
    """The command and its options."""
    runs = commands.add_parser("runs", help="list runs with their state and what they hold")
    runs.add_argument("name", nargs="?", metavar="RUN", help="a run's id, or the beginning of it")
    runs.add_argument("--json", action="store_true", help="print the list as JSON")
    runs.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print all runs, or one with its stages."""
    from kohort.flows.runs import find_run, past_runs

    runs = past_runs()
    if options.name is not None:
        one = find_run(runs, options.name)
        as_json: Any = {**one.as_json(), "stages": list(one.stages)}
        text = _one(one)
    else:
        as_json = [each.as_json() for each in runs]
        text = _table([HEADINGS, *map(_row, runs)]) if runs else "no runs yet"
    say_json(as_json) if options.json else say(text)
    return 0


def _row(run: PastRun) -> tuple[str, ...]:
    from kohort.flows.units import age, size

    holds = size(sum(run.held.values()))
    title = run.started["plan_title"]
    return (
        run.id,
        run.state,
        str(len(run.stages)),
        holds,
        age(run.age),
        on_one_line(run.wave.name),
        on_one_line(title),
    )


def _one(run: PastRun) -> str:
    """One run: what it was to do, its stages, and how it ended."""
    from kohort.flows.units import age, size

    held = run.held
    lines = [
        f"run {run.id}: {run.state}" + (f": {run.error}" if run.error else ""),
        f"  title    {run.started['plan_title']}",
        f"  wave     {run.started['wave']}",
        f"  release  {run.started['out']}",
        f"  store    {run.started['store']}",
        f"  started  {run.started['at']} ({age(run.age)} ago)",
    ]
    rows = []
    for stage in run.stages:
        label = stage["stage"] if stage["block"] is None else f"{stage['stage']}, block {stage['block']}"
        how = "cached" if stage["cached"] else f"{stage['seconds']:.2f} s"
        digest = stage["sha256"]
        kept = "" if digest is None else size(held[digest]) if digest in held else "removed"
        rows.append((f"  {label}", how, kept))
    return "\n".join(
        [*map(on_one_line, lines), *([_table(rows)] if rows else ["  no stage was finished"])]
    )


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)
