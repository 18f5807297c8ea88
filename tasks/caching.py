"""The one rule for cache keys, and the check of a record before Prefect opens it.

A key is made of content: digests of the inputs, the stage's own parameters, the code of kohort's
mathematics and of all tasks, the versions of the numerical libraries, and the CPU's features.
Where files lie and how blocks are numbered is not in it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import kohort.tasks
from kohort.tasks.records import trusted
from kohort.tasks.store import Store

NOT_IN_KEYS = frozenset({"store", "block", "wave"})  # where things are, not what they are
LIBRARIES = ("numba", "numpy", "pyarrow", "scipy")


@functools.cache
def code_digest() -> str:
    """SHA-256 over all of kohort's mathematics and of its tasks, by path and content."""
    digest = hashlib.sha256()
    for package in (kohort, kohort.tasks):
        root = Path(inspect.getfile(package)).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the libraries that decide a result."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


@functools.cache
def cpu() -> dict[str, str]:
    """Architecture, CPU type and a digest of its features: the last digits depend on them."""
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    return {
        "architecture": platform.machine(),
        "type": binding.get_host_cpu_name(),
        "features": hashlib.sha256(features.encode()).hexdigest()[:16],
    }


def stage_key(stage: str, inputs: Mapping[str, Any]) -> str:
    """Key of a stage with these inputs."""
    content = {
        "stage": stage,
        "inputs": {n: _canonical(v) for n, v in inputs.items() if n not in NOT_IN_KEYS},
        "code": code_digest(),
        "versions": versions(),
        "cpu": cpu(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """A value as JSON that differs where the value does."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _canonical(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(name): _canonical(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be part of a cache key")


def cache_key(stage: str) -> Callable[[Any, dict[str, Any]], str]:
    """Prefect's `cache_key_fn` of a stage; a record that cannot be trusted is removed on the way."""

    def key_of(context: Any, arguments: dict[str, Any]) -> str:
        key = stage_key(stage, arguments)
        reason = discard_untrusted_record(Store(Path(arguments["store"])), key)
        if reason is not None and context is not None:
            _REPAIRS[context.task_run.id] = reason
        return key

    return key_of


_REPAIRS: dict[UUID, str] = {}
"""Why stages under way are made again, by task run."""


def repair_of(task_run: UUID | None) -> str | None:
    """Why the stage of this task run is made again, if it was there before."""
    return None if task_run is None else _REPAIRS.pop(task_run, None)


def discard_untrusted_record(store: Store, key: str) -> str | None:
    """Remove a record that is not ours, or whose Parquet file is gone or damaged; say which.

    Prefect believes a record whatever it says: one that names pickle as its serializer would run
    code, and one whose file was deleted would still count as cached. Without the record the stage is
    simply done again. What is trusted counts as used now.
    """
    record = store.records / key
    if not record.is_symlink() and not record.exists():
        return None
    note = trusted(record)
    reason = note if isinstance(note, str) else store.lacks(note.artifact)
    if reason is None:
        with suppress(OSError):
            os.utime(record)
    elif record.is_dir() and not record.is_symlink():
        shutil.rmtree(record)
    else:
        record.unlink(missing_ok=True)
    return reason
