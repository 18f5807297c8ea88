"""Groups in space around the records that are farthest from the average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kohort.methods import Floats, Labels, check_number
from kohort.partitioning.base import check_size, refuse_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Mdav:
    """Maximum distance to average vector (Domingo-Ferrer and Torra 2005, MDAV-generic).

    Groups of k, the last one of k to 2k-1, around the record farthest from the centroid of those
    that remain and around the one farthest from that record, turn by turn. Exact, in O(n) memory.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0], [0.0, 0.1], [9.0, 8.0], [8.0, 9.0]])
    >>> Mdav().partition(x, k=3)
    array([1, 1, 0, 1, 0, 0], dtype=int32)
    """

    paper: ClassVar[str] = "M1D"
    needs_axis: ClassVar[bool] = False
    method: Literal["mdav"] = "mdav"

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
        """Labels in the order in which groups are made; of ties, the first record in the file."""
        from kohort.kernels.mdav import PATIENCE, mdav_groups

        check_size(len(x), k)
        refuse_axis(self.method, axis)
        records = np.array(x, dtype=np.float64, order="C")
        return mdav_groups(records, records.view(np.uint64), k, PATIENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vmdav:
    """MDAV with groups of k to 2k-1 records (Solanas and Martínez-Ballesté 2006).

    A group takes in the free record nearest to it if that is less than gamma times as far from the
    group as from the nearest other free record. With 0 all groups start with k and stay so but for
    the records left over at the end; 0.2, the default, lets in only what clearly belongs, and values
    above 1 suit records that lie in clusters.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [13.0]])
    >>> Vmdav(gamma=1.1).partition(x, k=3)
    array([0, 0, 0, 1, 1, 1, 1], dtype=int32)
    """

    paper: ClassVar[str] = "beyond the papers"
    needs_axis: ClassVar[bool] = False
    gamma: float = 0.2
    method: Literal["vmdav"] = "vmdav"

    def __post_init__(self) -> None:
        is_real = isinstance(self.gamma, (int, float, np.integer, np.floating))
        holds = is_real and self.gamma >= 0
        check_number("gamma", self.gamma, rule="a number of at least 0", holds=holds)

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
        """Labels in the order in which groups are made; of ties, the first record in the file.

        Fewer than k records left over join the group with the nearest centroid, as the groups were
        before any of them joined; of equally near ones, the group that was made first.
        """
        from kohort.kernels.grouping import group_means
        from kohort.kernels.vmdav import join_nearest, vmdav_groups

        check_size(len(x), k)
        refuse_axis(self.method, axis)
        records = np.array(x, dtype=np.float64, order="C")
        groups, count = vmdav_groups(records, k, float(self.gamma))
        grouped = groups >= 0
        if not grouped.all():
            centroids = group_means(np.asfortranarray(records[grouped]), groups[grouped], count)
            join_nearest(records, groups, centroids)
        return groups
