"""Protect the file as a whole, where a method makes no groups of records."""

from __future__ import annotations

from pathlib import Path

from kohort.tasks.release import rounded
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.whole_file import WholeFile


@stage("whole_file")
def whole_file(
    store: Path, x: Artifact, *, names: list[str], method: WholeFile, k: int, integers: list[str]
) -> Artifact:
    """Protected values of all attributes, the columns of `integers` rounded to whole numbers."""
    files = Store(store)
    values = method.protect_values(files.read_floats(x, names), k=k)
    values = rounded(values, names, integers)
    return files.write({name: values[:, j] for j, name in enumerate(names)})
