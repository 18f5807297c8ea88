"""`kohort plan init WAVE` and `kohort plan check PLAN WAVE`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """The command and its options."""
    plan = commands.add_parser("plan", help="draft or check a plan")
    verbs = plan.add_subparsers(required=True, metavar="VERB")
    init = verbs.add_parser("init", help="draft a commented plan from a wave")
    init.add_argument("wave", type=Path, metavar="WAVE", help="the wave (Parquet)")
    init.set_defaults(run=_init)
    check = verbs.add_parser("check", help="check a plan against a wave; nothing is run")
    check.add_argument("plan", type=Path, metavar="PLAN", help="the survey's plan (TOML)")
    check.add_argument("wave", type=Path, metavar="WAVE", help="the wave (Parquet)")
    check.set_defaults(run=_check)


def _init(options: argparse.Namespace) -> int:
    from kohort.flows.drafting import draft_plan

    sys.stdout.write(draft_plan(options.wave))
    return 0


def _check(options: argparse.Namespace) -> int:
    from kohort.flows.plan import load_plan
    from kohort.flows.precheck import what_would_be_done
    from kohort.flows.saying import say

    say(what_would_be_done(load_plan(options.plan), options.wave))
    return 0
