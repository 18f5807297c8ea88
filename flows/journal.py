"""The journal of a run: one file of JSON lines, from which `kohort runs` and `kohort resume` work.

::

    KOHORT_HOME/runs/20261118-151500-3fa2c1.jsonl    0600 in a folder of 0700
      {"event": "started", "schema": 1, "id": …, "flow": …, "plan": …, "plan_title": …, "wave": …,
       "wave_sha256": …, "out": …, "store": …, "pid": …, "at": …}
      {"event": "stage", "stage": …, "block": …, "sha256": …, "rows": …, …, "at": …}     one a stage
      {"event": "ended", "state": …, "error": …, "at": …}

Prefect's database says Running for ever of a run that was killed. Here a lock is held on the file while
the run lives, and the system frees it however the run ends: a free lock without a final state means
that the run vanished. A line is written in one piece and goes to the system at once, so that a killed
process loses none; nothing is forced to the disk. Names, counts and digests are in it, never a value.

A journal that cannot be written says so once, on standard error, and the run goes on: the release
does not depend on it, and the stages are cached all the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from kohort.errors import GateRefused, KohortError
from kohort.flows.plan import Plan
from kohort.flows.progress import StageRow
from kohort.home import kohort_home, private_folder

SCHEMA = 1
KEPT = 200  # journals of runs that have ended
SUFFIX = ".jsonl"


def runs_folder() -> Path:
    """Where the journals are, not necessarily there yet."""
    return kohort_home() / "runs"


class Journal:
    """The journal of a run that is under way; a context that notes how the run ended."""

    def __init__(self, identity: str, file: int | None) -> None:
        self.id = identity
        self._file = file  # a descriptor: what is written goes to the system at once
        self._length = 0
        self._complained = file is None
        self._lines: list[str] = []

    @classmethod
    def start(
        cls,
        *,
        flow: str,
        plan: Plan,
        wave: Path,
        wave_sha256: str,
        out: Path,
        store: Path,
        discard: bool = False,
    ) -> Journal:
        """Open a run's journal, lock it and note what the run is to do.

        Parameters
        ----------
        flow : str
            The flow's name.
        plan : Plan
            The plan.
        wave : Path
            The wave's file.
        wave_sha256 : str
            The digest of its bytes.
        out, store : Path
            Where the release and the intermediate results go.
        discard : bool
            Whether the run leaves no intermediate results behind.
        """
        now = datetime.now(UTC)
        identity = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        journal = cls(identity, _opened(identity))
        journal._note(
            "started",
            {
                "schema": SCHEMA,
                "id": identity,
                "flow": flow,
                "plan": plan.as_json(),
                "plan_title": plan.title,
                "wave": str(wave.absolute()),
                "wave_sha256": wave_sha256,
                "out": str(out.absolute()),
                "store": str(store.absolute()),
                "discard": discard,
                "pid": os.getpid(),
            },
        )
        return journal

    def stage(self, row: StageRow, artifacts: Sequence[str] = ()) -> None:
        """Note a finished stage; of one that stands for many, the digests of their artifacts."""
        self._note("stage", {**row.as_json(), **({"artifacts": list(artifacts)} if artifacts else {})})

    def lines(self) -> list[str]:
        """Every line so far, whether or not it could be written."""
        return list(self._lines)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._note("ended", {"state": _state(error), "error": _sentence(error)})
        if self._file is not None:
            os.close(self._file)  # frees the lock
            self._file = None

    def _note(self, event: str, content: Mapping[str, Any]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"event": event, **content, "at": at})
        self._lines.append(line)
        if self._file is None:
            return
        data = line.encode() + b"\n"
        try:
            written = os.write(self._file, data)
            if written < len(data):  # the disk is full: half a line is taken back
                os.ftruncate(self._file, self._length)
                raise OSError(None, "no space left")
            self._length += written
        except OSError as error:
            if not self._complained:
                self._complained = True
                _complain(error)


def _opened(identity: str) -> int | None:
    """A new journal's file, locked; None where there cannot be one.

    The lock comes before the first line, and readers pass over a file without one: nobody sees a run
    that has begun and seems to have vanished.
    """
    try:
        folder = private_folder(runs_folder())
        folder.chmod(0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(folder / f"{identity}{SUFFIX}", flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            os.close(file)
            raise
        _forget_oldest(folder)
    except OSError as error:
        _complain(error)
        return None
    return file


def _forget_oldest(folder: Path) -> None:
    """Remove all but the last journals; those of runs that live stay."""
    for path in sorted(folder.glob(f"*{SUFFIX}"))[:-KEPT]:
        with contextlib.suppress(OSError):  # a folder or a link is not ours, and stops no run
            if not is_locked(path):
                path.unlink(missing_ok=True)


def is_locked(path: Path) -> bool:
    """Whether the run of this journal lives."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _complain(error: OSError) -> None:
    sys.stderr.write(
        f"kohort: the run is not in `kohort runs`: its journal cannot be written ({error.strerror}); "
        "the run goes on\n"
    )
    sys.stderr.flush()


def _state(error: BaseException | None) -> str:
    if error is None:
        return "released"
    if isinstance(error, GateRefused):
        return "refused"
    return "failed" if isinstance(error, Exception) else "interrupted"


def _sentence(error: BaseException | None) -> str | None:
    """What is known of the error; the text of one that is not ours may quote a cell."""
    if isinstance(error, KohortError):
        return str(error)
    return f"stopped on {type(error).__name__}" if isinstance(error, Exception) else None
