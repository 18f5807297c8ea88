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

from kohort.errors import GuaranteeBroken, WaveError
from kohort.evaluation import classes
from kohort.methods import Floats
from kohort.tasks.ordering import sorted_order
from kohort.tasks.store import read_floats
from kohort.tasks.wave import Columns, open_wave

NAME = "protected.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """How the released file looks."""

    order: Literal["sorted", "input"] = "sorted"
    """Rows sorted by the released columns; the file's own order would link waves by position."""
    round_integers: bool = False
    """Whole-number columns stay whole numbers, centroids rounded (half to even)."""


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
        untouched = {name: file.read(columns=[name]).column(0) for name in columns.untouched}
    arrays: list[Any] = []
    for name in columns.released:
        column = untouched[name] if name in untouched else protected.pop(name)
        if not isinstance(column, pa.ChunkedArray):
            column = pa.chunked_array([column])
        if release.round_integers and name in columns.integers:
            column = _whole(name, column, types[name])
        arrays.append(column)
    return arrays


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


def count_identical(path: Path, blocks: Sequence[Sequence[str]], columns: Columns, k: int) -> list[int]:
    """Size of the smallest class of identical records of every block, in the file as written.

    Parameters
    ----------
    path : Path
        The written file.
    blocks : sequence of sequences of str
        The attributes of each block.
    columns : Columns
        What must be in the file and what must not.
    k : int
        The least size promised.
    """
    with pq.ParquetFile(path) as file:
        names, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
    if names != columns.released or rows != columns.rows:
        raise GuaranteeBroken("the written file has other columns or rows than the release must have")
    smallest = [_smallest_class(path, block) for block in blocks]
    for number, size in enumerate(smallest):
        if size < k:
            raise GuaranteeBroken(
                f"block {number} of the written file has a class of {size} identical records but "
                f"k = {k}; nothing was released, please report this"
            )
    return smallest


def _smallest_class(path: Path, block: Sequence[str]) -> int:
    """Size of the smallest class of records that are identical on these columns."""
    with pq.ParquetFile(path) as file:
        _, sizes = classes(read_floats(file, block))
    return int(sizes.min())
