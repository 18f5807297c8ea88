"""The least squared error that contiguous groups on an axis can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kohort.errors import PlanError
from kohort.methods import Floats, Labels, check_choice
from kohort.partitioning.base import check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal:
    """Contiguous groups of k to 2k-1 with the least cost (Hansen and Mukherjee 2003).

    `cost="axis"` counts the squared error of the projected values (Nin and Torra); `cost="block"`
    that of the normalised attributes themselves, still in the order of the axis (Mic1D, Algorithm 1).
    """

    paper: ClassVar[str] = "MP, M1D"
    needs_axis: ClassVar[bool] = True
    cost: Literal["axis", "block"] = "axis"
    method: Literal["optimal"] = "optimal"

    def __post_init__(self) -> None:
        check_choice("cost", self.cost, ("axis", "block"))

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
        """Labels along the axis; of equal costs, the earliest start of the last group."""
        from kohort.kernels.optimal import (
            axis_starts,
            block_starts,
            label_contiguous,
            ordered_columns,
        )
        from kohort.kernels.sorting import stable_order

        check_size(len(x), k)
        if axis is None:
            raise PlanError("partition 'optimal' needs an axis; choose a projection")
        order, ordered = stable_order(axis)
        if self.cost == "axis":
            starts = axis_starts(ordered, k)
        else:
            starts = block_starts(ordered_columns(np.asfortranarray(x), order), k)
        return label_contiguous(starts, order)
