"""Assign blocks: which attributes are microaggregated together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kohort.blocking import Blocker
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("assign_blocks")
def assign_blocks(store: Path, *, x: Artifact | None, names: list[str], method: Blocker) -> Artifact:
    """A table of (block, attribute), block by block; `x` is given where the method uses values."""
    files = Store(store)
    values = np.empty((0, len(names))) if x is None else files.read_floats(x, names)
    blocks = method.assign_blocks(values, names=names)
    pairs = [(number, names[j]) for number, block in enumerate(blocks) for j in block]
    return files.write({"block": [number for number, _ in pairs], "attribute": [a for _, a in pairs]})


def read_blocks(store: Store, blocks: Artifact) -> list[list[str]]:
    """The attributes of every block."""
    read: list[list[str]] = []
    for row in store.read(blocks).to_pylist():
        if row["block"] == len(read):
            read.append([])
        read[row["block"]].append(row["attribute"])
    return read
