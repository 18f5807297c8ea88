"""The plan's `[evaluate]` section: which measures, what the intruder knows, and their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from kohort.evaluation import INTRUDERS
from kohort.evaluation.evaluate import asked_for, refuse_without_effect
from kohort.evaluation.intruder import Everything, Intruder
from kohort.evaluation.linkage import TAU
from kohort.evaluation.measures import PERCENT, Measure
from kohort.flows.sections import Section, choice_of

IntruderSection: Any = choice_of(INTRUDERS)
DEFAULTS = {"ties": "expected", "direction": "to_protected", "tau": TAU, "percent": PERCENT}


class EvaluateSection(Section):
    """What is measured besides the few measures that every release has."""

    measures: Literal["all"] | list[str] = Field(description='names of measures, or "all"')
    intruder: IntruderSection = Field(default={"method": "everything"}, validate_default=True)
    ties: Literal["expected", "first"] = "expected"
    direction: Literal["to_protected", "to_original"] = "to_protected"
    tau: float = Field(default=TAU, ge=0)
    percent: float = Field(default=PERCENT, ge=0, le=100)

    @model_validator(mode="after")
    def _has_effect(self) -> EvaluateSection:
        knows = self.intruder.build()
        changed = {name for name, default in DEFAULTS.items() if getattr(self, name) != default}
        if knows != Everything():
            changed.add("intruder")
        refuse_without_effect(changed, self.asked, knows)
        return self

    @property
    def asked(self) -> tuple[Measure, ...]:
        """The measures."""
        return asked_for(self.measures)

    @property
    def knows(self) -> Intruder:
        """What the intruder knows."""
        intruder: Intruder = self.intruder.build()
        return intruder

    def including(self, names: Sequence[str]) -> EvaluateSection:
        """The same with further measures."""
        if self.measures == "all":
            return self
        return self.model_copy(update={"measures": list(dict.fromkeys([*self.measures, *names]))})

    def parameters(self, measure: Measure) -> dict[str, Any]:
        """The parameters that this measure takes note of, so that others do not change its cache key."""
        return {name: getattr(self, name) for name in DEFAULTS if name in measure.uses}
