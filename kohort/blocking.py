"""Blockers: which attributes are microaggregated together.

Records of one group are identical on the attributes of one block. With several blocks a record shares
each block's values with at least k-1 others, but not the same others: k-anonymity then holds per block,
not jointly. Only `whole` promises it jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from kohort.errors import PlanError
from kohort.methods import Blocks, Floats, check_whole


class Blocker(Protocol):
    """Divides the quasi-identifiers into blocks."""

    uses_values: ClassVar[bool]
    """Whether the data decide; else names alone do, and `x` may have no records."""

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """Column indexes of each block; every column of `x` (n, p) is in exactly one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """One block of all attributes: the only choice with joint k-anonymity."""

    uses_values: ClassVar[bool] = False
    method: Literal["whole"] = "whole"

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """One block."""
        return (tuple(range(len(names))),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """One attribute a block: individual ranking."""

    uses_values: ClassVar[bool] = False
    method: Literal["single"] = "single"

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """As many blocks as attributes."""
        return tuple((j,) for j in range(len(names)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Consecutive:
    """Attributes in file order, `size` at a time; the leftover ones are a block of their own."""

    uses_values: ClassVar[bool] = False
    size: int
    method: Literal["consecutive"] = "consecutive"

    def __post_init__(self) -> None:
        check_whole("size", self.size, minimum=1)

    def assign_blocks(self, x: Floats, *, names: Sequence[str]) -> Blocks:
        """Blocks of `size` neighbours; a size larger than the table would have no effect."""
        p = len(names)
        if self.size > p:
            raise PlanError(f"size = {self.size} but there are {p} quasi-identifiers; lower size")
        return tuple(tuple(range(start, min(start + self.size, p))) for start in range(0, p, self.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Explicit:
    """The blocks that the user writes; together they must be all quasi-identifiers, each once."""

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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


BLOCKERS: tuple[type[Blocker], ...] = (Whole, Single, Consecutive, Explicit)
