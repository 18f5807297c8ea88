"""Locks that end with their process, however it ends.

A lock is an flock on an open file: the system frees it when the process is gone, so that nothing has
to guess from a process's number whether it lives.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PRIVATE = 0o600
FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def held_file(folder: Path, suffix: str = "") -> Iterator[Path]:
    """A fresh file in `folder`, locked while it is written; the caller renames or removes it."""
    while True:
        path = folder / f"{uuid.uuid4().hex}{suffix}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | FLAGS, PRIVATE)
        try:
            os.fchmod(handle, PRIVATE)  # whatever the umask takes away
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not _is_at(handle, path):  # taken for a leftover before it was locked
                continue
            yield path
            return
        finally:
            os.close(handle)


@contextmanager
def if_abandoned(path: Path) -> Iterator[bool]:
    """Whether no living process holds the file; where none does, it is ours within the block.

    A link or a folder is nothing that kohort would have locked: abandoned as well.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | FLAGS)
    except FileNotFoundError:
        yield False
        return
    except OSError:
        yield True
        return
    try:
        yield _try(handle, fcntl.LOCK_EX)
    finally:
        os.close(handle)


class Lock:
    """A lock file of many readers or one writer."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | FLAGS, PRIVATE)
        os.fchmod(self._handle, PRIVATE)

    def share(self) -> None:
        """Hold it with others; waits for one who has it alone."""
        fcntl.flock(self._handle, fcntl.LOCK_SH)

    def take(self) -> bool:
        """Have it alone, if nobody else holds it."""
        return _try(self._handle, fcntl.LOCK_EX)

    def close(self) -> None:
        """Let go of it."""
        with suppress(OSError):
            os.close(self._handle)


def _try(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
