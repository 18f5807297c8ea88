"""Assign blocks: which attributes are microaggregated together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kohort.blocking import Blocker
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("assign_blocks")
def assign_blocks(store: Path, *, x: Artifact | None, names: list[str], method: Blocker) -> Artifact:
    """A table of (block, attribute, reason); `x` is given where the method uses values."""
    files = Store(store)
    values = np.empty((0, len(names))) if x is None else files.read_floats(x, names)
    blocks = method.assign_blocks(values, names=names)
    reasons = method.reasons(values, blocks, names=names)
    rows = [(i, names[j], reasons[i]) for i, block in enumerate(blocks) for j in block]
    return files.write(dict(zip(("block", "attribute", "reason"), zip(*rows, strict=True), strict=True)))


def read_blocks(store: Store, blocks: Artifact) -> tuple[list[list[str]], list[str]]:
    """The attributes of every block, and the reason for it."""
    attributes: list[list[str]] = []
    reasons: list[str] = []
    for row in store.read(blocks).to_pylist():
        if row["block"] == len(attributes):
            attributes.append([])
            reasons.append(row["reason"])
        attributes[row["block"]].append(row["attribute"])
    return attributes, reasons
