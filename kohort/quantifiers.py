"""Fuzzy quantifiers: how many of a record's attributes have to be large for the record to be large.

Each is a non-decreasing Q on [0, 1] with Q(0) = 0 and Q(1) = 1 (Nin and Torra, definition 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kohort.errors import PlanError
from kohort.methods import Floats, check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Q(x) = x: the more attributes, the larger (the one of the paper's experiments)."""

    method: Literal["identity"] = "identity"

    def quantify(self, share: Floats) -> Floats:
        """Q of a share of attributes."""
        return share


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Q(x) = x^alpha: below 1 a few large attributes are enough, above 1 most have to be large."""

    alpha: float
    method: Literal["power"] = "power"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, rule="a number above 0", holds=_above(self.alpha, 0))

    def quantify(self, share: Floats) -> Floats:
        """Q of a share of attributes."""
        return np.asarray(share**self.alpha, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """Q(x) = clip((x - a) / (b - a), 0, 1): (0, 0.5) is "at least half", (0.3, 0.8) is "most"."""

    a: float
    b: float
    method: Literal["at_least"] = "at_least"

    def __post_init__(self) -> None:
        check_number("a", self.a, rule="a number from 0 to below 1", holds=_within(self.a, 0, 1))
        check_number(
            "b",
            self.b,
            rule="a number above a and at most 1",
            holds=_above(self.b, self.a) and not _above(self.b, 1),
        )

    def quantify(self, share: Floats) -> Floats:
        """Q of a share of attributes."""
        return np.clip((share - self.a) / (self.b - self.a), 0.0, 1.0)


Quantifier = Identity | Power | AtLeast
QUANTIFIERS = (Identity, Power, AtLeast)


def check_quantifier(given: object) -> None:
    """Refuse what is no quantifier."""
    if not isinstance(given, QUANTIFIERS):
        raise PlanError(
            f"quantifier must be an Identity, a Power or an AtLeast, got {type(given).__name__}"
        )


def _above(value: object, bound: float) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(value > bound)


def _within(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(low <= value < high)
