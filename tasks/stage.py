"""The decorator that makes a Prefect task of a stage.

It is the same for every stage: a cache key made of content, a small JSON record as the result, one
sentence instead of a foreign exception (whose text may quote a cell), no captured prints, and another
try for what can pass, such as a disk that hiccups.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext
from prefect.tasks import exponential_backoff

from kohort.errors import KohortError, StageFailed
from kohort.tasks.caching import cache_key, repair_of
from kohort.tasks.disk import can_pass, in_words, state_folder, trouble
from kohort.tasks.memory import return_unused
from kohort.tasks.records import note_of
from kohort.tasks.store import Artifact

RETRIES = 3
FIRST_DELAY = 1.0  # seconds; doubled from try to try
JITTER = 0.5  # so that blocks that failed together do not come back together


def may_pass(task: Any, task_run: Any, state: Any) -> bool:
    """Prefect's `retry_condition_fn`: only what waiting can help."""
    return isinstance(state.data, StageFailed) and state.data.can_pass


RETRYING: dict[str, Any] = {
    "retries": RETRIES,
    "retry_delay_seconds": exponential_backoff(FIRST_DELAY),
    "retry_jitter_factor": JITTER,
    "retry_condition_fn": may_pass,
}
_ATTEMPTS: dict[UUID, int] = {}
"""Attempts of uncached stages that took more than one, by task run: their results are their own."""


def stage(name: str) -> Callable[[Callable[..., Artifact]], Task[..., dict[str, Any]]]:
    """A cached stage: its function takes a store and artifacts, and returns the artifact it wrote."""

    def decorate(function: Callable[..., Artifact]) -> Task[..., dict[str, Any]]:
        @functools.wraps(function)
        def run(*args: Any, **arguments: Any) -> dict[str, Any]:
            started = time.perf_counter()
            artifact = guarded(name, function)(*args, **arguments)
            return_unused()
            task_run, attempts = _this_attempt()
            return note_of(
                artifact,
                stage=name,
                seconds=round(time.perf_counter() - started, 4),
                attempts=attempts,
                repaired=repair_of(task_run),
            )

        return task(
            name=name,
            task_run_name=f"{name} {{block}}" if "block" in function.__annotations__ else name,
            cache_key_fn=cache_key(name),
            persist_result=True,
            result_serializer="json",
            log_prints=False,
            **RETRYING,
        )(run)

    return decorate


def uncached_stage(name: str) -> Callable[[Callable[..., Any]], Task[..., Any]]:
    """A stage that is done in every run, because it looks at or changes the world outside."""

    def decorate(function: Callable[..., Any]) -> Task[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **arguments: Any) -> Any:
            result = guarded(name, function)(*args, **arguments)
            task_run, attempts = _this_attempt()
            if task_run is not None and attempts > 1:
                _ATTEMPTS[task_run] = attempts
            return result

        return task(
            name=name, cache_policy=NO_CACHE, persist_result=False, log_prints=False, **RETRYING
        )(run)

    return decorate


def attempts_of(task_run: UUID) -> int:
    """How often an uncached stage of this process was tried."""
    return _ATTEMPTS.pop(task_run, 1)


def _this_attempt() -> tuple[UUID | None, int]:
    """The task run under way and the number of its attempt; outside of Prefect, none and the first."""
    context = TaskRunContext.get()
    return (None, 1) if context is None else (context.task_run.id, max(context.task_run.run_count, 1))


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn any exception that is not ours into StageFailed, without its text.

    What is raised has no context: a log that shows the whole chain, suppressed or not, quotes nothing.
    """

    @functools.wraps(function)
    def run(*args: Any, **arguments: Any) -> Any:
        try:
            return function(*args, **arguments)
        except StageFailed as error:
            where = f"{_where(name, arguments)}: "
            said = str(error) if str(error).startswith(where) else f"{where}{error}"
            failure: KohortError = StageFailed(said, can_pass=error.can_pass)
        except KohortError as error:
            failure = error
        except Exception as error:
            said = trouble(error, _folders(function, args, arguments)) or _named(error)
            failure = StageFailed(f"{_where(name, arguments)}: {said}", can_pass=can_pass(error))
        failure.__cause__ = failure.__context__ = None
        raise failure

    return run


def _where(name: str, arguments: dict[str, Any]) -> str:
    block = arguments.get("block")
    return name if block is None else f"{name}, block {block}"


def _folders(
    function: Callable[..., Any], args: tuple[Any, ...], arguments: dict[str, Any]
) -> dict[str, Path]:
    """The folders that a stage may write to; one that has an output folder writes only there."""
    given = inspect.signature(function).bind_partial(*args, **arguments).arguments
    out = given.get("out") or (Path(given["staging"]).parent if "staging" in given else None)
    named = {"output folder": out, "store": given.get("store")}
    return {kind: Path(folder) for kind, folder in named.items() if folder} | state_folder()


def _named(error: Exception) -> str:
    """The exception's type, and for an operating system's error its standard text."""
    text = in_words(error) if isinstance(error, OSError) else None
    return f"{type(error).__name__} ({text})" if text else type(error).__name__
