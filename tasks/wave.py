"""The file that comes in: what it holds under the plan's roles, and its columns as arrays."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kohort.checks import as_weights, check_cells
from kohort.errors import KohortError, PlanError, StageFailed, WaveError
from kohort.methods import Floats, Labels
from kohort.tasks.available import available_memory
from kohort.tasks.compact import Damaged
from kohort.tasks.disk import can_pass, in_words
from kohort.tasks.layout import Forged, Layout, read_layout
from kohort.tasks.roles import Roles
from kohort.tasks.store import as_floats, file_digest, read_floats


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


def newest_wave(wave: Path, out: Path) -> tuple[Path, Path]:
    """The wave's file and the folder for its release.

    A schedule's parameters are fixed, so a survey's folder may stand for its newest wave: the last
    `*.parquet` by name, released to a folder of its own, `out/<stem of the file>`. A hidden file is
    taken to be on its way in. A folder that is itself named `*.parquet` holds the parts of one table;
    it comes back as it is, to be refused as no file, because its last part would pass for a wave.

    Parameters
    ----------
    wave : Path
        A Parquet file, which comes back with `out` as they are, or a folder of them.
    out : Path
        The release folder, or the folder of release folders.
    """
    if wave.suffix == ".parquet" or not wave.is_dir():
        return wave, out
    try:
        names = [path.name for path in wave.iterdir()]
    except OSError as error:
        raise WaveError(
            f"the folder {wave} cannot be read ({error.strerror}); check its permissions"
        ) from None
    waves = [name for name in names if name.endswith(".parquet") and not name.startswith(".")]
    if not waves:
        raise WaveError(f"the folder {wave} has no Parquet file; put the wave there, named *.parquet")
    newest = wave / max(waves)
    return newest, out / newest.stem


def digest_of(path: Path) -> str:
    """SHA-256 of a file's bytes, taken once as long as the file is the same to the file system."""
    try:
        status = path.stat()
        return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise _unreadable(path, error) from None


@functools.lru_cache(maxsize=16)
def _digest(path: Path, inode: int, size: int, changed: int) -> str:
    return file_digest(path)


