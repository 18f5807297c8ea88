"""Plan sections made from the methods themselves.

Every dataclass of a stage's tuple becomes a strict pydantic model with the same fields, and the stage
becomes the union of these, told apart by `method`. So a method added to its tuple is in the plan, in
the deployment's parameter schema and in the messages, and there is no second list to keep.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator


class Section(BaseModel):
    """A part of the plan: strict, and closed to fields that it does not know."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class MethodSection(Section):
    """A section that stands for an object of the mathematics."""

    @model_validator(mode="after")
    def _check(self) -> MethodSection:
        self.build()  # the method checks its own constraints
        return self

    def build(self) -> Any:
        """The object itself."""
        cls = self._cls  # type: ignore[attr-defined]
        values = {f.name: _built(getattr(self, f.name)) for f in dataclasses.fields(cls)}
        return cls(**values)


def section_of(cls: type, **more: Any) -> type[MethodSection]:
    """The section for one dataclass, with further fields where a stage has them (`k`)."""
    hints = get_type_hints(cls)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            default: Any = _plain(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            default = _section_default(field.default_factory())
        else:
            default = ...
        fields[field.name] = (_plan_type(hints[field.name]), default)
    if "method" in fields:  # the user always says which, and says it first
        fields = {
            "method": (fields["method"][0], ...),
            **{n: f for n, f in fields.items() if n != "method"},
        }
    model: type[MethodSection] = create_model(
        f"{cls.__name__}Section", __base__=MethodSection, __doc__=cls.__doc__, **fields, **more
    )
    model._cls = cls  # type: ignore[attr-defined]
    return model


def choice_of(stage: Sequence[type], **more: Any) -> Any:
    """The union of a stage's sections, told apart by `method`."""
    sections = tuple(section_of(cls, **more) for cls in stage)
    if len(sections) == 1:
        return sections[0]
    return Annotated[Union[sections], Field(discriminator="method")]  # noqa: UP007


def _plan_type(hint: Any) -> Any:
    """What TOML and JSON can say: lists for tuples, tables for dataclasses."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return list[_plan_type(arguments[0])]  # type: ignore[misc]
    if origin in (Union, types.UnionType):
        if all(dataclasses.is_dataclass(a) for a in arguments):
            return choice_of(arguments)
        return Union[tuple(_plan_type(a) for a in arguments)]  # noqa: UP007
    if origin is Literal or not dataclasses.is_dataclass(hint):
        return hint
    return section_of(hint)  # type: ignore[arg-type]


def _plain(default: Any) -> Any:
    return Field(default_factory=lambda: list(default)) if isinstance(default, tuple) else default


def _section_default(value: Any) -> Any:
    """A default that is made anew: a nested method as the user would write it, or an empty table."""
    if not dataclasses.is_dataclass(value):
        return Field(default_factory=type(value))
    return Field(default=dataclasses.asdict(value), validate_default=True)


def _built(value: Any) -> Any:
    if isinstance(value, MethodSection):
        return value.build()
    if isinstance(value, list):
        return tuple(_built(item) for item in value)
    return value
