"""What a measure sees of a release: attributes before and after, and columns of the original file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kohort.evaluation.outcome import NotApplicable, Noted, Outcome
from kohort.tasks.roles import Roles
from kohort.tasks.wave import (
    Columns,
    is_number,
    open_wave,
    read_codes,
    read_units,
    read_values,
    read_weights,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Columns of the original file that measures take note of."""

    confidential: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    weight: str | None = None
    unit: str | None = None

    @property
    def given(self) -> set[str]:
        """Which inputs there are that some measures cannot do without."""
        return {"confidential"} if self.confidential else set()

    @property
    def of_original(self) -> list[str]:
        """Columns that are read from the original file even where the protected one has them."""
        return [*self.confidential, *(name for name in (self.weight, self.unit) if name is not None)]

    def used_by(self, names: Collection[str]) -> Inputs:
        """The inputs among those named, so that others do not change a cache key."""
        return Inputs(
            confidential=self.confidential if "confidential" in names else (),
            others=self.others if "others" in names else (),
            weight=self.weight if "weights" in names else None,
            unit=self.unit if "units" in names else None,
        )

    def read(self, wave: Path) -> dict[str, Any]:
        """The columns, under the names that a `Release` has for them."""
        return {
            "confidential": read_values(wave, self.confidential) if self.confidential else None,
            "others": tuple(codes.astype(np.int64) for codes in read_codes(wave, self.others)),
            "weights": None if self.weight is None else read_weights(wave, self.weight),
            "units": None if self.unit is None else read_units(wave, self.unit).astype(np.int64),
        }


def evaluation_inputs(wave: Path, roles: Roles, columns: Columns) -> Inputs:
    """The inputs that a wave offers: of the confidential attributes, the numeric ones."""
    with open_wave(wave) as file:
        types = {field.name: field.type for field in file.schema_arrow}
    return Inputs(
        confidential=tuple(name for name in roles.confidential if is_number(types[name])),
        others=columns.open_to_intruders,
        weight=roles.weight,
        unit=roles.unit,
    )


def as_row(outcome: Outcome) -> pa.Table:
    """An outcome as a table of one row."""
    value = None if isinstance(outcome, NotApplicable) else outcome
    return pa.table(
        {
            "value": pa.array([value.value if isinstance(value, Noted) else value], pa.float64()),
            "note": pa.array([outcome.note if isinstance(outcome, Noted) else ""]),
            "reason": pa.array([outcome.reason if isinstance(outcome, NotApplicable) else ""]),
        }
    )


def as_outcome(table: pa.Table) -> Outcome:
    """An outcome from a table of one row."""
    row = table.to_pylist()[0]
    if row["value"] is None:
        return NotApplicable(row["reason"])
    value: float = row["value"]
    return Noted(value, row["note"]) if row["note"] else value


def blocks_within(
    blocks: Sequence[Sequence[str]], columns: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """The blocks as indexes among some of the columns; blocks with none of them are left out."""
    index = {name: j for j, name in enumerate(columns)}
    inside = (tuple(index[name] for name in block if name in index) for block in blocks)
    return tuple(block for block in inside if block)
