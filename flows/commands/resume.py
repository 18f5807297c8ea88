"""`kohort resume [RUN]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kohort.flows.saying import say, say_json


def add_to(commands: Any) -> None:
    """The command and its options."""
    resume = commands.add_parser(
        "resume", help="continue a run that failed, was interrupted or vanished"
    )
    resume.add_argument(
        "name", nargs="?", metavar="RUN", help="its id, or the beginning of it (default: the last)"
    )
    resume.add_argument("--json", action="store_true", help="print the result as JSON")
    resume.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do what the run was to do, with its plan, wave, folder and store."""
    from pydantic import ValidationError

    from kohort.errors import PlanError, WaveError
    from kohort.flows.commands.protect import run_flow
    from kohort.flows.messages import first_sentence
    from kohort.flows.outcome import as_text
    from kohort.flows.plan import Plan
    from kohort.flows.runs import run_to_resume
    from kohort.tasks.wave import digest_of

    past = run_to_resume(options.name)
    try:
        plan = Plan.model_validate(past.started["plan"])
    except ValidationError as error:
        raise PlanError(f"the plan of run {past.id}: {first_sentence(error)}") from None
    if digest_of(past.wave) != past.started["wave_sha256"]:
        raise WaveError(f"{past.wave} changed since the run; use kohort protect")
    sys.stderr.write(f"resuming {past.id}: {past.kept} of its stages are finished and kept\n")
    sys.stderr.flush()
    discard = bool(past.started.get("discard"))
    out, store = Path(past.started["out"]), Path(past.started["store"])
    result = {
        "resumed": past.id,
        **run_flow(plan, wave=past.wave, out=out, store=store, discard=discard),
    }
    say_json(result) if options.json else say(as_text(result))
    return 0
