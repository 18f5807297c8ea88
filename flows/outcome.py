"""What a run gives back, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.errors import on_one_line
from kohort.flows.progress import StageRow
from kohort.tasks.placing import EVALUATION, INTERNAL, LOG, MANIFEST, PUBLIC, Placed
from kohort.tasks.release import NAME

FILES = [
    f"{PUBLIC}/{NAME}",
    f"{PUBLIC}/{MANIFEST}",
    f"{INTERNAL}/{MANIFEST}",
    f"{INTERNAL}/{EVALUATION}",
    f"{INTERNAL}/{LOG}",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished run."""

    placed: Placed
    manifest: Mapping[str, Any]
    evaluation: Mapping[str, Any]


def summary(outcome: Outcome, stages: Sequence[StageRow]) -> dict[str, Any]:
    """What `--json` prints and the flow returns."""
    return {
        "out": str(outcome.placed.folder),
        "version": outcome.placed.version,
        "files": FILES,
        "written": outcome.placed.written,
        "sha256": outcome.manifest["output"]["sha256"],
        "rows": outcome.manifest["output"]["rows"],
        "claim": outcome.manifest["claim"],
        "claim_in_words": outcome.manifest["claim_in_words"],
        "unit": outcome.manifest["plan"]["roles"].get("unit"),
        "measures": outcome.evaluation["measures"],
        "blocks": outcome.evaluation["blocks"],
        "stages": [row.as_json() for row in stages],
    }


def as_text(result: Mapping[str, Any]) -> str:
    """The summary for a person."""
    measures = result["measures"]
    blocks = result["blocks"]
    cached = sum(stage["cached"] for stage in result["stages"])
    groups = sum(count for block in blocks for count in block["group_sizes"].values())
    constant = [name for block in blocks for name in block["constant"]]
    counted = "records" if result["unit"] is None else f"distinct {result['unit']}"
    loss = "not applicable" if measures["loss"] is None else f"{100 * measures['loss']:.2f} %"
    how = f"in {groups} groups over {len(blocks)} block{'s' if len(blocks) != 1 else ''}"
    lines = [
        f"protected {result['rows']} records {how if groups else 'as a whole, without groups'}",
        f"  claim          {result['claim_in_words']}",
        f"  loss           {loss} of the variance",
        f"  min_anonymity  {measures['min_anonymity']:.0f} {counted}",
        f"  k_real         {measures['k_real']:.2f}",
        f"  unchanged      {100 * measures['unchanged']:.2f} % of the protected cells",
    ]
    if constant:
        lines.append(f"  constant       {', '.join(constant)}")
    lines.append(f"  stages         {len(result['stages'])}, of which {cached} were cached")
    if not result["written"]:
        lines.append(f"  nothing rewritten: version {result['version']} is this release already")
    elif result["version"] > 1:
        lines.append(f"  version {result['version']} of this wave's release, beside the earlier ones")
    lines += [f"  {Path(result['out']) / name}" for name in result["files"]]
    return "\n".join(map(on_one_line, lines))
