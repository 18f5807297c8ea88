"""Blockers, and the blocks that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from kohort import PlanError
from kohort.blocking import Blocker, Consecutive, Explicit, Single, Whole

X = np.zeros((3, 5))
NAMES = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("method", "blocks"),
    [
        (Whole(), ((0, 1, 2, 3, 4),)),
        (Single(), ((0,), (1,), (2,), (3,), (4,))),
        (Consecutive(size=1), ((0,), (1,), (2,), (3,), (4,))),
        (Consecutive(size=2), ((0, 1), (2, 3), (4,))),
        (Consecutive(size=3), ((0, 1, 2), (3, 4))),
        (Consecutive(size=5), ((0, 1, 2, 3, 4),)),
        (Explicit(blocks=(("e", "a"), ("c",), ("b", "d"))), ((4, 0), (2,), (1, 3))),
    ],
    ids=repr,
)
def test_blocks(method: Blocker, blocks: tuple[tuple[int, ...], ...]) -> None:
    assert method.assign_blocks(X, names=NAMES) == blocks


@pytest.mark.parametrize("size", [0, -1, 2.0, "2", None, True])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(PlanError, match="size must be a whole number of at least 1, got"):
        Consecutive(size=size)  # type: ignore[arg-type]


def test_a_size_beyond_the_table_is_refused() -> None:
    with pytest.raises(PlanError, match="size = 6 but there are 5 quasi-identifiers; lower size"):
        Consecutive(size=6).assign_blocks(X, names=NAMES)


@pytest.mark.parametrize("blocks", [("ab",), ((),), (("a",), ()), "ab"])
def test_a_block_that_is_no_list_is_refused(blocks: object) -> None:
    with pytest.raises(PlanError, match="must be a list of one attribute or more"):
        Explicit(blocks=blocks)  # type: ignore[arg-type]


@pytest.mark.parametrize("blocks", [(("a", "b", "a"),), (("a", "b"), ("c", "a"))])
def test_an_attribute_named_twice_is_refused(blocks: tuple[tuple[str, ...], ...]) -> None:
    with pytest.raises(PlanError, match="'a' is named twice"):
        Explicit(blocks=blocks)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ((("a", "b", "c", "d", "e", "f", "g"),), "'f', 'g' is no quasi-identifier"),
        ((("a", "b"), ("d",)), "'c', 'e' is in no block"),
        ((), "'a', 'b', 'c', 'd', 'e' is in no block"),
    ],
)
def test_blocks_that_are_no_partition_are_refused(
    blocks: tuple[tuple[str, ...], ...], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        Explicit(blocks=blocks).assign_blocks(X, names=NAMES)
