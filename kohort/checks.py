"""What a table must be before it can be protected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kohort.errors import WaveError
from kohort.methods import Floats

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 1e150  # a larger value cannot be squared


def as_table(x: npt.ArrayLike | pd.DataFrame) -> tuple[Floats, list[str]]:
    """Columns of `x` as Fortran-ordered floats, and their names; refuses what cannot be protected."""
    columns = getattr(x, "columns", None)
    try:
        table = np.asfortranarray(np.asarray(x), dtype=np.float64)
    except (TypeError, ValueError):
        raise WaveError("every attribute must be numeric; leave out the ones that are not") from None
    if table.ndim != 2 or table.shape[1] == 0:
        raise WaveError(
            f"x must have two dimensions, records and one attribute or more, got shape {table.shape}"
        )
    names = [str(j) for j in range(table.shape[1])] if columns is None else list(map(str, columns))
    check_cells(table, names)
    return table, names


def check_cells(table: Floats, names: Sequence[str]) -> None:
    """Refuse missing, infinite and over-large cells, with counts per column."""
    # The sum of a column is finite unless a cell is not: the usual case costs one pass.
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = [j for j in range(table.shape[1]) if not _is_calm(table[:, j])]
    for rule, broken in (
        ("missing cells", np.isnan),
        ("infinite cells", np.isinf),
        (f"cells beyond {LARGEST:.0e}", lambda column: np.abs(column) > LARGEST),
    ):
        counts = {names[j]: int(broken(table[:, j]).sum()) for j in doubtful}
        listed = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
        if listed:
            raise WaveError(
                f"{rule} in {listed}; remove those records, fill them in or leave the column out"
            )


def _is_calm(column: Floats) -> bool:
    return column.size == 0 or bool(max(column.max(), -column.min()) <= LARGEST)


def as_weights(weights: npt.ArrayLike, n: int) -> Floats:
    """Weights as floats (n,), all finite and above 0."""
    try:
        mass = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise WaveError("weights must be numbers") from None
    if mass.shape != (n,):
        raise WaveError(f"weights must be one a record, got shape {mass.shape} for {n} records")
    wrong = int(n - np.count_nonzero(np.isfinite(mass) & (mass > 0)))
    if wrong:
        raise WaveError(
            f"{wrong} of {n} weights are missing, infinite or not above 0; correct or remove them"
        )
    return mass
