"""The file that goes out: built, ordered, written and counted in one place for both ways to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kohort.claims import Claim
from kohort.errors import GuaranteeBroken, WaveError
from kohort.evaluation import classes
from kohort.methods import Floats
from kohort.tasks.ordering import sorted_order
from kohort.tasks.store import read_floats
from kohort.tasks.wave import Columns, open_wave, read_codes

NAME = "protected.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """How the released file looks."""

    order: Literal["sorted", "input"] = "sorted"
    """Rows sorted by the released columns; the file's own order would link waves by position."""
    round_integers: bool = False
    """Whole-number columns stay whole numbers, centroids rounded (half to even)."""
    claim: Claim = "k-anonymous"
    """What the release claims of whole records; several blocks claim less, and have to say so."""


def rounded(values: Floats, names: Sequence[str], integers: Sequence[str]) -> Floats:
    """Protected values with the named columns rounded to whole numbers, half to even."""
    whole = [j for j, name in enumerate(names) if name in integers]
    if not whole:
        return values
    values = values.copy(order="F")
    values[:, whole] = np.rint(values[:, whole])
    return values


def release_table(wave: Path, columns: Columns, protected: dict[str, Any], release: Release) -> pa.Table:
    """The released table: protected columns, untouched ones from the original, nothing else.

    Parameters
    ----------
    wave : Path
        The original file, from which untouched columns come with their Arrow types.
    columns : Columns
        What the file holds under the plan's roles.
    protected : dict of name to array
        The protected columns, in the order of the original's rows. They are taken out of it, so that
        each can be freed when its place in the table is filled.
    release : Release
        Order and rounding.
    """
    arrays = _released_arrays(wave, columns, protected, release)
    if release.order == "sorted":
        order = sorted_order(columns.released, arrays)
        for position, column in enumerate(arrays):
            arrays[position] = _taken(column, order)
    # Fields are made anew: metadata of the input (an index, a pandas note) must not come along.
    schema = pa.schema([pa.field(n, a.type) for n, a in zip(columns.released, arrays, strict=True)])
    return _without_foreign_categories(pa.table(arrays, schema=schema))


def _taken(column: pa.ChunkedArray, order: pa.Array) -> pa.ChunkedArray:
    """The column's cells in another order.

    Floats are taken by numpy, from whose memory they come: what one column gives up serves the next.
    """
    if pa.types.is_float64(column.type) and not column.null_count and column.num_chunks == 1:
        return pa.chunked_array([np.take(column.chunk(0).to_numpy(), order.to_numpy())])
    return column.take(order)


def _released_arrays(
    wave: Path, columns: Columns, protected: dict[str, Any], release: Release
) -> list[Any]:
    """The released columns in the file's order, rows as in the original."""
    with open_wave(wave) as file:
        types = {field.name: field.type for field in file.schema_arrow}
        untouched = {name: _plain(file.read(columns=[name]).column(0)) for name in columns.untouched}
    arrays: list[Any] = []
    for name in columns.released:
        column = untouched[name] if name in untouched else protected.pop(name)
        if not isinstance(column, pa.ChunkedArray):
            column = pa.chunked_array([column])
        if release.round_integers and name in columns.integers:
            column = _whole(name, column, types[name])
        arrays.append(column)
    return arrays


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without the notes that fields within a nested type may carry."""
    return column.cast(_without_notes(column.type)) if pa.types.is_nested(column.type) else column


def _without_notes(kind: pa.DataType) -> pa.DataType:
    """A type whose fields, however deep, have a name, a type and nothing else."""
    if not pa.types.is_nested(kind) or pa.types.is_union(kind):  # Parquet has no unions
        return kind
    fields = [
        pa.field(field.name, _without_notes(field.type), field.nullable)
        for field in (kind.field(j) for j in range(kind.num_fields))
    ]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        key, item = (fields[0].type.field(j) for j in range(2))
        return pa.map_(key, item, keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    return pa.large_list(fields[0]) if pa.types.is_large_list(kind) else pa.list_(fields[0])


def _whole(name: str, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Rounded centroids in the whole-number type of their original column."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise WaveError(
            f"rounded centroids of {name!r} do not fit {kind}, whose largest numbers a float cannot "
            "hold exactly; set round_integers = false"
        ) from None


def _without_foreign_categories(table: pa.Table) -> pa.Table:
    """Categorical columns list only the categories that the released rows have."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = table.column(position).cast(field.type.value_type).combine_chunks()
            categories = pc.unique(values).drop_null()
            if field.type.ordered:  # their order has a meaning
                known = table.column(position).unify_dictionaries().chunk(0).dictionary
                categories = known.filter(pc.is_in(known, categories))
            fresh = pa.DictionaryArray.from_arrays(
                pc.index_in(values, categories).cast(field.type.index_type),
                categories,
                ordered=field.type.ordered,
            )
            table = table.set_column(position, field, fresh)
    return table


def write_release(table: pa.Table, path: Path) -> None:
    """Write the released table: the only function that writes protected.parquet, whoever runs it."""
    dictionaries = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    pq.write_table(table, path, compression="snappy", use_dictionary=dictionaries or False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a written file must hold."""

    columns: tuple[str, ...]
    rows: int
    blocks: tuple[tuple[str, ...], ...]
    """Blocks within which records are identical; none where records are not grouped."""
    whole: tuple[str, ...]
    """The columns on which whole records must be identical; none where that is not claimed."""
    k: int


def count_identical(path: Path, promise: Promise) -> int | None:
    """Size of the smallest class of identical records, in the file as written.

    Classes within a block that are smaller than k are a bug of ours. Whole records can differ in columns
    that are released as they are: whether that is enough is for the gate to say.

    Parameters
    ----------
    path : Path
        The written file.
    promise : Promise
        What must be in it.
    """
    with pq.ParquetFile(path) as file:
        names, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
    if names != promise.columns or rows != promise.rows:
        raise GuaranteeBroken("the written file has other columns or rows than the release must have")
    smallest = {block: _smallest_class(path, block) for block in promise.blocks}
    for number, size in enumerate(smallest.values()):
        if size < promise.k:
            raise GuaranteeBroken(
                f"block {number} of the written file has a class of {size} identical records but "
                f"k = {promise.k}; nothing was released, please report this"
            )
    if not promise.whole:
        return None
    same = next((size for block, size in smallest.items() if set(block) == set(promise.whole)), None)
    return _smallest_class(path, promise.whole) if same is None else same


def _smallest_class(path: Path, names: Sequence[str]) -> int:
    """Size of the smallest class of records that are identical on these columns."""
    with pq.ParquetFile(path) as file:
        types = [file.schema_arrow.field(name).type for name in names]
        if all(pa.types.is_float64(kind) for kind in types):
            _, sizes = classes(read_floats(file, names))
        else:
            _, sizes = classes([codes.astype(np.int64) for codes in read_codes(path, names)])
    return int(sizes.min())
