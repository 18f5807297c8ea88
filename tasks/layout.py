"""What a Parquet file says of itself, checked before anything believes it.

Parquet's reader allocates what footer and page headers claim, follows a schema however deep it nests,
and expands a page of a few bytes to as many cells as it stands for. A wave comes from outside, so its
footer and the head of every page are read first, with bounds: the counts of footer, row groups and
pages must agree, every piece must lie in the file, and what each column takes when it is decoded is
known before it is. No page is decompressed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.tasks.compact import Compact, Damaged

MAGIC = b"PAR1"
LONGEST_FOOTER = 1 << 23
MOST_COLUMNS = 10_000
MOST_CHUNKS = 50_000  # columns times row groups
MOST_VALUES = 2_000_000  # in a footer; a chunk with its statistics has about 35
DEEPEST = 32  # groups within groups
MOST_PAGES = 1_000_000
HEAD = 1 << 16  # bytes that a page's head is looked for in

# Field numbers of parquet.thrift.
ELEMENT = {1: None, 2: None, 3: None, 4: None, 5: None}
CHUNK = {1: None, 3: {4: None, 5: None, 7: None, 9: None, 11: None}}
FOOTER = {2: [ELEMENT], 3: None, 4: [{1: [CHUNK], 3: None}]}
PAGE = {1: None, 2: None, 3: None, 5: {1: None, 2: None}, 7: {1: None}, 8: {1: None, 4: None}}
WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # by physical type
BYTE_ARRAY, FIXED = 6, 7
DATA, DICTIONARY, DATA_2 = 0, 2, 3
DELTA_BYTES = 7  # values that share a beginning with the one before: the encoding
REPEATED = 2
LEVELS, SLACK = 8, 1 << 16  # bytes besides a value, and besides all values of a page


class Forged(Exception):
    """The file contradicts itself or goes beyond a bound; the text says how."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that holds values: a top-level one, or a part of a nested one."""

    column: str
    kind: int
    width: int
    repeated: bool
    """Whether a record may have any number of values."""


@dataclass(slots=True)
class Decoded:
    """What a top-level column takes in memory, at the least, once its pages are decoded."""

    bytes: int = 0
    largest_page: int = 0
    may_expand_to: int = 0
    """Text that refers to a dictionary repeats it cell by cell: at most so many bytes."""
    shared: bool = False
    """Whether values are written as changes to the one before, which can expand without bound."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A file whose counts agree."""

    rows: int
    columns: Mapping[str, Decoded]


def read_layout(path: Path) -> Layout:
    """Read and check footer and page heads; raises Forged, Damaged or OSError."""
    with path.open("rb") as file:
        handle = file.fileno()
        end = os.fstat(handle).st_size
        tail = os.pread(handle, 8, max(0, end - 8))
        if end < 12 or tail[4:] != MAGIC or os.pread(handle, 4, 0) != MAGIC:
            raise Damaged
        length = int.from_bytes(tail[:4], "little")
        if length > end - 12:
            raise Damaged
        if length > LONGEST_FOOTER:
            raise Forged(f"its footer has {length} bytes, more than {LONGEST_FOOTER}")
        end -= 8 + length
        footer = Compact(os.pread(handle, length, end), values=MOST_VALUES).struct(FOOTER)
        leaves = _leaves(_present(footer, 2))
        columns = {leaf.column: Decoded() for leaf in leaves}
        rows = 0
        groups = footer.get(4, [])
        if len(groups) * len(leaves) > MOST_CHUNKS:
            raise Forged(f"it has {len(groups)} row groups of {len(leaves)} columns, too many to read")
        pages = MOST_PAGES
        for group in groups:
            of_group = _whole_number(group, 3)
            rows += of_group
            chunks = _present(group, 1)
            if len(chunks) != len(leaves):
                raise Forged("a row group has another number of columns than the schema")
            for leaf, chunk in zip(leaves, chunks, strict=True):
                pages -= _check_chunk(handle, end, leaf, chunk, of_group, columns[leaf.column], pages)
    if rows != footer.get(3):
        raise Forged("its footer names another number of records than its row groups")
    return Layout(rows, columns)


