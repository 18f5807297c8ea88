"""The points of a block that a partition works on."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.dependence import extend
from kohort.methods import Floats
from kohort.normalization import Normalizer
from kohort.tasks.normalization import read_normalized
from kohort.tasks.store import Artifact, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """How to make the points: what `normalize` left, and the confidential attributes in them."""

    z: Artifact
    method: Normalizer
    confidential: tuple[str, ...] = ()
    dependence: float | None = None

    def read(self, store: Store, x: Artifact, names: list[str]) -> Floats:
        """Normalised attributes of a block, extended where the plan says so."""
        points = read_normalized(store, x, self.z, names, self.method)
        if self.dependence is None:
            return points
        y = read_normalized(store, x, self.z, list(self.confidential), self.method)
        return extend(points, y, self.dependence)
