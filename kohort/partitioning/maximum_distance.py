"""Groups of k around the two most distant records, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kohort.methods import Floats, Labels
from kohort.partitioning.base import check_size, refuse_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Md:
    """Maximum distance: groups of k from the outside in (Mateo-Sanz and Domingo-Ferrer; CS "MFS").

    The two most distant records start a group each; a group grows by the record nearest to its
    current centroid. Distances are computed when they are needed: no matrix of them is kept at any
    size, and memory is a few copies of the block.
    """

    paper: ClassVar[str] = "CS"
    needs_axis: ClassVar[bool] = False
    method: Literal["md"] = "md"

    @property
    def uses_normalized(self) -> bool:
        """Distances are taken between normalised records."""
        return True

    def partition(
        self,
        x: Floats,
        *,
        k: int,
        axis: Floats | None = None,
        rng: np.random.Generator | None = None,
    ) -> Labels:
        """Labels in the order in which groups are taken, from the outside in.

        Of equal distances, the record that comes first in the file: the lowest i, then the lowest j
        of a pair, of which i starts the first group.
        """
        from kohort.kernels.maximum_distance import distant_groups

        check_size(len(x), k)
        refuse_axis(self.method, axis)
        return distant_groups(np.asfortranarray(x), k)
