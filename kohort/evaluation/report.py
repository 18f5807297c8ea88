"""The results of an evaluation: a table for people, a DataFrame or JSON for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kohort.errors import PlanError, on_one_line
from kohort.evaluation.outcome import NotApplicable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One measure's result.

    Attributes
    ----------
    measure, family : str
        Its name, and where it is listed.
    value : float or NotApplicable
        The number, or why there is none.
    unit : str
        "%" or nothing.
    worse : {"higher", "lower"}, optional
        Which values are worse; None where neither is by itself.
    scenarios : int, optional
        On how many scenarios of an intruder it was computed.
    standard_error : float, optional
        Of the mean over the scenarios, where they are a sample.
    note : str
        What else there is to know.
    """

    measure: str
    family: str
    value: float | NotApplicable
    unit: str
    worse: str | None
    scenarios: int | None = None
    standard_error: float | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values: a number, or null and the reason."""
        missing = isinstance(self.value, NotApplicable)
        return {
            "measure": self.measure,
            "family": self.family,
            "value": None if missing else self.value,
            "unit": self.unit,
            "worse": self.worse,
            "scenarios": self.scenarios,
            "standard_error": self.standard_error,
            "note": self.note,
            "not_applicable": self.value.reason if isinstance(self.value, NotApplicable) else None,
        }

    def figure(self) -> str:
        """The value as a table shows it."""
        if isinstance(self.value, NotApplicable):
            return "-"
        return f"{self.value:.6g} {self.unit}".strip()

    def remarks(self) -> str:
        """What a table says beside the value."""
        if isinstance(self.value, NotApplicable):
            return str(self.value)
        error = "" if self.standard_error is None else f"standard error {self.standard_error:.2g}"
        over = f"mean of {self.scenarios} scenarios" if (self.scenarios or 1) > 1 else ""
        return "; ".join(part for part in (over, error, self.note) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All results, in the order in which they were asked for.

    Attributes
    ----------
    records, attributes : int
        Size of the table.
    intruder : str
        Which attributes the intruder knows, by the method's name.
    results : tuple of Result
        One a measure.
    """

    records: int
    attributes: int
    intruder: str
    results: tuple[Result, ...]

    def __getitem__(self, measure: str) -> float | NotApplicable:
        for result in self.results:
            if result.measure == measure:
                return result.value
        listed = ", ".join(result.measure for result in self.results)
        raise PlanError(f"measure {measure!r} was not asked for; there are {listed}")

    def __str__(self) -> str:
        attributes = "1 attribute" if self.attributes == 1 else f"{self.attributes} attributes"
        lines = [f"{self.records} records, {attributes}, intruder: {self.intruder}"]
        names = max(len(result.measure) for result in self.results)
        figures = max(len(result.figure()) for result in self.results)
        families = dict.fromkeys(result.family for result in self.results)
        for family in families:
            lines.append(family)
            for result in self.results:
                if result.family == family:
                    line = (
                        f"  {result.measure:<{names}}  {result.figure():>{figures}}  {result.remarks()}"
                    )
                    lines.append(line.rstrip())
        return "\n".join(map(on_one_line, lines))

    def to_frame(self) -> pd.DataFrame:
        """One row a measure, with the columns of `Result.to_dict`."""
        import pandas as pd

        return pd.DataFrame([result.to_dict() for result in self.results])

    def to_json(self) -> str:
        """A JSON object; a measure that is not applicable has a null and the reason."""
        content = {
            "records": self.records,
            "attributes": self.attributes,
            "intruder": self.intruder,
            "results": [result.to_dict() for result in self.results],
        }
        return json.dumps(content, indent=2, allow_nan=False)
