"""Publish: move what was verified into place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kohort.tasks.placing import place
from kohort.tasks.stage import uncached_stage


@uncached_stage("publish")
def publish(
    partial: Path,
    out: Path,
    *,
    sha256: str,
    evaluation: dict[str, Any],
    manifest: dict[str, Any],
    force: bool,
) -> bool:
    """Whether anything was written: the same release in place is left as it is."""
    return place(partial, out, sha256=sha256, evaluation=evaluation, manifest=manifest, force=force)
