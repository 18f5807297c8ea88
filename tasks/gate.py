"""Gate: a release that does not keep its bounds is not published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kohort.tasks.bounds import check_bounds
from kohort.tasks.stage import uncached_stage


@uncached_stage("gate")
def gate(
    out: Path,
    *,
    bounds: dict[str, float],
    evaluation: dict[str, Any],
    manifest: dict[str, Any],
    counted: int | None,
) -> None:
    """Refuse a release whose measures are beyond their bounds."""
    check_bounds(out, bounds=bounds, evaluation=evaluation, manifest=manifest, counted=counted)
