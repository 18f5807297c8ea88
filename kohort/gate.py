"""The gate: bounds on measures that a release must keep, or it is not published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.errors import PlanError
from kohort.evaluation.measures import MEASURES, Measure
from kohort.evaluation.outcome import NotApplicable

BOUNDABLE: dict[str, Measure] = {each.name: each for each in MEASURES if each.worse is not None}
"""The measures that know which values are worse."""

REMEDIES = {
    "loss": "lower k, use more blocks, or take a partition that loses less",
    "risk": "raise k, or protect more attributes together",
    "anonymity": "raise k, or protect more attributes together",
    "dependence": "lower k, or change the weight of the confidential attributes",
    "structure": "lower k, or protect attributes that belong together in one block",
    "min_anonymity": "drop or protect columns that are released as they are; where roles.unit is named, "
    'distinct units are counted: leave it out to count records, or set claim = "per-block"',
    "unique": "protect or drop the other released columns, or protect all attributes as one block",
    "l_min": "raise k, or lower the weight of the confidential attributes",
    "l_one": "raise k, or lower the weight of the confidential attributes",
    "l_avg": "raise k, or lower the weight of the confidential attributes",
    "d_y": "raise the weight of the confidential attributes, or lower k",
    "unchanged": "raise k, or take another method",
}


def allowed(name: str, bound: float) -> str:
    """A bound in words, such as "dld at most 10"."""
    side = "at most" if BOUNDABLE[name].worse == "higher" else "at least"
    return f"{name} {side} {bound:g}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A measure that does not keep its bound."""

    measure: str
    value: float | NotApplicable
    bound: float

    @property
    def remedy(self) -> str:
        """What to try."""
        return REMEDIES.get(self.measure, REMEDIES[BOUNDABLE[self.measure].family])

    def __str__(self) -> str:
        if isinstance(self.value, NotApplicable):
            return (
                f"{self.measure} is not applicable ({self.value.reason}), so that its bound "
                f"{self.bound:g} is not kept"
            )
        measure = BOUNDABLE[self.measure]
        side = "above" if measure.worse == "higher" else "below"
        return f"{self.measure} = {self.value:.6g}{measure.unit} is {side} {self.bound:g}"


def failures(
    bounds: Mapping[str, float], values: Mapping[str, float | NotApplicable]
) -> tuple[Failure, ...]:
    """The measures that do not keep their bounds.

    Parameters
    ----------
    bounds : mapping of str to float
        The worst value allowed of each measure.
    values : mapping of str to float or NotApplicable
        What was measured. A measure that is not applicable keeps no bound.

    Examples
    --------
    >>> [str(each) for each in failures({"dld": 10.0, "loss": 0.3}, {"dld": 35.25, "loss": 0.3})]
    ['dld = 35.25% is above 10']
    >>> [str(each) for each in failures({"min_anonymity": 5.0}, {"min_anonymity": 3.0})]
    ['min_anonymity = 3 is below 5']
    """
    found = []
    for name, bound in bounds.items():
        if name not in BOUNDABLE:
            raise PlanError(f"measure {name!r} cannot be bounded; choose of {', '.join(BOUNDABLE)}")
        value = values[name]
        if isinstance(value, NotApplicable) or not _kept(BOUNDABLE[name], value, bound):
            found.append(Failure(name, value, bound))
    return tuple(found)


def _kept(measure: Measure, value: float, bound: float) -> bool:
    """Whether a value is no worse than its bound; NaN is."""
    return value <= bound if measure.worse == "higher" else value >= bound


def refusal(found: tuple[Failure, ...]) -> str:
    """The failing measures with value, bound and what to try, in one sentence."""
    listed = "; ".join(str(each) for each in found)
    remedies = "; ".join(dict.fromkeys(each.remedy for each in found))
    return f"not released: {listed} (try: {remedies})"
