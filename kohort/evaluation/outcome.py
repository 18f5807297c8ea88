"""What a measure gives: a number, a number with a note, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A measure that cannot be computed on this table.

    Attributes
    ----------
    reason : str
        Why, in names and counts, never a cell's value.
    columns : tuple of int
        The columns that are the reason, where it is not the whole table.
    """

    reason: str
    columns: tuple[int, ...] = ()

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.columns))
        return f"not applicable: {self.reason}" + (f" (column {listed})" if listed else "")

    def naming(self, names: Sequence[str]) -> NotApplicable:
        """The same with the columns' names in the reason."""
        if not self.columns:
            return self
        return NotApplicable(f"{self.reason} ({', '.join(names[j] for j in self.columns)})")


@dataclass(frozen=True, slots=True)
class Noted:
    """A measure with something to say about itself."""

    value: float
    note: str


Outcome = float | Noted | NotApplicable
