"""Records: one small JSON file a finished stage, which says what the stage made.

Prefect writes and reads them. It believes whatever a record says, so that a record is checked before
Prefect opens it: its form exactly, its name, and a digest of what it says.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kohort.tasks.store import Artifact

REPAIRS = {
    "deleted": "its file was deleted",
    "damaged": "its file was damaged",
    "linked": "its file was a link",
    "damaged record": "its record was damaged",
    "foreign record": "its record was not one of kohort's own",
}
"""Why a stage was made again, and how that is said."""
KEY = re.compile("[0-9a-f]{64}")
STAGE = re.compile("[a-z_]{1,40}")
TYPES = {"sha256": str, "rows": int, "seconds": float, "stage": str, "attempts": int, "check": str}


@dataclass(frozen=True, slots=True)
class Note:
    """What a record says."""

    artifact: Artifact
    stage: str


def note_of(
    artifact: Artifact, *, stage: str, seconds: float, attempts: int = 1, repaired: str | None = None
) -> dict[str, Any]:
    """What a stage returns and its record keeps, with a digest of itself."""
    note = {
        **asdict(artifact),
        "seconds": float(seconds),
        "stage": stage,
        "attempts": attempts,
        "repaired": repaired,
    }
    return {**note, "check": _check(note)}


def _check(note: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()


def read_note(record: Path) -> Note | str:
    """What a record says, or what is wrong with it: "damaged record" or "foreign record".

    Only JSON is parsed here, so that any record may be looked at.
    """
    try:
        if record.is_symlink() or not record.is_file():
            return "foreign record"
        content = _parsed(record.read_bytes())
        metadata = content["metadata"]
        if metadata["serializer"]["type"] != "json":
            return "foreign record"
        named = Path(metadata["storage_key"]).name
        result = _parsed(content["result"])
    except (OSError, ValueError, RecursionError):
        return "damaged record"
    except (KeyError, TypeError, AttributeError):
        return "foreign record"
    if not isinstance(result, dict) or not _is_note(result) or named != record.name:
        return "foreign record"
    if result.pop("check") != _check(result):
        return "damaged record"
    return Note(Artifact(result["sha256"], result["rows"]), result["stage"])


def _parsed(text: bytes | str) -> Any:
    return json.loads(text, object_pairs_hook=_each_name_once)


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of a name given twice Prefect would decode the value that we do not see."""
    if len(pairs) != len(dict(pairs)):
        raise ValueError("a name is given twice")
    return dict(pairs)


def _is_note(result: Mapping[str, Any]) -> bool:
    """Whether it has exactly the form that kohort writes.

    Any object in it that is not exactly as expected could name a class, which Prefect would import.
    """
    plain = {name: value for name, value in result.items() if name != "repaired"}
    return (
        {name: type(value) for name, value in plain.items()} == TYPES
        and "repaired" in result
        and (result["repaired"] is None or result["repaired"] in tuple(REPAIRS))
        and KEY.fullmatch(result["sha256"]) is not None
        and STAGE.fullmatch(result["stage"]) is not None
    )


def trusted(record: Path) -> Note | str:
    """What a record says that Prefect may open; else what is wrong with it."""
    note = read_note(record)
    if isinstance(note, str):
        return note
    try:
        content = _parsed(record.read_bytes())
        metadata = dict(content["metadata"])
        ours = (
            set(content) == {"metadata", "result"}
            and metadata.pop("serializer") == expected_serializer()
            and set(metadata) == {"storage_key", "expiration", "prefect_version", "storage_block_id"}
            and all(value is None or isinstance(value, str) for value in metadata.values())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "foreign record"
    return note if ours else "foreign record"


@functools.cache
def expected_serializer() -> dict[str, Any]:
    """How a record of ours says that it is JSON; a record may name other decoders, and run them."""
    from prefect.serializers import JSONSerializer

    return JSONSerializer().model_dump(mode="json")
