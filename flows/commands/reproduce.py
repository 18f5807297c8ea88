"""`kohort reproduce [PAPER]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kohort.flows.reproduction import PAPERS


def add_to(commands: Any) -> None:
    """The command and its options."""
    reproduce = commands.add_parser("reproduce", help="the papers' tables beside kohort's own figures")
    reproduce.add_argument("paper", nargs="?", choices=PAPERS, help="one paper; by default all four")
    reproduce.add_argument("--format", choices=("text", "csv", "markdown"), default="text")
    reproduce.add_argument(
        "--out", type=Path, metavar="DIR", help="write to DIR, with the figures drawn"
    )
    reproduce.add_argument("--store", type=Path, metavar="DIR", help="where finished tables are kept")
    reproduce.add_argument(
        "--in-memory", action="store_true", help="without Prefect and without a store"
    )
    reproduce.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Find the reference files, compute, compare."""
    from kohort.errors import PlanError
    from kohort.flows.reproduction import needed_files
    from kohort.flows.reproduction.output import write_comparison
    from kohort.flows.reproduction.report import compare

    if options.in_memory and options.store is not None:
        raise PlanError("--store has no effect with --in-memory; leave one of them out")
    papers = PAPERS if options.paper is None else (options.paper,)
    needed_files(papers)  # a sentence on what is missing, before a server is started
    figures = _in_memory(papers) if options.in_memory else _by_flow(papers, options.store)
    for line in write_comparison(compare(papers, figures), figures, options.format, options.out):
        sys.stderr.write(f"kohort: {line}\n")
    return 0


def _in_memory(papers: Sequence[str]) -> Any:
    from kohort.flows.progress import listening
    from kohort.flows.reproduction.in_memory import reproduce_in_memory

    with listening() as listener:
        return reproduce_in_memory(papers, listener=listener)


def _by_flow(papers: Sequence[str], store: Path | None) -> Any:
    from kohort.flows.progress import listening
    from kohort.flows.server import one_sentence, prefect_server

    with listening() as listener, prefect_server() as url:
        from kohort.flows import reproduce

        reproduce.LISTENER = listener
        with one_sentence(url):
            return reproduce.reproduce_papers(
                papers=list(papers), store=None if store is None else store.absolute()
            )
