"""What a table must be before it can be protected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kohort.errors import WaveError
from kohort.methods import Floats

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 1e150  # a larger value cannot be squared
REAL = "biuf"  # numpy's kinds of booleans, integers and floats; text "1" and dates are no numbers


def as_table(x: npt.ArrayLike | pd.DataFrame) -> tuple[Floats, list[str]]:
    """Columns of `x` as Fortran-ordered floats, and their names; refuses what cannot be protected."""
    frame: Any = x if hasattr(x, "columns") else None
    if frame is not None:
        names = [str(name) for name in frame.columns]
        check_columns(names, [dtype.kind for dtype in frame.dtypes])
        # Floats come as they are; only nullable columns need a copy that marks missing cells.
        plain = all(dtype == np.float64 for dtype in frame.dtypes)
        cells = frame.to_numpy() if plain else frame.to_numpy(np.float64, na_value=np.nan)
    else:
        try:
            cells = np.asarray(x)
        except ValueError:
            raise WaveError("x must be a table: every record needs the same attributes") from None
        if cells.dtype.kind not in REAL:
            raise WaveError("every attribute must be numeric; leave out the ones that are not")
        names = [str(j) for j in range(cells.shape[-1])] if cells.ndim == 2 else []
    table = np.asfortranarray(cells, dtype=np.float64)
    if not names:
        raise WaveError(
            f"x must have two dimensions, records and one attribute or more, got shape {table.shape}"
        )
    check_cells(table.T, names)
    return table, names


def check_columns(names: Sequence[str], kinds: Sequence[str]) -> None:
    """Refuse columns that share a name, and columns whose kind (numpy's letter) is no number's."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise WaveError(f"more than one column is named {', '.join(twice)}; give each its own name")
    others = [name for name, kind in zip(names, kinds, strict=True) if kind not in REAL]
    if others:
        raise WaveError(f"not numeric: {', '.join(others)}; leave those attributes out")


def check_cells(columns: Sequence[Floats] | Floats, names: Sequence[str]) -> None:
    """Refuse missing, infinite and over-large cells of columns (p of n), with counts per column."""
    with np.errstate(invalid="ignore"):
        doubtful = [j for j, column in enumerate(columns) if not _is_calm(column)]
    for rule, broken in (
        ("missing cells", np.isnan),
        ("infinite cells", np.isinf),
        (f"cells beyond {LARGEST:.0e}", lambda column: np.abs(column) > LARGEST),
    ):
        counts = {names[j]: int(broken(columns[j]).sum()) for j in doubtful}
        listed = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
        if listed:
            raise WaveError(
                f"{rule} in {listed}; remove those records, fill them in or leave the column out"
            )


def _is_calm(column: Floats) -> bool:
    return column.size == 0 or bool(max(column.max(), -column.min()) <= LARGEST)


def as_weights(weights: npt.ArrayLike, n: int) -> Floats:
    """Weights as floats (n,), all above 0 and of a size whose products with cells stay finite."""
    try:
        mass = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise WaveError("weights must be numbers") from None
    if mass.shape != (n,):
        raise WaveError(f"weights must be one a record, got shape {mass.shape} for {n} records")
    wrong = int(n - np.count_nonzero((mass >= 1 / LARGEST) & (mass <= LARGEST)))
    if wrong:
        raise WaveError(
            f"{wrong} of {n} weights are missing, infinite, not above 0 or beyond {LARGEST:.0e}; "
            "correct or remove them"
        )
    return mass
