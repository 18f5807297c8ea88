"""How much memory a run takes, before it starts: what would be killed halfway is refused instead.

The figures are measured peaks of the resident memory of child processes, at 20,000 to 1,000,000 records
of 1 to 60 attributes, rounded up: a record of p attributes took 28 p + 40 bytes in the flow, and
30 p + 70 in memory, where whole tables are held. What a method or a measure takes besides is added to
that, times the number of blocks or scenarios that are worked on at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kohort.errors import PlanError
from kohort.evaluation.intruder import Everything
from kohort.flows.plan import Plan
from kohort.protect import available_cores
from kohort.tasks.available import available_memory, resident_memory
from kohort.tasks.layout import Decoded
from kohort.tasks.wave import Columns, layout_of

CELL = 8
PROCESS = 500_000_000  # interpreter, libraries, and the compiler in a first run
PREFECT = 200_000_000  # its embedded server, a process of its own
TABLES = 4  # of the quasi-identifiers, at once
RECORD = 96  # orders, labels and classes of a record
OTHER = 48  # codes and their dictionary of a record, in each further column
LINKAGE = frozenset({"dld", "pld", "id"})


def estimate(plan: Plan, columns: Columns, decoded: dict[str, Decoded], *, in_memory: bool) -> int:
    """Bytes that a run takes at its peak, besides the process itself.

    Parameters
    ----------
    plan : Plan
        The plan.
    columns : Columns
        The wave's columns under the plan's roles.
    decoded : dict
        What each column of the wave takes when it is read.
    in_memory : bool
        Whether the run is without Prefect, one measure after the other.
    """
    attributes = len(columns.quasi_identifiers)
    record = RECORD + TABLES * CELL * attributes
    record += _of_method(plan, columns.quasi_identifiers) + _of_measures(plan, attributes, in_memory)
    roles = plan.roles
    read = {name for name in (roles.key, roles.weight, roles.unit, *columns.untouched) if name}
    others = sum(3 * decoded[name].bytes + OTHER * columns.rows for name in read)
    return int(columns.rows * record + others)


def _of_method(plan: Plan, names: tuple[str, ...]) -> int:
    """Bytes a record that the plan's methods take besides the tables, in all blocks at once."""
    stages = plan.stages
    if stages.whole_file is not None:
        return 4 * CELL * len(names)  # one vector of all values, its order, and both again
    widest, blocks = _blocks(plan, names)
    confidential = len(plan.roles.confidential) if stages.extends else 0
    width = CELL * (widest + confidential)
    at_once = min(blocks, available_cores())
    table = CELL * (len(names) + confidential)
    extra = 2 * table if stages.extends else 0
    if stages.normalize.method in ("rank", "robust") or stages.centroid.method == "median":
        extra += 2 * table  # a sorted copy and its order
    if not stages.partitioner.uses_normalized:
        return extra + max(0, at_once - 2) * (width + 64)  # two at once are in TABLES
    one = 64 + (2 if stages.partitioner.needs_axis else 4) * width  # points, and a tree in space
    if stages.partitioner.method == "kward":
        one += 600  # groups, their neighbours and what merging them costs
    return extra + at_once * one


def _blocks(plan: Plan, names: tuple[str, ...]) -> tuple[int, int]:
    """How wide the widest block is, and how many there are."""
    method: Any = plan.stages.blocks
    if method.uses_values:
        size = min(int(method.size), len(names))
        return size, -(-len(names) // size)
    blocks = method.assign_blocks(np.empty((0, len(names))), names=names)
    return max(map(len, blocks)), len(blocks)


def _of_measures(plan: Plan, attributes: int, in_memory: bool) -> int:
    """Bytes a record that the measures of `[evaluate]` take: trees, ranks, tables of classes."""
    if plan.evaluate is None:
        return 0
    few = {measure.name for measure in plan.evaluate.asked} <= LINKAGE
    one = 240 + 4 * CELL * attributes if few else 400 + 8 * CELL * attributes
    alone = in_memory or isinstance(plan.evaluate.knows, Everything)
    return one * (1 if alone else available_cores())


def whole_memory(plan: Plan, wave: Path, columns: Columns, *, in_memory: bool = False) -> int:
    """Bytes that a run takes in all, its processes included."""
    process = PROCESS if in_memory else PROCESS + PREFECT
    return process + estimate(plan, columns, dict(layout_of(wave).columns), in_memory=in_memory)


def check_memory(plan: Plan, wave: Path, columns: Columns, *, in_memory: bool) -> None:
    """Refuse a run that would not get the memory it needs.

    Parameters
    ----------
    plan, wave, columns, in_memory
        As for `estimate`; the wave's file.
    """
    needed, free = whole_memory(plan, wave, columns, in_memory=in_memory), available_memory()
    if needed <= free + min(PROCESS, resident_memory()):  # this process has a part of it already
        return
    raise PlanError(
        f"the run needs about {needed / 1e9:.1f} GB of memory for {columns.rows} records of "
        f"{len(columns.quasi_identifiers)} quasi-identifiers by {plan.partition.method}, but "
        f"{free / 1e9:.1f} GB are free; {_remedies(plan, columns)}use a machine with "
        f"{_machine(needed)} GB"
    )


def _remedies(plan: Plan, columns: Columns) -> str:
    """What would help, as far as the plan can be changed."""
    names = columns.quasi_identifiers
    ways = ["protect fewer columns or fewer records at a time"]
    if _of_method(plan, names) > CELL * len(names):
        ways.append("use a method that needs less (optimal or fixed on an axis)")
    if plan.evaluate is not None:
        ways.append("ask for fewer measures in [evaluate]")
    return ", ".join(ways) + ", or "


def _machine(needed: int) -> int:
    """The memory of a machine on which the run has room: the next power of two."""
    gigabytes = 1
    while gigabytes * 0.8e9 < needed:
        gigabytes *= 2
    return gigabytes
