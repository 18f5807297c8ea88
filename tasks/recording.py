"""Where Prefect keeps the records of a store: whole files, for the owner alone."""

from __future__ import annotations

from pathlib import Path

from prefect import Task
from prefect.filesystems import LocalFileSystem

from kohort.tasks.locking import held_file
from kohort.tasks.records import KEY
from kohort.tasks.store import Store


class RecordFolder(LocalFileSystem):
    """Prefect's local files, but a record appears only when it is whole, and only under a key.

    Prefect itself opens the final name and writes: a full disk or a killed process would leave half a
    record, and a run beside this one could see it. It would also keep what failed stages said.
    """

    _block_type_name = "kohort records"
    _block_type_slug = "kohort-records"

    def write_path(self, path: str, content: bytes, _sync: bool | None = None) -> str:
        """Write a record beside its place and move it there; Prefect says that it does not await."""
        place = self._resolve_path(path)
        if KEY.fullmatch(place.name):
            with held_file(place.parent.parent / "partial") as partial:
                try:
                    partial.write_bytes(content)
                    partial.replace(place)
                except BaseException:
                    partial.unlink(missing_ok=True)
                    raise
        return str(place)

    async def awrite_path(self, path: str, content: bytes) -> str:
        """The same, for Prefect's asynchronous side."""
        return self.write_path(path, content)


def recorded(task: Task[..., dict[str, object]], store: Store) -> Task[..., dict[str, object]]:
    """The stage with its records in this store."""
    stored = task.with_options(result_storage=Path(store.records))
    # A block that Prefect's server does not know is refused as an option, and needs no server.
    stored.result_storage = RecordFolder(basepath=str(store.records))
    return stored
