"""Intruders: which attributes somebody knows who looks for a record.

An intruder is a frozen dataclass with a `method` name and one verb; `INTRUDERS` is the tuple of all.
The verb gives strata of scenarios, a scenario being the columns that are known: a measure is computed on
each scenario by itself, averaged within each stratum and then over the strata.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from kohort.errors import PlanError
from kohort.evaluation.outcome import NotApplicable
from kohort.methods import Blocks, check_whole

LIMIT = 1024  # all subsets of 10 attributes
ENUMERABLE = 100_000  # combinations that are listed before some are drawn; of more, they are drawn blind
Known = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stratum:
    """Scenarios that are averaged first: the sets of one size.

    Attributes
    ----------
    known : tuple of tuples
        Column indexes of each scenario.
    population : int
        How many sets of this size there are, of which `known` are all or a sample.
    """

    known: tuple[Known, ...]
    population: int

    @property
    def is_sample(self) -> bool:
        """Whether some sets of this size are left out."""
        return len(self.known) < self.population


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean over all scenarios, and its standard error where they are a sample."""

    value: float
    standard_error: float | None


class Intruder(Protocol):
    """Says which attributes are known."""

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    def scenarios(
        self, *, names: Sequence[str], blocks: Blocks, seed: int = 0
    ) -> tuple[Stratum, ...] | NotApplicable:
        """Strata of scenarios over the columns `names`, which were protected in `blocks`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """Knows all attributes: the worst case."""

    method: Literal["everything"] = "everything"

    def scenarios(
        self, *, names: Sequence[str], blocks: Blocks, seed: int = 0
    ) -> tuple[Stratum, ...] | NotApplicable:
        """One scenario."""
        return (Stratum((tuple(range(len(names))),), 1),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subsets:
    """Knows any non-empty set of attributes, each size as likely as another (M1D, section 2.3)."""

    limit: int = LIMIT
    method: Literal["subsets"] = "subsets"

    def __post_init__(self) -> None:
        check_whole("limit", self.limit, minimum=2)

    def scenarios(
        self, *, names: Sequence[str], blocks: Blocks, seed: int = 0
    ) -> tuple[Stratum, ...] | NotApplicable:
        """All subsets, a stratum a size; past the limit as many as it allows, drawn with the seed."""
        columns = [(j,) for j in range(len(names))]
        return _unions(columns, range(1, len(names) + 1), limit=self.limit, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralBlocks:
    """Knows the attributes of two blocks or more, up to all (MP, section 2.4)."""

    limit: int = LIMIT
    method: Literal["several_blocks"] = "several_blocks"

    def __post_init__(self) -> None:
        check_whole("limit", self.limit, minimum=2)

    def scenarios(
        self, *, names: Sequence[str], blocks: Blocks, seed: int = 0
    ) -> tuple[Stratum, ...] | NotApplicable:
        """All unions of blocks, a stratum a number of blocks; limited like subsets."""
        if len(blocks) < 2:
            return NotApplicable("there is one block only, and the intruder knows two or more")
        return _unions(blocks, range(2, len(blocks) + 1), limit=self.limit, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Knows one of the sets of attributes that the user writes, each as likely (M1D, Table 3)."""

    sets: tuple[tuple[str, ...], ...]
    method: Literal["named"] = "named"

    def __post_init__(self) -> None:
        if not self.sets:
            raise PlanError("sets: name one set of attributes or more")
        for number, known in enumerate(self.sets):
            if isinstance(known, str) or not known or len(set(known)) < len(known):
                raise PlanError(f"sets: set {number} must be a list of attributes, each once")

    def scenarios(
        self, *, names: Sequence[str], blocks: Blocks, seed: int = 0
    ) -> tuple[Stratum, ...] | NotApplicable:
        """One stratum of the named sets."""
        index = {name: j for j, name in enumerate(names)}
        unknown = [name for known in self.sets for name in known if name not in index]
        if unknown:
            raise PlanError(f"sets: {unknown[0]!r} is no quasi-identifier; remove or add it")
        known = tuple(tuple(index[name] for name in names) for names in self.sets)
        return (Stratum(known, len(known)),)


INTRUDERS: tuple[type[Intruder], ...] = (Everything, Subsets, SeveralBlocks, Named)


def estimate(strata: Sequence[Stratum], values: Sequence[Sequence[float]]) -> Estimate:
    """Mean within each stratum and then over the strata.

    Parameters
    ----------
    strata : sequence of Stratum
        The scenarios.
    values : sequence of sequences
        The measure on each scenario of each stratum.

    Returns
    -------
    Estimate
        Its standard error is sqrt(sum s²/m·(1 - m/M)) over the number of strata, s² being the variance
        (ddof 1) of the m values drawn from the M of a stratum; None where no stratum is a sample.

    Examples
    --------
    >>> estimate([Stratum(((0,), (1,)), 2), Stratum(((0, 1),), 1)], [[10.0, 20.0], [5.0]])
    Estimate(value=10.0, standard_error=None)
    >>> estimate([Stratum(((0,), (1,)), 4)], [[10.0, 14.0]])
    Estimate(value=12.0, standard_error=1.4142135623730951)
    """
    value = math.fsum(math.fsum(part) / len(part) for part in values) / len(strata)
    if not any(stratum.is_sample for stratum in strata):
        return Estimate(value, None)
    variance = math.fsum(
        float(np.var(part, ddof=1)) / len(part) * (1.0 - len(part) / stratum.population)
        for stratum, part in zip(strata, values, strict=True)
        if stratum.is_sample
    )
    return Estimate(value, math.sqrt(variance) / len(strata))


def _unions(
    items: Sequence[Known], sizes: Sequence[int], *, limit: int, seed: int
) -> tuple[Stratum, ...]:
    """Unions of `sizes` of the items: all of each size, or a sample where they are past the limit."""
    populations = [math.comb(len(items), size) for size in sizes]
    draws = _allocate(populations, limit)
    rng = np.random.default_rng(seed)
    strata = []
    for size, population, number in zip(sizes, populations, draws, strict=True):
        combinations = _combinations(len(items), size, number, rng)
        known = tuple(tuple(sorted(j for i in chosen for j in items[i])) for chosen in combinations)
        strata.append(Stratum(known, population))
    return tuple(strata)


def _allocate(populations: Sequence[int], limit: int) -> list[int]:
    """How many sets to take of each size: the same number, or all where there are fewer."""
    if sum(populations) <= limit:
        return list(populations)
    if limit < 2 * len(populations):
        raise PlanError(
            f"limit = {limit} but there are {len(populations)} sizes of sets, and two of each are "
            f"needed for a standard error; raise limit to {2 * len(populations)} or more"
        )
    draws = [0] * len(populations)
    left = limit
    by_population = sorted(range(len(populations)), key=populations.__getitem__)
    for place, s in enumerate(by_population):
        draws[s] = min(populations[s], left // (len(populations) - place))
        left -= draws[s]
    return draws


def _combinations(n: int, size: int, number: int, rng: np.random.Generator) -> list[Known]:
    """`number` different combinations of `size` of n, drawn at random unless they are all, in order."""
    population = math.comb(n, size)
    if population <= ENUMERABLE:
        listed = list(itertools.combinations(range(n), size))
        if number == population:
            return listed
        return [listed[i] for i in np.sort(rng.choice(population, size=number, replace=False))]
    drawn: set[Known] = set()
    while len(drawn) < number:
        drawn.add(tuple(sorted(int(i) for i in rng.choice(n, size=size, replace=False))))
    return sorted(drawn)
