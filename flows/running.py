"""One run of a flow: its store, the stages it starts, and what it notes of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prefect import Task
from prefect.futures import PrefectConcurrentFuture, PrefectFuture

from kohort.errors import KohortError, StageFailed
from kohort.flows.journal import Journal
from kohort.flows.progress import Listener, Silent, StageRow
from kohort.tasks.housekeeping import in_use
from kohort.tasks.recording import recorded
from kohort.tasks.stage import attempts_of
from kohort.tasks.store import Artifact, Store

WINDOW = 64  # stages under way at once, of those that come in hundreds
ORDER = (
    "ingest",
    "normalize",
    "assign_blocks",
    "project",
    "partition",
    "replace",
    "whole_file",
    "assemble",
    "verify",
    "evaluate",
    "measure",
    "gate",
    "publish",
)
SERVER = frozenset({"prefect", "httpx", "httpcore", "websockets"})  # whose errors are about the server
LISTENER: Listener = Silent()
"""Who hears of finished stages: the command line sets it, a worker leaves it."""


@contextmanager
def quoting_nothing() -> Iterator[None]:
    """Within a flow, outside of its stages: no exception whose text or context may quote a cell.

    Prefect keeps the text of what a flow raises. Errors of the server and of the system pass, for the
    command to say what they mean.
    """
    try:
        yield
        return
    except KohortError as error:
        failure = error
    except Exception as error:
        system = isinstance(error, OSError) and error.errno is not None
        if system or type(error).__module__.partition(".")[0] in SERVER:
            raise
        failure = StageFailed(f"the run stopped on {type(error).__name__}; run it again to continue")
    failure.__cause__ = failure.__context__ = None
    raise failure


@contextmanager
def running_on(store: Path | None, *, keep: float | None = None, discard: bool = False) -> Iterator[Run]:
    """A run on a store, which is in use until every stage has come to its end.

    Parameters
    ----------
    store : Path, optional
        The store's folder; by default under KOHORT_HOME.
    keep : float, optional
        The lifetime of artifacts in seconds: older ones are removed before and after the run.
    discard : bool
        Whether the run leaves no intermediate file behind.
    """
    with in_use(Store(store), keep=keep, discard=discard) as files:
        run = Run(files)
        try:
            yield run
        finally:
            run.settle()


@dataclass
class Run:
    """One run's store and the stages it has done."""

    store: Store
    journal: Journal | None = None
    finished: list[StageRow] = field(default_factory=list)
    started: list[PrefectFuture[Any]] = field(default_factory=list)

    @property
    def rows(self) -> list[StageRow]:
        """The stages done, in the order in which a wave passes them."""
        return sorted(self.finished, key=lambda row: ORDER.index(row.stage.split()[0]))

    def start(self, task: Task[..., Any], **inputs: Any) -> PrefectFuture[Any]:
        """Submit a stage; its record goes to this run's store."""
        future = recorded(task, self.store).submit(store=self.store.root, **inputs)
        self.started.append(future)
        return future

    def settle(self) -> None:
        """Cancel stages that have not begun and wait for the rest: none may write to a store let go."""
        for future in self.started:
            if isinstance(future, PrefectConcurrentFuture):
                future.wrapped_future.cancel()  # no effect on what is under way or done
        for future in self.started:
            with suppress(Exception):  # it has been said where it was asked for
                future.wait()

    def finish(
        self, task: Task[..., Any], future: PrefectFuture[Any], block: int | None = None
    ) -> Artifact:
        """Wait for a stage and note it."""
        made = future.result()
        cached = future.state.name == "Cached"
        row = StageRow(
            stage=task.name,
            block=block,
            sha256=made["sha256"],
            rows=made["rows"],
            seconds=made["seconds"],
            cached=cached,
            attempts=made["attempts"],
            repaired=None if cached else made["repaired"],
        )
        self._note(row)
        return Artifact(made["sha256"], made["rows"])

    def do(self, task: Task[..., Any], **inputs: Any) -> Artifact:
        """One stage, start to finish."""
        return self.finish(task, self.start(task, **inputs))

    def do_blocks(self, task: Task[..., Any], inputs: Iterable[dict[str, Any]]) -> list[Artifact]:
        """One stage of all blocks, in parallel."""
        futures = [self.start(task, block=number, **each) for number, each in enumerate(inputs)]
        return [self.finish(task, future, number) for number, future in enumerate(futures)]

    def do_many(
        self, task: Task[..., Any], inputs: Sequence[dict[str, Any]], *, label: str
    ) -> list[Artifact]:
        """A stage that comes in hundreds: noted as one row, whose `rows` count them."""
        made: list[dict[str, Any]] = []
        cached, repaired = True, None
        for first in range(0, len(inputs), WINDOW):
            futures = [self.start(task, **each) for each in inputs[first : first + WINDOW]]
            for future in futures:
                made.append(future.result())
                if future.state.name != "Cached":
                    cached = False
                    repaired = repaired or made[-1]["repaired"]
        seconds = round(sum(each["seconds"] for each in made), 4)
        attempts = max((each["attempts"] for each in made), default=1)
        row = StageRow(label, None, None, len(made), seconds, cached, attempts, repaired)
        self._note(row, [each["sha256"] for each in made])
        return [Artifact(each["sha256"], each["rows"]) for each in made]

    def do_uncached(self, task: Task[..., Any], **inputs: Any) -> Any:
        """A stage that is done in every run."""
        started = time.perf_counter()
        future = task.submit(**inputs)
        result = future.result()
        seconds = round(time.perf_counter() - started, 4)
        attempts = attempts_of(future.task_run_id)
        self._note(StageRow(task.name, None, None, None, seconds, cached=False, attempts=attempts))
        return result

    @property
    def lines(self) -> list[str]:
        """The journal so far."""
        return [] if self.journal is None else self.journal.lines()

    def _note(self, row: StageRow, artifacts: Sequence[str] = ()) -> None:
        """A stage is done: the manifest, the journal and whoever watches hear of it."""
        self.finished.append(row)
        if self.journal is not None:
            self.journal.stage(row, artifacts)
        LISTENER.finished(row)
