"""The released file: its columns, types and order, and what must not come along."""

import datetime
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import GuaranteeBroken, WaveError
from kohort.tasks.release import (
    Promise,
    Release,
    count_identical,
    release_table,
    rounded,
    write_release,
)
from kohort.tasks.roles import Roles
from kohort.tasks.wave import inspect_wave

MOMENT = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
UNTOUCHED = {
    "text": pa.array(["b", "a", None, "c"]),
    "large_text": pa.array(["b", "a", None, "c"], pa.large_string()),
    "flag": pa.array([True, False, None, True]),
    "small": pa.array([1, 2, None, 4], pa.int8()),
    "unsigned": pa.array([2**64 - 1, 2, None, 4], pa.uint64()),
    "single": pa.array([0.1, 0.2, None, 0.4], pa.float32()),
    "half": pa.array(np.array([0.5, 0.25, 1.0, 2.0], np.float16)),
    "day": pa.array([datetime.date(2026, 1, day) for day in (4, 3, 2, 1)]),
    "moment": pa.array([MOMENT] * 4, pa.timestamp("us", tz="Europe/Madrid")),
    "naive": pa.array([4, 3, 2, 1], pa.timestamp("ns")),
    "clock": pa.array([4, 3, 2, 1], pa.time64("us")),
    "span": pa.array([4, 3, 2, 1], pa.duration("s")),
    "money": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("0.01")], pa.decimal128(9, 2)),
    "bytes": pa.array([b"x", b"\x00", None, b"y"]),
    "category": pa.array(["no", "yes", None, "no"]).dictionary_encode(),
    "nothing": pa.nulls(4),
}


@pytest.fixture
def wave(write_wave):
    """Four records: two quasi-identifiers among every type that a column may have."""
    x = {"whole": pa.array([4, 3, 2, 1], pa.int32()), "real": pa.array([1.0, 2.0, 3.0, 4.0])}
    return write_wave(pa.table({"key": pa.array([1, 2, 3, 4]), **UNTOUCHED, **x}))


ROLES = Roles(key="key", quasi_identifiers=("real", "whole"), other="keep")
PROTECTED = {"whole": np.array([3.5, 3.5, 1.5, 1.5]), "real": np.array([1.5, 1.5, 3.5, 3.5])}


def released(wave, roles=ROLES, protected=PROTECTED, **how):
    return release_table(wave, inspect_wave(wave, roles), dict(protected), Release(**how))


def as_file(table):
    sink = io.BytesIO()
    write_release(table, sink)
    return sink.getvalue()


def read_back(table):
    return pq.read_table(io.BytesIO(as_file(table)))


def test_columns_keep_their_order_and_the_key_is_gone(wave):
    assert read_back(released(wave)).column_names == [*UNTOUCHED, "whole", "real"]


@pytest.mark.parametrize("name", UNTOUCHED)
def test_an_untouched_column_keeps_type_and_values(name, wave):
    table = read_back(released(wave, order="input"))
    assert table.schema.field(name).type == UNTOUCHED[name].type
    assert table.column(name).to_pylist() == UNTOUCHED[name].to_pylist()


@pytest.mark.parametrize("name", UNTOUCHED)
def test_rows_can_be_sorted_by_any_type(name, write_wave):
    columns = {"real": pa.array([1.0, 2.0, 3.0, 4.0]), name: UNTOUCHED[name]}
    wave = write_wave(pa.table(columns))
    roles = Roles(quasi_identifiers=("real",), confidential=(name,))
    table = read_back(released(wave, roles, {"real": np.ones(4)}))
    assert table.schema.field(name).type == UNTOUCHED[name].type
    sorted_values = [v for v in table.column(name).to_pylist() if v is not None]
    assert sorted_values == sorted(v for v in UNTOUCHED[name].to_pylist() if v is not None)


def test_rows_cannot_be_sorted_by_a_list(write_wave):
    wave = write_wave(pa.table({"real": [1.0, 2.0], "list": pa.array([[1], [2]])}))
    roles = Roles(quasi_identifiers=("real",), confidential=("list",))
    with pytest.raises(WaveError, match=r"column 'list' is a list<.*drop it"):
        released(wave, roles, {"real": np.ones(2)})
    kept = released(wave, roles, {"real": np.ones(2)}, order="input")
    assert kept.column("list").to_pylist() == [[1], [2]]


def test_protected_columns_are_floats_unless_rounded(wave):
    assert released(wave).schema.field("whole").type == pa.float64()
    whole = rounded(
        np.column_stack([PROTECTED["real"], PROTECTED["whole"]]), ["real", "whole"], ["whole"]
    )
    table = released(wave, protected={"real": whole[:, 0], "whole": whole[:, 1]}, round_integers=True)
    assert table.schema.field("whole").type == pa.int32()
    assert sorted(table.column("whole").to_pylist()) == [2, 2, 4, 4]  # half to even
    assert table.schema.field("real").type == pa.float64()


def test_rounding_leaves_its_input_alone():
    values = np.array([[0.5, 1.5], [2.5, -0.5]])
    np.testing.assert_array_equal(rounded(values, ["a", "b"], ["b"]), [[0.5, 2.0], [2.5, -0.0]])
    assert rounded(values, ["a", "b"], []) is values
    assert values[0, 1] == 1.5


