"""`kohort verify RELEASE [--original WAVE]`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


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
    from kohort.errors import WaveError, on_one_line
    from kohort.flows.verifying import verify_release

    checks = verify_release(options.release, options.original)
    if options.json:
        sys.stdout.write(json.dumps([check.as_json() for check in checks], indent=2) + "\n")
    else:
        width = max(len(check.what) for check in checks)
        for check in checks:
            mark = "ok   " if check.holds else "WRONG"
            sys.stdout.write(on_one_line(f"{mark}  {check.what:<{width}}  {check.found}") + "\n")
    wrong = [check for check in checks if not check.holds]
    if wrong:
        listed = "; ".join(f"{check.what}: {check.found}" for check in wrong)
        raise WaveError(f"{options.release} does not verify: {listed}")
    return 0
