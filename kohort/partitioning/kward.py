"""Ward's merges, stopped where every group has k records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kohort.errors import PlanError
from kohort.methods import Floats, Labels, check_choice
from kohort.partitioning.base import check_size, refuse_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Kward:
    """k-Ward: groups of k to 2k-1 by Ward's merges (Domingo-Ferrer and Mateo-Sanz; CS, Algorithm 1).

    The first and the last k records start a group each; then the two groups merge whose squared error
    grows least, but never two that both have k, until all have. A group of 2k or more is divided anew.

    `cost="axis"` counts the squared error of the projected values, and only neighbours on the axis
    merge (CS "UDO"). `cost="block"` counts that of the normalised attributes, and any two groups may
    merge (CS "MDO"); then `start="axis"` lets the axis say which records are first and last, and
    `start="md"` starts from the most distant records, without an axis. In space the time grows with
    the square of the number of records, and memory is a few copies of the block: no distance matrix.
    """

    paper: ClassVar[str] = "CS"
    cost: Literal["axis", "block"] = "axis"
    start: Literal["axis", "md"] = "axis"
    method: Literal["kward"] = "kward"

    def __post_init__(self) -> None:
        check_choice("cost", self.cost, ("axis", "block"))
        check_choice("start", self.start, ("axis", "md"))
        if self.cost == "axis" and self.start == "md":
            raise PlanError(
                "start='md' has no effect with cost='axis', where the axis says which records are "
                "first and last; use cost='block' or leave start out"
            )

    @property
    def needs_axis(self) -> bool:
        """The axis decides unless groups start from the most distant records."""
        return self.start == "axis"

    @property
    def uses_normalized(self) -> bool:
        """The normalised attributes decide where `cost="block"`."""
        return self.cost == "block"

    def partition(
        self,
        x: Floats,
        *,
        k: int,
        axis: Floats | None = None,
        rng: np.random.Generator | None = None,
    ) -> Labels:
        """Labels along the axis, or in space by the groups' first records in the file.

        Of equal costs, the lowest position on the axis; in space, the two groups whose first records
        come first in the file (the earlier group decides, then the other).
        """
        from kohort.kernels.kward import neighbour_groups
        from kohort.kernels.kward_space import space_groups
        from kohort.kernels.sorting import stable_order

        check_size(len(x), k)
        if self.start == "md":
            refuse_axis(self.method, axis)
            return space_groups(np.asfortranarray(x), np.empty(0, np.uint32), k)
        if axis is None:
            raise PlanError("partition 'kward' needs an axis; choose a projection or start='md'")
        order, ordered = stable_order(axis)
        if self.cost == "axis":
            return neighbour_groups(ordered, order, k)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size, dtype=order.dtype)
        return space_groups(np.asfortranarray(x), rank, k)
