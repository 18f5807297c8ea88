"""`kohort cache list | size | verify | prune`: what the store holds, and what may go."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kohort.errors import on_one_line
from kohort.flows import units

UNKNOWN = "no record"


def add_to(commands: Any) -> None:
    """The command and its options."""
    cache = commands.add_parser("cache", help="what the store of intermediate results holds")
    actions = cache.add_subparsers(required=True, metavar="ACTION")

    def action(name: str, help_text: str, run: Callable[[argparse.Namespace], int]) -> Any:
        parser = actions.add_parser(name, help=help_text)
        parser.add_argument("--store", type=Path, metavar="DIR", help="the store")
        parser.add_argument("--json", action="store_true", help="print as JSON")
        parser.set_defaults(run=run)
        return parser

    action("list", "every artifact: digest, stages that made it, rows, bytes, age", list_artifacts)
    action("size", "how much there is, in all and by stage", size)
    verify = action("verify", "digest everything anew and say what is not as it should be", check)
    verify.add_argument("--repair", action="store_true", help="remove what is not")
    pruning = action("prune", "remove artifacts that no living run uses", prune)
    what = pruning.add_mutually_exclusive_group(required=True)
    what.add_argument("--older-than", metavar="AGE", help="not used for 12h, 7d, 4w")
    what.add_argument("--run", dest="of_run", metavar="RUN", help="used by this run and by no other")
    what.add_argument("--all", action="store_true", help="everything")


def list_artifacts(options: argparse.Namespace) -> int:
    """One line an artifact, the newest first."""
    rows = _rows(_store(options))
    if options.json:
        return _print_json({"artifacts": rows})
    for row in rows:
        stages = ", ".join(row["stages"]) or UNKNOWN
        count = "?" if row["rows"] is None else row["rows"]
        _say(
            f"{row['sha256'][:12]}  {units.age(row['age']):>6}  {units.size(row['bytes']):>9}  "
            f"{count:>9} rows  {stages}"
        )
    return 0


def size(options: argparse.Namespace) -> int:
    """Counts and bytes; an artifact that several stages made counts for the first of them."""
    by_stage: dict[str, dict[str, int]] = {}
    total = {"artifacts": 0, "bytes": 0}
    for row in _rows(_store(options)):
        of_stage = by_stage.setdefault(
            row["stages"][0] if row["stages"] else UNKNOWN, {"artifacts": 0, "bytes": 0}
        )
        for count in (total, of_stage):
            count["artifacts"] += 1
            count["bytes"] += row["bytes"]
    if options.json:
        return _print_json({**total, "stages": by_stage})
    for name, count in [*sorted(by_stage.items()), ("in all", total)]:
        _say(f"{name:<14}  {count['artifacts']:>7}  {units.size(count['bytes']):>9}")
    return 0


def check(options: argparse.Namespace) -> int:
    """Whatever is damaged, foreign or left over; exit 1 where something is and stays."""
    from contextlib import nullcontext

    from kohort.tasks.housekeeping import alone, leftovers, remove_leftovers, remove_orphans, remove_path
    from kohort.tasks.inventory import problems, stored

    store = _store(options)
    with alone(store) if options.repair else nullcontext():
        found = list(problems(store))
        left = [path for path in leftovers(store) if path.suffix != ".lock"]
        outside = [each for each in found if each.path.parent == store.root]  # never ours to remove
        if options.repair:
            for each in found:
                if each not in outside:
                    remove_path(each.path)
            remove_leftovers(store)
            remove_orphans(store)
        checked = len(stored(store))
    lines = [(each.kind, each.path) for each in found] + [("left over", path) for path in left]
    named = [{"kind": kind, "file": str(path.relative_to(store.root))} for kind, path in lines]
    if options.json:
        _print_json({"artifacts": checked, "problems": named, "repaired": options.repair})
    else:
        for each in named:
            _say(f"{each['kind']:<14}  {each['file']}")
        fate = "removed" if options.repair else "remove with --repair"
        _say(f"{checked} artifacts are whole" if not named else f"{len(named)} problems; {fate}")
    return 1 if outside or (named and not options.repair) else 0


def prune(options: argparse.Namespace) -> int:
    """Remove artifacts and their records; refused while a run is alive."""
    from kohort.errors import PlanError
    from kohort.flows.pruning import only_of
    from kohort.tasks.housekeeping import alone, remove, remove_leftovers, remove_orphans, seconds_of

    store = _store(options)
    if options.of_run is not None:
        root, digests = only_of(options.of_run)
        if root != store.root:
            raise PlanError(f"the run {options.of_run} used the store {root}; name it by --store")
        unwanted: Callable[[Any], bool] = lambda each: each.sha256 in digests  # noqa: E731
    elif options.older_than is not None:
        before = time.time() - seconds_of(options.older_than)
        unwanted = lambda each: each.changed < before  # noqa: E731
    else:
        unwanted = lambda each: True  # noqa: E731
    with alone(store):
        remove_leftovers(store)
        removed = remove(store, unwanted)
        records = removed.records + (remove_orphans(store) if options.all else 0)
    if options.json:
        return _print_json({"artifacts": removed.artifacts, "bytes": removed.bytes, "records": records})
    _say(f"removed {removed.artifacts} artifacts ({units.size(removed.bytes)}) and {records} records")
    return 0


def _store(options: argparse.Namespace) -> Any:
    """The store named, which must be one."""
    from kohort.errors import PlanError
    from kohort.tasks.store import FOLDERS, Store

    store = Store(options.store)
    if not all((store.root / name).is_dir() for name in FOLDERS):
        raise PlanError(f"there is no store {store.root}; name one with --store")
    store.check()
    return store


def _rows(store: Any) -> list[dict[str, Any]]:
    """Every artifact as a dict, the newest first."""
    from kohort.tasks.inventory import makers, stored

    notes, now = makers(store), time.time()
    rows = []
    for each in sorted(stored(store), key=lambda each: (-each.changed, each.sha256)):
        of_it = notes.get(each.sha256, [])
        rows.append(
            {
                "sha256": each.sha256,
                "stages": sorted({note.stage for note in of_it}),
                "rows": of_it[0].artifact.rows if of_it else None,
                "bytes": each.bytes,
                "age": round(max(now - each.changed, 0.0), 1),
            }
        )
    return rows


def _print_json(content: dict[str, Any]) -> int:
    sys.stdout.write(json.dumps(content, indent=2) + "\n")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(on_one_line(line) + "\n")
