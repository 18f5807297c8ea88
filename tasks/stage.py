"""The decorator that makes a Prefect task of a stage.

It is the same for every stage: a cache key made of content, a small JSON record as the result, one
sentence instead of a foreign exception (whose text may quote a cell), and no captured prints.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from prefect import Task, task
from prefect.cache_policies import NO_CACHE

from kohort.errors import KohortError, StageFailed
from kohort.tasks.caching import cache_key
from kohort.tasks.memory import return_unused
from kohort.tasks.store import Artifact


def stage(name: str) -> Callable[[Callable[..., Artifact]], Task[..., dict[str, Any]]]:
    """A cached stage: its function takes a store and artifacts, and returns the artifact it wrote."""

    def decorate(function: Callable[..., Artifact]) -> Task[..., dict[str, Any]]:
        @functools.wraps(function)
        def run(*args: Any, **arguments: Any) -> dict[str, Any]:
            started = time.perf_counter()
            artifact = guarded(name, function)(*args, **arguments)
            return_unused()
            return {**asdict(artifact), "seconds": round(time.perf_counter() - started, 4)}

        return task(
            name=name,
            task_run_name=f"{name} {{block}}" if "block" in function.__annotations__ else name,
            cache_key_fn=cache_key(name),
            persist_result=True,
            result_serializer="json",
            log_prints=False,
        )(run)

    return decorate


def uncached_stage(name: str) -> Callable[[Callable[..., Any]], Task[..., Any]]:
    """A stage that is done in every run, because it looks at or changes the world outside."""

    def decorate(function: Callable[..., Any]) -> Task[..., Any]:
        return task(name=name, cache_policy=NO_CACHE, persist_result=False, log_prints=False)(
            guarded(name, function)
        )

    return decorate


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn any exception that is not ours into StageFailed, without its text."""

    @functools.wraps(function)
    def run(*args: Any, **arguments: Any) -> Any:
        try:
            return function(*args, **arguments)
        except KohortError:
            raise
        except Exception as error:
            block = arguments.get("block")
            where = name if block is None else f"{name}, block {block}"
            raise StageFailed(f"{where}: {_named(error)}") from None

    return run


def _named(error: Exception) -> str:
    """The exception's type, and for an operating system's error its standard text."""
    text = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__} ({text})" if text else type(error).__name__
