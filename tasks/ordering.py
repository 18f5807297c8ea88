"""The order of released rows: by all their columns in turn, whatever order they came in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.errors import WaveError
from kohort.methods import Floats


def sorted_order(names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Positions that sort the rows by the first column, equal ones by the second, and so on.

    Parameters
    ----------
    names : sequence of str
        The columns' names, for the message.
    columns : sequence of Arrow columns
        The released columns.
    """
    from kohort.kernels.sorting import equal_runs, sort_runs, stable_order

    for name, column in zip(names, columns, strict=True):
        if pa.types.is_nested(column.type):
            raise WaveError(
                f"column {name!r} is a {column.type}, by which rows cannot be sorted; drop it"
            )
    order, values = stable_order(_as_numbers(columns[0]))
    runs = equal_runs(values)
    del values
    for column in columns[1:]:
        if len(runs) == 0:
            break
        runs = sort_runs(order, runs, _as_numbers(column))
    return pa.array(order)


def _as_numbers(column: pa.ChunkedArray) -> Floats:
    """Floats that order as the cells do; missing cells come last and are equal."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_float16(column.type):  # the one number that Arrow does not rank
        column = column.cast(pa.float32())
    if pa.types.is_float64(column.type) and not column.null_count:
        values: Floats = column.to_numpy()
        if not np.isnan(np.min(values, initial=0.0)):
            return np.array(values) if not values.flags.writeable else values
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy(), dtype=np.float64)