def _leaves(elements: Sequence[Mapping[int, Any]]) -> list[Leaf]:
    """The columns that hold values, in the file's order; the schema is a tree, listed depth first."""
    if not elements:
        raise Damaged
    leaves: list[Leaf] = []
    open_groups = [[_whole_number(elements[0], 5), False]]  # children to come, whether repeated
    name = ""
    tops = 0
    for element in elements[1:]:
        while open_groups and open_groups[-1][0] == 0:
            open_groups.pop()
        if not open_groups:
            raise Damaged
        open_groups[-1][0] -= 1
        if len(open_groups) == 1:
            name = _text(_present(element, 4))
            tops += 1
        if tops > MOST_COLUMNS:
            raise Forged(f"it has more than {MOST_COLUMNS} columns")
        repeated = open_groups[-1][1] or element.get(3) == REPEATED
        if element.get(5):
            open_groups.append([_whole_number(element, 5), repeated])
            if len(open_groups) > DEEPEST:
                raise Forged(f"its columns nest more than {DEEPEST} deep")
        else:
            kind = _whole_number(element, 1)
            width = _whole_number(element, 2) if kind == FIXED else WIDTHS.get(kind, 0)
            leaves.append(Leaf(name, kind, width, bool(repeated)))
    if any(left for left, _ in open_groups):
        raise Damaged
    return leaves


def _check_chunk(
    handle: int,
    end: int,
    leaf: Leaf,
    chunk: Mapping[int, Any],
    rows: int,
    decoded: Decoded,
    most_pages: int,
) -> int:
    """Check one column of one row group, add up what it takes, and return its number of pages."""
    if chunk.get(1):
        raise Forged("its columns lie in other files")
    about = _present(chunk, 3)
    values, size = _whole_number(about, 5), _whole_number(about, 7)
    # Some writers give 0 for a dictionary that is not there.
    position = min(_whole_number(about, field) for field in (9, 11) if about.get(field) or field == 9)
    if values and (position < 4 or position + size > end):
        raise Forged(f"column {leaf.column!r} does not lie in the file")
    if not leaf.repeated and values != rows:
        raise Forged(f"column {leaf.column!r} has another number of values than there are records")
    if not values:
        return 0
    stop, held, pages, dictionary = position + size, 0, 0, 0
    while position < stop and held < values:
        pages += 1
        if pages > most_pages:
            raise Forged(f"it has more than {MOST_PAGES} pages")
        page, length = _page(handle, position, stop)
        compressed, uncompressed = _whole_number(page, 3), _whole_number(page, 2)
        position += length + compressed
        if leaf.kind != BYTE_ARRAY and uncompressed > values * (leaf.width + LEVELS) + SLACK:
            raise Forged(f"a page of column {leaf.column!r} claims more bytes than its values take")
        decoded.largest_page = max(decoded.largest_page, uncompressed)
        kind = _whole_number(page, 1)
        if kind == DICTIONARY:
            dictionary = uncompressed
            decoded.bytes += uncompressed if leaf.kind == BYTE_ARRAY else 0
        elif kind in (DATA, DATA_2):
            head, encoding = (page.get(5), 2) if kind == DATA else (page.get(8), 4)
            if head is None:
                raise Damaged
            of_page = _whole_number(head, 1)
            held += of_page
            _add_page(decoded, leaf, of_page, uncompressed, dictionary)
            decoded.shared |= leaf.kind == BYTE_ARRAY and head.get(encoding) == DELTA_BYTES
    if held != values or position > stop:
        raise Forged(f"the pages of column {leaf.column!r} hold another number of values than it says")
    return pages


def _add_page(decoded: Decoded, leaf: Leaf, values: int, uncompressed: int, dictionary: int) -> None:
    """What the values of a data page take when they are decoded."""
    if leaf.kind != BYTE_ARRAY:
        decoded.bytes += values * max(leaf.width, 1)
        return
    decoded.bytes += 4 * values + uncompressed
    decoded.may_expand_to += 4 * values + uncompressed + values * dictionary


def _page(handle: int, position: int, stop: int) -> tuple[dict[int, Any], int]:
    """A page's head and its length; the smallest and largest values in it may make it long."""
    for size in (512, HEAD, LONGEST_FOOTER):
        reader = Compact(os.pread(handle, min(size, stop - position), position), values=1000)
        try:
            return reader.struct(PAGE), reader.position
        except Damaged:
            if size >= stop - position:
                break
    raise Damaged


def _text(name: Any) -> str:
    try:
        return str(name, "utf-8")
    except (TypeError, UnicodeDecodeError):
        raise Damaged from None


def _present(struct: Mapping[int, Any], field: int) -> Any:
    if field not in struct:
        raise Damaged
    return struct[field]


def _whole_number(struct: Mapping[int, Any], field: int) -> int:
    value = _present(struct, field)
    if not isinstance(value, int) or value < 0:
        raise Damaged
    return value
