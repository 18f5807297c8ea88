"""What the system says of a disk: what passes by waiting, and one sentence for what does not."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kohort.errors import StageFailed
from kohort.home import kohort_home

KEPT = "finished stages are kept, run it again to continue"
HICCUPS = "EIO EREMOTEIO ESTALE ENOENT ENOTCONN ENODEV ENXIO ENOMEDIUM"  # a disk, or a mount
NETWORK = (
    "ETIMEDOUT ENETDOWN ENETUNREACH ENETRESET EHOSTDOWN EHOSTUNREACH ECONNABORTED ECONNREFUSED "
    "ECONNRESET ESHUTDOWN EPIPE ECOMM EPROTO"
)
OTHERS_AT_WORK = "EAGAIN EINTR EBUSY ETXTBSY EDEADLK ENOLCK EMFILE ENFILE"
GONE, BUSY = (
    frozenset(getattr(errno, name) for name in names.split() if hasattr(errno, name))
    for names in (f"{HICCUPS} {NETWORK}", OTHERS_AT_WORK)
)
PASSING = GONE | BUSY
"""The errors of the system that may be gone when the stage is tried again."""
WRITING = {
    errno.ENOSPC: ("the disk of {} is full", "free some room"),
    errno.EDQUOT: ("the disk quota for {} is used up", "free some room"),
    errno.EROFS: ("{} is on a read-only file system", "make it writable"),
    errno.EACCES: ("{} may not be written to", "change its permissions"),
    errno.EPERM: ("{} may not be written to", "change its permissions"),
}
OTHERS = {
    "store": "choose another with --store",
    "output folder": "choose another with --out",
    "state folder": "set KOHORT_HOME to another",
}
FULL = 1 << 20  # bytes left on a disk that is as good as full: a database needs room to begin


def can_pass(error: BaseException) -> bool:
    """Whether the same operation may succeed later, with nobody doing anything about it."""
    return isinstance(error, OSError) and error.errno in PASSING


def in_words(error: OSError) -> str | None:
    """The system's own text: pyarrow puts one of its own in `strerror`."""
    return None if error.errno is None else os.strerror(error.errno)


def trouble(error: BaseException, folders: Mapping[str, Path], *, kept: bool = True) -> str | None:
    """One sentence on a folder that is full, closed or gone, and what to do; None for anything else.

    Parameters
    ----------
    error : BaseException
        What was raised.
    folders : mapping
        Folders that were written to ("store", "output folder", "state folder"), the likeliest first.
    kept : bool
        Whether another run begins where this one stopped.
    """
    if not isinstance(error, OSError) or error.errno is None or not folders:
        return None
    if error.errno in WRITING:
        culprit = _culprit(error, folders)
        if culprit is None:
            return None
        kind, (what, remedy) = culprit, WRITING[error.errno]
    elif error.errno in GONE and (gone := [kind for kind in folders if _is_gone(folders[kind])]):
        kind, what, remedy = gone[0], "{} is gone", "mount it again"
    else:
        return None
    return _sentence(what, remedy, kind, folders[kind], KEPT if kept else "run it again")


def _sentence(what: str, remedy: str, kind: str, folder: Path, then: str) -> str:
    return f"{what.format(f'the {kind} {folder}')}; {remedy} or {OTHERS[kind]}; {then}"


def full_disk(folders: Mapping[str, Path]) -> str | None:
    """One sentence on the first folder whose disk is full now, for who cannot say what failed."""
    for kind, folder in folders.items():
        if is_full(folder):
            return _sentence(*WRITING[errno.ENOSPC], kind, folder, KEPT)
    return None


def _culprit(error: OSError, folders: Mapping[str, Path]) -> str | None:
    """The folder that the error is about: the one it names, else one that is full, else the first.

    None where it names something else that may not be touched, such as a program.
    """
    for named in (error.filename2, error.filename):  # a copy fails where it goes to
        for kind, folder in folders.items():
            if isinstance(named, (str, os.PathLike)) and Path(named).is_relative_to(folder):
                return kind
    if error.errno == errno.ENOSPC:
        full = [kind for kind, folder in folders.items() if is_full(folder)]
        return next(iter(full), next(iter(folders)))
    return next(iter(folders)) if error.filename is None else None


def is_full(folder: Path) -> bool:
    """Whether the folder's disk has no room."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < FULL


def _is_gone(folder: Path) -> bool:
    try:
        return not folder.is_dir()
    except OSError:
        return True


def state_folder() -> dict[str, Path]:
    """Prefect's database and compiled kernels are written too, beside what a run writes."""
    return {"state folder": kohort_home()}


@contextmanager
def one_sentence_for(folders: Mapping[str, Path], *, kept: bool = True) -> Iterator[None]:
    """Say in one sentence what is wrong with one of the folders, where something is."""
    try:
        yield
    except OSError as error:
        said = trouble(error, folders, kept=kept)
        if said is None:
            raise
        raise StageFailed(said, can_pass=can_pass(error)) from None
