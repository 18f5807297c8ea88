"""The comparison as text, CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence

from kohort.flows.reproduction.report import Cell, CheckedClaim, ComparedTable, Section

COLUMNS = (
    "paper",
    "table",
    "row",
    "column",
    "published",
    "computed",
    "difference",
    "agrees",
    "sentence",
)
FEW = 3  # names that are listed; more are counted
INTRODUCTION = """\
# The papers' tables

This page is the output of `kohort reproduce --format markdown`: figures that were published, beside what
kohort computes from the public reference files. It is generated (`make reproduce`); published figures
and sentences on disagreements are in `flows/reproduction/published.toml`.

A cell has the published figure, the computed one and the difference. **Bold** figures disagree: they are
further apart than the printed precision, half a unit of the last digit (0.02 in the comparative study's
Table 1). Each has a sentence below its table.
"""


def as_text(sections: Sequence[Section], drawings: Sequence[str] = ()) -> str:
    """One line a figure, for a terminal."""
    lines: list[str] = []
    for section in sections:
        lines += [section.paper.title, f"  {section.paper.settings}", ""]
        for table in section.tables:
            lines += [_headline(table), *(_text_rows(table)), ""]
        lines += [line for checked in section.claims for line in _text_claim(checked)]
    return "\n".join([*lines, *(_summary_line(section) for section in sections)]) + "\n"


def _headline(table: ComparedTable) -> str:
    if not table.is_printed:
        return f"{table.name} (drawn in the paper, no printed figures)"
    agree = f"{table.agreeing} of {len(table.cells)} figures agree"
    return f"{table.name}: {table.title} ({agree})"


def _text_rows(table: ComparedTable) -> Iterator[str]:
    width = max(len(cell.place.row) for cell in table.cells)
    if not table.is_printed:
        columns = [cell.place.column for cell in next(iter(table.rows.values()))]
        yield "  " + " " * width + "".join(f"{column:>9}" for column in columns)
        for row, cells in table.rows.items():
            yield f"  {row:<{width}}" + "".join(f"{cell.computed_text:>9}" for cell in cells)
        return
    across = max(len(cell.place.column) for cell in table.cells)
    for cell in table.cells:
        yield (
            f"  {cell.place.row:<{width}}  {cell.place.column:<{across}}"
            f" {cell.published_text:>14} {cell.computed_text:>9} {cell.difference_text:>9}"
            f"{'' if cell.agrees else '  differs'}"
        )
    for column, whole, part in table.orders:
        yield f"  rank correlation, {column}: {_correlation(table, whole, part)}"
    for note, cells in table.notes:
        yield f"  {_listed(cells)}: {_sentence(note)}"


def _text_claim(checked: CheckedClaim) -> Iterator[str]:
    verdict, claim = checked.verdict, checked.claim
    yield f"{'holds' if verdict.holds else 'does not hold'} (section {claim.section}): {claim.text}"
    yield f"  measured: {verdict.measured}"
    if not verdict.holds:
        yield f"  {claim.sentence}"


def _summary_line(section: Section) -> str:
    printed = [cell for table in section.tables if table.is_printed for cell in table.cells]
    parts = []
    if printed:
        parts.append(f"{sum(cell.agrees is True for cell in printed)} of {len(printed)} figures agree")
    if section.claims:
        holding = sum(checked.verdict.holds for checked in section.claims)
        parts.append(f"{holding} of {len(section.claims)} claims hold")
    return f"{section.paper.name}: {', '.join(parts)}"


def as_csv(sections: Sequence[Section], drawings: Sequence[str] = ()) -> str:
    """One row a figure; a claim is a row whose published figure is its text."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(COLUMNS)
    for section in sections:
        for table in section.tables:
            writer.writerows(_csv_row(cell) for cell in table.cells)
        for checked in section.claims:
            claim, verdict = checked.claim, checked.verdict
            place = (claim.paper, f"section {claim.section}", claim.check, "")
            sentence = "" if verdict.holds else claim.sentence
            writer.writerow((*place, claim.text, verdict.measured, "", _yes(verdict.holds), sentence))
    return sink.getvalue()


