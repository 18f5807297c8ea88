"""`kohort verify RELEASE [--original WAVE]`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kohort.flows.saying import say, say_json


def add_to(commands: Any) -> None:
    """The command and its options."""
    verify = commands.add_parser("verify", help="check a release, and with the original do it again")
    verify.add_argument(
        "release",
        type=Path,
        metavar="RELEASE",
        help="a folder of releases, one of them, or its public part",
    )
    verify.add_argument(
        "--original", type=Path, metavar="WAVE", help="repeat the protection and compare bytes"
    )
    verify.add_argument("--json", action="store_true", help="print the checks as JSON")
    verify.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print every check; one that does not hold is an error."""
    from kohort.errors import WaveError
    from kohort.flows.verifying import verify_release

    checks = verify_release(options.release, options.original)
    if options.json:
        say_json([check.as_json() for check in checks])
    else:
        width = max(len(check.what) for check in checks)
        for check in checks:
            mark = "ok   " if check.holds else "WRONG"
            say(f"{mark}  {check.what:<{width}}  {check.found}")
    wrong = [check for check in checks if not check.holds]
    if wrong:
        listed = "; ".join(f"{check.what}: {check.found}" for check in wrong)
        raise WaveError(f"{options.release} does not verify: {listed}")
    return 0