def test_no_metadata_and_no_index_come_along(tmp_path):
    frame = pd.DataFrame(
        {"x": [1.0, 2.0], "c": [3, 4]}, index=pd.Index(["SECRET-1", "SECRET-2"], name="who")
    )
    table = pa.Table.from_pandas(frame).replace_schema_metadata({"pandas": b"SECRET", "note": b"SECRET"})
    fields = [field.with_metadata({"note": "SECRET"}) for field in table.schema]
    table = pa.table(table.columns, schema=pa.schema(fields, metadata={"note": b"SECRET"}))
    wave = tmp_path / "wave.parquet"
    pq.write_table(table, wave)
    roles = Roles(key="who", quasi_identifiers=("x",), confidential=("c",))
    content = as_file(released(wave, roles, {"x": np.array([1.5, 1.5])}))
    assert b"SECRET" in wave.read_bytes()
    assert b"SECRET" not in content
    file = pq.ParquetFile(io.BytesIO(content))
    assert file.schema_arrow.metadata is None
    assert all(not set(f.metadata or {}) - {b"PARQUET:field_id"} for f in file.schema_arrow)


def test_categories_that_nobody_has_are_left_out(write_wave):
    category = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int8()), ["yes", "SECRET", "no"])
    wave = write_wave(pa.table({"x": [1.0, 2.0], "c": category}))
    table = released(wave, Roles(quasi_identifiers=("x",), confidential=("c",)), {"x": np.ones(2)})
    assert b"SECRET" not in as_file(table)
    assert read_back(table).column("c").to_pylist() == ["no", "yes"]


@pytest.mark.parametrize("order", ["sorted", "input"])
def test_ordered_categories_keep_their_order(order, write_wave):
    levels = pd.Categorical(["high", "low", "mid", "low"], ["none", "low", "mid", "high"], ordered=True)
    wave = write_wave(pa.Table.from_pandas(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "level": levels})))
    roles = Roles(quasi_identifiers=("x",), confidential=("level",))
    table = read_back(released(wave, roles, {"x": np.ones(4)}, order=order))
    back = table.to_pandas()["level"].cat
    assert back.ordered
    assert list(back.categories) == ["low", "mid", "high"]
    assert sorted(table.column("level").to_pylist()) == ["high", "low", "low", "mid"]


def test_sorted_rows_do_not_show_the_order_of_the_input(write_wave, columns):
    columns["cost"][:20] = 7.0  # ties
    columns["level"] = pa.array(["b", "a", None, "c"] * 10).dictionary_encode()
    table = pa.table(columns)
    names = ("age", "income", "rent")
    roles = Roles(
        key="id", identifiers=("name",), quasi_identifiers=names, confidential=("cost",), other="keep"
    )
    protected = {name: np.repeat([1.0, 2.0], 20) for name in names}
    straight = as_file(released(write_wave(table), roles, protected))
    order = np.random.default_rng(1).permutation(40)
    shuffled = {name: values[order] for name, values in protected.items()}
    wave = write_wave(table.take(order), "shuffled.parquet")
    assert as_file(released(wave, roles, shuffled)) == straight
    kept = released(wave, roles, shuffled, order="input")
    assert kept.column("cost").to_pylist() == table.column("cost").take(order).to_pylist()


def test_chunks_and_row_groups_of_the_input_do_not_show(tmp_path, write_wave):
    table = pa.table({"x": np.arange(9.0), "c": pa.array(["a", "b", "c"] * 3).dictionary_encode()})
    roles = Roles(quasi_identifiers=("x",), confidential=("c",))
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=2)
    files = [
        as_file(released(wave, roles, {"x": np.ones(9)}))
        for wave in (write_wave(table), tmp_path / "many.parquet")
    ]
    assert files[0] == files[1]


def promise(columns, blocks, *, whole=(), k=2):
    return Promise(columns=columns.released, rows=columns.rows, blocks=blocks, whole=whole, k=k)


def count(tmp_path, table, roles, blocks, **more):
    wave = tmp_path / "count.parquet"
    pq.write_table(table, wave)
    return count_identical(wave, promise(inspect_wave(wave, roles), blocks, **more))


def test_identical_records_are_counted_per_block(tmp_path):
    table = pa.table({"a": [1.0, 1.0, 2.0, 2.0, 2.0], "b": [3.0, 4.0, 4.0, 3.0, 4.0]})
    roles = Roles(quasi_identifiers=("a", "b"))
    assert count(tmp_path, table, roles, (("a",), ("b",))) is None
    with pytest.raises(GuaranteeBroken, match=r"block 0 .* a class of 1 identical records but k = 2"):
        count(tmp_path, table, roles, (("a", "b"),))
    with pytest.raises(GuaranteeBroken, match=r"block 1 .* a class of 2 identical records but k = 3"):
        count(tmp_path, pa.table({"a": [1.0] * 5, "b": table["b"]}), roles, (("a",), ("b",)), k=3)


def test_whole_records_are_counted_with_the_columns_released_as_they_are(tmp_path):
    table = pa.table({"a": [1.0, 1.0, 2.0, 2.0, 2.0], "c": ["x", None, None, "y", None]})
    roles = Roles(quasi_identifiers=("a",), other="keep")
    assert count(tmp_path, table, roles, (("a",),), whole=("a",)) == 2
    assert count(tmp_path, table, roles, (("a",),), whole=("a", "c")) == 1


def test_a_file_with_other_columns_or_rows_is_no_release(tmp_path, write_wave):
    columns = inspect_wave(write_wave({"a": [1.0, 1.0]}), Roles(quasi_identifiers=("a",)))
    for other in ({"a": [1.0] * 3}, {"a": [1.0, 1.0], "key": [1, 2]}):
        pq.write_table(pa.table(other), tmp_path / "other.parquet")
        with pytest.raises(GuaranteeBroken, match="other columns or rows"):
            count_identical(tmp_path / "other.parquet", promise(columns, (("a",),)))
