"""Tables 1 to 4 of the comparative study, on Tarragona."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kohort.evaluation import delta_R, delta_r, delta_W, fpc, loss, s_delta_r, std_kept
from kohort.methods import Floats
from kohort.partitioning import Fixed, Kward, Md, Partitioner
from kohort.projection import Attribute, Pcp, Projection, Zscores
from kohort.protect import protect
from kohort.tasks.reference import Place

if TYPE_CHECKING:
    import pandas as pd

PAPER = "comparative-study"
SIZES = (3, 4, 5)
CRITERIA = {"UFS": ("PV", "SZ", "FPC"), "UDO": ("PV", "SZ", "FPC"), "MFS": ("MD",)}
CRITERIA["MDO"] = ("PV", "SZ", "FPC", "MD")
PARTITIONS: dict[str, tuple[Partitioner, ...]] = {
    "UFS": (Fixed(), Fixed(order="descending")),
    "UDO": (Kward(),),
    "MFS": (Md(),),
    "MDO": (Kward(cost="block"),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One line of the tables at one k: a family (UFS, UDO, MFS, MDO) and a sorting criterion."""

    source: ClassVar[str] = "tarragona"
    family: str
    criterion: str
    k: int

    @property
    def name(self) -> str:
        """As the tables call it."""
        return f"{self.family}_{self.criterion}"

    @property
    def label(self) -> str:
        """What a progress line calls it."""
        return f"{PAPER}, {self.name}, k = {self.k}"

    def measure(self, x: pd.DataFrame) -> Iterator[tuple[Place, float]]:
        """Losses of all releases (Table 1), and what the one of least loss keeps (Tables 2 to 4)."""
        original = x.to_numpy(float)
        releases = [self._release(x, *choice) for choice in self._choices(x)]
        losses = [100 * loss(original, release) for release in releases]
        for row, percent in self._rows(losses):
            yield Place(PAPER, "Table 1", row, f"k = {self.k}"), percent
        best = releases[losses.index(min(losses))]
        for table, column, value in kept(original, best):
            where = f"k = {self.k}, {column}" if column else f"k = {self.k}"
            yield Place(PAPER, table, self.name, where), value

    def _choices(self, x: pd.DataFrame) -> list[tuple[Partitioner, Projection | None]]:
        """Every release that the line stands for: orders of sorting, and particular variables."""
        projections: dict[str, list[Projection | None]] = {
            "PV": [Attribute(name=name) for name in x.columns],
            "SZ": [Zscores()],
            "FPC": [Pcp()],
            "MD": [None],
        }
        partitions = PARTITIONS[self.family]
        if self.name == "MDO_MD":
            partitions = (Kward(cost="block", start="md"),)
        return [(each, project) for each in partitions for project in projections[self.criterion]]

    def _release(self, x: pd.DataFrame, partition: Partitioner, project: Projection | None) -> Floats:
        values: Floats = protect(x, k=self.k, partition=partition, project=project).values.to_numpy()
        return values

    def _rows(self, losses: list[float]) -> list[tuple[str, float]]:
        """Rows of Table 1: the range over variables, both orders of sorting, or one loss."""
        if self.criterion == "PV":
            return [(f"{self.name} best", min(losses)), (f"{self.name} worst", max(losses))]
        if self.family == "UFS":
            orders = (f"{self.name} ascending", f"{self.name} descending")
            return list(zip(orders, losses, strict=True))
        return [(self.name, losses[0])]


def kept(original: Floats, release: Floats) -> Iterator[tuple[str, str, float]]:
    """What the release keeps of the original's structure: table, column, figure."""
    yield "Table 2", "", float(std_kept(original, release))
    yield "Table 3", "ΔR", 100 * float(delta_R(original, release))
    yield "Table 3", "ΔW", 100 * float(delta_W(original, release))
    yield "Table 3", "%FPC", float(fpc(release))
    yield "Table 4", "Δr", float(delta_r(original, release))
    yield "Table 4", "s", float(s_delta_r(original, release))


def configurations() -> list[Method]:
    """Every line of the tables at every k."""
    return [
        Method(family=family, criterion=criterion, k=k)
        for family, criteria in CRITERIA.items()
        for criterion in criteria
        for k in SIZES
    ]
