"""The reference files, public test sets that are no part of this project, and figures made of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kohort.errors import WaveError

if TYPE_CHECKING:
    import pandas as pd

DEFAULT = Path("data") / "reference"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a figure stands."""

    paper: str
    table: str
    row: str
    column: str


class Configuration(Protocol):
    """One protection of one reference file, and what a paper measures on it: a frozen dataclass."""

    @property
    def source(self) -> str:
        """The reference file, by its name in SOURCES; any other name is data that it draws itself."""
        ...

    @property
    def label(self) -> str:
        """What a progress line calls it."""
        ...

    def measure(self, x: pd.DataFrame | None) -> Iterable[tuple[Place, float]]:
        """The figures that follow from it."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """One reference file."""

    file: str
    rows: int
    columns: int
    publisher: str


SOURCES = {
    "census": Source("census.csv", 1080, 13, "CASCrefmicrodata of the R package sdcMicro"),
    "tarragona": Source("tarragona.csv", 834, 13, "Tarragona of the R package sdcMicro"),
    "eia": Source("eia.csv", 4092, 15, "EIA of the R package sdcMicro"),
    "water_treatment": Source(
        "water_treatment.csv",
        527,
        39,
        "Water Treatment Plant of the UCI Machine Learning Repository, with its attributes' names",
    ),
}


def reference_folder() -> Path:
    """The folder that KOHORT_REFERENCE names, else data/reference."""
    return Path(os.environ.get("KOHORT_REFERENCE") or DEFAULT).absolute()


def locate(names: Iterable[str]) -> dict[str, Path]:
    """Paths of these reference files, or one sentence on those that are missing."""
    folder, needed = reference_folder(), set(names)
    paths = {name: folder / source.file for name, source in SOURCES.items() if name in needed}
    missing = [SOURCES[name] for name, path in paths.items() if not path.is_file()]
    if missing:
        listed = "; ".join(f"{source.file} ({source.publisher})" for source in missing)
        raise WaveError(
            f"reference files are missing: {listed}; save them with a header line into {DEFAULT}, "
            "or set KOHORT_REFERENCE to the folder that has them"
        )
    return paths


def read_reference(name: str, path: Path) -> pd.DataFrame:
    """A reference file, if it is the one that the papers used."""
    import pandas as pd

    source = SOURCES[name]
    frame = pd.read_csv(path)
    if frame.shape != (source.rows, source.columns):
        raise WaveError(
            f"{source.file} has {frame.shape[0]} records and {frame.shape[1]} columns, but the papers' "
            f"has {source.rows} and {source.columns}; take it from {source.publisher}"
        )
    return frame


def figures_of(configuration: Configuration, path: Path | None) -> dict[Place, float]:
    """All figures of a configuration; `path` is that of its reference file, if it has one."""
    x = None if path is None else read_reference(configuration.source, path)
    return dict(configuration.measure(x))
