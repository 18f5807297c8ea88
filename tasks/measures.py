"""The evaluation of a wave, block by block, as one table of measures and as the JSON made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kohort.evaluation import classes, group_sizes
from kohort.evaluation.anonymity import class_sizes
from kohort.evaluation.loss import deviations
from kohort.evaluation.outcome import NotApplicable
from kohort.evaluation.report import Result
from kohort.methods import Floats, Labels

SCHEMA = 1
ALWAYS = ("loss", "k_real", "min_anonymity", "unique", "unchanged")
"""The measures that every release has."""
ROWS = pa.schema(
    [("measure", pa.string()), ("block", pa.int32()), ("key", pa.string()), ("value", pa.float64())]
)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a wave, before and after; attributes are read when they are needed."""

    names: Sequence[str]
    column: Callable[[str], tuple[Floats, Floats]]
    """An attribute by name, before and after."""
    centroids: Floats
    """One row a group; the protected values themselves where there are no groups."""
    groups: Labels | None
    """None where the method makes no groups of records."""


def measure(blocks: Iterable[Block], others: Sequence[Labels], units: Labels | None) -> pa.Table:
    """Every measure of the release, as rows of (measure, block, key, value).

    Blocks are looked at one after the other, so that the wave is never in memory as a whole: the
    joint classes of identical records follow from the classes of each block.

    Parameters
    ----------
    blocks : iterable of Block
        Original and protected values of each block.
    others : sequence of (n,) arrays
        Codes of every other released column that is not confidential.
    units : (n,) array or None
        Household or enterprise of every record.
    """
    rows: list[tuple[str, int | None, str | None, float]] = []
    errors = totals = 0.0
    same = cells = 0
    joint: list[Labels] = []
    for number, block in enumerate(blocks):
        error = total = 0.0
        for name in block.names:
            x, protected = block.column(name)
            off, spread = deviations(x, protected)
            error, total = error + off, total + spread
            if np.all(x == x[0]):
                rows.append(("constant", number, name, 1.0))
            same += int(np.count_nonzero(x == protected))
            cells += x.size
        labels = classes(block.centroids)[0]
        if block.groups is not None:  # identical centroids of two groups are one class
            labels = labels[block.groups]
        sizes = np.bincount(labels)
        errors, totals = errors + error, totals + total
        if total > 0:
            rows.append(("loss", number, None, error / total))
        rows.append(("min_anonymity", number, None, float(sizes.min())))
        for size, count in ({} if block.groups is None else group_sizes(block.groups)).items():
            rows.append(("group_sizes", number, str(size), float(count)))
        joint = [classes([*joint, labels])[0]] if joint else [labels]
    if totals > 0:
        rows.append(("loss", None, None, errors / totals))
    rows.append(("k_real", None, None, len(joint[0]) / (int(joint[0].max()) + 1)))
    labels, sizes = joint[0], np.bincount(joint[0])
    if others or units is not None:
        labels, sizes = class_sizes([*joint, *others], units)
    rows.append(("min_anonymity", None, None, float(sizes.min())))
    rows.append(("unchanged", None, None, same / cells))
    rows.append(("unique", None, None, float(np.mean(sizes[labels] == 1))))
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), ROWS, strict=True)
    ]
    return pa.table(columns, schema=ROWS)


def evaluation(table: pa.Table, blocks: Sequence[Sequence[str]], *, k: int, rows: int) -> dict[str, Any]:
    """The measures as evaluation.json has them; what is not applicable is null with the reason."""
    content: dict[str, Any] = {"schema": SCHEMA, "rows": rows, "k": k}
    whole: dict[str, Any] = {"loss": None}
    parts: list[dict[str, Any]] = [
        {"attributes": list(names), "loss": None, "min_anonymity": 0, "group_sizes": {}, "constant": []}
        for names in blocks
    ]
    for row in table.to_pylist():
        name, value = row["measure"], row["value"]
        if name == "min_anonymity":
            value = int(value)
        target = whole if row["block"] is None else parts[row["block"]]
        if name == "group_sizes":
            target[name][row["key"]] = int(value)
        elif name == "constant":
            target[name].append(row["key"])
        else:
            target[name] = value
    if whole["loss"] is None:
        whole["not_applicable"] = {"loss": "every quasi-identifier is constant"}
    return {**content, "measures": whole, "blocks": parts}


def values_of(report: Mapping[str, Any]) -> dict[str, float | NotApplicable]:
    """The measures of evaluation.json, those that are not applicable with the reason."""
    reasons = {each["measure"]: each["not_applicable"] for each in report.get("details", ())}
    reasons = {**report["measures"].get("not_applicable", {}), **reasons}
    return {
        name: NotApplicable(str(reasons.get(name))) if value is None else value
        for name, value in report["measures"].items()
        if name != "not_applicable"
    }


def with_details(report: dict[str, Any], found: Sequence[Result]) -> dict[str, Any]:
    """evaluation.json with the measures that the plan asks for: values, and what is to know of them."""
    values = {each["measure"]: each["value"] for each in (result.to_dict() for result in found)}
    return {
        **report,
        "measures": {**report["measures"], **values},
        "details": [result.to_dict() for result in found],
    }
