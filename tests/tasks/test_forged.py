"""Forged and damaged Parquet files, and plans beyond reason: refused before they take memory."""

import os
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import PlanError, WaveError
from kohort.flows.plan import load_plan
from kohort.tasks import wave as wave_module
from kohort.tasks.roles import Roles
from kohort.tasks.wave import check_keys, inspect_wave, layout_of, read_codes, read_values

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
DOUBLE, BYTE_ARRAY = 5, 6
PLAIN, RLE_DICTIONARY, DELTA_BYTE_ARRAY = 0, 8, 7
X = Roles(quasi_identifiers=("x",))
KEY = Roles(quasi_identifiers=("x",), key="id")


# Thrift's compact protocol, to write what no library would.


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def integer(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def record(**fields):
    """A struct of f1=(kind, value), f2=...; a value that is None is left out."""
    out, last = b"", 0
    for name, (kind, value) in fields.items():
        if value is None:
            continue
        number = int(name[1:])
        out += bytes([(number - last) << 4 | kind]) + encoded(kind, value)
        last = number
    return out + b"\0"


def encoded(kind, value):
    if kind in (I32, I64):
        return integer(value)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind == LIST:
        of, items = value
        head = (
            bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + varint(len(items))
        )
        return head + b"".join(items)
    return value


def element(name, kind=None, children=None, repetition=0):
    return record(f1=(I32, kind), f3=(I32, repetition), f4=(BINARY, name.encode()), f5=(I32, children))


def dictionary_page(content, values=1, **claims):
    size = claims.get("size", len(content))
    head = record(
        f1=(I32, 2),
        f2=(I32, size),
        f3=(I32, len(content)),
        f7=(STRUCT, record(f1=(I32, values), f2=(I32, PLAIN))),
    )
    return head + content


def data_page(values, content=None, encoding=RLE_DICTIONARY, **claims):
    """As many references to the first entry of the dictionary as asked for, in a few bytes."""
    content = b"\0" + varint(values << 1) if content is None else content
    about = record(f1=(I32, values), f2=(I32, encoding), f3=(I32, 3), f4=(I32, 3))
    size = claims.get("size", len(content))
    head = record(f1=(I32, 0), f2=(I32, size), f3=(I32, len(content)), f5=(STRUCT, about))
    return head + content


def chunk(name, kind, place, pages, values, **claims):
    meta = record(
        f1=(I32, kind),
        f2=(LIST, (I32, [integer(RLE_DICTIONARY)])),
        f3=(LIST, (BINARY, [encoded(BINARY, name.encode())])),
        f4=(I32, 0),
        f5=(I64, values),
        f6=(I64, len(pages)),
        f7=(I64, claims.get("size", len(pages))),
        f9=(I64, claims.get("offset", place)),
    )
    return record(f1=(BINARY, claims.get("file")), f2=(I64, place), f3=(STRUCT, meta))


def footer(elements, rows, groups):
    return record(
        f1=(I32, 1), f2=(LIST, (STRUCT, elements)), f3=(I64, rows), f4=(LIST, (STRUCT, groups))
    )


def write(path, body, end, length=None):
    size = len(end) if length is None else length
    path.write_bytes(b"PAR1" + body + end + struct.pack("<I", size) + b"PAR1")
    return path


ONE = struct.pack("<d", 1.5)


def forge(path, columns, rows, *, total=None, **claims):
    """A file of (name, kind, pages, values) in one row group, and what it claims of itself."""
    body, chunks = b"", []
    for name, kind, pages, values in columns:
        chunks.append(chunk(name, kind, 4 + len(body), pages, values, **claims))
        body += pages
    elements = [element("schema", children=len(columns))]
    elements += [element(name, kind) for name, kind, _, _ in columns]
    group = record(f1=(LIST, (STRUCT, chunks)), f2=(I64, len(body)), f3=(I64, rows))
    return write(path, body, footer(elements, rows if total is None else total, [group]))


def numbers(rows, name="x"):
    pages, left = dictionary_page(ONE), rows
    while left:
        pages += data_page(min(left, 2_000_000_000))
        left -= min(left, 2_000_000_000)
    return (name, DOUBLE, pages, rows)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wave.parquet"


def refused(path, match, roles=X):
    with pytest.raises(WaveError, match=match) as error:
        inspect_wave(path, roles)
    assert "\n" not in str(error.value)


def test_the_forger_writes_parquet(path):
    forge(path, [numbers(1000)], 1000)
    assert inspect_wave(path, X).rows == 1000
    assert np.array_equal(read_values(path, ["x"]), np.full((1000, 1), 1.5))
    assert pq.read_table(path).num_rows == 1000


# Counts that do not agree


def test_a_footer_that_claims_billions_of_records(path):
    forge(path, [numbers(40)], 40, total=5_000_000_000)
    refused(path, "its footer names another number of records than its row groups")


def test_a_row_group_that_claims_billions_of_records(path):
    forge(path, [numbers(40)], 5_000_000_000)
    refused(path, "column 'x' has another number of values than there are records")


@pytest.mark.parametrize("values", [5_000_000_000, 41, 39])
def test_pages_that_hold_another_number(path, values):
    forge(path, [(*numbers(40)[:3], values)], values)
    refused(path, "the pages of column 'x' hold another number of values")


def test_negative_numbers(path):
    forge(path, [numbers(40)], -40)
    refused(path, "is not a readable Parquet file")
    forge(path, [numbers(40)], 40, offset=-9)
    refused(path, "is not a readable Parquet file")


def test_a_row_group_with_too_few_columns(path):
    name, kind, pages, values = numbers(40)
    group = record(f1=(LIST, (STRUCT, [chunk(name, kind, 4, pages, values)])), f3=(I64, 40))
    schema = [element("schema", children=2), element("x", DOUBLE), element("y", DOUBLE)]
    write(path, pages, footer(schema, 40, [group]))
    refused(path, "another number of columns than the schema")


# Places and lengths


@pytest.mark.parametrize("claims", [{"offset": 10**15}, {"size": 10**15}, {"offset": 1}, {"size": 400}])
def test_a_column_that_is_not_in_the_file(path, claims):
    forge(path, [numbers(40)], 40, **claims)
    refused(path, "column 'x' does not lie in the file")


def test_a_column_in_another_file(path):
    forge(path, [numbers(40)], 40, file=b"/etc/passwd")
    refused(path, "its columns lie in other files")


@pytest.mark.parametrize("length", [2**32 - 1, 2**31, 10_000])
def test_a_footer_longer_than_the_file(path, length):
    write(path, numbers(40)[2], b"\0", length)
    refused(path, "is not a readable Parquet file")


def test_a_footer_of_many_megabytes(path):
    write(path, b"", b"\0" * ((1 << 23) + 1))
    refused(path, "its footer has 8388609 bytes, more than 8388608")


@pytest.mark.parametrize("size", [2**31 - 1, 10**9])
def test_a_page_that_claims_gigabytes(path, size):
    pages = dictionary_page(ONE) + data_page(40, size=size)
    forge(path, [("x", DOUBLE, pages, 40)], 40)
    refused(path, "a page of column 'x' claims more bytes than its values take")
    pages = dictionary_page(ONE, size=size) + data_page(40)
    forge(path, [("x", DOUBLE, pages, 40)], 40)
    refused(path, "a page of column 'x' claims more bytes than its values take")


# Shapes


def test_absurdly_many_columns(path):
    schema = [element("schema", children=100_000), *[element("x", DOUBLE)] * 100_000]
    write(path, b"", footer(schema, 0, []))
    refused(path, "it has more than 10000 columns")


def test_a_list_that_claims_to_be_longer_than_the_footer(path):
    write(path, b"", b"\x15\x02\x19\xfc" + varint(2**31 - 1))
    refused(path, "is not a readable Parquet file")


def test_columns_that_nest_too_deep(path):
    schema = [element("schema", children=1), *[element("x", children=1)] * 100_000]
    write(path, b"", footer([*schema, element("x", DOUBLE)], 0, []))
    refused(path, "its columns nest more than 32 deep")


def test_headers_that_nest_too_deep(path):
    write(path, b"", b"\x9c" * 100_000)
    refused(path, "is not a readable Parquet file")


def test_absurdly_many_row_groups(path):
    empty = record(f1=(LIST, (STRUCT, [])), f3=(I64, 0))
    schema = [element("schema", children=1), element("x", DOUBLE)]
    write(path, b"", footer(schema, 0, [empty] * 300_000))
    refused(path, "300000 row groups of 1 columns, too many to read")


# What is small on disk and large in memory


def test_a_few_bytes_that_stand_for_a_hundred_billion_records(path):
    forge(path, [numbers(100_000_000_000)], 100_000_000_000)
    assert path.stat().st_size < 3000
    refused(path, r"column 'x' of .* takes 800.0 GB in memory, but .* GB are free; drop the column")


def text(rows, length, name="id"):
    content = struct.pack("<I", length) + b"a" * length
    return (name, BYTE_ARRAY, dictionary_page(content) + data_page(rows), rows)


def test_text_that_one_dictionary_entry_expands_to_terabytes(path):
    forge(path, [numbers(2_000_000), text(2_000_000, 1_000_000)], 2_000_000)
    assert path.stat().st_size < 1_100_000
    refused(path, "column 'id' of .* takes 2000.0 GB in memory", KEY)
    dropped = Roles(quasi_identifiers=("x",), identifiers=("id",))
    assert inspect_wave(path, dropped).rows == 2_000_000  # what is dropped is never decoded


def test_text_with_a_large_dictionary_is_added_up_exactly(path, monkeypatch):
    ids = pa.array([f"person {i:05d}" for i in range(5000)] + [None] * 5)
    pq.write_table(pa.table({"x": np.arange(5005.0), "id": ids}), path)
    assert layout_of(path).columns["id"].may_expand_to > 10**8
    exact = 5000 * 12 + 4 * 5005
    monkeypatch.setattr(wave_module, "available_memory", lambda: 10**8)
    assert inspect_wave(path, KEY).rows == 5005
    status = path.stat()
    key = (status.st_ino, status.st_size, status.st_mtime_ns)
    assert wave_module._expanded(path, "id", *key) == exact


def test_nested_text_that_may_expand_is_refused(path, monkeypatch):
    words = [["a" * 1000, "b" * 1000]] * 5000
    pq.write_table(pa.table({"x": np.arange(5000.0), "id": words}), path)
    monkeypatch.setattr(wave_module, "available_memory", lambda: 10**7)
    refused(path, "column 'id' of .* nests text", KEY)


def test_text_written_as_changes_is_refused(path):
    encoding = {"column_encoding": {"id": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
    pq.write_table(pa.table({"x": np.arange(9.0), "id": list("abcdefghi")}), path, **encoding)
    refused(path, "column 'id' of .* is written as DELTA_BYTE_ARRAY", KEY)


def test_numbers_within_memory_are_not_refused(path, monkeypatch):
    forge(path, [numbers(1_000_000)], 1_000_000)
    monkeypatch.setattr(wave_module, "available_memory", lambda: 8_100_000)
    assert inspect_wave(path, X).rows == 1_000_000
    monkeypatch.setattr(wave_module, "available_memory", lambda: 7_900_000)
    refused(path, r"column 'x' of .* takes 0.0 GB")


# Plans


def test_a_plan_of_a_gigabyte_is_refused_by_its_size(tmp_path):
    plan = tmp_path / "plan.toml"
    with plan.open("wb") as file:
        os.truncate(file.fileno(), 10**9)
    with pytest.raises(PlanError, match="has more than 1000000 bytes; a plan is a short text"):
        load_plan(plan)


@pytest.mark.parametrize(
    "content",
    [
        "[" + ".".join("a" * 100_000) + "]",
        "[" + ".".join("a" * 9_000) + "]",
        "a = " + "[" * 100_000 + "]" * 100_000,
        "a = " + "{a = " * 100_000 + "1" + "}" * 100_000,
        "".join(f"[t{i}]\n" for i in range(100_000)),
    ],
    ids=["dotted", "just dotted", "arrays", "tables", "many"],
)
def test_a_plan_that_nests_beyond_reason(tmp_path, content):
    plan = tmp_path / "plan.toml"
    plan.write_text(content)
    with pytest.raises(PlanError) as error:
        load_plan(plan)
    assert "\n" not in str(error.value)


def test_columns_named_like_paths_write_nothing_outside(
    tmp_path, columns, plan_of, write_plan, write_wave
):
    """Through every stage in memory; the flow's files are named by digests alone."""
    from kohort.flows.in_memory import protect_in_memory
    from kohort.flows.progress import Silent

    evil = {"age": "../../evil", "income": "/tmp/evil/x", "rent": "a/../b\x01"}
    renamed = {evil.get(name, name): values for name, values in columns.items()}
    folder = tmp_path / "inside"
    folder.mkdir()
    wave = write_wave(renamed, "inside/wave.parquet")
    plan = load_plan(write_plan(plan_of(roles={"quasi_identifiers": list(evil.values())})))
    before = set(tmp_path.rglob("*"))
    protect_in_memory(plan, wave, folder / "out", listener=Silent())
    made = set(tmp_path.rglob("*")) - before
    assert made
    assert all(path.is_relative_to(folder / "out") for path in made)
    assert read_codes(wave, ["cost"])[0].size == 40
    check_keys(wave, "id")
