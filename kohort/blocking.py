"""Blockers: which attributes are microaggregated together.

Records of one group are identical on the attributes of one block. With several blocks a record shares
each block's values with at least k-1 others, but not the same others: k-anonymity then holds per block,
not jointly. Only `whole` promises it jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from kohort.errors import PlanError
from kohort.methods import Blocks, Floats, check_whole

DIGITS = 12  # of a correlation; what comes after them is rounding


class Blocker(Protocol):
    """Divides the quasi-identifiers into blocks."""

    paper: ClassVar[str]
    """Where it is from."""
    uses_values: ClassVar[bool]
    """Whether the data decide; else names alone do, and `x` may have no records."""

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """Column indexes of each block; every column of `x` (n, p) is in exactly one."""
        ...

    def reasons(self, x: Floats, blocks: Blocks, *, names: Sequence[str]) -> tuple[str, ...]:
        """Why each block is what it is, for the manifest."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """One block of all attributes: the only choice with joint k-anonymity."""

    paper: ClassVar[str] = "CS"
    uses_values: ClassVar[bool] = False
    method: Literal["whole"] = "whole"

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """One block."""
        return (tuple(range(len(names))),)

    def reasons(self, x: Floats, blocks: Blocks, *, names: Sequence[str]) -> tuple[str, ...]:
        """There is no choice."""
        return ("all quasi-identifiers",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """One attribute a block: individual ranking."""

    paper: ClassVar[str] = "CS"
    uses_values: ClassVar[bool] = False
    method: Literal["single"] = "single"

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """As many blocks as attributes."""
        return tuple((j,) for j in range(len(names)))

    def reasons(self, x: Floats, blocks: Blocks, *, names: Sequence[str]) -> tuple[str, ...]:
        """There is no choice."""
        return tuple("one attribute a block" for _ in blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consecutive:
    """Attributes in file order, `size` at a time; the leftover ones are a block of their own."""

    paper: ClassVar[str] = "MP"
    uses_values: ClassVar[bool] = False
    size: int
    method: Literal["consecutive"] = "consecutive"

    def __post_init__(self) -> None:
        check_whole("size", self.size, minimum=1)

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """Blocks of `size` neighbours; a size larger than the table would have no effect."""
        p = len(names)
        _check_block_size(self.size, p)
        return tuple(tuple(range(start, min(start + self.size, p))) for start in range(0, p, self.size))

    def reasons(self, x: Floats, blocks: Blocks, *, names: Sequence[str]) -> tuple[str, ...]:
        """File order."""
        return tuple("neighbours in the file" for _ in blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explicit:
    """The blocks that the user writes; together they must be all quasi-identifiers, each once."""

    paper: ClassVar[str] = "MP"
    uses_values: ClassVar[bool] = False
    blocks: tuple[tuple[str, ...], ...]
    method: Literal["explicit"] = "explicit"

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for number, block in enumerate(self.blocks):
            if isinstance(block, str) or not block:
                raise PlanError(f"blocks: block {number} must be a list of one attribute or more")
            for name in block:
                if name in seen:
                    raise PlanError(f"blocks: {name!r} is named twice; name every attribute once")
                seen.add(name)

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """The named blocks as column indexes."""
        index = {name: j for j, name in enumerate(names)}
        unknown = [name for block in self.blocks for name in block if name not in index]
        if unknown:
            raise PlanError(f"blocks: {_listed(unknown)} is no quasi-identifier; remove or add it")
        named = {name for block in self.blocks for name in block}
        missing = [name for name in names if name not in named]
        if missing:
            raise PlanError(f"blocks: {_listed(missing)} is in no block; add it to one")
        return tuple(tuple(index[name] for name in block) for block in self.blocks)

    def reasons(self, x: Floats, blocks: Blocks, *, names: Sequence[str]) -> tuple[str, ...]:
        """The user's own."""
        return tuple("named in the plan" for _ in blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlated:
    """Attributes that vary together share a block: low loss (Mic1D, section 4.1)."""

    paper: ClassVar[str] = "M1D"
    uses_values: ClassVar[bool] = True
    size: int
    method: Literal["correlated"] = "correlated"

    def __post_init__(self) -> None:
        check_whole("size", self.size, minimum=2)

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """Blocks of `size` attributes, each begun by the free pair of largest abs(r)."""
        _check_block_size(self.size, len(names))
        return _correlated_clusters(_absolute_correlation(x), self.size)

    def reasons(self, x: Floats, blocks: Blocks, *, names: Sequence[str]) -> tuple[str, ...]:
        """The correlations that made each block."""
        r = _absolute_correlation(x)
        return tuple(_why_together(r, block, names) for block in blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decorrelated:
    """Attributes that vary together go to different blocks: high real anonymity (Mic1D, section 4.1)."""

    paper: ClassVar[str] = "M1D"
    uses_values: ClassVar[bool] = True
    size: int
    method: Literal["decorrelated"] = "decorrelated"

    def __post_init__(self) -> None:
        check_whole("size", self.size, minimum=2)

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """Block j takes the j-th attribute of each cluster of correlated ones."""
        _check_block_size(self.size, len(names))
        width = -(-len(names) // self.size)
        clusters = _correlated_clusters(_absolute_correlation(x), width)
        return tuple(tuple(c[j] for c in clusters if j < len(c)) for j in range(width))

    def reasons(self, x: Floats, blocks: Blocks, *, names: Sequence[str]) -> tuple[str, ...]:
        """The mean correlation that is left within each block."""
        r = _absolute_correlation(x)
        return tuple(f"one attribute of each correlated cluster{_left(r, block)}" for block in blocks)


def _absolute_correlation(x: Floats) -> Floats:
    """abs(r) of every pair (p, p), 0 on the diagonal and for a constant.

    Rounded to DIGITS, because the last bits of equal correlations (of duplicated attributes, say) are
    chance: a tie is decided by file order, whatever the order of the records and the units.
    """
    from kohort.kernels.statistics import correlation, mean_and_std

    x = np.asfortranarray(x)
    r = np.abs(correlation(x, *mean_and_std(x))).round(DIGITS)
    np.fill_diagonal(r, 0.0)
    return r


def _correlated_clusters(r: Floats, size: int) -> Blocks:
    """The free pair of largest abs(r) begins a cluster, the free attribute of largest mean abs(r) joins.

    Ties are decided by file order: argmax takes the first.
    """
    free = list(range(len(r)))
    clusters = []
    while free:
        cluster = free[:1]
        if size > 1 and len(free) > 1:
            among = r[np.ix_(free, free)]
            first, second = divmod(
                int(np.argmax(np.triu(among, 1) - np.tril(np.ones_like(among)))), len(free)
            )
            cluster = [free[first], free[second]]
        while len(cluster) < min(size, len(free)):
            rest = [j for j in free if j not in cluster]
            means = r[np.ix_(cluster, rest)].mean(axis=0)
            cluster.append(rest[int(np.argmax(means.round(DIGITS)))])
        clusters.append(tuple(cluster))
        free = [j for j in free if j not in cluster]
    return tuple(clusters)


def _why_together(r: Floats, block: tuple[int, ...], names: Sequence[str]) -> str:
    if len(block) == 1:
        return "left over"
    first, second = block[:2]
    parts = [f"abs(r) of {names[first]} and {names[second]} is {r[first, second]:.3f}"]
    for position in range(2, len(block)):
        mean = r[list(block[:position]), block[position]].mean()
        parts.append(f"{names[block[position]]} joins with a mean abs(r) of {mean:.3f}")
    return "; ".join(parts)


def _left(r: Floats, block: tuple[int, ...]) -> str:
    """The correlation that is left within a block of several."""
    size = len(block)
    if size == 1:
        return ""
    return f"; mean abs(r) within the block {r[np.ix_(block, block)].sum() / (size * (size - 1)):.3f}"


def _check_block_size(size: int, p: int) -> None:
    """Refuse a size that would have no effect."""
    if size > p:
        raise PlanError(f"size = {size} but there are {p} quasi-identifiers; lower size")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


BLOCKERS: tuple[type[Blocker], ...] = (
    Whole,
    Single,
    Consecutive,
    Explicit,
    Correlated,
    Decorrelated,
)
