"""What a method is, and how a name becomes one.

A method is a frozen dataclass with a `method` name and one verb; a stage is the tuple of its methods
(`NORMALIZERS`, `BLOCKERS`, `PROJECTIONS`, `PARTITIONERS`, `CENTROIDS`). Constraints on parameters are
checked when the object is made, so that a method that exists is a method that can run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kohort.errors import PlanError

M = TypeVar("M")
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]
Blocks = tuple[tuple[int, ...], ...]


def method_name(cls: type) -> str:
    """The name under which a plan asks for this method."""
    for field in dataclasses.fields(cls):
        if field.name == "method":
            return str(field.default)
    raise TypeError(f"{cls.__name__} has no method name")


def parameters(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    """The fields of a method that a user sets."""
    return tuple(field for field in dataclasses.fields(cls) if field.name != "method")


def resolve(stage: Sequence[type[M]], given: str | M, argument: str) -> M:
    """The method object for a name or for an object of one of the stage's classes.

    Parameters
    ----------
    stage : sequence of classes
        The stage's tuple, such as `PARTITIONERS`.
    given : str or method
        What the caller passed.
    argument : str
        The argument's name, for the message.

    Examples
    --------
    >>> from kohort.partitioning import PARTITIONERS
    >>> resolve(PARTITIONERS, "optimal", "partition")
    Optimal(cost='axis', method='optimal')
    """
    by_name = {method_name(cls): cls for cls in stage}
    if not isinstance(given, str):
        if isinstance(given, tuple(stage)):
            return given
        raise PlanError(
            f"{argument} must be one of {_listed(by_name)} or an object of such a method, "
            f"got {type(given).__name__}"
        )
    if given not in by_name:
        raise PlanError(f"{argument} must be one of {_listed(by_name)}, got {given!r}")
    cls = by_name[given]
    needed = [f.name for f in parameters(cls) if _is_required(f)]
    if needed:
        arguments = ", ".join(f"{name}=..." for name in needed)
        raise PlanError(
            f"{argument}={given!r} needs {' and '.join(needed)}; pass {cls.__name__}({arguments})"
        )
    return cls()


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _listed(names: Sequence[str] | dict[str, type]) -> str:
    return ", ".join(repr(name) for name in names)


def check_whole(name: str, value: object, *, minimum: int) -> None:
    """Refuse a parameter that is not a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise PlanError(f"{name} must be a whole number of at least {minimum}, got {value!r}")


def check_number(name: str, value: object, *, rule: str, holds: bool) -> None:
    """Refuse a parameter that is not a finite number for which the rule holds."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not holds:  # type: ignore[arg-type]
        raise PlanError(f"{name} must be {rule}, got {value!r}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a parameter that is none of the choices."""
    if value not in choices:
        raise PlanError(f"{name} must be one of {_listed(choices)}, got {value!r}")
