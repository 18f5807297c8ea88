"""Table 1 of modeling projections: 27 configurations on EIA and on Census."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from kohort.blocking import Consecutive
from kohort.evaluation import evaluate
from kohort.protect import protect
from kohort.tasks.reference import Place

if TYPE_CHECKING:
    import pandas as pd

PAPER = "modeling-projections"
SOURCES = {"eia": "EIA", "census": "Census"}
PROJECTIONS = {"pcp": "PCP", "zscores": "Zscores", "sugeno": "Sugeno"}
COLUMNS = {"il_mp": "IL", "dld": "DLD", "pld": "PLD", "id": "ID", "score_mp": "Score"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """Projected microaggregation of blocks of v attributes."""

    source: str
    v: int
    projection: str
    k: int

    @property
    def row(self) -> str:
        """As the table calls it."""
        return f"Mic{self.v}{PROJECTIONS[self.projection]}{self.k:02}"

    @property
    def label(self) -> str:
        """What a progress line calls it."""
        return f"{PAPER}, {SOURCES[self.source]}, {self.row}"

    def measure(self, x: pd.DataFrame) -> Iterator[tuple[Place, float]]:
        """Loss, risk and score for an intruder who knows two blocks or more."""
        if self.source == "eia":
            x = x.loc[:, "RESREVENUE":"TOTSALES"]  # type: ignore[misc]
        release = protect(x, k=self.k, project=self.projection, blocks=Consecutive(size=self.v))
        found = evaluate(
            x,
            release.values,
            blocks=release.blocks,
            measures=list(COLUMNS),
            intruder="several_blocks",
        )
        for measure, column in COLUMNS.items():
            place = Place(PAPER, "Table 1", self.row, f"{SOURCES[self.source]}, {column}")
            yield place, float(found[measure])


def configurations() -> list[Projected]:
    """All 27 configurations on both files."""
    return [
        Projected(source=source, v=v, projection=projection, k=k)
        for source, v, projection, k in product(SOURCES, (2, 3, 4), PROJECTIONS, (5, 15, 25))
    ]
