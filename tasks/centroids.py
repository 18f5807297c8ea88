"""Replace: the centroids of groups, and what they make of every record's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kohort.centroids import Centroid, spread
from kohort.methods import Floats
from kohort.tasks.release import rounded
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store


@stage("replace")
def replace(
    store: Path,
    x: Artifact,
    groups: Artifact,
    *,
    block: int,
    names: list[str],
    method: Centroid,
    weight: str | None,
    integers: list[str],
) -> Artifact:
    """Centroids of one block, a row a group; the columns of `integers` rounded to whole numbers."""
    files = Store(store)
    weights = None if weight is None else files.read_floats(x, [weight])[:, 0]
    labels = files.read_labels(groups)
    values = method.centroids(files.read_floats(x, names), labels, weights=weights)
    values = rounded(values, names, integers)
    return files.write({name: values[:, j] for j, name in enumerate(names)})


@dataclass(frozen=True, slots=True)
class Protected:
    """Protected attributes: centroids with their groups, or values where there are no groups."""

    values: Artifact
    groups: Artifact | None

    def read(self, store: Store, names: Sequence[str]) -> Floats:
        """Protected values (n, v) of the named attributes."""
        values = store.read_floats(self.values, names)
        return values if self.groups is None else spread(values, store.read_labels(self.groups))

    def columns(self, store: Store) -> dict[str, Floats]:
        """Every protected column by name, each free to be dropped on its own."""
        table = store.read(self.values)
        labels = None if self.groups is None else store.read_labels(self.groups)
        values = {name: table.column(name).to_numpy() for name in table.column_names}
        if labels is None:
            return values
        return {name: np.take(column, labels) for name, column in values.items()}
