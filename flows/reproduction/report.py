"""Published and computed figures side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kohort.flows.reproduction.claims import CHECKS, Verdict
from kohort.flows.reproduction.published import (
    Claim,
    Note,
    Paper,
    Printed,
    Published,
    Table,
    read_published,
)
from kohort.tasks.reference import Place

DIGITS = 4  # of a figure that has no printed one beside it


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure: as printed, if it was, and as computed."""

    place: Place
    printed: Printed | None
    computed: float
    note: Note | None

    @property
    def agrees(self) -> bool | None:
        """Whether both are the same to the printed precision; None without a printed one."""
        return None if self.printed is None else self.printed.agrees(self.computed)

    @property
    def published_text(self) -> str:
        """The printed figure, or nothing."""
        return "" if self.printed is None else self.printed.text

    @property
    def computed_text(self) -> str:
        """The computed figure, to one digit more than the printed one."""
        return f"{self.computed:.{self._decimals}f}"

    @property
    def difference_text(self) -> str:
        """Computed minus printed, with a sign, or nothing."""
        if self.printed is None:
            return ""
        return f"{self.printed.difference(self.computed):+z.{self._decimals}f}"

    @property
    def _decimals(self) -> int:
        return DIGITS if self.printed is None else self.printed.decimals + 1


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """One table of a paper, or the computed values of one of its drawings."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    orders: tuple[tuple[str, float, float | None], ...] = ()
    """Column, rank correlation of published and computed, and that without the rows left out."""
    left_out: str = ""

    @property
    def rows(self) -> dict[str, list[Cell]]:
        """Cells of every row."""
        rows: dict[str, list[Cell]] = {}
        for cell in self.cells:
            rows.setdefault(cell.place.row, []).append(cell)
        return rows

    @property
    def is_printed(self) -> bool:
        """Whether the paper prints it."""
        return self.cells[0].printed is not None

    @property
    def agreeing(self) -> int:
        """How many figures agree."""
        return sum(cell.agrees is True for cell in self.cells)

    @property
    def notes(self) -> list[tuple[Note | None, list[Cell]]]:
        """Disagreements by the sentence on them, in the order of the table."""
        found: dict[Note | None, list[Cell]] = {}
        for cell in self.cells:
            if cell.agrees is False:
                found.setdefault(cell.note, []).append(cell)
        return list(found.items())


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A sentence of a paper, what was measured, and whether it holds."""

    claim: Claim
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Section:
    """All of one paper."""

    paper: Paper
    tables: tuple[ComparedTable, ...]
    claims: tuple[CheckedClaim, ...]


def compare(papers: Iterable[str], figures: Mapping[Place, float]) -> list[Section]:
    """Published and computed figures of these papers, side by side.

    Parameters
    ----------
    papers : iterable of str
        Names of `PAPERS`.
    figures : mapping
        What was computed.
    """
    published = read_published().of(papers)
    return [_section(published.of([paper.name]), paper, figures) for paper in published.papers]


def _section(published: Published, paper: Paper, figures: Mapping[Place, float]) -> Section:
    printed = [_compared(table, figures) for table in published.tables]
    names = {table.table for table in published.tables}
    drawn: dict[str, list[Cell]] = {}
    for place, value in figures.items():
        if place.paper == paper.name and place.table not in names:
            drawn.setdefault(place.table, []).append(Cell(place, None, value, None))
    tables = [*printed, *(ComparedTable(name, "", tuple(cells)) for name, cells in drawn.items())]
    checked = [CheckedClaim(claim, CHECKS[claim.check](figures)) for claim in published.claims]
    return Section(paper, tuple(tables), tuple(checked))


def _compared(table: Table, figures: Mapping[Place, float]) -> ComparedTable:
    cells = tuple(
        Cell(place, printed, figures[place], table.note_on(place))
        for place, printed in table.figures.items()
    )
    orders = tuple(rank_correlations(table, figures)) if table.ordered else ()
    return ComparedTable(table.table, table.title, cells, orders, table.ordered_without)


def rank_correlations(
    table: Table, figures: Mapping[Place, float]
) -> Iterator[tuple[str, float, float | None]]:
    """Spearman's correlation of published and computed over the rows of each column.

    Parameters
    ----------
    table : Table
        What was printed.
    figures : mapping
        What was computed.
    """
    from scipy.stats import spearmanr

    for column in table.columns:
        pairs = [
            (place.row, printed.low, figures[place])
            for place, printed in table.figures.items()
            if place.column == column
        ]
        kept = [pair for pair in pairs if not fnmatchcase(pair[0], table.ordered_without)]
        whole, part = (
            float(spearmanr([low for _, low, _ in each], [value for *_, value in each]).statistic)
            for each in (pairs, kept)
        )
        yield column, whole, part if table.ordered_without else None
