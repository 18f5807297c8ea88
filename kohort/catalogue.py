"""Every stage and method in one list: what `kohort methods` prints and the documentation shows."""

from __future__ import annotations

import dataclasses
from typing import Any, get_type_hints

from kohort.blocking import BLOCKERS
from kohort.centroids import CENTROIDS
from kohort.methods import method_name, parameters
from kohort.normalization import NORMALIZERS
from kohort.partitioning import PARTITIONERS
from kohort.projection import PROJECTIONS
from kohort.quantifiers import QUANTIFIERS
from kohort.whole_file import WHOLE_FILE

STAGES: dict[str, tuple[type, ...]] = {
    "normalize": NORMALIZERS,
    "block": BLOCKERS,
    "project": PROJECTIONS,
    "quantifier": QUANTIFIERS,
    "partition": (*PARTITIONERS, *WHOLE_FILE),
    "centroid": CENTROIDS,
}
PAPERS = {
    "CS": "J. M. Mateo-Sanz and J. Domingo-Ferrer, A Comparative Study of Microaggregation Methods",
    "M1D": "J. Nin, on one dimension microaggregation (Mic1D-k)",
    "MP": "J. Nin and V. Torra, Modeling Projections in Microaggregation",
    "SD": "D. Rebollo-Monedero et al., k-Anonymous microaggregation with preservation of statistical "
    "dependence",
}


def catalogue() -> list[dict[str, Any]]:
    """A row for every method: stage, name, parameters with type and default, one line, paper.

    Examples
    --------
    >>> row = next(row for row in catalogue() if row["method"] == "consecutive")
    >>> row["stage"], row["parameters"]
    ('block', [{'name': 'size', 'type': 'int', 'required': True}])
    """
    return [
        {
            "stage": stage,
            "method": method_name(cls),
            "parameters": [_parameter(cls, field) for field in parameters(cls)],
            "summary": (cls.__doc__ or "").strip().splitlines()[0],
            "paper": getattr(cls, "paper", ""),
        }
        for stage, methods in STAGES.items()
        for cls in methods
    ]


def _parameter(cls: type, field: dataclasses.Field[Any]) -> dict[str, Any]:
    """Name, type as a plan's author would say it, and default."""
    described: dict[str, Any] = {"name": field.name, "type": _said(get_type_hints(cls)[field.name])}
    if field.default is not dataclasses.MISSING:
        described["default"] = field.default
    elif field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
        described["default"] = getattr(default, "method", default)
    else:
        described["required"] = True
    return described


def _said(hint: Any) -> str:
    choices = getattr(hint, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return " | ".join(choices)
    if choices and all(dataclasses.is_dataclass(choice) for choice in choices):
        return " | ".join(method_name(choice) for choice in choices)
    return str(hint) if choices else hint.__name__


def as_text() -> str:
    """The catalogue for a person: a paragraph a stage, a line a method."""
    lines = []
    for stage in STAGES:
        lines.append(stage)
        for row in (row for row in catalogue() if row["stage"] == stage):
            names = ", ".join(_written(parameter) for parameter in row["parameters"])
            call = f"{row['method']}({names})" if names else row["method"]
            paper = f" [{row['paper']}]" if row["paper"] else ""
            lines.append(f"  {call}\n      {row['summary']}{paper}")
        lines.append("")
    lines += ["papers"] + [f"  {short:4} {title}" for short, title in PAPERS.items()]
    return "\n".join(lines)


def _written(parameter: dict[str, Any]) -> str:
    if parameter.get("required"):
        return str(parameter["name"])
    return f"{parameter['name']} = {parameter['default']!r}".replace("'", '"')
