"""What every partitioner is."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from kohort.errors import PlanError, WaveError
from kohort.methods import Floats, Labels, check_whole


class Partitioner(Protocol):
    """Divides records into groups of at least k."""

    paper: ClassVar[str]
    """Where it is from."""

    @property
    def needs_axis(self) -> bool:
        """Whether records are ordered on an axis first, by a projection."""
        ...

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    @property
    def uses_normalized(self) -> bool:
        """Whether the normalised values `x` decide anything."""
        ...

    def partition(
        self,
        x: Floats,
        *,
        k: int,
        axis: Floats | None = None,
        rng: np.random.Generator | None = None,
    ) -> Labels:
        """Labels 0..g-1 (n,) of the records of the normalised block `x` (n, v)."""
        ...


def check_size(n: int, k: int) -> None:
    """Refuse a k that is no group size, and a table with fewer than k records."""
    check_whole("k", k, minimum=2)
    if n < k:
        raise WaveError(f"the wave has {n} records but k = {k}; lower k or add records")


def refuse_axis(method: str, axis: Floats | None) -> None:
    """Refuse an axis that a method in space would ignore."""
    if axis is not None:
        raise PlanError(f"axis has no effect: partition {method!r} works in space; leave it out")
