"""All stages in memory: what the pipeline must equal, record by record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kohort.blocking import BLOCKERS, Blocker
from kohort.centroids import CENTROIDS, Centroid
from kohort.checks import as_table, as_weights
from kohort.dependence import extend
from kohort.errors import PlanError, WaveError
from kohort.methods import Blocks, Floats, Labels, resolve
from kohort.normalization import NORMALIZERS, Normalizer
from kohort.partitioning import PARTITIONERS, Partitioner
from kohort.partitioning.base import check_size
from kohort.projection import PROJECTIONS, Pcp, Projection, Zscores
from kohort.stages import Stages
from kohort.whole_file import WHOLE_FILE, WholeFile

if TYPE_CHECKING:
    import pandas as pd


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
    guarantee : str
        What this promises, in words. A method that protects the file as a whole has no groups and no
        blocks, and promises no anonymity.
    """

    values: Any
    groups: Labels
    blocks: Blocks
    guarantee: str


def protect(
    x: npt.ArrayLike | pd.DataFrame,
    *,
    k: int,
    normalize: str | Normalizer = "zscore",
    blocks: str | Blocker = "whole",
    project: str | Projection | None = None,
    partition: str | Partitioner | WholeFile = "optimal",
    centroid: str | Centroid = "mean",
    weights: npt.ArrayLike | None = None,
    confidential: npt.ArrayLike | pd.DataFrame | None = None,
    dependence: float | None = None,
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
    confidential : (n, m) array or DataFrame, optional
        Confidential attributes, for `dependence`. They are not changed.
    dependence : float, optional
        Lambda from 0 to 1: how much groups are formed by agreement in the confidential attributes.
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
    methods: tuple[type[Partitioner] | type[WholeFile], ...] = (*PARTITIONERS, *WHOLE_FILE)
    stages = Stages(
        normalize=resolve(NORMALIZERS, normalize, "normalize"),
        blocks=resolve(BLOCKERS, blocks, "blocks"),
        project=None if project is None else resolve(PROJECTIONS, project, "project"),
        partition=resolve(methods, partition, "partition"),
        centroid=resolve(CENTROIDS, centroid, "centroid"),
        dependence=dependence,
    )
    if seed != 0:
        raise PlanError(f"seed = {seed} has no effect: none of the chosen methods draws at random")
    table, names = as_table(x)
    y = _confidential(confidential, stages, len(table))
    mass = _weights(weights, stages, len(table))
    if stages.whole_file is not None:
        values = stages.whole_file.protect_values(table, k=k)
        no_groups = np.empty((len(table), 0), np.int32)
        return Protected(_like(x, values), no_groups, (), stages.guarantee(k, 0))
    check_size(len(table), k)
    k = int(k)  # a numpy integer of a few bits cannot hold 2k
    return _protect_blocks(x, table, names, y, mass, stages, k)


def _protect_blocks(
    x: object,
    table: Floats,
    names: Sequence[str],
    y: Floats | None,
    mass: Floats | None,
    stages: Stages,
    k: int,
) -> Protected:
    """All blocks, in threads: kernels release the interpreter's lock."""
    partition = stages.partitioner
    z = table
    if partition.uses_normalized or stages.extends:
        z = stages.normalize.normalize(table)
    columns = stages.blocks.assign_blocks(table, names=names)
    stages.check_blocks([[names[j] for j in block] for block in columns])

    def protect_block(block: tuple[int, ...]) -> tuple[Labels, Floats]:
        # A block of all attributes in file order needs no copy; in another order it does.
        part = table if block == tuple(range(len(names))) else table[:, block]
        points = z[:, block] if y is None else extend(z[:, block], y, stages.dependence or 0.0)
        axis = None
        if partition.needs_axis:
            members = [names[j] for j in block]
            extended = points if stages.extends else None
            axis = axis_of_block(stages.projection_of(members), part, extended, members)
        groups = partition.partition(points, k=k, axis=axis)
        return groups, stages.centroid.replace(part, groups, weights=mass)

    values = np.empty(table.shape, order="F")
    labels = np.empty((len(table), len(columns)), np.int32, order="F")
    with ThreadPoolExecutor(max_workers=min(len(columns), available_cores())) as pool:
        for number, (groups, replaced) in enumerate(pool.map(protect_block, columns)):
            labels[:, number] = groups
            values[:, columns[number]] = replaced
    return Protected(_like(x, values), labels, columns, stages.guarantee(k, len(columns)))


def axis_of_block(
    projection: Projection, part: Floats | None, points: Floats | None, names: Sequence[str]
) -> Floats:
    """The axis of a block: of its extended points where it has them, else of its original values.

    Parameters
    ----------
    projection : Projection
        The block's projection.
    part : (n, v) array or None
        The block's original values.
    points : (n, m) array or None
        The block's points extended by confidential attributes.
    names : sequence of str
        The block's attributes.
    """
    if points is not None and isinstance(projection, (Pcp, Zscores)):
        return projection.project_points(points)
    if part is None:
        raise PlanError(f"project {projection.method!r} is not defined with dependence; use 'pcp'")
    return projection.project(part, names=names)


def _confidential(
    confidential: npt.ArrayLike | pd.DataFrame | None, stages: Stages, n: int
) -> Floats | None:
    """The standardised confidential attributes where the partition uses them."""
    if stages.dependence is None and confidential is not None:
        raise PlanError("confidential has no effect without dependence; pass dependence= too")
    if stages.dependence is None:
        return None
    if confidential is None:
        raise PlanError("dependence needs the confidential attributes; pass confidential=")
    try:
        y, _ = as_table(confidential)
    except WaveError as error:
        raise WaveError(f"confidential: {error}") from None
    if len(y) != n:
        raise WaveError(f"confidential has {len(y)} records but x has {n}; pass the same records")
    return stages.normalize.normalize(y) if stages.extends else None


def _weights(weights: npt.ArrayLike | None, stages: Stages, n: int) -> Floats | None:
    """Weights where the centroid takes them, and an error where they are missing or have no effect."""
    if weights is not None and stages.whole_file is not None:
        raise PlanError(
            f"weights have no effect: {stages.whole_file.method!r} protects the file as a whole; "
            "leave them out"
        )
    if weights is None and stages.centroid.takes_weights:
        raise PlanError(f"centroid {stages.centroid.method!r} needs weights; pass weights=")
    if weights is not None and not stages.centroid.takes_weights:
        raise PlanError(
            f"weights have no effect on centroid {stages.centroid.method!r}; use 'weighted_mean'"
        )
    return None if weights is None else as_weights(weights, n)


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

    return pd.DataFrame(values, columns=x.columns, index=x.index, copy=False)  # type: ignore[attr-defined]
