"""Content-addressed Parquet: what stages leave for each other.

::

    STORE/objects/ab/abcd….parquet   0600, named by the SHA-256 of its bytes
    STORE/records/…                  one small JSON file a finished stage: digest, rows, seconds
    STORE/partial/…                  files being written, locked; renamed when they are whole
    STORE/discarded/…                stores of runs that leave nothing behind, each with its lock
    STORE/lock                       shared by living runs, taken by who removes finished files

A file appears under its name only when it is whole, is never changed, and is checked against its name
before it is used. The path follows from the digest, so that a store can be moved. A store belongs to
one user and is closed to all others; links in it are not followed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kohort.errors import StageFailed
from kohort.home import kohort_home, private_folder
from kohort.methods import Floats, Labels
from kohort.tasks.disk import can_pass, one_sentence_for, trouble
from kohort.tasks.locking import held_file

FOLDERS = ("objects", "records", "partial")
_CHECKED: dict[Path, tuple[int, ...]] = {}
"""Files whose digest this process knows to be right, as the system described them then."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What one stage hands to the next: never a frame, never a path."""

    sha256: str
    rows: int


class Store:
    """A folder of Parquet files, each named by its content."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or kohort_home() / "store").absolute()

    @property
    def records(self) -> Path:
        """Where Prefect keeps which stage gave which artifact."""
        return self.root / "records"

    @property
    def partial(self) -> Path:
        """Where files are while they are written."""
        return self.root / "partial"

    def prepare(self) -> Store:
        """Make the folders, for the owner alone; refuse a store that is open to others."""
        try:
            for folder in FOLDERS:
                private_folder(self.root / folder)
            self.check()
        except OSError as error:
            said = trouble(error, {"store": self.root}) if error.errno == errno.ENOSPC else None
            reason = f"the store {self.root} cannot be made ({error.strerror})"
            raise StageFailed(said or f"{reason}; choose another with --store") from None
        return self

    def check(self) -> None:
        """Refuse a store that is not ours, open to others, or leads elsewhere."""
        for folder in (self.root, *(self.root / name for name in (*FOLDERS, "discarded"))):
            try:
                status = folder.stat() if folder == self.root else folder.lstat()
            except FileNotFoundError:
                continue
            where = f"{folder} of the store" if folder != self.root else f"the store {self.root}"
            if not stat.S_ISDIR(status.st_mode):
                raise StageFailed(f"{where} is not a folder; remove it or choose another with --store")
            if status.st_uid != os.geteuid():
                raise StageFailed(f"{where} belongs to another user; choose another with --store")
            if status.st_mode & 0o077:
                mode = stat.S_IMODE(status.st_mode)
                raise StageFailed(
                    f"{where} is open to others (mode {mode:04o}); close it with chmod 700 or choose "
                    "another with --store"
                )

    def path(self, artifact: Artifact) -> Path:
        """Where the artifact's file is, if it is there."""
        return self.root / "objects" / artifact.sha256[:2] / f"{artifact.sha256}.parquet"

    def write(self, columns: Mapping[str, Any] | pa.Table) -> Artifact:
        """Write columns (arrays) or a table of a stage, and return what names it."""
        table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
        return self.keep(lambda path: write_plain(table, path), table.num_rows)

    def keep(self, write: Callable[[Path], None], rows: int) -> Artifact:
        """Let `write(path)` write a file, and keep it under the digest of its bytes.

        Nothing is forced to the disk: what a power failure truncates is noticed by its digest and
        made again, while waiting for the disk would cost every run.
        """
        with one_sentence_for({"store": self.root}), held_file(self.partial) as partial:
            try:
                write(partial)
                artifact = Artifact(file_digest(partial), rows)
                place = self.path(artifact)
                _make_folder(place.parent)
                partial.replace(place)
                _CHECKED[place] = _description(place)
            except BaseException:
                with suppress(OSError):  # the disk may be gone
                    partial.unlink(missing_ok=True)
                raise
        return artifact

    def lacks(self, artifact: Artifact) -> str | None:
        """What is wrong with the artifact's file: "deleted", "linked", "damaged", or nothing.

        A file that is what its name says counts as used now: lifetimes begin anew.
        """
        path = self.path(artifact)
        try:
            if path.parent.is_symlink() or path.is_symlink():
                return "linked"
            if file_digest(path) != artifact.sha256:
                return "damaged"
            os.utime(path)
            _CHECKED[path] = _description(path)
        except FileNotFoundError:
            return "deleted"
        except OSError:
            return "damaged"
        return None

    def holds(self, artifact: Artifact) -> bool:
        """Whether the artifact's file is there and is what its name says."""
        return self.lacks(artifact) is None

    def read(self, artifact: Artifact, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of the artifact, all of them by default."""
        with self._opened(artifact) as file:
            return file.read(columns=None if columns is None else list(columns))

    def read_labels(self, artifact: Artifact) -> Labels:
        """The group of every record."""
        labels: Labels = self.read(artifact, ["group"]).column(0).to_numpy().copy()
        return labels

    def read_floats(self, artifact: Artifact, columns: Sequence[str] | None = None) -> Floats:
        """Columns of the artifact as an array (n, p), Fortran-ordered."""
        with self._opened(artifact) as file:
            return read_floats(file, file.schema_arrow.names if columns is None else columns)

    @contextmanager
    def _opened(self, artifact: Artifact) -> Iterator[pq.ParquetFile]:
        """The artifact's file, which is what its name says before it is read and afterwards.

        A stage that read something else would put a wrong result under a right key, for all runs to
        come. The digest was computed on writing, or when the stage was found cached; it is computed
        again only where the file has been touched since.
        """
        path = self.path(artifact)
        try:
            self._check_content(path, artifact)
            with pq.ParquetFile(path) as file:
                yield file
            self._check_content(path, artifact)
        except (OSError, pa.ArrowException) as error:
            raise self._lost(path, error) from None

    def _check_content(self, path: Path, artifact: Artifact) -> None:
        found = _description(path)
        if _CHECKED.get(path) == found:
            return
        if path.is_symlink() or file_digest(path) != artifact.sha256:
            raise self._lost(path)
        _CHECKED[path] = found

    def _lost(self, path: Path, error: Exception | None = None) -> StageFailed:
        """A file that was there a moment ago, or whole; a mount may come back."""
        said = None if error is None else trouble(error, {"store": self.root})
        lost = f"{path.name} in the store was removed or damaged during the run; run it again"
        return StageFailed(said or lost, can_pass=error is not None and can_pass(error))


def _description(path: Path) -> tuple[int, ...]:
    """What changes when a file is replaced or written to; nobody can set the last of it back."""
    status = path.lstat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _make_folder(folder: Path) -> None:
    """One folder, not those above it: where a mount went away they are another disk's."""
    if folder.is_symlink():
        folder.unlink()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)  # whatever the umask takes away


def read_floats(file: pq.ParquetFile, names: Sequence[str]) -> Floats:
    """Numeric columns (n, p) as floats, Fortran-ordered, a missing cell as NaN.

    Columns are read one at a time, so that the table is never in memory twice.
    """
    x = np.empty((file.metadata.num_rows, len(names)), order="F")
    for j, name in enumerate(names):
        x[:, j] = as_floats(file.read(columns=[name]).column(0))
    return x


def as_floats(column: pa.ChunkedArray) -> Floats:
    """A numeric column (n,) as floats, a missing cell as NaN."""
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy()
    return values


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_plain(table: pa.Table, path: Path) -> None:
    """Write an intermediate table: continuous numbers gain nothing from encoding."""
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
