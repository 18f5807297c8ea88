"""The points of a block that a partition works on."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.dependence import extend
from kohort.methods import Floats
from kohort.tasks.store import Artifact, Store


def read_points(
    store: Store,
    z: Artifact,
    names: Sequence[str],
    confidential: Sequence[str],
    dependence: float | None,
) -> Floats:
    """Normalised attributes of a block, extended by the confidential ones where the plan says so."""
    points = store.read_floats(z, names)
    if dependence is None:
        return points
    return extend(points, store.read_floats(z, confidential), dependence)
