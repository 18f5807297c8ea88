"""The papers' tables beside kohort's own figures.

A paper's module lists its configurations: frozen dataclasses with a `source` (the reference file), a
`label` and one verb, `measure`, which gives the figures of the paper's tables that belong to it.
`published.toml` has what was printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.tasks.reference import Configuration

PAPERS = ("comparative-study", "modeling-projections", "mic1d", "statistical-dependence")


def configurations(papers: Iterable[str]) -> list[Configuration]:
    """All configurations of these papers, in the order of their tables."""
    from kohort.flows.reproduction import (
        comparative_study,
        mic1d,
        modeling_projections,
        statistical_dependence,
    )

    modules = (comparative_study, modeling_projections, mic1d, statistical_dependence)
    listed = dict(zip(PAPERS, modules, strict=True))
    return [each for paper in papers for each in listed[paper].configurations()]


def needed_files(papers: Iterable[str]) -> dict[str, Path]:
    """Reference files of these papers by name, or one sentence on those that are missing."""
    from kohort.tasks.reference import SOURCES, locate

    return locate(each.source for each in configurations(papers) if each.source in SOURCES)
