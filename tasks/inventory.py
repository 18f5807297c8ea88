"""What is in a store: its artifacts, which stages made them, and what does not belong there."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kohort.tasks.records import KEY, Note, read_note, trusted
from kohort.tasks.store import FOLDERS, Store, file_digest

KNOWN = frozenset({*FOLDERS, "discarded", "lock"})


@dataclass(frozen=True, slots=True)
class Stored:
    """A file under an artifact's name, not yet checked."""

    sha256: str
    bytes: int
    changed: float
    """When it was made or last used, in seconds of the epoch."""
    path: Path


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the store that is not as it should be."""

    kind: str
    path: Path


def stored(store: Store) -> list[Stored]:
    """Every artifact, by name."""
    found = []
    for path in _files(store.root / "objects"):
        if is_object(path):
            status = path.stat()
            found.append(Stored(path.stem, status.st_size, status.st_mtime, path))
    return found


def is_object(path: Path) -> bool:
    """Whether it is a plain file under an artifact's name, reached by no link."""
    return (
        path.suffix == ".parquet"
        and KEY.fullmatch(path.stem) is not None
        and path.parent.name == path.stem[:2]
        and not path.parent.is_symlink()
        and _is_plain(path)
    )


def record_files(store: Store) -> list[Path]:
    """Everything among the records."""
    if store.records.is_symlink() or not store.records.is_dir():
        return []
    return sorted(store.records.iterdir())


def makers(store: Store) -> dict[str, list[Note]]:
    """What the records say of each artifact, by digest."""
    notes: dict[str, list[Note]] = {}
    for record in record_files(store):
        note = read_note(record)
        if isinstance(note, Note):
            notes.setdefault(note.artifact.sha256, []).append(note)
    return notes


def problems(store: Store) -> Iterator[Problem]:
    """Whatever is damaged, foreign or without its file, after digesting everything anew."""
    held = set()
    for path in _files(store.root / "objects"):
        if not is_object(path):
            yield Problem("foreign", path)
        else:
            held.add(path.stem)
            if _digest(path) not in (path.stem, None):
                yield Problem("damaged", path)
    for record in record_files(store):
        note = trusted(record)
        if isinstance(note, str):
            yield Problem(note, record)
        elif note.artifact.sha256 not in held:
            yield Problem("deleted", record)
    for path in sorted(store.root.iterdir()):
        if path.name not in KNOWN:
            yield Problem("foreign", path)


def _digest(path: Path) -> str | None:
    """Its digest; None where it was removed meanwhile."""
    try:
        return file_digest(path)
    except FileNotFoundError:
        return None
    except OSError:
        return "unreadable"


def _files(folder: Path) -> Iterator[Path]:
    """What is in the folders of a folder; links are named, not followed."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for inner in sorted(folder.iterdir()):
        if inner.is_dir() and not inner.is_symlink():
            yield from sorted(inner.iterdir())
        else:
            yield inner


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
