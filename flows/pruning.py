"""Which artifacts only one run used, from the journals under KOHORT_HOME."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.errors import PlanError
from kohort.home import kohort_home

RUN = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Used:
    """What a journal says of a run's store and the artifacts that its stages gave."""

    store: str | None
    digests: frozenset[str]


def only_of(run: str) -> Used:
    """The artifacts that this run's journal names and no other's.

    Parameters
    ----------
    run : str
        The run's name, or the beginning of exactly one.
    """
    journals = {path.stem: path for path in sorted((kohort_home() / "runs").glob("*.jsonl"))}
    named = [name for name in journals if name == run] or [
        name for name in journals if RUN.fullmatch(run) and name.startswith(run)
    ]
    if len(named) != 1:
        found = "there is no run" if not named else f"{len(named)} runs begin with"
        raise PlanError(f"{found} {run}; `kohort runs` lists them")
    ours = _used(journals.pop(named[0]))
    others = [_used(path).digests for path in journals.values()]
    return Used(ours.store, ours.digests.difference(*others))


def _used(journal: Path) -> Used:
    store, digests = None, set()
    for line in _lines(journal):
        if line.get("event") == "started" and isinstance(line.get("store"), str):
            store = line["store"]
        if line.get("event") == "stage":
            named = line.get("sha256")
            digests.update({named} if isinstance(named, str) else ())
    return Used(store, frozenset(digests))


def _lines(journal: Path) -> Iterator[dict[str, Any]]:
    """The journal's lines; the last may be half of one, where the process was killed."""
    try:
        text = journal.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise PlanError(f"the journal {journal} cannot be read ({error.strerror})") from None
    for line in text.splitlines():
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            yield content
