"""Whether a release keeps its bounds, whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kohort.errors import GateRefused, GuaranteeBroken
from kohort.gate import failures, refusal
from kohort.tasks.measures import values_of
from kohort.tasks.placing import keep_refused


def check_bounds(
    out: Path,
    *,
    bounds: Mapping[str, float],
    evaluation: Mapping[str, Any],
    manifest: Mapping[str, Any],
    counted: int | None,
) -> None:
    """Refuse a release, and keep its papers: what was measured, not the data.

    Parameters
    ----------
    out : Path
        The folder of the wave's releases.
    bounds : mapping
        The worst value allowed of each measure.
    evaluation, manifest : mapping
        The papers.
    counted : int, optional
        The smallest class of identical records in the written file, where whole records were counted.
    """
    values = values_of(evaluation)
    anonymity = values["min_anonymity"]
    if counted is not None and isinstance(anonymity, (int, float)) and anonymity > counted:
        raise GuaranteeBroken(
            f"the written file has a class of {counted} identical records, but {anonymity:.0f} were "
            "evaluated; nothing was released, please report this"
        )
    found = failures(bounds, values)
    if found:
        folder = keep_refused(out, manifest=manifest, evaluation=evaluation)
        raise GateRefused(f"{refusal(found)}; what was measured is in {folder}")
