"""How files get into the release folder: whole, verified, or not at all.

Partial files are made beside the final ones (a rename is atomic only within a file system), under
hidden names that carry the process; what a killed process left is removed by the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.errors import GuaranteeBroken, PlanError
from kohort.tasks.release import NAME
from kohort.tasks.wave import digest_of

EVALUATION = "evaluation.json"
MANIFEST = "manifest.json"
PARTIAL = re.compile(r"\.kohort-(\d+)-[0-9a-f]{32}")


@dataclass(slots=True)
class Partial:
    """A file on its way into a folder."""

    path: Path
    handed_over: bool = False

    def copy(self, source: Path, *, expected: str) -> None:
        """Copy a file here and check that its bytes arrived."""
        shutil.copyfile(source, self.path)
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        with self.path.open("rb") as file:
            arrived = hashlib.file_digest(file, "sha256").hexdigest()
        if arrived != expected:
            raise GuaranteeBroken("the copy beside the destination has other bytes than were assembled")

    def hand_over(self) -> Path:
        """Leave the file for whoever places it."""
        self.handed_over = True
        return self.path


@contextmanager
def partial_beside(out: Path) -> Iterator[Partial]:
    """A fresh partial file in `out`, removed unless it is handed over."""
    partial = Partial(out / f".kohort-{os.getpid()}-{uuid.uuid4().hex}")
    try:
        yield partial
    finally:
        if not partial.handed_over:
            partial.path.unlink(missing_ok=True)


@contextmanager
def release_folder(out: Path) -> Iterator[None]:
    """Make the folder where need be; if nothing gets released, it is as it was before.

    Parameters
    ----------
    out : Path
        The release folder.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(
            f"the output folder {out} cannot be made ({error.strerror}); choose another"
        ) from None
    if not out.is_dir() or not os.access(out, os.W_OK | os.X_OK):
        raise PlanError(f"the output folder {out} is not writable; choose another")
    try:
        yield
    finally:
        _remove_partials(out)
        for folder in made:
            if any(folder.iterdir()):
                break
            folder.rmdir()


def _remove_partials(out: Path) -> None:
    """Remove our own partial files, and those of processes that are gone."""
    for path in out.iterdir():
        match = PARTIAL.fullmatch(path.name)
        if match and (int(match[1]) == os.getpid() or not _is_alive(int(match[1]))):
            path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def place(
    partial: Path,
    out: Path,
    *,
    sha256: str,
    evaluation: Mapping[str, Any],
    manifest: Mapping[str, Any],
    force: bool,
) -> bool:
    """Move a verified file and its papers into place; the data come last.

    Parameters
    ----------
    partial : Path
        The verified file, in `out`.
    out : Path
        The release folder.
    sha256 : str
        The file's digest.
    evaluation, manifest : mapping
        What is written beside it.
    force : bool
        Whether other bytes in place are replaced.

    Returns
    -------
    bool
        False where the same release was in place already.
    """
    final = out / NAME
    papers = {EVALUATION: evaluation, MANIFEST: manifest}
    present = [path for path in (final, *(out / name for name in papers)) if path.exists()]
    for path in present:
        if path.is_dir():
            raise PlanError(f"{path} is a folder; choose another output folder")
    if present and final not in present and not force:
        raise PlanError(f"{present[0]} is already there; choose another folder or use --force")
    if final in present:
        if digest_of(final) == sha256 and all((out / name).exists() for name in papers):
            partial.unlink()
            return False
        if digest_of(final) != sha256 and not force:
            raise PlanError(
                f"{final} already holds another release; choose another folder or use --force"
            )
    for name, content in papers.items():
        with partial_beside(out) as paper:
            paper.path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            paper.path.replace(out / name)
            paper.hand_over()
    partial.replace(final)
    return True
