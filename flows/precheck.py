"""What can be said of a plan and a wave without running anything."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from kohort.claims import claim_in_words
from kohort.errors import PlanError, WaveError, on_one_line
from kohort.flows.memory_estimate import check_memory, whole_memory
from kohort.flows.plan import Plan
from kohort.gate import allowed
from kohort.methods import Floats
from kohort.tasks.wave import (
    Columns,
    check_keys,
    inspect_wave,
    read_confidential,
    read_units,
    read_values,
    read_weights,
)


def check_wave(plan: Plan, wave: Path) -> Columns:
    """Refuse a wave whose footer already shows that the plan cannot be carried out."""
    columns = inspect_wave(wave, plan.roles.build())
    if columns.rows < plan.k:
        raise WaveError(f"the wave has {columns.rows} records but k = {plan.k}; lower k or add records")
    return columns


def check_run(plan: Plan, wave: Path, out: Path, *, in_memory: bool) -> None:
    """Decide every refusal that needs no run."""
    columns = check_wave(plan, wave)
    check_output(out)
    check_memory(plan, wave, columns, in_memory=in_memory)


def check_output(out: Path) -> None:
    """Refuse a folder that cannot be written to, before anything is computed."""
    nearest = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise PlanError(f"the output folder {out} cannot be made: {nearest} is a file; choose another")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PlanError(f"the output folder {out} is not writable; choose another")


def what_would_be_done(plan: Plan, wave: Path) -> str:
    """The run in words, after every check that it would make on the data."""
    columns = check_wave(plan, wave)
    check_memory(plan, wave, columns, in_memory=False)  # before the data are read
    roles, stages = plan.roles, plan.stages
    if roles.key is not None:
        check_keys(wave, roles.key)
    x = read_values(wave, columns.quasi_identifiers)
    if roles.weight is not None:
        read_weights(wave, roles.weight)
    if roles.unit is not None:
        read_units(wave, roles.unit)
    if stages.extends:
        read_confidential(wave, roles.confidential)
    names = columns.quasi_identifiers
    constant = [name for j, name in enumerate(names) if np.all(x[:, j] == x[0, j])]
    lines = [f"the plan fits the wave: {columns.rows} records, {len(names)} quasi-identifiers"]
    lines += _methods(plan, x, columns)
    lines.append(f"  released as they are: {', '.join(columns.untouched) or 'nothing'}")
    lines.append(f"  dropped: {', '.join(columns.dropped) or 'nothing'}")
    lines.append(f"  rows: {plan.release.order}")
    lines += _measures(plan)
    lines.append(f"  memory: about {whole_memory(plan, wave, columns) / 1e9:.1f} GB")
    lines += _remarks(plan, columns, constant)
    return "\n".join(map(on_one_line, lines))


def _methods(plan: Plan, x: Floats, columns: Columns) -> list[str]:
    """What is done to each block, what is claimed of the result, and what decides on its release."""
    stages, names = plan.stages, columns.quasi_identifiers
    if stages.whole_file is not None:
        how = (
            f"  all quasi-identifiers: protected as a whole by {stages.whole_file.method} (k = {plan.k})"
        )
        return [how, f"  claim: {_claim(plan, columns, 0)}", *_gate(plan)]
    blocks = stages.blocks.assign_blocks(x, names=names)
    lines = []
    for number, block in enumerate(blocks):
        members = [names[j] for j in block]
        axis = ""
        if stages.partitioner.needs_axis:
            axis = f"projected by {stages.projection_of(members).method}, "
        lines.append(
            f"  block {number}: {', '.join(members)}: {axis}partitioned by "
            f"{stages.partition.method} (k = {plan.k}), replaced by the {stages.centroid.method}"
        )
    if stages.extends:
        lines.append(f"  groups agree in the confidential attributes with weight {stages.dependence}")
    plan.check_blocks([[names[j] for j in block] for block in blocks])
    return [*lines, f"  claim: {_claim(plan, columns, len(blocks))}", *_gate(plan)]


def _claim(plan: Plan, columns: Columns, blocks: int) -> str:
    return claim_in_words(
        plan.release.claim,
        plan.stages,
        k=plan.k,
        blocks=blocks,
        others=columns.open_to_intruders,
        unit=plan.roles.unit,
    )


def _gate(plan: Plan) -> list[str]:
    """The bounds that decide whether it is released."""
    listed = ", ".join(allowed(name, bound) for name, bound in plan.bounds.items())
    return [f"  released only if: {listed}"] if listed else []


def _measures(plan: Plan) -> list[str]:
    """What is measured besides the measures that every release has."""
    request = plan.evaluate
    if request is None:
        return []
    names = ", ".join(measure.name for measure in request.asked)
    if request.measures == "all":
        names = f"all {len(request.asked)} measures"
    return [f"  measured: {names} (intruder: {request.knows.method})"]


def _remarks(plan: Plan, columns: Columns, constant: list[str]) -> list[str]:
    """What is allowed, but worth knowing."""
    remarks = []
    if columns.integers:
        fate = "rounded" if plan.release.round_integers else "released as floats"
        remarks.append(f"  whole-number columns are {fate}: {', '.join(columns.integers)}")
    if constant:
        remarks.append(f"  constant: {', '.join(constant)}")
    if plan.roles.weight is not None and not plan.stages.centroid.takes_weights:
        remarks.append(
            f"  the weight {plan.roles.weight} does not move the centroids ({plan.centroid.method})"
        )
    if plan.seed and not (plan.evaluate is not None and hasattr(plan.evaluate.knows, "limit")):
        remarks.append("  the seed is recorded; nothing in this plan draws at random")
    return remarks
