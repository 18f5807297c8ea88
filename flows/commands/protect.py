"""`kohort protect PLAN WAVE --out DIR`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """The command and its options."""
    protect = commands.add_parser("protect", help="protect a wave and release it to a folder")
    protect.add_argument("plan", type=Path, metavar="PLAN", help="the survey's plan (TOML)")
    protect.add_argument(
        "wave", type=Path, metavar="WAVE", help="the wave (Parquet), or a folder: its last by name"
    )
    protect.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="the release folder; for a folder of waves, DIR/<name of the wave>",
    )
    protect.add_argument("--store", type=Path, metavar="DIR", help="where intermediate results are kept")
    protect.add_argument(
        "--discard", action="store_true", help="leave no intermediate result behind, and use none"
    )
    protect.add_argument("--in-memory", action="store_true", help="without Prefect and without a store")
    protect.add_argument("--force", action="store_true", help="replace another release in DIR")
    protect.add_argument("--json", action="store_true", help="print the result as JSON")
    protect.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decide every refusal that needs no run, then run."""
    from kohort.errors import PlanError
    from kohort.flows.outcome import as_text
    from kohort.flows.plan import load_plan
    from kohort.flows.precheck import check_output, check_wave
    from kohort.tasks.wave import newest_wave

    if options.in_memory and options.store is not None:
        raise PlanError("--store has no effect with --in-memory; leave one of them out")
    if options.in_memory and options.discard:
        raise PlanError("--discard has no effect with --in-memory; leave one of them out")
    plan = load_plan(options.plan)
    options.wave, options.out = newest_wave(options.wave, options.out)
    check_wave(plan, options.wave)
    check_output(options.out)
    result = _run_in_memory(plan, options) if options.in_memory else _run_flow(plan, options)
    sys.stdout.write((json.dumps(result, indent=2) if options.json else as_text(result)) + "\n")
    return 0


def _run_in_memory(plan: Any, options: argparse.Namespace) -> dict[str, Any]:
    from kohort.flows.in_memory import protect_in_memory
    from kohort.flows.progress import listening
    from kohort.tasks.disk import one_sentence_for, state_folder

    folders = {"output folder": options.out.absolute(), **state_folder()}
    with one_sentence_for(folders, kept=False), listening() as listener:
        return protect_in_memory(plan, options.wave, options.out, force=options.force, listener=listener)


def _run_flow(plan: Any, options: argparse.Namespace) -> dict[str, Any]:
    from kohort.flows.progress import listening
    from kohort.flows.server import one_sentence, prefect_server
    from kohort.tasks.store import Store

    with listening() as listener, prefect_server() as url:
        from kohort.flows import protect, running

        running.LISTENER = listener
        folders = {"output folder": options.out.absolute(), "store": Store(options.store).root}
        with one_sentence(url, folders):
            result: dict[str, Any] = protect.protect_wave(
                plan=plan,
                wave=options.wave.absolute(),
                out=options.out.absolute(),
                store=None if options.store is None else options.store.absolute(),
                force=options.force,
                discard=options.discard,
            )
    return result
