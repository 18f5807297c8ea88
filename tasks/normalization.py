"""Normalize: the scale of all attributes, or their normalised values."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kohort.methods import Floats
from kohort.normalization import Normalizer, Scale
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("normalize")
def normalize(store: Path, x: Artifact, *, names: list[str], method: Normalizer) -> Artifact:
    """Centre, scale and constant of every attribute, or the values where a shift and scale are not all.

    Attributes are looked at one at a time, to hold the table only once.
    """
    files = Store(store)
    columns = {}
    for name in names:
        column = files.read_floats(x, [name])
        scale = method.fit(column)
        if scale is None:
            columns[name] = method.normalize(column)[:, 0]
        else:
            columns[name] = np.array([scale.centre[0], scale.scale[0], scale.constant])
    return files.write(columns)


def read_normalized(
    store: Store, x: Artifact, z: Artifact, names: list[str], method: Normalizer
) -> Floats:
    """Normalised attributes (n, v), from their original values and what `normalize` left."""
    stored = store.read_floats(z, names)
    if method.fit(np.zeros((1, 1))) is None:
        return stored
    centre, scale, constant = stored
    return Scale(centre, scale, float(constant[0])).apply(store.read_floats(x, names))
