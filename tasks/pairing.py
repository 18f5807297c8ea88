"""Pairing: an original file and a protected one as tables of the same records in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from kohort.tasks.matching import Rows, match_keys, unchanged_file
from kohort.tasks.released import Inputs
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import read_codes, read_keys, read_values


@stage("read_key")
def read_key(store: Path, wave: Path, *, digest: str, key: str) -> Artifact:
    """The key of one file, in its order."""
    with unchanged_file(wave, digest):
        return Store(store).write(pa.table({"key": read_keys(wave, key)}))


@stage("match_rows")
def match_rows(store: Path, original: Artifact, protected: Artifact, *, key: str) -> Artifact:
    """The protected file's row of every original record, from the keys of both."""
    files = Store(store)
    keys = [files.read(each).column(0) for each in (original, protected)]
    return files.write({"row": match_keys(*keys, key=key)})


@stage("read_original")
def read_original(store: Path, wave: Path, *, digest: str, names: list[str]) -> Artifact:
    """Quasi-identifiers of the original file, as floats."""
    return _read_numbers(store, wave, digest, names, None)


@stage("read_protected")
def read_protected(
    store: Path, wave: Path, *, digest: str, names: list[str], rows: Artifact | None
) -> Artifact:
    """Quasi-identifiers of the protected file, as floats, in the order of the original's records."""
    return _read_numbers(store, wave, digest, names, rows)


def _read_numbers(
    store: Path, wave: Path, digest: str, names: Sequence[str], rows: Artifact | None
) -> Artifact:
    files = Store(store)
    with unchanged_file(wave, digest):
        x = read_values(wave, names)
    order = _order(files, rows)
    return files.write({name: x[order, j] for j, name in enumerate(names)})


@stage("read_open")
def read_open(
    store: Path, wave: Path, *, digest: str, names: list[str], rows: Artifact | None
) -> Artifact:
    """Other columns of the protected file that an intruder may know, as codes, in the same order."""
    files = Store(store)
    with unchanged_file(wave, digest):
        columns = read_codes(wave, names)
    order = _order(files, rows)
    return files.write({n: codes[order] for n, codes in zip(names, columns, strict=True)})


@stage("read_inputs")
def read_inputs(
    store: Path, wave: Path, *, digest: str, inputs: Inputs, opened: Artifact | None
) -> Artifact:
    """All columns that measures take note of: of the original file, and open ones of the protected."""
    files = Store(store)
    with unchanged_file(wave, digest):
        found = replace(inputs, others=()).read(wave)
    table = {name: found["confidential"][:, j] for j, name in enumerate(inputs.confidential)}
    if inputs.unit is not None:
        table[inputs.unit] = found["units"]
    if inputs.weight is not None:
        table[inputs.weight] = found["weights"]
    if opened is not None:
        codes = files.read(opened)
        # A weight may be both: what is weighted with, and a column that everybody sees.
        table.update({open_name(name): codes.column(name).to_numpy() for name in inputs.others})
    return files.write(table)


def open_name(name: str) -> str:
    """What an open column is called beside the original's columns."""
    return f"open: {name}"


def _order(files: Store, rows: Artifact | None) -> Rows | slice:
    return slice(None) if rows is None else np.asarray(files.read(rows).column(0).to_numpy())
