"""The manifest: what was done to which file, with what, and what it promises."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from typing import Any

import kohort
from kohort.flows.plan import SCHEMA, Plan
from kohort.flows.progress import StageRow
from kohort.tasks.caching import code_digest, cpu, versions
from kohort.tasks.store import Artifact
from kohort.tasks.wave import Columns


def build_manifest(
    plan: Plan,
    *,
    wave_digest: str,
    columns: Columns,
    blocks: Sequence[Sequence[str]],
    reasons: Sequence[str],
    released: Artifact,
    stages: Sequence[StageRow],
    how: str,
) -> dict[str, Any]:
    """The manifest of one release: names, counts, digests and parameters, never a value."""
    rounded = list(columns.integers) if plan.release.round_integers else []
    return {
        "schema": SCHEMA,
        "kohort": kohort.__version__,
        "title": plan.title,
        "claim": plan.stages.guarantee(plan.k, len(blocks)),
        "input": {"sha256": wave_digest, "rows": columns.rows},
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
