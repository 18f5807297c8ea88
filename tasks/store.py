"""Content-addressed Parquet: what stages leave for each other.

::

    STORE/objects/ab/abcd….parquet   0600, named by the SHA-256 of its bytes
    STORE/records/…                  one small JSON file a finished stage: digest, rows, seconds
    STORE/partial/…                  files being written; renamed into objects/ when whole

A file appears under its name only when it is whole, is never changed, and is checked against its name
before it is used. The path follows from the digest, so that a store can be moved.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kohort.errors import StageFailed
from kohort.home import kohort_home, private_folder
from kohort.methods import Floats, Labels


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

    def prepare(self) -> Store:
        """Make the folders, for the owner alone."""
        try:
            for folder in ("objects", "records", "partial"):
                private_folder(self.root / folder)
        except OSError as error:
            raise StageFailed(
                f"the store {self.root} cannot be made ({error.strerror}); choose another with --store"
            ) from None
        return self

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
        handle, name = tempfile.mkstemp(dir=self.root / "partial")
        os.close(handle)
        partial = Path(name)
        try:
            write(partial)
            artifact = Artifact(file_digest(partial), rows)
            place = self.path(artifact)
            private_folder(place.parent)
            partial.replace(place)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return artifact

    def holds(self, artifact: Artifact) -> bool:
        """Whether the artifact's file is there and is what its name says."""
        path = self.path(artifact)
        try:
            if path.is_symlink():
                return False
            return file_digest(path) == artifact.sha256
        except OSError:
            return False

    def read(self, artifact: Artifact, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of the artifact, all of them by default.

        The digest was checked when the stage that made it was found cached, or has just been
        computed on writing.
        """
        path = self.path(artifact)
        try:
            with pq.ParquetFile(path) as file:
                return file.read(columns=None if columns is None else list(columns))
        except (OSError, pa.ArrowException):
            raise _lost(path) from None

    def read_labels(self, artifact: Artifact) -> Labels:
        """The group of every record."""
        labels: Labels = self.read(artifact, ["group"]).column(0).to_numpy().copy()
        return labels

    def read_floats(self, artifact: Artifact, columns: Sequence[str] | None = None) -> Floats:
        """Columns of the artifact as an array (n, p), Fortran-ordered."""
        path = self.path(artifact)
        try:
            with pq.ParquetFile(path) as file:
                return read_floats(file, file.schema_arrow.names if columns is None else columns)
        except (OSError, pa.ArrowException):
            raise _lost(path) from None


def _lost(path: Path) -> StageFailed:
    return StageFailed(f"{path.name} in the store was removed or damaged during the run; run it again")


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
