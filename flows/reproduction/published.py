"""What the papers printed, from `published.toml`, and why kohort computes something else in places."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.resources import files
from typing import Any

from kohort.tasks.reference import Place

UNIT = 0.51  # of the last printed digit: half of it, and a little for a paper's own arithmetic


@dataclass(frozen=True, slots=True)
class Printed:
    """A figure as it was printed: one number, or the limits of a range."""

    text: str
    low: float
    high: float
    tolerance: float

    @property
    def decimals(self) -> int:
        """Printed digits behind the point."""
        return len(self.text.partition(".")[2].split(" ")[0])

    def difference(self, computed: float) -> float:
        """Computed minus printed, 0 inside a range."""
        return computed - min(max(computed, self.low), self.high)

    def agrees(self, computed: float) -> bool:
        """Whether the two are the same to the tolerance."""
        return abs(self.difference(computed)) <= self.tolerance


def read_printed(text: str, tolerance: float | None = None) -> Printed:
    """A cell such as ".83" or "16.01 - 16.75"; it is exact to half a unit of its last digit.

    Parameters
    ----------
    text : str
        The cell as printed.
    tolerance : float, optional
        Another tolerance.
    """
    numbers = text.split(" - ")
    if len(numbers) > 2 or not all(re.fullmatch(r"\d*\.\d+", number) for number in numbers):
        raise ValueError(f"{text!r} is no figure such as 16.01, and no range of two")
    decimals = len(numbers[0].partition(".")[2])
    if tolerance is None:
        tolerance = UNIT * 10.0**-decimals
    return Printed(text, float(numbers[0]), float(numbers[-1]), tolerance)


@dataclass(frozen=True, slots=True)
class Note:
    """Why figures differ: of rows and columns that match a pattern."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    sentence: str

    def covers(self, row: str, column: str) -> bool:
        """Whether the note is about this figure."""
        return any(fnmatchcase(row, each) for each in self.rows) and any(
            fnmatchcase(column, each) for each in self.columns
        )


@dataclass(frozen=True)
class Table:
    """One table of a paper."""

    paper: str
    table: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The name of the row, then its cells."""
    tolerance: float | None = None
    ordered: bool = False
    """Whether the order of the rows is compared too, where levels do not agree."""
    ordered_without: str = ""
    """Rows (a pattern) that a second comparison of the order leaves out."""
    notes: tuple[Note, ...] = ()

    @cached_property
    def figures(self) -> dict[Place, Printed]:
        """Every printed figure."""
        return {
            Place(self.paper, self.table, name, column): read_printed(cell, self.tolerance)
            for name, *cells in self.rows
            for column, cell in zip(self.columns, cells, strict=True)
        }

    def note_on(self, place: Place) -> Note | None:
        """The first note that covers a figure."""
        return next((note for note in self.notes if note.covers(place.row, place.column)), None)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper that can be checked."""

    paper: str
    section: str
    check: str
    """Name of the function in `claims.CHECKS`."""
    text: str
    sentence: str = ""
    """Why it does not hold here."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, and what the page says about its settings."""

    name: str
    title: str
    authors: str
    settings: str


@dataclass(frozen=True)
class Published:
    """All that is printed."""

    papers: tuple[Paper, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]

    def of(self, papers: Iterable[str]) -> Published:
        """What is printed in these papers."""
        names = set(papers)
        return Published(
            tuple(each for each in self.papers if each.name in names),
            tuple(each for each in self.tables if each.paper in names),
            tuple(each for each in self.claims if each.paper in names),
        )


def read_published() -> Published:
    """Read `published.toml`."""
    source = files("kohort.flows.reproduction").joinpath("published.toml")
    content = tomllib.loads(source.read_text(encoding="utf-8"))
    return Published(
        tuple(Paper(**each) for each in content["papers"]),
        tuple(_tables(content["tables"])),
        tuple(Claim(**each) for each in content["claims"]),
    )


def _tables(listed: Iterable[dict[str, Any]]) -> Iterator[Table]:
    for each in listed:
        notes = tuple(
            Note(tuple(note["rows"]), tuple(note["columns"]), note["sentence"])
            for note in each.pop("notes", ())
        )
        rows = tuple(tuple(row) for row in each.pop("rows"))
        yield Table(**{**each, "columns": tuple(each["columns"])}, rows=rows, notes=notes)
