"""All measures that are asked for, in one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from kohort.errors import PlanError
from kohort.evaluation.inputs import as_release
from kohort.evaluation.intruder import INTRUDERS, Everything, Intruder, SeveralBlocks
from kohort.evaluation.jobs import BY_NAME, Strata, jobs, results, with_parts
from kohort.evaluation.linkage import TAU
from kohort.evaluation.measures import MEASURES, PERCENT, Measure
from kohort.evaluation.outcome import NotApplicable
from kohort.evaluation.report import Evaluation
from kohort.evaluation.risk import Direction, Ties
from kohort.methods import check_choice, resolve

if TYPE_CHECKING:
    import pandas as pd

OPTIONAL = ("confidential",)  # inputs without which some measures cannot be computed


def evaluate(
    x: npt.ArrayLike | pd.DataFrame,
    protected: npt.ArrayLike | pd.DataFrame,
    *,
    confidential: npt.ArrayLike | pd.DataFrame | None = None,
    blocks: Sequence[Sequence[int]] | None = None,
    groups: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    units: npt.ArrayLike | None = None,
    others: npt.ArrayLike | pd.DataFrame | None = None,
    measures: str | Sequence[str] = "all",
    intruder: str | Intruder = "everything",
    ties: Ties = "expected",
    direction: Direction = "to_protected",
    tau: float = TAU,
    percent: float = PERCENT,
    seed: int = 0,
) -> Evaluation:
    """Measure what a protected table loses and what it still reveals.

    Parameters
    ----------
    x, protected : (n, p) arrays or DataFrames
        Quasi-identifiers, original and protected, row by row the same records.
    confidential : (n, q) array or DataFrame, optional
        Confidential attributes, released as they are.
    blocks : sequence of sequences, optional
        Column indexes of every block, as `Protected.blocks` has them; one block without it.
    groups : (n,) or (n, number of blocks) array, optional
        Labels 0..g-1 of every block, as `Protected.groups` has them. Without them, records with the same
        released values are a group. d_y, l_avg, l_min and l_one take records that are together in every
        block.
    weights : (n,) array, optional
        Survey weights, for dominance.
    units : (n,) array, optional
        Household or enterprise of every record: min_anonymity and unique then count units.
    others : (n, r) array or DataFrame, optional
        Other released columns that are not confidential, for min_anonymity and unique.
    measures : "all" or sequence of str
        Names of `MEASURES`. "all" reports a measure whose input is missing as not applicable.
    intruder : str or intruder
        Which attributes are known: a name of `INTRUDERS` or an object such as `Subsets(limit=500)`.
    ties, direction : str
        Of dld.
    tau : float
        Of pld.
    percent : float
        Of dominance.
    seed : int
        For an intruder whose scenarios are past its limit and are drawn at random.

    Returns
    -------
    Evaluation
        Prints as a table, and turns into a DataFrame or JSON.

    Raises
    ------
    PlanError
        If the request is wrong, or an argument has no effect on the measures that are asked for.
    WaveError
        If the data breaks a rule.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]])
    >>> protected = np.array([[2.0], [2.0], [2.0], [11.0], [11.0], [11.0]])
    >>> print(evaluate(x, protected, measures=["loss", "dld", "min_anonymity", "delta_r"]))
    6 records, 1 attribute, intruder: everything
    loss
      loss           0.0318725
    risk
      dld            33.3333 %
    anonymity
      min_anonymity          3
    structure
      delta_r                -  not applicable: there is one attribute only
    """
    asked = asked_for(measures)
    knows = resolve(INTRUDERS, intruder, "intruder")
    given: dict[str, tuple[object, object]] = {
        "confidential": (confidential, None),
        "blocks": (blocks, None),
        "groups": (groups, None),
        "weights": (weights, None),
        "units": (units, None),
        "others": (others, None),
        "intruder": (knows, Everything()),
        "ties": (ties, "expected"),
        "direction": (direction, "to_protected"),
        "tau": (tau, TAU),
        "percent": (percent, PERCENT),
    }
    changed = {name for name, (value, default) in given.items() if _differs(value, default)}
    refuse_without_effect(changed, asked, knows)
    _refuse_missing(changed, asked, lenient=measures == "all")
    release = as_release(
        x,
        protected,
        confidential=confidential,
        blocks=blocks,
        groups=groups,
        weights=weights,
        units=units,
        others=others,
        ties=ties,
        direction=direction,
        tau=tau,
        percent=percent,
    )
    strata = knows.scenarios(names=release.names, blocks=release.blocks, seed=seed)
    if seed != 0 and not _draws(strata, asked):
        raise PlanError(f"seed = {seed} has no effect: nothing is drawn at random; leave it out")
    has = {name for name in OPTIONAL if getattr(release, name) is not None}
    outcomes = {job: job.compute(release) for job in jobs(asked, strata, has)}
    return Evaluation(
        records=len(release.x),
        attributes=len(release.names),
        intruder=knows.method,
        results=results(asked, strata, has, outcomes),
    )


def asked_for(measures: str | Sequence[str]) -> tuple[Measure, ...]:
    """The measures by their names, or all of them."""
    if isinstance(measures, str):
        if measures != "all":
            raise PlanError(f"measures must be 'all' or a list of names, got {measures!r}")
        return MEASURES
    for name in measures:
        check_choice("measures", name, tuple(BY_NAME))
    if not measures or len(set(measures)) < len(measures):
        raise PlanError("measures must be one name or more, each once")
    return tuple(BY_NAME[name] for name in measures)


def _differs(value: object, default: object) -> bool:
    return value is not None if default is None else bool(value != default)


def refuse_without_effect(changed: set[str], asked: Sequence[Measure], knows: Intruder) -> None:
    """Refuse arguments that no measure asked for takes note of."""
    every = with_parts(asked)
    effective = {name for measure in every for name in (*measure.needs, *measure.uses)}
    if any(measure.by_scenario for measure in every):
        effective.add("intruder")
        if isinstance(knows, SeveralBlocks):
            effective.add("blocks")
    if "groups" in changed & effective:
        effective.add("blocks")  # they say which labels belong to which columns
    for name in sorted(changed - effective):
        raise PlanError(f"{name} has no effect on the measures that are asked for; leave it out")


def _refuse_missing(changed: set[str], asked: Sequence[Measure], *, lenient: bool) -> None:
    for measure in asked:
        for name in measure.needs:
            if name not in changed and not lenient:
                raise PlanError(f"measure {measure.name!r} needs {name}; pass {name}=")


def _draws(strata: Strata, asked: Sequence[Measure]) -> bool:
    if isinstance(strata, NotApplicable):
        return False
    by_scenario = any(measure.by_scenario for measure in with_parts(asked))
    return by_scenario and any(stratum.is_sample for stratum in strata)
