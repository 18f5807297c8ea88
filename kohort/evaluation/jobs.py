"""An evaluation as jobs that can be computed one by one, anywhere, and put together afterwards.

A job is one measure on what one intruder knows. `evaluate` computes them in turn; the pipeline makes a
cached stage of each, so that an added measure or scenario costs only itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kohort.evaluation.intruder import Known, Stratum, estimate
from kohort.evaluation.measures import MEASURES, Measure, Release
from kohort.evaluation.outcome import NotApplicable, Noted, Outcome
from kohort.evaluation.report import Result

BY_NAME = {measure.name: measure for measure in MEASURES}
Strata = tuple[Stratum, ...] | NotApplicable


@dataclass(frozen=True, slots=True)
class Job:
    """One measure, on all columns (`known` is None) or on those that an intruder knows."""

    measure: str
    known: Known | None

    def compute(self, release: Release) -> Outcome:
        """The outcome on a release."""
        compute = BY_NAME[self.measure].compute
        if compute is None:
            return NotApplicable("it is made of other measures")
        if self.known is not None:
            return compute(release.known(self.known))
        outcome = compute(release)
        return outcome.naming(release.names) if isinstance(outcome, NotApplicable) else outcome


def with_parts(asked: Sequence[Measure]) -> list[Measure]:
    """The measures and all that they are made of."""
    parts = [BY_NAME[name] for measure in asked for name in measure.of]
    return [*asked, *with_parts(parts)] if parts else list(asked)


def jobs(asked: Sequence[Measure], strata: Strata, given: Collection[str]) -> list[Job]:
    """What has to be computed, each once.

    Parameters
    ----------
    asked : sequence of Measure
        The measures.
    strata : tuple of Stratum or NotApplicable
        The intruder's scenarios.
    given : collection of str
        Which optional inputs there are, such as "confidential".
    """
    found: dict[Job, None] = {}
    for measure in with_parts(asked):
        if measure.compute is None or any(name not in given for name in measure.needs):
            continue
        if not measure.by_scenario:
            found[Job(measure.name, None)] = None
        elif not isinstance(strata, NotApplicable):
            found.update((Job(measure.name, s), None) for part in strata for s in part.known)
    return list(found)


def results(
    asked: Sequence[Measure], strata: Strata, given: Collection[str], outcomes: Mapping[Job, Outcome]
) -> tuple[Result, ...]:
    """The results of the measures asked for, from the outcomes of all jobs."""
    found: dict[str, Result] = {}
    return tuple(_result(measure, strata, given, outcomes, found) for measure in asked)


def _result(
    measure: Measure,
    strata: Strata,
    given: Collection[str],
    outcomes: Mapping[Job, Outcome],
    found: dict[str, Result],
) -> Result:
    """Result of one measure, and of those that it is made of; `found` keeps what is there already."""
    if measure.name in found:
        return found[measure.name]
    if measure.combine is not None:
        parts = {n: _result(BY_NAME[n], strata, given, outcomes, found).value for n in measure.of}
        result = as_result(measure, measure.combine(**parts))
    elif any(name not in given for name in measure.needs):
        missing = " and ".join(measure.needs)
        result = as_result(measure, NotApplicable(f"it needs {missing}, and none is given"))
    elif not measure.by_scenario:
        result = as_result(measure, outcomes[Job(measure.name, None)])
    elif isinstance(strata, NotApplicable):
        result = as_result(measure, strata)
    else:
        by_stratum = [[outcomes[Job(measure.name, s)] for s in part.known] for part in strata]
        result = average(measure, strata, by_stratum)
    found[measure.name] = result
    return result


def average(
    measure: Measure, strata: Sequence[Stratum], outcomes: Sequence[Sequence[Outcome]]
) -> Result:
    """Result of a measure that was computed scenario by scenario.

    Parameters
    ----------
    measure : Measure
        The measure.
    strata : sequence of Stratum
        The scenarios.
    outcomes : sequence of sequences
        What the measure gave on each scenario of each stratum.
    """
    values: list[list[float]] = []
    missing: list[NotApplicable] = []
    notes: Counter[str] = Counter()
    for part in outcomes:
        values.append([])
        for outcome in part:
            if isinstance(outcome, NotApplicable):
                missing.append(outcome)
            elif isinstance(outcome, Noted):
                values[-1].append(outcome.value)
                notes[outcome.note] += 1
            else:
                values[-1].append(outcome)
    total = sum(len(part) for part in outcomes)
    if missing:
        where = f" (in {len(missing)} of {total} scenarios)" if total > 1 else ""
        return as_result(measure, NotApplicable(missing[0].reason + where), scenarios=total)
    mean = estimate(strata, values)
    note = "; ".join(
        note if count == total else f"{note} ({count} of {total} scenarios)"
        for note, count in notes.items()
    )
    averaged = Noted(mean.value, note) if note else mean.value
    return as_result(measure, averaged, scenarios=total, standard_error=mean.standard_error)


def as_result(
    measure: Measure,
    outcome: Outcome,
    *,
    scenarios: int | None = None,
    standard_error: float | None = None,
) -> Result:
    """A measure's outcome with what a table says about the measure."""
    value = outcome.value if isinstance(outcome, Noted) else outcome
    if not isinstance(value, NotApplicable) and not math.isfinite(value):
        value = NotApplicable("it is beyond the largest number, because some values are close to 0")
    return Result(
        measure=measure.name,
        family=measure.family,
        value=value if isinstance(value, NotApplicable) else float(value),
        unit=measure.unit,
        worse=measure.worse,
        scenarios=scenarios,
        standard_error=standard_error,
        note=outcome.note if isinstance(outcome, Noted) else "",
    )
