"""What a measure gives: a number, a number with a note, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A measure that cannot be computed on this table.

    Attributes
    ----------
    reason : str
        Why, in names and counts, never a cell's value.
    """

    reason: str

    def __str__(self) -> str:
        return f"not applicable: {self.reason}"


@dataclass(frozen=True, slots=True)
class Noted:
    """A measure with something to say about itself."""

    value: float
    note: str


Outcome = float | Noted | NotApplicable