def _csv_row(cell: Cell) -> tuple[str, ...]:
    place = cell.place
    return (
        *(place.paper, place.table, place.row, place.column),
        *(cell.published_text, cell.computed_text, cell.difference_text, _yes(cell.agrees)),
        _sentence(cell.note) if cell.agrees is False else "",
    )


def _yes(answer: bool | None) -> str:
    return "" if answer is None else "yes" if answer else "no"


def as_markdown(sections: Sequence[Section], drawings: Sequence[str] = ()) -> str:
    """A page with the tables as grids.

    Parameters
    ----------
    sections : sequence of Section
        What is compared, a section a paper.
    drawings : sequence of str
        Names of drawn figures beside the page.
    """
    lines = [INTRODUCTION, "| paper | table | figures | agree |", "| --- | --- | ---: | ---: |"]
    for section in sections:
        for table in section.tables:
            if table.is_printed:
                counts = f"{len(table.cells)} | {table.agreeing}"
                lines.append(f"| {section.paper.name} | {table.name} | {counts} |")
    for section in sections:
        paper = section.paper
        lines += ["", f"## {paper.title}", "", f"{paper.authors}. {paper.settings}"]
        if section.claims:
            lines += ["", *_markdown_claims(section.claims)]
        for name in drawings if any(not table.is_printed for table in section.tables) else ():
            lines += ["", f"![{name.removesuffix('.svg').replace('-', ' ')}]({name})"]
        for table in section.tables:
            lines += ["", *_markdown_table(table)]
    return "\n".join(lines) + "\n"


def _markdown_claims(claims: Sequence[CheckedClaim]) -> Iterator[str]:
    yield "| section | claim | measured | holds |"
    yield "| --- | --- | --- | --- |"
    for checked in claims:
        claim, verdict = checked.claim, checked.verdict
        holds = "yes" if verdict.holds else f"**no**: {claim.sentence}"
        yield f"| {claim.section} | {claim.text} | {verdict.measured} | {holds} |"


def _markdown_table(table: ComparedTable) -> Iterator[str]:
    yield f"### {table.name}: {table.title}" if table.title else f"### {table.name}"
    yield ""
    if table.is_printed:
        yield f"{table.agreeing} of {len(table.cells)} figures agree to the printed precision."
        yield ""
    columns = [cell.place.column for cell in next(iter(table.rows.values()))]
    yield f"| | {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for row, cells in table.rows.items():
        yield f"| {row} | {' | '.join(map(_markdown_cell, cells))} |"
    if table.orders:
        yield ""
        yield "Rank correlation of published and computed over the rows: " + "; ".join(
            f"{column} {_correlation(table, whole, part)}" for column, whole, part in table.orders
        )
    if table.notes:
        yield ""
        yield from (f"- {_listed(cells)}: {_sentence(note)}" for note, cells in table.notes)


def _markdown_cell(cell: Cell) -> str:
    if cell.printed is None:
        return cell.computed_text
    text = f"{cell.published_text} / {cell.computed_text} ({cell.difference_text})"
    return text if cell.agrees else f"**{text}**"


def _correlation(table: ComparedTable, whole: float, part: float | None) -> str:
    without = "" if part is None else f" ({part:.3f} without {table.left_out.strip('*')})"
    return f"{whole:.3f}{without}"


def _listed(cells: Sequence[Cell]) -> str:
    """Rows and columns of disagreements in few words."""
    rows = list(dict.fromkeys(cell.place.row for cell in cells))
    columns = list(dict.fromkeys(cell.place.column for cell in cells))
    if len(rows) > FEW and cells[0].note is not None and "*" not in cells[0].note.rows:
        families = " and ".join(pattern.strip("*-") for pattern in cells[0].note.rows)
        return f"{families} ({_counted(columns, 'columns')})"
    return f"{_counted(rows, 'rows')} ({_counted(columns, 'columns')})"


def _counted(names: Sequence[str], what: str) -> str:
    return "; ".join(names) if len(names) <= FEW else f"{len(names)} {what}"


def _sentence(note: object) -> str:
    return getattr(note, "sentence", "it differs, and nobody has said why yet")


FORMATS: dict[str, tuple[str, Callable[[Sequence[Section], Sequence[str]], str]]] = {
    "text": ("txt", as_text),
    "csv": ("csv", as_csv),
    "markdown": ("md", as_markdown),
}
