"""Runs as their journals tell of them: in which state they are, and what they hold in the store."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kohort.errors import PlanError
from kohort.flows.journal import SCHEMA, SUFFIX, is_locked, runs_folder
from kohort.tasks.store import Artifact, Store

STARTED = {"flow", "plan", "plan_title", "wave", "wave_sha256", "out", "store", "at"}
STAGE = {"stage", "block", "sha256", "seconds", "cached"}
ENDED = {"state", "error"}
UNFINISHED = ("failed", "interrupted", "vanished")
WHY_NOT = {
    "released": "is released; there is nothing left to resume",
    "running": "is still running; wait for it",
    "refused": "was refused by its gate; change the plan and use kohort protect",
}


@dataclass(frozen=True, slots=True)
class PastRun:
    """One journal, read."""

    id: str
    state: str
    """running, released, refused, failed, interrupted or vanished."""
    error: str | None
    started: Mapping[str, Any]
    """The first line: plan, wave, folders."""
    stages: Sequence[Mapping[str, Any]]

    @property
    def wave(self) -> Path:
        """The wave's file."""
        return Path(self.started["wave"])

    @property
    def digests(self) -> frozenset[str]:
        """All artifacts that its stages gave."""
        return frozenset().union(*(digests_of(stage) for stage in self.stages))

    @property
    def held(self) -> dict[str, int]:
        """Size of every artifact of the run that is still in its store, by digest."""
        store = Store(Path(self.started["store"]))
        sizes = {}
        for digest in self.digests:
            try:
                sizes[digest] = store.path(Artifact(digest, 0)).lstat().st_size
            except OSError:
                continue
        return sizes

    @property
    def kept(self) -> int:
        """How many of its stages are finished and still have their artifact."""
        held = self.held
        made = [digests_of(stage) for stage in self.stages]
        return sum(bool(digests) and digests <= held.keys() for digests in made)

    @property
    def age(self) -> float:
        """How many seconds ago it began."""
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(self.started["at"])).total_seconds())

    def same_request(self, other: PastRun) -> bool:
        """Whether both protect the same wave by the same plan to the same folder."""
        names = ("flow", "plan", "wave", "wave_sha256", "out")
        return all(self.started[name] == other.started[name] for name in names)

    def as_json(self) -> dict[str, Any]:
        """What `kohort runs --json` lists."""
        return {
            "id": self.id,
            "state": self.state,
            "flow": self.started["flow"],
            "title": self.started["plan_title"],
            "wave": self.started["wave"],
            "out": self.started["out"],
            "store": self.started["store"],
            "started": self.started["at"],
            "stages": len(self.stages),
            "cached": sum(stage["cached"] for stage in self.stages),
            "bytes": sum(self.held.values()),
            "error": self.error,
        }


def digests_of(stage: Mapping[str, Any]) -> frozenset[str]:
    """The artifacts of a stage, or of the many that it stands for."""
    return frozenset(filter(None, [stage["sha256"], *stage.get("artifacts", ())]))


def past_runs() -> list[PastRun]:
    """All runs that have a journal, the newest first."""
    try:
        paths = sorted(runs_folder().glob(f"*{SUFFIX}"), reverse=True)
        return [run for path in paths if (run := read_run(path)) is not None]
    except PermissionError as error:
        raise PlanError(f"the journals in {runs_folder()} cannot be read ({error.strerror})") from None


def read_run(path: Path) -> PastRun | None:
    """One run; None for a file that is no journal, or not yet."""
    try:
        lines = _lines(path)
        if _final(lines) is None and not is_locked(path):
            lines = _lines(path)  # it may have ended between the two looks
            ended = _final(lines) or {"state": "vanished", "error": None}
        else:
            ended = _final(lines) or {"state": "running", "error": None}
    except FileNotFoundError:  # forgotten meanwhile
        return None
    except OSError as error:
        if isinstance(error, PermissionError):
            raise
        return None  # a link, or a folder
    if not lines or lines[0].get("schema") != SCHEMA or not set(lines[0]) >= STARTED:
        return None
    stages = [line for line in lines if line["event"] == "stage" and set(line) >= STAGE]
    return PastRun(path.stem, ended["state"], ended["error"], lines[0], stages)


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a journal; one that was torn by a power failure is left out."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        content = file.read()
    found = []
    for line in content.splitlines():
        try:
            read = json.loads(line)
        except ValueError:
            continue
        if isinstance(read, dict) and "event" in read:
            found.append(read)
    return found


def _final(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    last = lines[-1] if lines else {}
    return last if last.get("event") == "ended" and set(last) >= ENDED else None


def find_run(runs: Sequence[PastRun], name: str) -> PastRun:
    """The run of this id, or of an id that begins so."""
    found = [run for run in runs if run.id.startswith(name)]
    if not found or not name:
        raise PlanError(f"there is no run {name}; `kohort runs` lists them")
    if len(found) > 1 and found[0].id != name:
        raise PlanError(f"{len(found)} runs begin with {name}; give more of the id")
    return found[0]


def run_to_resume(name: str | None) -> PastRun:
    """The run that `kohort resume` continues.

    Parameters
    ----------
    name : str or None
        Its id or the beginning of it; None for the last that did not finish and was not made good by
        a later run of the same plan, wave and folder.
    """
    runs = past_runs()
    if name is not None:
        run = find_run(runs, name)
        if run.state not in UNFINISHED:
            raise PlanError(f"run {run.id} {WHY_NOT[run.state]}")
        return run
    settled: list[PastRun] = []
    for run in runs:
        if any(run.same_request(later) for later in settled):
            continue
        if run.state in UNFINISHED:
            return run
        settled.append(run)
    raise PlanError("there is nothing to resume: no run failed, was interrupted or vanished")
