"""What a run tells while it goes: one row a stage, shown on a terminal or as plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class StageRow:
    """A finished stage, as the manifest lists it."""

    stage: str
    block: int | None
    sha256: str | None
    rows: int | None
    seconds: float
    """What it took when it was computed: in this run, or in the one that left it in the cache."""
    cached: bool

    def as_json(self) -> dict[str, Any]:
        """The row as a dict."""
        return asdict(self)

    @property
    def label(self) -> str:
        """The stage and its block."""
        return self.stage if self.block is None else f"{self.stage}, block {self.block}"


class Listener(Protocol):
    """Hears of every stage."""

    def expect(self, stages: int) -> None:
        """How many stages there will be in all."""
        ...

    def finished(self, row: StageRow) -> None:
        """A stage is done."""
        ...


class Silent:
    """Says nothing."""

    def expect(self, stages: int) -> None:
        """Nothing."""

    def finished(self, row: StageRow) -> None:
        """Nothing."""


class Lines:
    """One plain line a stage, on standard error."""

    def expect(self, stages: int) -> None:
        """Nothing: lines need no total."""

    def finished(self, row: StageRow) -> None:
        """Stage, time, and whether it was found in the cache."""
        how = "cached" if row.cached else f"{row.seconds:.2f} s"
        sys.stderr.write(f"{row.label}: {how}\n")
        sys.stderr.flush()


class Bar:
    """A progress bar on a terminal."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)
        self._cached = 0

    def expect(self, stages: int) -> None:
        """Set the bar's length."""
        self._progress.update(self._task, total=stages)

    def finished(self, row: StageRow) -> None:
        """Move on."""
        self._cached += row.cached
        note = f" ({self._cached} cached)" if self._cached else ""
        self._progress.update(self._task, advance=1, description=f"{row.label}{note}")


@contextmanager
def listening(*, plain: bool = False) -> Iterator[Listener]:
    """A bar where a person watches, lines where a log does."""
    if plain or not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("kohort"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress)
