"""`kohort evaluate ORIGINAL PROTECTED`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """The command and its options."""
    evaluate = commands.add_parser(
        "evaluate", help="measure what a protected file loses and still reveals, whoever made it"
    )
    evaluate.add_argument("original", type=Path, metavar="ORIGINAL", help="the original file (Parquet)")
    evaluate.add_argument(
        "protected", type=Path, metavar="PROTECTED", help="the protected file (Parquet)"
    )
    evaluate.add_argument(
        "--plan",
        type=Path,
        metavar="PLAN",
        help="roles, blocks and measures; without it all numeric columns of both files are one block",
    )
    evaluate.add_argument(
        "--key", metavar="COLUMN", help="match rows by this column of both files, not by position"
    )
    evaluate.add_argument(
        "--measures", metavar="NAMES", help="measures with commas between; all by default"
    )
    evaluate.add_argument("--out", type=Path, metavar="DIR", help="write DIR/evaluation.json")
    evaluate.add_argument(
        "--store", type=Path, metavar="DIR", help="where intermediate results are kept"
    )
    evaluate.add_argument("--in-memory", action="store_true", help="without Prefect and without a store")
    evaluate.add_argument("--json", action="store_true", help="print the result as JSON")
    evaluate.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decide every refusal that needs no run, then run."""
    from kohort.errors import PlanError, on_one_line
    from kohort.flows.comparison import compare_files
    from kohort.flows.evaluated import NAME
    from kohort.flows.plan import load_plan
    from kohort.flows.precheck import check_output

    if options.in_memory and options.store is not None:
        raise PlanError("--store has no effect with --in-memory; leave one of them out")
    request: dict[str, Any] = {
        "plan": None if options.plan is None else load_plan(options.plan),
        "key": options.key,
        "measures": _names(options.measures),
    }
    comparison = compare_files(options.original, options.protected, **request)
    if options.out is not None:
        check_output(options.out)
    evaluated = _in_memory(comparison, options) if options.in_memory else _by_flow(request, options)
    text = json.dumps(evaluated.as_json(), indent=2) if options.json else str(evaluated)
    if options.out is not None and not options.json:
        text += f"\n{on_one_line(str(options.out / NAME))}"
    sys.stdout.write(text + "\n")
    return 0


def _names(measures: str | None) -> list[str] | None:
    return None if measures is None else [name.strip() for name in measures.split(",")]


def _in_memory(comparison: Any, options: argparse.Namespace) -> Any:
    from kohort.flows.evaluate_in_memory import evaluate_in_memory
    from kohort.flows.progress import listening

    with listening() as listener:
        return evaluate_in_memory(comparison, out=options.out, listener=listener)


def _by_flow(request: dict[str, Any], options: argparse.Namespace) -> Any:
    from kohort.flows.progress import listening
    from kohort.flows.server import one_sentence, prefect_server

    paths = {name: getattr(options, name) for name in ("original", "protected", "out", "store")}
    with listening() as listener, prefect_server() as url:
        from kohort.flows import evaluate, running

        running.LISTENER = listener
        with one_sentence(url):
            return evaluate.evaluate_files(
                **{name: None if path is None else path.absolute() for name, path in paths.items()},
                **request,
            )
