"""The evaluation of two files: a table for people, JSON for programs, a file on request."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.errors import PlanError, on_one_line
from kohort.evaluation.report import Evaluation, Result
from kohort.flows.comparison import Comparison
from kohort.flows.progress import StageRow
from kohort.home import private_folder

NAME = "evaluation.json"
SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A finished evaluation of two files."""

    comparison: Comparison
    blocks: list[list[str]]
    digests: tuple[str, str]
    """Of the original and of the protected file."""
    results: tuple[Result, ...]
    stages: Sequence[StageRow] = ()

    @property
    def evaluation(self) -> Evaluation:
        """The measures, as `kohort.evaluate` gives them."""
        return Evaluation(
            records=self.comparison.rows,
            attributes=len(self.comparison.names),
            intruder=self.comparison.request.knows.method,
            results=self.results,
        )

    def content(self) -> dict[str, Any]:
        """What evaluation.json holds: the same for the same files and request, however it was run."""
        comparison = self.comparison
        return {
            "schema": SCHEMA,
            "original": {"sha256": self.digests[0]},
            "protected": {"sha256": self.digests[1]},
            "matched_by": _matched_by(comparison),
            "quasi_identifiers": list(comparison.names),
            "blocks": self.blocks,
            "notes": list(comparison.notes),
            "request": comparison.request.model_dump(mode="json"),
            "seed": comparison.seed,
            **json.loads(self.evaluation.to_json()),
        }

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints: the content and the stages."""
        return {**self.content(), "stages": [row.as_json() for row in self.stages]}

    def __str__(self) -> str:
        lines = [f"rows matched by {_matched_by(self.comparison)}"]
        lines += self.comparison.notes
        return "\n".join([str(self.evaluation), *map(on_one_line, lines)])


def _matched_by(comparison: Comparison) -> str:
    return "position" if comparison.key is None else f"key {comparison.key}"


def write_evaluation(evaluated: Evaluated, out: Path) -> Path:
    """Write evaluation.json for its owner alone, whole or not at all.

    Parameters
    ----------
    evaluated : Evaluated
        The evaluation.
    out : Path
        The folder; one that is made here is for its owner alone too.
    """
    place = out / NAME
    text = json.dumps(evaluated.content(), indent=2, allow_nan=False) + "\n"
    try:
        if place.is_file() and place.read_bytes() == text.encode():
            return place
        if place.exists() or place.is_symlink():
            raise PlanError(f"{place} is already there and is another evaluation; choose another folder")
        private_folder(out)
        handle, name = tempfile.mkstemp(dir=out, prefix=".kohort-")  # readable by its owner alone
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise PlanError(f"{place} cannot be written ({error.strerror}); choose another folder") from None
    return place
