"""What a run tells while it goes: one row a stage, shown on a terminal or as plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from kohort.tasks.records import REPAIRS


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
    attempts: int = 1
    """How often it was tried when it was computed."""
    repaired: str | None = None
    """What was wrong with what an earlier run had left, so that it was made again."""

    def as_json(self) -> dict[str, Any]:
        """The row as a dict."""
        return asdict(self)

    @property
    def label(self) -> str:
        """The stage and its block."""
        return self.stage if self.block is None else f"{self.stage}, block {self.block}"

    @property
    def how(self) -> str:
        """Whether it was found in the cache, else its time and what was out of the ordinary."""
        if self.cached:
            return "cached"
        tried = f", {self.attempts} attempts" if self.attempts > 1 else ""
        again = f", made again: {REPAIRS[self.repaired]}" if self.repaired else ""
        return f"{self.seconds:.2f} s{tried}{again}"


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


@dataclass
class Stopwatch:
    """Times the stages of a run in this process."""

    listener: Listener
    rows: list[StageRow] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One stage; noted when it is done."""
        started = time.perf_counter()
        yield
        seconds = round(time.perf_counter() - started, 4)
        row = StageRow(name, None, None, None, seconds, cached=False)
        self.rows.append(row)
        self.listener.finished(row)


class Lines:
    """One plain line a stage, on standard error."""

    def expect(self, stages: int) -> None:
        """Nothing: lines need no total."""

    def finished(self, row: StageRow) -> None:
        """Stage, time, and whether it was found in the cache."""
        sys.stderr.write(f"{row.label}: {row.how}\n")
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
        """Move on; what is out of the ordinary stays on the screen."""
        if row.repaired or (row.attempts > 1 and not row.cached):
            self._progress.console.print(f"{row.label}: {row.how}", markup=False, highlight=False)
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
