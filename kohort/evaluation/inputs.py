"""What a caller passes to `evaluate`, checked and turned into a `Release`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kohort.checks import as_table, as_weights
from kohort.errors import PlanError, WaveError
from kohort.evaluation.measures import Release
from kohort.evaluation.risk import Direction, Ties
from kohort.methods import Blocks, Labels


def as_release(
    x: Any,
    protected: Any,
    *,
    confidential: Any,
    blocks: Sequence[Sequence[int]] | None,
    groups: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    units: npt.ArrayLike | None,
    others: Any,
    ties: Ties,
    direction: Direction,
    tau: float,
    percent: float,
) -> Release:
    """The release; refuses tables that do not belong together."""
    table, names = as_table(x)
    released, released_names = as_table(protected)
    n, p = table.shape
    if n == 0:
        raise WaveError("the original table has no records; there is nothing to measure")
    if released.shape != table.shape:
        raise WaveError(
            f"the protected table has shape {released.shape} but the original one {table.shape}; "
            "pass the same records and attributes in the same order"
        )
    if hasattr(x, "columns") and hasattr(protected, "columns") and names != released_names:
        raise WaveError(
            f"the protected attributes {', '.join(released_names)} are not the original ones "
            f"{', '.join(names)}; pass the same in the same order"
        )
    columns = as_blocks(blocks, p)
    return Release(
        x=table,
        protected=released,
        names=tuple(names),
        blocks=columns,
        groups=None if groups is None else as_groups(groups, n, len(columns)),
        confidential=None if confidential is None else _confidential(confidential, n),
        others=() if others is None else _coded_columns(others, n),
        weights=None if weights is None else as_weights(weights, n),
        units=None if units is None else _codes("units", np.asarray(units), n),
        ties=ties,
        direction=direction,
        tau=tau,
        percent=percent,
    )


def as_blocks(blocks: Sequence[Sequence[int]] | None, p: int) -> Blocks:
    """Blocks of column indexes; together they must be all columns, each once."""
    if blocks is None:
        return (tuple(range(p)),)
    listed = tuple(tuple(int(j) for j in block) for block in blocks)
    if sorted(j for block in listed for j in block) != list(range(p)) or not all(listed):
        raise PlanError(f"blocks must name each of the columns 0 to {p - 1} once; correct them")
    return listed


def as_groups(groups: npt.ArrayLike, n: int, number: int) -> tuple[Labels, ...]:
    """Labels of every block, each 0..g-1 without gaps."""
    labels = np.asarray(groups)
    if labels.ndim == 1:
        labels = labels[:, None]
    if labels.shape != (n, number):
        raise WaveError(
            f"groups must be one label a record and block, got shape {np.shape(groups)} for {n} records "
            f"and {number} blocks; pass groups and blocks of the same protection"
        )
    if labels.dtype.kind not in "iu":
        raise WaveError(f"groups must be whole numbers, got {labels.dtype}; pass labels 0, 1, 2, ...")
    for b in range(number):
        if labels[:, b].min() < 0 or np.bincount(labels[:, b]).min() == 0:
            raise WaveError(
                f"groups of block {b} must be labels 0, 1, 2, ... without gaps; renumber them"
            )
    return tuple(np.ascontiguousarray(labels[:, b], dtype=np.int32) for b in range(number))


def _confidential(confidential: Any, n: int) -> npt.NDArray[np.float64]:
    table, _ = as_table(confidential)
    if len(table) != n:
        raise WaveError(f"confidential has {len(table)} records but x has {n}; pass the same records")
    return table


def _coded_columns(others: Any, n: int) -> tuple[npt.NDArray[np.int64], ...]:
    if hasattr(others, "columns"):
        columns = [np.asarray(others[name]) for name in others.columns]
    else:
        table = np.asarray(others)
        columns = list(table.T) if table.ndim == 2 else [table]
    return tuple(_codes("others", column, n) for column in columns)


def _codes(argument: str, values: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    """Whole numbers that are equal where the values are."""
    if values.shape != (n,):
        raise WaveError(f"{argument} must be one a record, got shape {values.shape} for {n} records")
    try:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise WaveError(f"{argument} mixes kinds of values; write missing ones as text") from None
