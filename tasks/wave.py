"""The file that comes in: what it holds under the plan's roles, and its columns as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kohort.errors import PlanError, WaveError
from kohort.methods import Floats, Labels
from kohort.protect import as_weights, check_cells
from kohort.tasks.roles import Roles


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one wave, all in the file's order."""

    rows: int
    quasi_identifiers: tuple[str, ...]
    integers: tuple[str, ...]
    """The quasi-identifiers that are whole numbers in the file."""
    untouched: tuple[str, ...]
    """Released as they are."""
    open_to_intruders: tuple[str, ...]
    """The untouched ones that are not confidential, so that an intruder may know them."""
    dropped: tuple[str, ...]
    released: tuple[str, ...]


def digest_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


@contextmanager
def open_wave(path: Path) -> Iterator[pq.ParquetFile]:
    """The wave's Parquet file; refuses what is missing, unreadable, damaged or something else."""
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            yield file
    except OSError as error:
        raise _unreadable(path, error) from None
    except pa.ArrowException:
        raise _not_parquet(path) from None


def _unreadable(path: Path, error: OSError) -> WaveError:
    if isinstance(error, FileNotFoundError):
        return WaveError(f"there is no file {path}; check the path")
    if path.is_dir():
        return WaveError(f"{path} is a folder; name the wave's Parquet file")
    if error.strerror is None:  # not the system's, but pyarrow's word for damaged content
        return _not_parquet(path)
    return WaveError(f"{path} cannot be read ({error.strerror}); check its permissions")


def _not_parquet(path: Path) -> WaveError:
    return WaveError(f"{path} is not a readable Parquet file; write the wave as Parquet")


def inspect_wave(path: Path, roles: Roles) -> Columns:
    """The wave's columns under the roles, from the file's footer alone.

    Parameters
    ----------
    path : Path
        The Parquet file.
    roles : Roles
        The plan's roles.
    """
    with open_wave(path) as file:
        schema = file.schema_arrow
        rows = file.metadata.num_rows
    names = schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WaveError(f"{path} has two columns named {_listed(twice)}; rename one")
    role_of = {name: role for role, name in roles.named()}
    absent = [name for name in role_of if name not in names]
    if absent:
        raise WaveError(f"{path} has no column {_listed(absent)} that the plan names; check the names")
    without = [name for name in names if name not in role_of]
    if without and roles.other is None:
        raise PlanError(
            f"columns without a role: {_listed(without)}; give them one in [roles], or set "
            'other = "drop" or other = "keep"'
        )
    if rows == 0:
        raise WaveError(f"{path} has no records")
    types = {name: schema.field(name).type for name in names}
    for name in roles.quasi_identifiers:
        if not _is_number(types[name]):
            raise WaveError(
                f"quasi-identifier {name!r} is not numeric but {types[name]}; "
                "code it as numbers, or give it another role"
            )
    kept = set(without) if roles.other == "keep" else set()
    if roles.release_weight:
        kept.add(str(roles.weight))
    untouched = kept | set(roles.confidential)
    protected = set(roles.quasi_identifiers)
    return Columns(
        rows=rows,
        quasi_identifiers=tuple(name for name in names if name in protected),
        integers=tuple(n for n in names if n in protected and pa.types.is_integer(types[n])),
        untouched=tuple(name for name in names if name in untouched),
        open_to_intruders=tuple(name for name in names if name in kept),
        dropped=tuple(name for name in names if name not in untouched | protected),
        released=tuple(name for name in names if name in untouched | protected),
    )


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def read_values(path: Path, names: Sequence[str]) -> Floats:
    """Numeric columns (n, p) as floats, Fortran-ordered, all cells present and finite.

    Columns are read one at a time, so that the file is never in memory twice.
    """
    with open_wave(path) as file:
        x = np.empty((file.metadata.num_rows, len(names)), order="F")
        for j, name in enumerate(names):
            x[:, j] = as_floats(file.read(columns=[name]).column(0))
    check_cells(x, names)
    return x


def as_floats(column: pa.ChunkedArray) -> Floats:
    """A numeric column as float64, a missing cell as NaN."""
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy()
    return values


def read_weights(path: Path, name: str) -> Floats:
    """The survey weights (n,), all finite and above 0."""
    column = _read_column(path, name)
    if not _is_number(column.type):
        raise WaveError(f"weight {name!r} is not numeric but {column.type}; name a numeric column")
    return as_weights(as_floats(column), len(column))


def read_units(path: Path, name: str) -> Labels:
    """Code of every record's unit (n,)."""
    column = _read_column(path, name)
    if column.null_count:
        raise WaveError(f"unit {name!r} is missing in {column.null_count} records; fill it in")
    return np.asarray(_codes(column), dtype=np.int32)


def check_keys(path: Path, name: str) -> None:
    """Refuse a key that is missing or names two records."""
    column = _read_column(path, name)
    if column.null_count:
        raise WaveError(f"key {name!r} is missing in {column.null_count} records; fill it in")
    distinct = pc.count_distinct(_flat(column)).as_py()
    if distinct < len(column):
        raise WaveError(
            f"key {name!r} names more than one record: {len(column) - distinct} of {len(column)} "
            "records repeat a key; remove the repetitions"
        )


def read_codes(path: Path, names: Sequence[str]) -> list[Labels]:
    """Columns of any type as codes that are equal where the values are; missing is a value too."""
    return [np.asarray(_codes(_read_column(path, name)), dtype=np.int32) for name in names]


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    encoded = _flat(column).combine_chunks().dictionary_encode(null_encoding="encode")
    codes: np.ndarray = encoded.indices.to_numpy()
    return codes


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as plain values that Arrow can compare: categories by value, nested cells as text."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array([str(cell) for cell in column])])
    return column


def _read_column(path: Path, name: str) -> pa.ChunkedArray:
    with open_wave(path) as file:
        return file.read(columns=[name]).column(0)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
