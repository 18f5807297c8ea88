"""Where the comparison goes: standard output, or a folder with the drawn figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kohort.errors import PlanError
from kohort.flows.reproduction import statistical_dependence
from kohort.flows.reproduction.figures import ADVICE, can_draw, draw
from kohort.flows.reproduction.formats import FORMATS
from kohort.flows.reproduction.report import Section
from kohort.tasks.reference import Place

NAME = "reproduction"


def write_comparison(
    sections: Sequence[Section], figures: Mapping[Place, float], form: str, out: Path | None
) -> list[str]:
    """Print or write the comparison, and return what else is to be said.

    Parameters
    ----------
    sections : sequence of Section
        What is compared.
    figures : mapping
        What was computed.
    form : str
        A name of FORMATS.
    out : Path, optional
        The folder for the file and the drawn figures; without it the comparison is printed.
    """
    ending, render = FORMATS[form]
    if out is None:
        sys.stdout.write(render(sections, ()))
        return []
    drawings: list[str] = []
    said: list[str] = []
    page = out / f"{NAME}.{ending}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(section.paper.name == statistical_dependence.PAPER for section in sections):
            drawings, said = (draw(figures, out), []) if can_draw() else ([], [ADVICE])
        page.write_text(render(sections, drawings), encoding="utf-8")
    except OSError as error:
        raise PlanError(f"--out {out} cannot be written ({error.strerror}); choose another") from None
    return [*said, f"wrote {page}", *(f"wrote {out / name}" for name in drawings)]
