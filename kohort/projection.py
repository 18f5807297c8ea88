"""Projections: one number a record, so that records can be put in an order.

A projection scales the original block itself, whatever the plan's normalizer says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from kohort.errors import PlanError, WaveError
from kohort.methods import Floats
from kohort.quantifiers import QUANTIFIERS, Identity, Quantifier

NEGLIGIBLE = 1e-9  # a loading, or a sum of loadings, that is rounding only
GAP = 1e-9  # two largest eigenvalues closer than this share of the first are one


class Projection(Protocol):
    """Projects the records of a block on an axis."""

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

    method: Literal["pcp"] = "pcp"

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """z times the first eigenvector, signed so that its loadings sum to more than 0."""
        from kohort.kernels.statistics import correlation, eigen, mean_and_std, weighted_sum

        x = np.asfortranarray(x)
        mean, std = mean_and_std(x)
        loadings = first_component(*eigen(correlation(x, mean, std)), names=names)
        return weighted_sum(x, mean, _over(loadings, std))


@dataclass(frozen=True, slots=True, kw_only=True)
class Zscores:
    """Sum of the standardised attributes (Nin and Torra, section 2.2; CS "SZ")."""

    method: Literal["zscores"] = "zscores"

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """Sum of the z columns."""
        from kohort.kernels.statistics import mean_and_std, weighted_sum

        x = np.asfortranarray(x)
        mean, std = mean_and_std(x)
        return weighted_sum(x, mean, _over(np.ones_like(std), std))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sugeno:
    """Sugeno integral of the attributes scaled to [0, 1] (Nin and Torra, section 3)."""

    quantifier: Quantifier = field(default_factory=Identity)
    method: Literal["sugeno"] = "sugeno"

    def __post_init__(self) -> None:
        if not isinstance(self.quantifier, QUANTIFIERS):
            given = type(self.quantifier).__name__
            raise PlanError(f"quantifier must be an Identity, a Power or an AtLeast, got {given}")

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """max_i min(Q(i/N), a_(i)), the scaled attributes a in descending order."""
        from kohort.kernels.aggregation import sugeno_integral
        from kohort.kernels.statistics import least_and_greatest

        x = np.asfortranarray(x)
        n_attributes = x.shape[1]
        shares = np.arange(1, n_attributes + 1) / n_attributes
        return sugeno_integral(x, *least_and_greatest(x), self.quantifier.quantify(shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of the block decides the order (CS "PV")."""

    name: str
    method: Literal["attribute"] = "attribute"

    def project(self, x: Floats, *, names: Sequence[str]) -> Floats:
        """The named column."""
        if self.name not in names:
            listed = ", ".join(repr(name) for name in names)
            raise PlanError(
                f"the projection's attribute {self.name!r} is not in the block of {listed}; "
                "name one that is, or use one block"
            )
        return np.array(x[:, list(names).index(self.name)], dtype=np.float64)


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


PROJECTIONS: tuple[type[Projection], ...] = (Pcp, Zscores, Sugeno, Attribute)
