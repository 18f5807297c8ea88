"""Projections: one number a record, so that records can be put in an order.

A projection scales the original block itself, whatever the plan's normalizer says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

import numpy as np

from kohort.errors import PlanError, WaveError
from kohort.methods import Floats, check_number
from kohort.normalization import Minmax
from kohort.quantifiers import Identity, Quantifier, check_quantifier

NEGLIGIBLE = 1e-9  # a loading, or a sum of loadings, that is rounding only
GAP = 1e-9  # two largest eigenvalues closer than this share of the first are one


class Projection(Protocol):
    """Projects the records of a block on an axis."""

    paper: ClassVar[str]
    """Where it is from."""
    has_extension: ClassVar[bool]
    """Whether it is defined on points that confidential attributes extend (`project_points`)."""

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """Axis (n,) of the original values `x` (n, v) of a block, whose columns are `names`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pcp:
    """First principal component of the correlation matrix (Nin and Torra, section 2.1)."""

    paper: ClassVar[str] = "MP, CS"
    has_extension: ClassVar[bool] = True
    method: Literal["pcp"] = "pcp"

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """z times the first eigenvector, signed so that its loadings sum to more than 0."""
        from kohort.kernels.statistics import correlation, eigen, mean_and_std, weighted_sum

        x = np.asfortranarray(x)
        mean, std = mean_and_std(x)
        loadings = first_component(*eigen(correlation(x, mean, std)), names=names)
        return weighted_sum(x, mean, _over(loadings, std))

    def project_points(self, points: Floats) -> Floats:
        """First component of the covariance matrix: scaling again would undo the weight of y."""
        from kohort.kernels.statistics import covariance, eigen, mean_and_std, weighted_sum

        points = np.asfortranarray(points)
        mean, _ = mean_and_std(points)
        names = [f"axis {j}" for j in range(points.shape[1])]
        return weighted_sum(points, mean, first_component(*eigen(covariance(points, mean)), names=names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Zscores:
    """Sum of the standardised attributes (Nin and Torra, section 2.2; CS "SZ")."""

    paper: ClassVar[str] = "MP, CS"
    has_extension: ClassVar[bool] = True
    method: Literal["zscores"] = "zscores"

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """Sum of the z columns."""
        from kohort.kernels.statistics import mean_and_std, weighted_sum

        x = np.asfortranarray(x)
        mean, std = mean_and_std(x)
        return weighted_sum(x, mean, _over(np.ones_like(std), std))

    def project_points(self, points: Floats) -> Floats:
        """Sum of the columns, which are standardised and weighted already."""
        from kohort.kernels.statistics import weighted_sum

        points = np.asfortranarray(points)
        width = points.shape[1]
        return weighted_sum(points, np.zeros(width), np.ones(width))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sugeno:
    """Sugeno integral of the attributes scaled to [0, 1] (Nin and Torra, section 3)."""

    paper: ClassVar[str] = "MP"
    has_extension: ClassVar[bool] = False
    quantifier: Quantifier = field(default_factory=Identity)
    method: Literal["sugeno"] = "sugeno"

    def __post_init__(self) -> None:
        check_quantifier(self.quantifier)

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """max_i min(Q(i/N), a_(i)), the scaled attributes a in descending order."""
        from kohort.kernels.aggregation import sugeno_integral
        from kohort.kernels.statistics import least_and_greatest

        x = np.asfortranarray(x)
        n_attributes = x.shape[1]
        shares = np.arange(1, n_attributes + 1) / n_attributes
        return sugeno_integral(x, *least_and_greatest(x), self.quantifier.quantify(shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Owa:
    """Ordered weighted average: the quantifier says how much the largest, the second ... counts."""

    paper: ClassVar[str] = "MP, future work"
    has_extension: ClassVar[bool] = False
    quantifier: Quantifier = field(default_factory=Identity)
    method: Literal["owa"] = "owa"

    def __post_init__(self) -> None:
        check_quantifier(self.quantifier)

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """sum_i (Q(i/N) - Q((i-1)/N)) a_(i), the scaled attributes a in descending order."""
        from kohort.kernels.aggregation import ordered_weighted_average
        from kohort.kernels.statistics import least_and_greatest

        x = np.asfortranarray(x)
        n_attributes = x.shape[1]
        steps = np.diff(self.quantifier.quantify(np.arange(n_attributes + 1) / n_attributes))
        return ordered_weighted_average(x, *least_and_greatest(x), steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choquet:
    """Choquet integral: like `owa`, but attributes may have different importance."""

    paper: ClassVar[str] = "MP, future work"
    has_extension: ClassVar[bool] = False
    quantifier: Quantifier = field(default_factory=Identity)
    importance: dict[str, float] = field(default_factory=dict)
    """Importance of attributes by name, 1 for those not named."""
    method: Literal["choquet"] = "choquet"

    def __post_init__(self) -> None:
        check_quantifier(self.quantifier)
        if not isinstance(self.importance, dict):
            got = type(self.importance).__name__
            raise PlanError(f"importance must be a number for each name, got {got}")
        for name, value in self.importance.items():
            above = isinstance(value, (int, float, np.number)) and bool(value > 0)
            check_number(f"importance of {name!r}", value, rule="a number above 0", holds=above)

    def check(self, names: Sequence[str]) -> None:
        """Refuse an importance of what is no attribute here."""
        unknown = [name for name in self.importance if name not in names]
        if unknown:
            listed = ", ".join(repr(name) for name in unknown)
            raise PlanError(f"importance: {listed} is no quasi-identifier; remove it")

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """The integral with respect to mu(A) = Q(importance of A / importance of all)."""
        z = Minmax().normalize(x)
        weights = np.array([self.importance.get(name, 1.0) for name in names])
        order = np.argsort(-z, axis=1, kind="stable")
        reached = np.cumsum(weights[order], axis=1) / weights.sum()
        reached[:, -1] = 1.0  # the share of all is 1, whatever the rounding
        measure = self.quantifier.quantify(np.hstack([np.zeros((len(z), 1)), reached]))
        steps = np.diff(measure, axis=1)
        return np.asarray((steps * np.take_along_axis(z, order, axis=1)).sum(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of the block decides the order (CS "PV")."""

    paper: ClassVar[str] = "CS"
    has_extension: ClassVar[bool] = False
    name: str
    method: Literal["attribute"] = "attribute"

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """The named column."""
        self.check(names)
        return np.array(x[:, list(names).index(self.name)], dtype=np.float64)

    def check(self, names: Sequence[str]) -> None:
        """Refuse a block that does not have the attribute."""
        if self.name not in names:
            listed = ", ".join(repr(name) for name in names)
            raise PlanError(
                f"the projection's attribute {self.name!r} is not in the block of {listed}; "
                "name one that is, or use one block"
            )


def first_component(values: Floats, vectors: Floats, *, names: Sequence[str]) -> Floats:
    """Eigenvector of the largest eigenvalue, with the sign that definitions ask for.

    Parameters
    ----------
    values : (p,) array
        Eigenvalues, in any order.
    vectors : (p, p) array
        Eigenvectors, by column.
    names : sequence of str
        The attributes, for the message.
    """
    largest = int(np.argmax(values))
    if values[largest] <= 0.0:  # only constant attributes: every record is the same
        return np.zeros(values.size)
    runner_up = np.delete(values, largest).max(initial=-np.inf)
    if values[largest] - runner_up <= GAP * values[largest]:
        listed = ", ".join(names)
        raise WaveError(
            f"the block of {listed} has no single first principal component (its two largest "
            "eigenvalues are equal); project by 'zscores' or choose other blocks"
        )
    loadings = vectors[:, largest]
    total = float(loadings.sum())
    if abs(total) <= NEGLIGIBLE:
        total = float(loadings[np.abs(loadings) > NEGLIGIBLE][0])
    return np.asarray(loadings if total > 0 else -loadings, dtype=np.float64)


def _over(loadings: Floats, std: Floats) -> Floats:
    """Loadings for the raw columns; a constant column counts for nothing."""
    return np.divide(loadings, std, out=np.zeros_like(std), where=std != 0.0)


PROJECTIONS: tuple[type[Projection], ...] = (Pcp, Zscores, Sugeno, Owa, Choquet, Attribute)
