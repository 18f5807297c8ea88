"""Groups of equal size along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kohort.errors import PlanError
from kohort.methods import Floats, Labels, check_choice
from kohort.partitioning.base import check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Successive groups of k along the axis, the remainder in the last (CS "UFS")."""

    paper: ClassVar[str] = "CS"
    needs_axis: ClassVar[bool] = True
    order: Literal["ascending", "descending"] = "ascending"
    method: Literal["fixed"] = "fixed"

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("ascending", "descending"))

    @property
    def uses_normalized(self) -> bool:
        """Only the axis counts."""
        return False

    def partition(
        self,
        x: Floats,
        *,
        k: int,
        axis: Floats | None = None,
        rng: np.random.Generator | None = None,
    ) -> Labels:
        """Labels along the axis; of equal values, the record that comes first in the file."""
        from kohort.kernels.sorting import stable_order

        check_size(len(x), k)
        if axis is None:
            raise PlanError("partition 'fixed' needs an axis; choose a projection")
        order, _ = stable_order(-axis if self.order == "descending" else axis)
        groups = np.empty(order.size, np.int32)
        last = order.size // k - 1
        groups[order] = np.minimum(np.arange(order.size) // k, last)
        return groups
