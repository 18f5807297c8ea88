"""The tuple of all measures: the single place to touch for a new one.

A measure is computed on a `Release`, once or on each scenario of an intruder, or it is combined from
others. It says in which direction it is worse, so that a gate can refuse a release, and which arguments
have an effect on it, so that the others can be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kohort.evaluation.anonymity import (
    classes,
    dominated_of,
    group_sizes,
    k_real,
    min_anonymity,
    unique,
)
from kohort.evaluation.dependence import d_x, d_y
from kohort.evaluation.diversity import l_avg, l_min, l_one
from kohort.evaluation.linkage import ROUNDS, TAU, pld
from kohort.evaluation.loss import il1s, loss, sse, sse_minmax, sst, unchanged
from kohort.evaluation.outcome import NotApplicable, Noted, Outcome
from kohort.evaluation.risk import Direction, Ties, dld, id, score  # noqa: A004
from kohort.evaluation.structure import delta_R, delta_r, delta_W, fpc, s_delta_r, std_kept
from kohort.evaluation.variation import il1, il2, il3, il4, il5, mean_of_five
from kohort.methods import Blocks, Floats, Labels

PERCENT = 10.0  # of the dominance rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An original table, its release, and how measures are to look at them.

    Attributes
    ----------
    x, protected : (n, p) arrays
        Quasi-identifiers, original and released, row by row the same records.
    names : tuple of str
        The attributes' names.
    blocks : tuple of tuples
        Column indexes that were protected together.
    groups : tuple of (n,) arrays, optional
        Labels of each block. Without them, records with the same released values are a group.
    confidential : (n, q) array, optional
        Attributes that are released as they are, and are not known to an intruder.
    others : tuple of (n,) arrays
        Codes of the other released columns that are not confidential.
    weights, units : (n,) arrays, optional
        Survey weights; codes of households or enterprises.
    ties, direction, tau, percent
        Parameters of dld, pld and dominance.
    """

    x: Floats
    protected: Floats
    names: tuple[str, ...]
    blocks: Blocks
    groups: tuple[Labels, ...] | None = None
    confidential: Floats | None = None
    others: tuple[npt.NDArray[np.int64], ...] = ()
    weights: Floats | None = None
    units: npt.NDArray[np.int64] | None = None
    ties: Ties = "expected"
    direction: Direction = "to_protected"
    tau: float = TAU
    percent: float = PERCENT

    def known(self, columns: Sequence[int]) -> Release:
        """The release as an intruder sees it who knows these columns only."""
        if len(columns) == self.x.shape[1]:
            return self
        chosen = list(columns)
        names = tuple(self.names[j] for j in chosen)
        return replace(self, x=self.x[:, chosen], protected=self.protected[:, chosen], names=names)

    def group_labels(self) -> tuple[Labels, ...]:
        """Labels of every block."""
        if self.groups is not None:
            return self.groups
        return tuple(classes(self.protected[:, list(block)])[0] for block in self.blocks)

    def joint_labels(self) -> Labels:
        """Groups of records that are together in every block."""
        labels = self.group_labels()
        return labels[0] if len(labels) == 1 else classes(labels)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure.

    Attributes
    ----------
    name : str
        The name of its function; a paper's variant has the paper's mark behind it.
    family : str
        Where a table lists it.
    worse : {"higher", "lower"}, optional
        Which values are worse; None where neither is by itself.
    unit : str
        "%" of what is between 0 and 100; nothing for shares between 0 and 1 and other numbers.
    compute : callable, optional
        The measure of a release.
    by_scenario : bool
        Whether it is computed on what an intruder knows.
    needs, uses : tuple of str
        Arguments of `evaluate` that it must have, and that it takes note of.
    of, combine : tuple of str, callable
        Other measures, and what it makes of their values.
    """

    name: str
    family: Literal["loss", "risk", "anonymity", "dependence", "structure"]
    worse: Literal["higher", "lower"] | None
    unit: Literal["", "%"] = ""
    compute: Callable[[Release], Outcome] | None = None
    by_scenario: bool = False
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    combine: Callable[..., float | NotApplicable] | None = None


def _compared(
    function: Callable[..., float | NotApplicable], **fixed: Any
) -> Callable[[Release], Outcome]:
    """A measure of the two tables alone."""
    return lambda release: function(release.x, release.protected, **fixed)


def _of_groups(function: Callable[..., float | NotApplicable]) -> Callable[[Release], Outcome]:
    """A measure of the confidential attributes in their groups."""
    return lambda release: function(release.confidential, release.joint_labels())


def _dld(release: Release) -> Outcome:
    return dld(release.x, release.protected, ties=release.ties, direction=release.direction)


def _pld(release: Release) -> Outcome:
    linkage = pld(release.x, release.protected, tau=release.tau)
    if isinstance(linkage, NotApplicable):
        return linkage
    ending = "converged" if linkage.converged else f"did not converge in {ROUNDS} rounds"
    return Noted(linkage.value, f"its EM {ending}")


def _of_classes(function: Callable[..., float]) -> Callable[[Release], Outcome]:
    """A measure of the classes of identical released records."""

    def compute(release: Release) -> Outcome:
        return function([*release.protected.T, *release.others], units=release.units)

    return compute


def _group_sizes(release: Release) -> Outcome:
    """The smallest group; the note lists how many there are of each size, over all blocks."""
    counts: dict[int, int] = {}
    for labels in release.group_labels():
        for size, count in group_sizes(labels).items():
            counts[size] = counts.get(size, 0) + count
    sizes = sorted(counts)
    listed = ", ".join(f"{counts[size]} of {size}" for size in sizes[:5])
    note = listed if len(sizes) <= 5 else f"{listed}, ..., {counts[sizes[-1]]} of {sizes[-1]}"
    return Noted(float(sizes[0]), f"groups: {note}")


def _dominance(release: Release) -> Outcome:
    dominated = cells = 0
    for block, labels in zip(release.blocks, release.group_labels(), strict=True):
        part, all_of_block = dominated_of(
            release.x[:, list(block)], labels, weights=release.weights, percent=release.percent
        )
        dominated += part
        cells += all_of_block
    return dominated / cells


def _fpc(release: Release) -> Outcome:
    after, before = fpc(release.protected), fpc(release.x)
    if isinstance(after, NotApplicable) or isinstance(before, NotApplicable):
        return after
    return Noted(after, f"{before:.6g} in the original file; close is good")


_loss = partial(Measure, family="loss", worse="higher")
_risk = partial(Measure, family="risk", worse="higher", unit="%")
_anonymity = partial(Measure, family="anonymity")
_structure = partial(Measure, family="structure", worse="higher")

MEASURES: tuple[Measure, ...] = (
    _loss(name="sse", compute=_compared(sse)),
    _loss(name="sst", worse=None, compute=lambda release: sst(release.x)),
    _loss(name="loss", compute=_compared(loss)),
    _loss(name="sse_minmax", compute=_compared(sse_minmax)),
    _loss(name="il1", compute=_compared(il1)),
    _loss(name="il2", compute=_compared(il2)),
    _loss(name="il3", compute=_compared(il3)),
    _loss(name="il4", compute=_compared(il4)),
    _loss(name="il5", compute=_compared(il5)),
    _loss(
        name="il",
        unit="%",
        of=("il1", "il2", "il3", "il4", "il5"),
        combine=lambda **parts: mean_of_five(*parts.values()),
    ),
    _loss(name="il1_mp", compute=_compared(il1, variant="mp")),
    _loss(name="il5_mp", compute=_compared(il5, variant="mp")),
    _loss(
        name="il_mp",
        unit="%",
        of=("il1_mp", "il2", "il3", "il4", "il5_mp"),
        combine=lambda **parts: mean_of_five(*parts.values()),
    ),
    _loss(name="il1s", compute=_compared(il1s)),
    _loss(name="unchanged", compute=_compared(unchanged)),
    _risk(name="dld", by_scenario=True, compute=_dld, uses=("ties", "direction")),
    _risk(name="id", by_scenario=True, compute=_compared(id)),
    _risk(name="pld", by_scenario=True, compute=_pld, uses=("tau",)),
    _risk(name="score", of=("il", "dld", "id"), combine=score),
    _risk(
        name="score_mp",
        of=("il_mp", "dld", "id", "pld"),
        combine=lambda il_mp, **parts: score(il=il_mp, **parts, variant="mp"),
    ),
    _anonymity(
        name="k_real",
        worse="lower",
        by_scenario=True,
        compute=lambda release: k_real(release.protected),
    ),
    _anonymity(
        name="min_anonymity",
        worse="lower",
        compute=_of_classes(min_anonymity),
        uses=("units", "others"),
    ),
    _anonymity(name="unique", worse="higher", compute=_of_classes(unique), uses=("units", "others")),
    _anonymity(name="group_sizes", worse="lower", compute=_group_sizes, uses=("blocks", "groups")),
    _anonymity(
        name="dominance",
        worse="higher",
        compute=_dominance,
        uses=("blocks", "groups", "weights", "percent"),
    ),
    _anonymity(
        name="l_avg",
        worse="lower",
        compute=_of_groups(l_avg),
        needs=("confidential",),
        uses=("groups",),
    ),
    _anonymity(
        name="l_min",
        worse="lower",
        compute=_of_groups(l_min),
        needs=("confidential",),
        uses=("groups",),
    ),
    _anonymity(
        name="l_one",
        worse="higher",
        compute=_of_groups(l_one),
        needs=("confidential",),
        uses=("groups",),
    ),
    Measure(name="d_x", family="dependence", worse="higher", compute=_compared(d_x)),
    Measure(
        name="d_y",
        family="dependence",
        worse="higher",
        compute=_of_groups(d_y),
        needs=("confidential",),
        uses=("groups",),
    ),
    _structure(name="std_kept", worse="lower", compute=_compared(std_kept)),
    _structure(name="delta_r", compute=_compared(delta_r)),
    _structure(name="s_delta_r", compute=_compared(s_delta_r)),
    _structure(name="delta_R", compute=_compared(delta_R)),
    _structure(name="delta_W", compute=_compared(delta_W)),
    _structure(name="fpc", worse=None, unit="%", compute=_fpc),
)
