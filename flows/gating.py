"""The plan's `[gate]` section: a bound for any measure that knows which values are worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, create_model, model_validator

from kohort.errors import PlanError
from kohort.flows.sections import Section
from kohort.gate import BOUNDABLE

Number = Annotated[float, Field(allow_inf_nan=False)]


class _Gate(Section):
    """Bounds: the worst value that a release may have of each measure."""

    @model_validator(mode="after")
    def _bounds_something(self) -> Any:
        if not self.bounds:
            raise PlanError("[gate] bounds no measure; name one, or leave the section out")
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are set."""
        values = ((name, getattr(self, name)) for name in BOUNDABLE)
        return {name: float(value) for name, value in values if value is not None}


if TYPE_CHECKING:
    GateSection = _Gate
else:
    GateSection = create_model(
        "GateSection",
        __base__=_Gate,
        __doc__=_Gate.__doc__,
        **{
            name: (Number | None, Field(default=None, description=f"worse if {each.worse}"))
            for name, each in BOUNDABLE.items()
        },
    )
