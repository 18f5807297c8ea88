"""All stages in memory: what the pipeline must equal, record by record."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kohort.blocking import BLOCKERS, Blocker
from kohort.centroids import CENTROIDS, Centroid
from kohort.errors import PlanError, WaveError
from kohort.methods import Blocks, Floats, Labels, resolve
from kohort.normalization import NORMALIZERS, Normalizer, Zscore
from kohort.partitioning import PARTITIONERS, Partitioner
from kohort.partitioning.base import check_size
from kohort.projection import PROJECTIONS, Attribute, Pcp, Projection

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 1e150  # a larger value cannot be squared
REAL = "biuf"  # numpy's kinds of booleans, integers and floats; text "1" and dates are no numbers


@dataclass(frozen=True, slots=True)
class Protected:
    """A protected table.

    Attributes
    ----------
    values : (n, p) array or DataFrame
        Centroids in the original units, in the form in which the table came.
    groups : (n, number of blocks) array
        Label 0..g-1 of every record in every block.
    blocks : tuple of tuples
        Column indexes of every block.
    """

    values: Any
    groups: Labels
    blocks: Blocks


def protect(
    x: npt.ArrayLike | pd.DataFrame,
    *,
    k: int,
    normalize: str | Normalizer = "zscore",
    blocks: str | Blocker = "whole",
    project: str | Projection | None = None,
    partition: str | Partitioner = "optimal",
    centroid: str | Centroid = "mean",
    weights: npt.ArrayLike | None = None,
    seed: int = 0,
) -> Protected:
    """Replace the values of groups of at least k similar records by their centroid.

    Parameters
    ----------
    x : (n, p) array or DataFrame
        The quasi-identifying attributes: numeric, finite, without missing cells.
    k : int
        The least number of records in a group.
    normalize, blocks, project, partition, centroid : str or method
        A method of each stage, by its name or as an object such as `Optimal(cost="block")`. Without
        a projection, a partitioner that needs an axis takes `pcp` on a block of several attributes
        and the attribute itself on a block of one.
    weights : (n,) array, optional
        Survey weights, for `centroid="weighted_mean"`.
    seed : int
        For methods that draw at random.

    Returns
    -------
    Protected
        Values, groups and blocks.

    Raises
    ------
    PlanError
        If the request is wrong, or an argument would have no effect.
    WaveError
        If the data breaks a rule.

    Examples
    --------
    >>> import numpy as np
    >>> protected = protect(np.array([[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]]), k=3)
    >>> protected.values.ravel()
    array([ 2.,  2.,  2., 11., 11., 11.])
    >>> protected.groups.ravel()
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    stages = Stages(
        normalize=resolve(NORMALIZERS, normalize, "normalize"),
        blocks=resolve(BLOCKERS, blocks, "blocks"),
        project=None if project is None else resolve(PROJECTIONS, project, "project"),
        partition=resolve(PARTITIONERS, partition, "partition"),
        centroid=resolve(CENTROIDS, centroid, "centroid"),
    )
    if seed != 0:
        raise PlanError(f"seed = {seed} has no effect: none of the chosen methods draws at random")
    table, names = as_table(x)
    check_size(len(table), k)
    k = int(k)  # a numpy integer of a few bits cannot hold 2k
    if weights is None and stages.centroid.takes_weights:
        raise PlanError(f"centroid {stages.centroid.method!r} needs weights; pass weights=")
    if weights is not None and not stages.centroid.takes_weights:
        raise PlanError(
            f"weights have no effect on centroid {stages.centroid.method!r}; use 'weighted_mean'"
        )
    mass = None if weights is None else as_weights(weights, len(table))

    z = stages.normalize.normalize(table) if stages.partition.uses_normalized else table
    columns = stages.blocks.assign_blocks(table, names=names)

    def protect_block(block: tuple[int, ...]) -> tuple[Labels, Floats]:
        part = table[:, block] if len(block) < len(names) else table
        axis = None
        if stages.partition.needs_axis:
            block_names = [names[j] for j in block]
            axis = stages.projection_of(block_names).project(part, names=block_names)
        groups = stages.partition.partition(z[:, block], k=k, axis=axis)
        return groups, stages.centroid.replace(part, groups, weights=mass)

    values = np.empty(table.shape, order="F")
    labels = np.empty((len(table), len(columns)), np.int32, order="F")
    with ThreadPoolExecutor(max_workers=min(len(columns), available_cores())) as pool:
        for number, (groups, replaced) in enumerate(pool.map(protect_block, columns)):
            labels[:, number] = groups
            values[:, columns[number]] = replaced
    return Protected(_like(x, values), labels, columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """One method a stage, checked against each other: what has no effect is refused."""

    normalize: Normalizer
    blocks: Blocker
    project: Projection | None
    partition: Partitioner
    centroid: Centroid

    def __post_init__(self) -> None:
        partition = self.partition.method
        if self.project is not None and not self.partition.needs_axis:
            raise PlanError(
                f"project {self.project.method!r} has no effect: partition {partition!r} works in "
                "space; leave the projection out"
            )
        if not self.partition.uses_normalized and self.normalize != Zscore():
            raise PlanError(
                f"normalize {self.normalize.method!r} has no effect: nothing uses normalised values "
                f"with partition {partition!r} as it is set; leave normalize out or use cost='block'"
            )

    def projection_of(self, names: Sequence[str]) -> Projection:
        """The projection of a block: the plan's, else pcp, else the only attribute itself."""
        if self.project is not None:
            return self.project
        return Attribute(name=names[0]) if len(names) == 1 else Pcp()


def as_table(x: npt.ArrayLike | pd.DataFrame) -> tuple[Floats, list[str]]:
    """Columns of `x` as Fortran-ordered floats, and their names; refuses what cannot be protected."""
    frame: Any = x if hasattr(x, "columns") else None
    if frame is not None:
        names = [str(name) for name in frame.columns]
        check_columns(names, [dtype.kind for dtype in frame.dtypes])
        cells = frame.to_numpy(np.float64, na_value=np.nan)
    else:
        try:
            cells = np.asarray(x)
        except ValueError:
            raise WaveError("x must be a table: every record needs the same attributes") from None
        if cells.dtype.kind not in REAL:
            raise WaveError("every attribute must be numeric; leave out the ones that are not")
        names = [str(j) for j in range(cells.shape[-1])] if cells.ndim == 2 else []
    table = np.asfortranarray(cells, dtype=np.float64)
    if not names:
        raise WaveError(
            f"x must have two dimensions, records and one attribute or more, got shape {table.shape}"
        )
    check_cells(table, names)
    return table, names


def check_columns(names: Sequence[str], kinds: Sequence[str]) -> None:
    """Refuse columns that share a name, and columns whose kind (numpy's letter) is no number's."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise WaveError(f"more than one column is named {', '.join(twice)}; give each its own name")
    others = [name for name, kind in zip(names, kinds, strict=True) if kind not in REAL]
    if others:
        raise WaveError(f"not numeric: {', '.join(others)}; leave those attributes out")


def check_cells(table: Floats, names: Sequence[str]) -> None:
    """Refuse missing, infinite and over-large cells, with counts per column."""
    # The sum of a column is finite unless a cell is not: the usual case costs one pass.
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = [j for j in range(table.shape[1]) if not _is_calm(table[:, j])]
    for rule, broken in (
        ("missing cells", np.isnan),
        ("infinite cells", np.isinf),
        (f"cells beyond {LARGEST:.0e}", lambda column: np.abs(column) > LARGEST),
    ):
        counts = {names[j]: int(broken(table[:, j]).sum()) for j in doubtful}
        listed = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
        if listed:
            raise WaveError(
                f"{rule} in {listed}; remove those records, fill them in or leave the column out"
            )


def _is_calm(column: Floats) -> bool:
    return column.size == 0 or bool(max(column.max(), -column.min()) <= LARGEST)


def as_weights(weights: npt.ArrayLike, n: int) -> Floats:
    """Weights as floats (n,), all above 0 and of a size whose products with cells stay finite."""
    try:
        mass = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise WaveError("weights must be numbers") from None
    if mass.shape != (n,):
        raise WaveError(f"weights must be one a record, got shape {mass.shape} for {n} records")
    wrong = int(n - np.count_nonzero((mass >= 1 / LARGEST) & (mass <= LARGEST)))
    if wrong:
        raise WaveError(
            f"{wrong} of {n} weights are missing, infinite, not above 0 or beyond {LARGEST:.0e}; "
            "correct or remove them"
        )
    return mass


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _like(x: object, values: Floats) -> object:
    """The protected values as a DataFrame where a DataFrame came."""
    if not hasattr(x, "columns"):
        return values
    import pandas as pd

    return pd.DataFrame(values, columns=x.columns, index=x.index)  # type: ignore[attr-defined]
