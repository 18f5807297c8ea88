"""The command line: `kohort protect`, `kohort plan`, `kohort methods`, `kohort reproduce`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kohort
from kohort.errors import KohortError, StageFailed
from kohort.flows.reproduction import PAPERS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a user's mistake is one sentence on standard error."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KohortError as error:
        sys.stderr.write(f"kohort: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("kohort: interrupted; finished stages are kept, run it again to continue\n")
        return 130
    except Exception as error:  # not ours, and its text may quote a cell
        reason = getattr(error, "strerror", None)
        sys.stderr.write(
            f"kohort: stopped on {type(error).__name__}{f' ({reason})' if reason else ''}\n"
        )
        return StageFailed.exit_code


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="kohort",
        description="Publish survey microdata without exposing the people in it.",
    )
    top.add_argument("--version", action="version", version=f"kohort {kohort.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

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
    protect.add_argument("--in-memory", action="store_true", help="without Prefect and without a store")
    protect.add_argument("--force", action="store_true", help="replace another release in DIR")
    protect.add_argument("--json", action="store_true", help="print the result as JSON")
    protect.set_defaults(run=_protect)

    plan = commands.add_parser("plan", help="draft or check a plan")
    verbs = plan.add_subparsers(required=True, metavar="VERB")
    init = verbs.add_parser("init", help="draft a commented plan from a wave")
    init.add_argument("wave", type=Path, metavar="WAVE", help="the wave (Parquet)")
    init.set_defaults(run=_plan_init)
    check = verbs.add_parser("check", help="check a plan against a wave; nothing is run")
    check.add_argument("plan", type=Path, metavar="PLAN", help="the survey's plan (TOML)")
    check.add_argument("wave", type=Path, metavar="WAVE", help="the wave (Parquet)")
    check.set_defaults(run=_plan_check)

    methods = commands.add_parser("methods", help="list stages, methods and their parameters")
    methods.add_argument("--json", action="store_true", help="print the list as JSON")
    methods.set_defaults(run=_methods)

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
    reproduce.set_defaults(run=_reproduce)
    return top


def _methods(options: argparse.Namespace) -> int:
    from kohort.catalogue import as_text, catalogue

    sys.stdout.write((json.dumps(catalogue(), indent=2) if options.json else as_text()) + "\n")
    return 0


def _protect(options: argparse.Namespace) -> int:
    """Decide every refusal that needs no run, then run."""
    from kohort.errors import PlanError
    from kohort.flows.outcome import as_text
    from kohort.flows.plan import load_plan
    from kohort.flows.precheck import check_output, check_wave
    from kohort.tasks.wave import newest_wave

    if options.in_memory and options.store is not None:
        raise PlanError("--store has no effect with --in-memory; leave one of them out")
    plan = load_plan(options.plan)
    options.wave, options.out = newest_wave(options.wave, options.out)
    check_wave(plan, options.wave)
    check_output(options.out)
    result = _run_in_memory(plan, options) if options.in_memory else _run_flow(plan, options)
    sys.stdout.write((json.dumps(result, indent=2) if options.json else as_text(result)) + "\n")
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    """Find the reference files, compute, compare."""
    from kohort.errors import PlanError
    from kohort.flows.reproduction import needed_files
    from kohort.flows.reproduction.output import write_comparison
    from kohort.flows.reproduction.report import compare

    if options.in_memory and options.store is not None:
        raise PlanError("--store has no effect with --in-memory; leave one of them out")
    papers = PAPERS if options.paper is None else (options.paper,)
    needed_files(papers)  # a sentence on what is missing, before a server is started
    figures = (
        _figures_in_memory(papers) if options.in_memory else _figures_by_flow(papers, options.store)
    )
    for line in write_comparison(compare(papers, figures), figures, options.format, options.out):
        sys.stderr.write(f"kohort: {line}\n")
    return 0


def _figures_in_memory(papers: Sequence[str]) -> Any:
    from kohort.flows.progress import listening
    from kohort.flows.reproduction.in_memory import reproduce_in_memory

    with listening() as listener:
        return reproduce_in_memory(papers, listener=listener)


def _figures_by_flow(papers: Sequence[str], store: Path | None) -> Any:
    from kohort.flows.progress import listening
    from kohort.flows.server import prefect_server

    with listening() as listener, prefect_server() as url:
        from kohort.flows import reproduce

        reproduce.LISTENER = listener
        with _sentences(url):
            return reproduce.reproduce_papers(
                papers=list(papers), store=None if store is None else store.absolute()
            )


@contextmanager
def _sentences(url: str) -> Iterator[None]:
    """One sentence instead of what Prefect raises; the server hears of all stages before it ends."""
    from prefect.events.worker import EventsWorker

    answers = True
    try:
        yield
    except KohortError:
        raise
    except Exception as error:
        answers = False
        raise StageFailed(
            f"the run stopped on {type(error).__name__} at the Prefect server {url}; "
            "finished stages are kept, run it again to continue"
        ) from None
    finally:
        if answers:  # what the server shows of the stages travels as events, behind the run
            EventsWorker.drain_all(timeout=5)


def _run_in_memory(plan: Any, options: argparse.Namespace) -> dict[str, Any]:
    from kohort.flows.in_memory import protect_in_memory
    from kohort.flows.progress import listening

    with listening() as listener:
        return protect_in_memory(plan, options.wave, options.out, force=options.force, listener=listener)


def _run_flow(plan: Any, options: argparse.Namespace) -> dict[str, Any]:
    from kohort.flows.progress import listening
    from kohort.flows.server import prefect_server

    with listening() as listener, prefect_server() as url:
        from kohort.flows import protect, running

        running.LISTENER = listener
        with _sentences(url):
            result: dict[str, Any] = protect.protect_wave(
                plan=plan,
                wave=options.wave.absolute(),
                out=options.out.absolute(),
                store=None if options.store is None else options.store.absolute(),
                force=options.force,
            )
    return result


def _plan_init(options: argparse.Namespace) -> int:
    from kohort.flows.drafting import draft_plan

    sys.stdout.write(draft_plan(options.wave))
    return 0


def _plan_check(options: argparse.Namespace) -> int:
    from kohort.flows.plan import load_plan
    from kohort.flows.precheck import what_would_be_done

    sys.stdout.write(what_would_be_done(load_plan(options.plan), options.wave) + "\n")
    return 0


def program() -> None:
    """`kohort` itself: ends at once; on its way out Prefect would talk to a dead server for minutes."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    program()
