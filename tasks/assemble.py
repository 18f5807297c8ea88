"""Assemble: the protected blocks and the untouched columns as the file to be released."""

from __future__ import annotations

from pathlib import Path

from kohort.errors import WaveError
from kohort.tasks.centroids import Protected
from kohort.tasks.release import Release, release_table, write_release
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import Columns, digest_of


@stage("assemble")
def assemble(
    store: Path,
    wave: Path,
    protected: list[Protected],
    *,
    digest: str,
    columns: Columns,
    release: Release,
) -> Artifact:
    """The bytes of protected.parquet."""
    if digest_of(wave) != digest:
        raise WaveError(f"{wave} changed during the run; run it again")
    files = Store(store)
    arrays = {}
    for part in protected:
        arrays.update(part.columns(files))
    table = release_table(wave, columns, arrays, release)
    return files.keep(lambda path: write_release(table, path), table.num_rows)
