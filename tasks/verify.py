"""Verify: put the release beside its destination and count it there, as it was written."""

from __future__ import annotations

from pathlib import Path

from kohort.tasks.placing import copy_candidate
from kohort.tasks.release import Promise, count_identical
from kohort.tasks.stage import uncached_stage
from kohort.tasks.store import Artifact, Store


@uncached_stage("verify")
def verify(store: Path, candidate: Artifact, staging: Path, *, promise: Promise) -> int | None:
    """Size of the smallest class of identical records, counted in the copy that will be released."""
    source = Store(store).path(candidate)
    return count_identical(copy_candidate(source, staging, expected=candidate.sha256), promise)
