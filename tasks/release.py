"""The file that goes out: built, ordered, written and counted in one place for both ways to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def release_table(
    wave: Path, columns: Columns, protected: Mapping[str, Any], release: Release
) -> pa.Table:
    """The released table: protected columns, untouched ones from the original, nothing else.

    Parameters
    ----------
    wave : Path
        The original file, from which untouched columns come with their Arrow types.
    columns : Columns
        What the file holds under the plan's roles.
    protected : mapping of name to array
        The protected columns, in the order of the original's rows.
    release : Release
        Order and rounding.
    """
    with open_wave(wave) as file:
        untouched = file.read(columns=list(columns.untouched)) if columns.untouched else None
        types = {field.name: field.type for field in file.schema_arrow}
    arrays: list[Any] = []
    for name in columns.released:
        if name in columns.quasi_identifiers:
            column = (
                pa.chunked_array([protected[name]])
                if not _is_arrow(protected[name])
                else protected[name]
            )
            if release.round_integers and name in columns.integers:
                column = column.cast(types[name])
            arrays.append(column)
        elif untouched is not None:
            arrays.append(untouched.column(name))
    # Fields are made anew: metadata of the input (an index, a pandas note) must not come along.
    schema = pa.schema([pa.field(n, a.type) for n, a in zip(columns.released, arrays, strict=True)])
    table = pa.table(arrays, schema=schema)
    if release.order == "sorted":
        table = table.take(_sorted_order(table))
    return _without_foreign_categories(table)


def _is_arrow(column: object) -> bool:
    return isinstance(column, (pa.Array, pa.ChunkedArray))


def _sorted_order(table: pa.Table) -> pa.Array:
    """Positions that sort the rows by all columns in turn."""
    keys = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            raise WaveError(
                f"column {name!r} is a {column.type}, by which rows cannot be sorted; drop it"
            )
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_float16(column.type):  # the one number that Arrow does not sort
            column = column.cast(pa.float32())
        keys[name] = column
    return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


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


def write_release(table: pa.Table, sink: Any) -> None:
    """Write the released table: the only function that writes protected.parquet, whoever runs it."""
    dictionaries = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    pq.write_table(table, sink, compression="snappy", use_dictionary=dictionaries or False)


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
    with pq.ParquetFile(path, memory_map=True) as file:
        if tuple(file.schema_arrow.names) != columns.released or file.metadata.num_rows != columns.rows:
            raise GuaranteeBroken(
                "the written file has other columns or rows than the release must have"
            )
        smallest = []
        for number, block in enumerate(blocks):
            table = file.read(columns=list(block))
            _, sizes = classes([column.to_numpy() for column in table.columns])
            smallest.append(int(sizes.min()))
            if smallest[-1] < k:
                raise GuaranteeBroken(
                    f"block {number} of the written file has a class of {smallest[-1]} identical "
                    f"records but k = {k}; nothing was released, please report this"
                )
    return smallest
