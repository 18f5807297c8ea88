"""How a release gets into its folder: as a whole and verified, or not at all.

::

    OUT/v1/public/      protected.parquet, manifest.json               for whoever gets the release
    OUT/v1/internal/    manifest.json, evaluation.json, log.jsonl      0600 in a folder of 0700
    OUT/v2/             a second release of the same wave; v1 stays as it is
    OUT/refused/        evaluation.json, manifest.json of the last attempt that the gate refused, 0600

A release is made in a hidden folder beside its place, on the same file system, and appears by one
rename. What a killed process left there is removed by the next.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.errors import GuaranteeBroken, PlanError
from kohort.home import private_folder
from kohort.tasks.release import NAME
from kohort.tasks.store import file_digest

PUBLIC, INTERNAL, REFUSED = "public", "internal", "refused"
EVALUATION, MANIFEST, LOG = "evaluation.json", "manifest.json", "log.jsonl"
VERSION = re.compile(r"v([1-9][0-9]*)")
STAGING = re.compile(r"\.kohort-([0-9a-z]*)-(\d+)-[0-9a-f]{32}")
FORGOTTEN = 7 * 86400.0  # seconds after which another machine's unfinished release is left over


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a release is."""

    folder: Path
    version: int
    written: bool
    """False where the same release was in place already."""


@contextmanager
def release_folder(out: Path) -> Iterator[Path]:
    """A hidden folder in `out` to make a release in; if none gets placed, `out` is as it was before.

    Parameters
    ----------
    out : Path
        The folder of the wave's releases, made where need be.
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
    _remove_left_over(out)
    staging = out / f".kohort-{_machine()}-{os.getpid()}-{uuid.uuid4().hex}"
    try:
        private_folder(staging / PUBLIC)
        private_folder(staging / INTERNAL)
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for folder in made:
            if not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()


def _remove_left_over(out: Path) -> None:
    """Remove what processes that are gone have left."""
    for path in out.iterdir():
        match = STAGING.fullmatch(path.name)
        if match is None or path.is_symlink():
            continue
        if match[1] == _machine():
            gone = int(match[2]) != os.getpid() and not _is_alive(int(match[2]))
        else:
            gone = time.time() - path.stat().st_mtime > FORGOTTEN
        if gone:
            shutil.rmtree(path, ignore_errors=True)


def _machine() -> str:
    return re.sub("[^0-9a-z]", "", platform.node().lower())


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def copy_candidate(source: Path, staging: Path, *, expected: str) -> Path:
    """Copy the file to be released beside its place, and check that its bytes arrived."""
    path = staging / PUBLIC / NAME
    shutil.copyfile(source, path)
    _to_disk(path)
    if file_digest(path) != expected:
        raise GuaranteeBroken("the copy beside the destination has other bytes than were assembled")
    return path


def place(
    staging: Path,
    out: Path,
    *,
    public_manifest: Mapping[str, Any],
    manifest: Mapping[str, Any],
    evaluation: Mapping[str, Any],
    log: Sequence[str],
) -> Placed:
    """Add the papers to a verified file and move the release into place, in one step.

    Parameters
    ----------
    staging : Path
        The folder that `release_folder` gave, with the verified file in its public part.
    out : Path
        The folder of the wave's releases.
    public_manifest : mapping
        What goes out with the file.
    manifest, evaluation, log
        What stays inside.
    """
    _write_json(staging / PUBLIC / MANIFEST, public_manifest)
    last = last_version(out)
    if last is not None:
        _check_wave(out, last, manifest)
        if _same_files(staging / PUBLIC, version_folder(out, last) / PUBLIC):
            return Placed(version_folder(out, last), last, written=False)
    _write_json(staging / INTERNAL / MANIFEST, manifest)
    _write_json(staging / INTERNAL / EVALUATION, evaluation)
    (staging / INTERNAL / LOG).write_text("".join(f"{line}\n" for line in log), encoding="utf-8")
    _open_to_readers(staging)
    for path in (*staging.rglob("*"), staging):
        _to_disk(path)
    version = (last or 0) + 1
    while True:
        try:
            staging.rename(version_folder(out, version))
            break
        except OSError:
            if not os.path.lexists(version_folder(out, version)):
                raise
            if _same_files(staging / PUBLIC, version_folder(out, version) / PUBLIC):
                return Placed(version_folder(out, version), version, written=False)
            version += 1  # another run was faster, with another release
    with suppress(OSError):  # it is in place; trying again would find nothing to place
        _to_disk(out)
    return Placed(version_folder(out, version), version, written=True)


def keep_refused(out: Path, *, manifest: Mapping[str, Any], evaluation: Mapping[str, Any]) -> Path:
    """Keep the papers of a release that the gate refused; its data are not among them."""
    folder = out / REFUSED
    if folder.is_symlink():  # nothing is written through a link that somebody put there
        folder.unlink()
    private_folder(folder)
    for name, content in ((MANIFEST, manifest), (EVALUATION, evaluation)):
        partial = folder / f".{uuid.uuid4().hex}"
        partial.touch(0o600, exist_ok=False)  # before there is anything to read
        _write_json(partial, content)
        partial.replace(folder / name)
    return folder


def last_version(out: Path) -> int | None:
    """The number of the newest release in a folder, if there is one."""
    names = (VERSION.fullmatch(path.name) for path in out.iterdir())
    return max((int(match[1]) for match in names if match), default=None)


def version_folder(out: Path, version: int) -> Path:
    """Where a version is."""
    return out / f"v{version}"


def _check_wave(out: Path, version: int, manifest: Mapping[str, Any]) -> None:
    """Refuse to put a release beside those of another wave."""
    try:
        before = json.loads((version_folder(out, version) / INTERNAL / MANIFEST).read_bytes())
        wave = before["input"]["wave"]
    except (OSError, ValueError, KeyError, TypeError):  # taken away, or not ours: nothing to compare
        return
    if wave != manifest["input"]["wave"]:
        raise PlanError(f"{out} holds releases of {wave}; choose another folder for this wave")


def _same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes; a link is no release of ours."""
    try:
        if any(path.is_symlink() for path in (other.parent, other, *other.iterdir())):
            return False
        names = sorted(path.name for path in one.iterdir())
        if names != sorted(path.name for path in other.iterdir()):
            return False
        return all(file_digest(one / name) == file_digest(other / name) for name in names)
    except OSError:
        return False


def _open_to_readers(staging: Path) -> None:
    """The public part may be read by all who can reach the folder, the internal part by its owner."""
    for path in (staging / INTERNAL).iterdir():
        path.chmod(0o600)
    for path in (staging / PUBLIC).iterdir():
        path.chmod(0o644)
    (staging / PUBLIC).chmod(0o755)
    staging.chmod(0o755)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _to_disk(path: Path) -> None:
    """Wait until a file, or a folder's list of files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
