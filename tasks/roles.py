"""What each column of a wave is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kohort.errors import PlanError


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Columns by role; every column of a wave has one, or `other` says what becomes of the rest."""

    key: str | None = None
    """Names a respondent across waves; never released."""
    identifiers: tuple[str, ...] = ()
    """Dropped."""
    quasi_identifiers: tuple[str, ...]
    """Protected."""
    confidential: tuple[str, ...] = ()
    """Released as they are."""
    weight: str | None = None
    """Survey weight, for weighted centroids."""
    release_weight: bool = False
    """Whether the weight is released, as it is."""
    unit: str | None = None
    """Household or enterprise: anonymity counts distinct units; never released."""
    other: Literal["drop", "keep"] | None = None
    """What becomes of columns without a role; without it they are an error."""

    def __post_init__(self) -> None:
        if not self.quasi_identifiers:
            raise PlanError("quasi_identifiers must name at least one column")
        roles: dict[str, str] = {}
        for role, name in self.named():
            if roles.get(name) == role:
                raise PlanError(f"column {name!r} is named twice in {role}; name it once")
            if name in roles:
                raise PlanError(f"column {name!r} has two roles, {roles[name]} and {role}; choose one")
            roles[name] = role
        if self.release_weight and self.weight is None:
            raise PlanError("release_weight = true but no weight is named; name it or leave this out")

    def named(self) -> Iterator[tuple[str, str]]:
        """(role, column) for every column that has a role."""
        for role in ("key", "weight", "unit"):
            if getattr(self, role) is not None:
                yield role, getattr(self, role)
        for role in ("identifiers", "quasi_identifiers", "confidential"):
            for name in getattr(self, role):
                yield role, name
