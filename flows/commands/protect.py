"""`kohort protect PLAN WAVE --out DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kohort.flows.saying import say, say_json

if TYPE_CHECKING:
    from kohort.flows.plan import Plan


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
        help="the folder of the wave's releases; for a folder of waves, DIR/<name of the wave>",
    )
    protect.add_argument("--store", type=Path, metavar="DIR", help="where intermediate results are kept")
    protect.add_argument(
        "--discard", action="store_true", help="leave no intermediate result behind, and use none"
    )
    protect.add_argument("--in-memory", action="store_true", help="without Prefect and without a store")
    protect.add_argument("--json", action="store_true", help="print the result as JSON")
    protect.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decide every refusal that needs no run, then run."""
    from kohort.errors import PlanError
    from kohort.flows.outcome import as_text
    from kohort.flows.plan import load_plan
    from kohort.tasks.wave import newest_wave

    if options.in_memory and options.store is not None:
        raise PlanError("--store has no effect with --in-memory; leave one of them out")
    if options.in_memory and options.discard:
        raise PlanError("--discard has no effect with --in-memory; leave one of them out")
    plan = load_plan(options.plan)
    wave, out = newest_wave(options.wave, options.out)
    if options.in_memory:
        result = _run_in_memory(plan, wave, out)
    else:
        result = run_flow(plan, wave=wave, out=out, store=options.store, discard=options.discard)
    say_json(result) if options.json else say(as_text(result))
    return 0


def _run_in_memory(plan: Plan, wave: Path, out: Path) -> dict[str, Any]:
    from kohort.flows.in_memory import protect_in_memory
    from kohort.flows.precheck import check_run
    from kohort.flows.progress import listening
    from kohort.tasks.disk import one_sentence_for, state_folder

    check_run(plan, wave, out, in_memory=True)
    folders = {"output folder": out.absolute(), **state_folder()}
    with one_sentence_for(folders, kept=False), listening() as listener:
        return protect_in_memory(plan, wave, out, listener=listener)


def run_flow(
    plan: Plan, *, wave: Path, out: Path, store: Path | None = None, discard: bool = False
) -> dict[str, Any]:
    """Run the flow `protect_wave` for a command, on the Prefect server that there is or an own one.

    What can be refused without a run is refused before Prefect is imported.
    """
    from kohort.flows.precheck import check_run
    from kohort.flows.progress import listening
    from kohort.flows.server import one_sentence, prefect_server
    from kohort.tasks.store import Store

    check_run(plan, wave, out, in_memory=False)
    with listening() as listener, prefect_server() as url:
        from kohort.flows import protect, running

        running.LISTENER = listener
        folders = {"output folder": out.absolute(), "store": Store(store).root}
        with one_sentence(url, folders):
            result: dict[str, Any] = protect.protect_wave(
                plan=plan,
                wave=wave.absolute(),
                out=out.absolute(),
                store=None if store is None else store.absolute(),
                discard=discard,
            )
    return result
