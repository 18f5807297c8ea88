"""The command line: what every command has in common."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import kohort
from kohort.errors import KohortError, StageFailed
from kohort.flows.commands import (
    cache,
    evaluate,
    methods,
    plan,
    protect,
    reproduce,
    resume,
    runs,
    verify,
)
from kohort.flows.saying import complain

COMMANDS = (protect, runs, resume, cache, plan, evaluate, verify, methods, reproduce)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a user's mistake is one sentence on standard error."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KohortError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted; finished stages are kept, run it again to continue")
        return 130
    except Exception as error:  # not ours, and its text may quote a cell
        reason = getattr(error, "strerror", None)
        complain(f"stopped on {type(error).__name__}{f' ({reason})' if reason else ''}")
        return StageFailed.exit_code


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="kohort",
        description="Publish survey microdata without exposing the people in it.",
    )
    top.add_argument("--version", action="version", version=f"kohort {kohort.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return top


def program() -> None:
    """`kohort` itself: ends at once; on its way out Prefect would talk to a dead server for minutes."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    program()
