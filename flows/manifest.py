"""The manifests: what was done to which file, with what, and what is claimed of the result.

The full one stays inside and is enough to do the run again. The public one goes out with the data, so it
has nothing that helps to undo the protection: no digest of original data that a guess could be tested
against, no seed, no path, no name of a user, and measures only in three digits.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import kohort
from kohort.claims import claim_in_words
from kohort.flows.plan import SCHEMA, Plan
from kohort.flows.progress import StageRow
from kohort.tasks.caching import code_digest, cpu, versions
from kohort.tasks.release import Promise
from kohort.tasks.store import Artifact
from kohort.tasks.wave import Columns

METHODS = ("normalize", "block", "project", "partition", "dependence", "centroid", "release", "gate")
DIGITS = 3


def build_manifest(
    plan: Plan,
    *,
    wave: Path,
    wave_digest: str,
    columns: Columns,
    blocks: Sequence[Sequence[str]],
    reasons: Sequence[str],
    released: Artifact,
    evaluation: Mapping[str, Any],
    stages: Sequence[StageRow],
    how: str,
) -> dict[str, Any]:
    """The manifest of one release: names, counts, digests and parameters, never a value."""
    rounded = list(columns.integers) if plan.release.round_integers else []
    return {
        "schema": SCHEMA,
        "kohort": kohort.__version__,
        "title": plan.title,
        "claim": evaluation["claim"],
        "claim_in_words": evaluation["claim_in_words"],
        "bounds": plan.bounds,
        "input": {"wave": wave.name, "sha256": wave_digest, "rows": columns.rows},
        "output": {"sha256": released.sha256, "rows": released.rows, "columns": list(columns.released)},
        "protected": list(columns.quasi_identifiers),
        "rounded_to_whole_numbers": rounded,
        "whole_numbers_released_as_floats": [n for n in columns.integers if n not in rounded],
        "dropped": list(columns.dropped),
        "blocks": [
            {"attributes": list(names), "reason": reason}
            for names, reason in zip(blocks, reasons, strict=True)
        ],
        "plan": plan.as_json(),
        "seed": plan.seed,
        "code": code_digest(),
        "versions": {
            "python": platform.python_version(),
            **versions(),
            "pandas": importlib.metadata.version("pandas"),
            "prefect": importlib.metadata.version("prefect"),
        },
        "cpu": cpu(),
        "ran": how,
        "stages": [row.as_json() for row in stages],
    }


def promise_of(plan: Plan, columns: Columns, blocks: Sequence[Sequence[str]]) -> Promise:
    """What the written file has to hold."""
    claimed = plan.release.claim == "k-anonymous"
    known = {*columns.quasi_identifiers, *columns.open_to_intruders}
    return Promise(
        columns=columns.released,
        rows=columns.rows,
        blocks=tuple(tuple(block) for block in blocks),
        whole=tuple(name for name in columns.released if name in known) if claimed else (),
        k=plan.k,
    )


def with_claim(
    evaluation: Mapping[str, Any], plan: Plan, columns: Columns, blocks: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """evaluation.json with what the release claims, in words that say how many records are unique."""
    words = claimed(
        plan,
        blocks=len(blocks),
        others=columns.open_to_intruders,
        unique=evaluation["measures"]["unique"],
    )
    return {**evaluation, "claim": plan.release.claim, "claim_in_words": words}


def claimed(plan: Plan, *, blocks: int, others: Sequence[str], unique: float) -> str:
    """The claim in words, and how many records are unique."""
    words = claim_in_words(
        plan.release.claim,
        plan.stages,
        k=plan.k,
        blocks=blocks,
        others=others,
        unit=plan.roles.unit,
    )
    return f"{words}; {_unique(unique)}"


def _unique(share: float) -> str:
    """How many records nobody else looks like."""
    shown = f"{100 * share:.1f} %" if share == 0 or share >= 0.0005 else "less than 0.1 %"
    return f"{shown} of the records are unique on the released columns that are not confidential"


def public_manifest(manifest: Mapping[str, Any], evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """What goes out with the data."""
    plan = manifest["plan"]
    return {
        "schema": manifest["schema"],
        "kohort": manifest["kohort"],
        "title": manifest["title"],
        "claim": manifest["claim"],
        "claim_in_words": manifest["claim_in_words"],
        "output": manifest["output"],
        "protected": manifest["protected"],
        "rounded_to_whole_numbers": manifest["rounded_to_whole_numbers"],
        "whole_numbers_released_as_floats": manifest["whole_numbers_released_as_floats"],
        "blocks": [block["attributes"] for block in manifest["blocks"]],
        "methods": {name: plan[name] for name in METHODS if name in plan},
        "measures": {
            name: None if value is None else float(f"{value:.{DIGITS}g}")
            for name, value in evaluation["measures"].items()
            if name != "not_applicable"
        },
    }
