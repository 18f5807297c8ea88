"""Tables 4 to 6 of Mic1D-k, on Census and Water treatment, with the known attributes of Table 3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from kohort.blocking import Explicit
from kohort.evaluation import Named, evaluate
from kohort.partitioning import Optimal
from kohort.protect import protect
from kohort.tasks.reference import Place
from kohort.whole_file import Mic1d

if TYPE_CHECKING:
    import pandas as pd

PAPER = "mic1d"
# The columns behind a1..a9. The names of the paper's Table 2 (Census) are shifted: these are the columns
# with which its figures come out.
ATTRIBUTES = {
    "census": (
        *("AGI", "STATETAX", "TAXINC", "EMCONTRB", "WSALVAL"),
        *("ERNVAL", "FEDTAX", "POTHVAL", "INTVAL"),
    ),
    "water_treatment": (
        *("PH-E", "PH-P", "PH-D", "DQO-E", "COND-P"),
        *("COND-D", "DBO-S", "SS-S", "SED-S"),
    ),
}
TABLES = {"census": "Table 4", "water_treatment": "Table 5"}
SIZES = {"census": (5, 25, 50), "water_treatment": (5, 15, 25)}
CHUNKS = {"census": (3000, 4000, 5000), "water_treatment": (500, 800, 900)}
BLOCKS = {"correlated": "123 456 789", "non-correlated": "147 258 369"}
KNOWN = {  # Table 3: attributes of one block, of two and of three
    "correlated": {
        "1G": "123 456 789",
        "2G": "125 137 236 145 246 569 678 189 279",
        "3G": "147 158 169 247 258 269 347 358 369",
    },
    "non-correlated": {
        "1G": "147 258 369",
        "2G": "145 137 478 125 248 589 368 169 349",
        "3G": "123 156 189 234 456 489 237 567 789",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """One line of Tables 4 to 6; Mic1D-k has no blocks, so that its release serves both situations."""

    source: str
    method: str
    k: int
    situations: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a progress line calls it."""
        return f"{PAPER}, {self.source}, {self.method}-{self.k}, {' and '.join(self.situations)}"

    def measure(self, x: pd.DataFrame) -> Iterator[tuple[Place, float]]:
        """SSE and real anonymity, and on Census the score."""
        x = x.dropna()[list(ATTRIBUTES[self.source])]  # Water treatment: 380 records are complete
        release = protect(x, k=self.k, **self._stages()).values
        figures = {"SSE": float(evaluate(x, release, measures=["sse_minmax"])["sse_minmax"])}
        score = self._score(x, release) if self.source == "census" else {}
        for situation in self.situations:
            row = f"{self.method}-{self.k}, {situation}"
            for column, value in {**figures, **self._anonymity(x, release, situation)}.items():
                yield Place(PAPER, TABLES[self.source], row, column), value
            for column, value in score.items():
                yield Place(PAPER, "Table 6", row, column), value

    def _stages(self) -> dict[str, Any]:
        """Arguments of `protect`; the paper's Mic1D-k leaves the remainder on its own."""
        if self.method == "Mic1D":
            return {"partition": Mic1d(remainder="own")}
        blocks = Explicit(blocks=self._named(BLOCKS[self.situations[0]]))
        if self.method == "MDAV":
            return {"blocks": blocks, "partition": "mdav"}
        return {"blocks": blocks, "project": self.method.lower(), "partition": Optimal(cost="block")}

    def _named(self, sets: str) -> tuple[tuple[str, ...], ...]:
        """Sets of attributes from their numbers."""
        names = ATTRIBUTES[self.source]
        return tuple(tuple(names[int(number) - 1] for number in known) for known in sets.split())

    def _anonymity(self, x: pd.DataFrame, release: pd.DataFrame, situation: str) -> dict[str, float]:
        """k' for attributes of one, two and three blocks."""
        return {
            column: float(
                evaluate(x, release, measures=["k_real"], intruder=Named(sets=self._named(sets)))[
                    "k_real"
                ]
            )
            for column, sets in KNOWN[situation].items()
        }

    def _score(self, x: pd.DataFrame, release: pd.DataFrame) -> dict[str, float]:
        """Score over all 511 sets of known attributes, ties to the first record as in the paper."""
        columns = {"il": "IL", "dld": "DLD", "id": "ID", "score": "Score"}
        found = evaluate(x, release, measures=list(columns), intruder="subsets", ties="first")
        return {column: float(found[measure]) for measure, column in columns.items()}


def configurations() -> list[Protection]:
    """Every line of the tables."""
    listed = []
    for source in TABLES:
        for situation, method, k in product(BLOCKS, ("MDAV", "PCP", "Zscores"), SIZES[source]):
            listed.append(Protection(source=source, method=method, k=k, situations=(situation,)))
        for k in CHUNKS[source]:
            listed.append(Protection(source=source, method="Mic1D", k=k, situations=tuple(BLOCKS)))
    return listed
