"""Centroids: the value that stands for all members of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from kohort.errors import PlanError
from kohort.methods import Floats, Labels


class Centroid(Protocol):
    """Replaces the values of every record by its group's centroid."""

    paper: ClassVar[str]
    """Where it is from."""
    takes_weights: ClassVar[bool]

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    def centroids(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Centroids (g, v) of `x` (n, v), given labels 0..g-1 (n,)."""
        ...

    def replace(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Protected values (n, v) of `x` (n, v): every record's own group's centroid."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Mean of the members: what every paper uses, and the least squared error."""

    paper: ClassVar[str] = "MP, M1D, SD, CS"
    takes_weights: ClassVar[bool] = False
    method: Literal["mean"] = "mean"

    def centroids(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Means of the groups."""
        from kohort.kernels.grouping import group_means

        _refuse_weights(self.method, weights)
        return group_means(np.asfortranarray(x), groups, _count(groups))

    def replace(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Each record's group mean."""
        return spread(self.centroids(x, groups, weights=weights), groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Median:
    """Mean of the two (even size) or three (odd size) middle values, so that none is released."""

    paper: ClassVar[str] = "beyond the papers"
    takes_weights: ClassVar[bool] = False
    method: Literal["median"] = "median"

    def centroids(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Middles of the groups, attribute by attribute."""
        from kohort.kernels.grouping import group_middles

        _refuse_weights(self.method, weights)
        return group_middles(np.asfortranarray(x), groups, _count(groups))

    def replace(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Each record's group's middle, attribute by attribute."""
        return spread(self.centroids(x, groups, weights=weights), groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMean:
    """Mean weighted by the survey weights: they move the centroid, not the groups."""

    paper: ClassVar[str] = "beyond the papers"
    takes_weights: ClassVar[bool] = True
    method: Literal["weighted_mean"] = "weighted_mean"

    def centroids(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Weighted means of the groups."""
        from kohort.kernels.grouping import group_weighted_means

        if weights is None:
            raise PlanError("centroid 'weighted_mean' needs weights; name the weight, or use 'mean'")
        return group_weighted_means(np.asfortranarray(x), groups, _count(groups), weights)

    def replace(self, x: Floats, groups: Labels, *, weights: Floats | None = None) -> Floats:
        """Each record's group's weighted mean."""
        return spread(self.centroids(x, groups, weights=weights), groups)


def spread(centroids: Floats, groups: Labels) -> Floats:
    """Every record's own group's centroid, (n, v) Fortran-ordered.

    Parameters
    ----------
    centroids : (g, v) array
        One row a group.
    groups : (n,) array
        Labels 0..g-1.
    """
    from kohort.kernels.grouping import spread_to_members

    return spread_to_members(np.ascontiguousarray(centroids), groups)


def _count(groups: Labels) -> int:
    return int(groups.max()) + 1


def _refuse_weights(method: str, weights: Floats | None) -> None:
    if weights is not None:
        raise PlanError(f"weights have no effect on centroid {method!r}; use 'weighted_mean'")


CENTROIDS: tuple[type[Centroid], ...] = (Mean, Median, WeightedMean)
