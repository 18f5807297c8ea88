"""Replace: every record's values by its group's centroid."""

from __future__ import annotations

from pathlib import Path

from kohort.centroids import Centroid
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
    """Protected values of one block, the columns of `integers` rounded to whole numbers."""
    files = Store(store)
    weights = None if weight is None else files.read_floats(x, [weight])[:, 0]
    labels = files.read_labels(groups)
    values = method.replace(files.read_floats(x, names), labels, weights=weights)
    values = rounded(values, names, integers)
    return files.write({name: values[:, j] for j, name in enumerate(names)})
