"""`kohort methods`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def add_to(commands: Any) -> None:
    """The command and its options."""
    methods = commands.add_parser("methods", help="list stages, methods and their parameters")
    methods.add_argument("--json", action="store_true", help="print the list as JSON")
    methods.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the catalogue."""
    from kohort.catalogue import as_text, catalogue

    sys.stdout.write((json.dumps(catalogue(), indent=2) if options.json else as_text()) + "\n")
    return 0
