"""Who uses a store, how long its files live, and what may be removed from it.

A living run shares the store's lock. Finished files are removed only by who has the lock alone, so that
none is taken from under a run; files that dead processes left half done are removed by any run.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kohort.errors import PlanError, StageFailed
from kohort.home import private_folder
from kohort.tasks.disk import one_sentence_for
from kohort.tasks.inventory import Stored, is_object, record_files, stored
from kohort.tasks.locking import Lock, held_file, if_abandoned
from kohort.tasks.records import Note, read_note
from kohort.tasks.store import Store

UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
DURATION = re.compile(r"([1-9]\d{0,5})([mhdw])")


def seconds_of(duration: str) -> float:
    """Seconds of a duration such as 12h, 7d or 4w.

    Parameters
    ----------
    duration : str
        A whole number of at least 1 and one of m, h, d, w.
    """
    match = DURATION.fullmatch(duration)
    if match is None:
        raise PlanError(f'a duration is written as "12h", "7d" or "4w", got {duration!r}')
    return float(int(match[1]) * UNITS[match[2]])


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed from a store."""

    artifacts: int = 0
    bytes: int = 0
    records: int = 0


@contextmanager
def in_use(store: Store, *, keep: float | None = None, discard: bool = False) -> Iterator[Store]:
    """A store that nobody prunes meanwhile; for a discarding run one of its own within it.

    Parameters
    ----------
    store : Store
        Prepared here.
    keep : float, optional
        The lifetime in seconds: artifacts that nothing has used for longer are removed before the run
        and after it, unless another run is alive then; that run, or the next, does it.
    discard : bool
        Whether the run works in a store of its own, which is removed whatever happens.
    """
    with ExitStack() as stack:
        with one_sentence_for({"store": store.root}):
            lock = Lock(store.prepare().root / "lock")
            stack.callback(lock.close)
            remove_leftovers(store)
            if keep is not None:
                stack.callback(_expire, store, lock, keep)
                _expire(store, lock, keep)
            lock.share()
        yield stack.enter_context(_private_store(store)) if discard else store


@contextmanager
def alone(store: Store) -> Iterator[None]:
    """The store for us alone; refused while a run is alive."""
    with one_sentence_for({"store": store.root}):
        lock = Lock(store.root / "lock")
    try:
        if not lock.take():
            raise StageFailed(f"a run is using the store {store.root}; wait until it ends")
        yield
    finally:
        lock.close()


def _expire(store: Store, lock: Lock, keep: float) -> None:
    """Remove what is older than the lifetime, if no other run is alive."""
    with suppress(OSError):  # a disk in trouble is said where it stops a stage
        if lock.take():
            before = time.time() - keep
            remove(store, lambda each: each.changed < before)


@contextmanager
def _private_store(store: Store) -> Iterator[Store]:
    """A store of a discarding run: its lock is there before it and goes after it."""
    with ExitStack() as stack:
        with one_sentence_for({"store": store.root}):
            folder = private_folder(store.root / "discarded")
            lock = stack.enter_context(held_file(folder, ".lock"))
            private = Store(lock.with_suffix(""))
            stack.callback(lock.unlink, missing_ok=True)
            stack.callback(shutil.rmtree, private.root, ignore_errors=True)
            private.prepare()
        yield private


def leftovers(store: Store) -> Iterator[Path]:
    """Half-written files, and stores of discarding runs, that no living process holds.

    Each is locked for us until the next is asked for.
    """
    for path in _listed(store.partial):
        with if_abandoned(path) as abandoned:
            if abandoned:
                yield path
    for path in _listed(store.root / "discarded"):
        if path.suffix == ".lock":
            with if_abandoned(path) as abandoned:
                if abandoned:
                    yield path.with_suffix("")
                    yield path
        elif not path.with_suffix(".lock").exists():
            yield path


def remove_leftovers(store: Store) -> int:
    """Remove what dead processes left; how much there was."""
    count = 0
    for path in leftovers(store):
        count += path.suffix != ".lock" and (path.exists() or path.is_symlink())
        remove_path(path)
    return count


def remove_path(path: Path) -> None:
    """Remove a file, a link (not what it points at) or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove(store: Store, unwanted: Callable[[Stored], bool]) -> Removed:
    """Remove artifacts and the records that point at them; the store must be ours alone."""
    artifacts = size = 0
    for each in stored(store):
        if unwanted(each):
            remove_path(each.path)
            with suppress(OSError):
                each.path.parent.rmdir()  # where it was the last
            artifacts += 1
            size += each.bytes
    return Removed(artifacts, size, remove_orphans(store) if artifacts else 0)


def remove_orphans(store: Store) -> int:
    """Remove records that point at nothing, or cannot be read; how many there were."""
    count = 0
    for record in record_files(store):
        note = read_note(record)
        if not isinstance(note, Note) or not is_object(store.path(note.artifact)):
            remove_path(record)
            count += 1
    return count


def _listed(folder: Path) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [Path(entry.path) for entry in os.scandir(folder)]
