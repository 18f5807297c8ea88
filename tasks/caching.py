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
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kohort.tasks
from kohort.tasks.store import Artifact, Store

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
        discard_untrusted_record(Store(Path(arguments["store"])), key)
        return key

    return key_of


def discard_untrusted_record(store: Store, key: str) -> None:
    """Remove a record that is not ours, or whose Parquet file is gone or damaged.

    Prefect believes a record whatever it says: one that names pickle as its serializer would run
    code, and one whose file was deleted would still count as cached. Without the record the stage is
    simply done again.
    """
    record = store.records / key
    if not record.is_symlink() and not record.exists():
        return
    artifact = trusted_artifact(record)
    if artifact is None or not store.holds(artifact):
        record.unlink(missing_ok=True)


def trusted_artifact(record: Path) -> Artifact | None:
    """The artifact that a record names, if the record has exactly the form that kohort writes.

    Any object in it that is not exactly as expected could name a class, which Prefect would import.
    """
    try:
        if record.is_symlink():
            return None
        content = json.loads(record.read_bytes(), object_pairs_hook=_each_name_once)
        result = json.loads(content["result"], object_pairs_hook=_each_name_once)
        metadata = dict(content["metadata"])
        if (
            set(content) != {"metadata", "result"}
            or metadata.pop("serializer") != expected_serializer()
            or set(metadata) != {"storage_key", "expiration", "prefect_version", "storage_block_id"}
            or not all(value is None or isinstance(value, str) for value in metadata.values())
            or _types(result) != {"sha256": str, "rows": int, "seconds": float}
        ):
            return None
        return Artifact(_hexadecimal(result["sha256"]), result["rows"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of a name given twice Prefect would decode the value that we do not see."""
    if len(pairs) != len(dict(pairs)):
        raise ValueError("a name is given twice")
    return dict(pairs)


def _types(values: Mapping[str, Any]) -> dict[str, type]:
    return {name: type(value) for name, value in values.items()}


@functools.cache
def expected_serializer() -> dict[str, Any]:
    """How a record of ours says that it is JSON; a record may name other decoders, and run them."""
    from prefect.serializers import JSONSerializer

    return JSONSerializer().model_dump(mode="json")


def _hexadecimal(digest: str) -> str:
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise ValueError("no digest")
    return digest