def layout_of(path: Path) -> Layout:
    """What the file says of itself, checked once as long as it is the same to the file system."""
    try:
        status = path.stat()
        return _layout(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise _unreadable(path, error) from None
    except Damaged:
        raise _not_parquet(path) from None
    except Forged as why:
        raise WaveError(f"{path} is damaged or forged: {why}; write the wave again") from None


@functools.lru_cache(maxsize=16)
def _layout(path: Path, inode: int, size: int, changed: int) -> Layout:
    return read_layout(path)


@contextmanager
def open_wave(path: Path) -> Iterator[pq.ParquetFile]:
    """The wave's Parquet file; refuses what is missing, unreadable, damaged, forged or another thing."""
    layout_of(path)  # before Parquet's reader believes it
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except OSError as error:
        raise _unreadable(path, error) from None
    except pa.ArrowException:
        raise _not_parquet(path) from None


def _unreadable(path: Path, error: OSError) -> KohortError:
    if isinstance(error, FileNotFoundError):
        return WaveError(f"there is no file {path}; check the path")
    if can_pass(error):
        return StageFailed(f"{path} cannot be read ({in_words(error)}); run it again", can_pass=True)
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
    types, rows = read_footer(path)
    names = list(types)
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
    for name in roles.quasi_identifiers:
        if not is_number(types[name]):
            raise WaveError(
                f"quasi-identifier {name!r} is not numeric but {types[name]}; "
                "code it as numbers, or give it another role"
            )
    kept = set(without) if roles.other == "keep" else set()
    if roles.release_weight:
        kept.add(str(roles.weight))
    untouched = kept | set(roles.confidential)
    protected = set(roles.quasi_identifiers)
    check_room(
        path, [n for n in names if n in untouched | protected | {roles.key, roles.unit, roles.weight}]
    )
    return Columns(
        rows=rows,
        quasi_identifiers=tuple(name for name in names if name in protected),
        integers=tuple(n for n in names if n in protected and pa.types.is_integer(types[n])),
        untouched=tuple(name for name in names if name in untouched),
        open_to_intruders=tuple(name for name in names if name in kept),
        dropped=tuple(name for name in names if name not in untouched | protected),
        released=tuple(name for name in names if name in untouched | protected),
    )


def read_footer(path: Path) -> tuple[dict[str, pa.DataType], int]:
    """Type of every column in the file's order, and the number of records."""
    with open_wave(path) as file:
        schema = file.schema_arrow
        rows = file.metadata.num_rows
    twice = sorted(name for name, count in Counter(schema.names).items() if count > 1)
    if twice:
        raise WaveError(f"{path} has two columns named {_listed(twice)}; rename one")
    return {field.name: field.type for field in schema}, rows


def check_room(path: Path, names: Sequence[str]) -> int:
    """Bytes that columns take in memory once decoded; a column that does not fit is refused."""
    columns, free, total = layout_of(path).columns, available_memory(), 0
    for name in names:
        decoded = columns[name]
        needed = decoded.bytes + decoded.largest_page
        if decoded.shared:
            raise WaveError(
                f"column {name!r} of {path} is written as DELTA_BYTE_ARRAY, whose size is not known "
                "before it is read; write the wave with dictionaries or plain"
            )
        if needed <= free and decoded.may_expand_to > free / 4:
            status = path.stat()
            needed = _expanded(path, name, status.st_ino, status.st_size, status.st_mtime_ns)
        if needed > free:
            raise WaveError(
                f"column {name!r} of {path} takes {needed / 1e9:.1f} GB in memory, but "
                f"{free / 1e9:.1f} GB are free; drop the column or write fewer records"
            )
        total += needed
    return total


@functools.lru_cache(maxsize=256)
def _expanded(path: Path, name: str, inode: int, size: int, changed: int) -> int:
    """Bytes of a column's text, cell by cell: references are decoded and what they mean is added up."""
    total = 0
    try:
        if pa.types.is_nested(pq.read_schema(path).field(name).type):
            raise WaveError(
                f"column {name!r} of {path} nests text, whose size is not known before it is read; "
                "drop the column or give every text a column of its own"
            )
        with pq.ParquetFile(path, read_dictionary=[name]) as file:
            for group in range(file.num_row_groups):
                for chunk in file.read_row_group(group, columns=[name]).column(0).chunks:
                    lengths = pc.binary_length(chunk.dictionary).to_numpy(zero_copy_only=False)
                    used = np.bincount(chunk.indices.drop_null().to_numpy(), minlength=len(lengths))
                    total += int(lengths.astype(np.int64) @ used) + 4 * len(chunk)
    except OSError as error:
        raise _unreadable(path, error) from None
    except pa.ArrowException:
        raise _not_parquet(path) from None
    return total


def is_number(kind: pa.DataType) -> bool:
    """Whether cells of this type are numbers."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def read_values(path: Path, names: Sequence[str]) -> Floats:
    """Numeric columns (n, p) as floats, Fortran-ordered, all cells present and finite."""
    with open_wave(path) as file:
        x = read_floats(file, names)
    check_cells(x.T, names)
    return x


def read_columns(path: Path, names: Sequence[str]) -> dict[str, Floats]:
    """The same columns by name, as Arrow holds them: nothing is copied that is a float already."""
    with open_wave(path) as file:
        table = file.read(columns=list(names))
    columns = {name: as_floats(table.column(name)) for name in names}
    check_cells(list(columns.values()), names)
    return columns


def read_confidential(path: Path, names: Sequence[str]) -> Floats:
    """Confidential attributes (n, m) as floats, for partitions that depend on them."""
    check_confidential(path, names)
    return read_values(path, names)


def check_confidential(path: Path, names: Sequence[str]) -> None:
    """Refuse confidential attributes that are no numbers, where the partition depends on them."""
    with open_wave(path) as file:
        for name in names:
            kind = file.schema_arrow.field(name).type
            if not is_number(kind):
                raise WaveError(
                    f"confidential {name!r} is not numeric but {kind}; dependence needs numbers: "
                    "leave dependence out or give the column another role"
                )


def read_weights(path: Path, name: str) -> Floats:
    """The survey weights (n,), all finite and above 0."""
    with open_wave(path) as file:
        kind = file.schema_arrow.field(name).type
        if not is_number(kind):
            raise WaveError(f"weight {name!r} is not numeric but {kind}; name a numeric column")
        return as_weights(read_floats(file, [name])[:, 0], file.metadata.num_rows)


def read_units(path: Path, name: str) -> Labels:
    """Code of every record's unit (n,)."""
    column = _read_column(path, name)
    if column.null_count:
        raise WaveError(f"unit {name!r} is missing in {column.null_count} records; fill it in")
    return np.asarray(_codes(column), dtype=np.int32)


def check_keys(path: Path, name: str) -> None:
    """Refuse a key that is missing or names two records."""
    read_keys(path, name)


def read_keys(path: Path, name: str) -> pa.ChunkedArray:
    """A key, which every record has and which names each once, as plain values."""
    column = _read_column(path, name)
    if column.null_count:
        raise WaveError(f"key {name!r} is missing in {column.null_count} records; fill it in")
    column = _flat(column)
    distinct = pc.count_distinct(column).as_py()
    if distinct < len(column):
        raise WaveError(
            f"key {name!r} names more than one record: {len(column) - distinct} of {len(column)} "
            "records repeat a key; remove the repetitions"
        )
    return column


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
