"""Publish: move what was verified into place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kohort.tasks.placing import Placed, place
from kohort.tasks.stage import uncached_stage


@uncached_stage("publish")
def publish(
    staging: Path,
    out: Path,
    *,
    public_manifest: dict[str, Any],
    manifest: dict[str, Any],
    evaluation: dict[str, Any],
    log: list[str],
) -> Placed:
    """Where the release is: a new version, or the last one if it is the same."""
    return place(
        staging,
        out,
        public_manifest=public_manifest,
        manifest=manifest,
        evaluation=evaluation,
        log=log,
    )
