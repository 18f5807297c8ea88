"""Two files of the same records: which row of one is which row of the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.errors import WaveError
from kohort.tasks.wave import digest_of

Rows = npt.NDArray[np.int64]


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """Say which of two files breaks a rule."""
    try:
        yield
    except WaveError as error:
        message = str(error)
        raise WaveError(message if str(path) in message else f"{path}: {message}") from None


@contextmanager
def unchanged_file(path: Path, digest: str) -> Iterator[None]:
    """Refuse a file that is no longer the one whose digest was taken."""
    if digest_of(path) != digest:
        raise WaveError(f"{path} changed while it was read; run it again")
    with of_file(path):
        yield


def match_keys(original: pa.ChunkedArray, protected: pa.ChunkedArray, *, key: str) -> Rows:
    """The row of the protected file (n,) that every record of the original one is.

    Parameters
    ----------
    original, protected : Arrow columns
        The key of both files; no value twice.
    key : str
        Its name, for the message.
    """
    left, right = _comparable(original, protected, key)
    rows = pc.index_in(left, value_set=right.combine_chunks())
    lost = rows.null_count
    added = len(right) - (len(left) - lost)
    if lost or added:
        raise WaveError(
            f"by key {key!r}, {lost} of {len(left)} original records are not in the protected file, and "
            f"{added} of {len(right)} protected records are not in the original one; evaluate files of "
            "the same records"
        )
    return np.asarray(rows.to_numpy(), dtype=np.int64)


def _comparable(
    left: pa.ChunkedArray, right: pa.ChunkedArray, key: str
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Both keys as one type, so that equal keys are equal whatever wrote the files."""
    if left.type == right.type:
        return left, right
    for is_kind, common in (
        (pa.types.is_integer, pa.decimal128(20, 0)),  # holds every 64-bit number, signed or not
        (_is_text, pa.large_string()),
    ):
        if is_kind(left.type) and is_kind(right.type):
            return left.cast(common), right.cast(common)
    raise WaveError(
        f"key {key!r} is {left.type} in the original file but {right.type} in the protected one; "
        "write it as the same type"
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
