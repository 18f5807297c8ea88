"""The file that comes in: every rule that data can break is one sentence without a value."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import PlanError, WaveError
from kohort.tasks.roles import Roles
from kohort.tasks.wave import (
    check_keys,
    digest_of,
    inspect_wave,
    read_codes,
    read_units,
    read_values,
    read_weights,
)

X = Roles(quasi_identifiers=("x",))


def test_a_missing_file(tmp_path):
    with pytest.raises(WaveError, match=r"there is no file .*none.parquet; check the path"):
        inspect_wave(tmp_path / "none.parquet", X)
    with pytest.raises(WaveError, match="there is no file"):
        digest_of(tmp_path / "none.parquet")


def test_a_folder(tmp_path):
    with pytest.raises(WaveError, match="is a folder; name the wave's Parquet file"):
        inspect_wave(tmp_path, X)
    with pytest.raises(WaveError, match="is a folder; name the wave's Parquet file"):
        digest_of(tmp_path)


def footer_damaged(content):
    return content[:-40] + b"\xff" * 32 + content[-8:]


NOT_PARQUET = {
    "empty": lambda _: b"",
    "text": lambda _: b"age,income\n1,2\n" * 10,
    "short": lambda _: b"PAR1",
    "magic only": lambda _: b"PAR1" + b"\0" * 40 + b"PAR1",
    "truncated": lambda content: content[: len(content) // 2],
    "head cut off": lambda content: content[100:],
    "footer damaged": footer_damaged,
}


@pytest.mark.parametrize("damage", NOT_PARQUET.values(), ids=NOT_PARQUET)
def test_what_is_not_parquet(damage, write_wave):
    path = write_wave({"x": np.arange(100.0)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        WaveError, match="is not a readable Parquet file; write the wave as Parquet"
    ) as error:
        read_values(path, ["x"])
    assert "\n" not in str(error.value)


def test_damaged_pages(write_wave):
    path = write_wave({"x": np.random.default_rng(0).normal(size=5000)})
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396  # the header of the first page; the footer is whole
    path.write_bytes(content)
    for read in (
        lambda: inspect_wave(path, X),
        lambda: read_values(path, ["x"]),
        lambda: read_weights(path, "x"),
        lambda: read_units(path, "x"),
        lambda: read_codes(path, ["x"]),
        lambda: check_keys(path, "x"),
    ):
        with pytest.raises(WaveError, match="is not a readable Parquet file"):
            read()


def test_no_records(write_wave):
    with pytest.raises(WaveError, match="has no records"):
        inspect_wave(write_wave({"x": pa.array([], pa.float64())}), X)


def test_a_column_named_twice(write_wave):
    table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"])
    with pytest.raises(WaveError, match="has two columns named 'x'; rename one"):
        inspect_wave(write_wave(table), X)


def test_a_missing_column(write_wave):
    roles = Roles(quasi_identifiers=("x", "y"), key="id")
    with pytest.raises(WaveError, match="has no column 'id', 'y' that the plan names"):
        inspect_wave(write_wave({"x": [1.0]}), roles)


def test_columns_without_a_role(write_wave):
    wave = write_wave({"x": [1.0], "b": [1], "a": [2]})
    with pytest.raises(PlanError, match=r"columns without a role: 'b', 'a'; .* other = \"keep\""):
        inspect_wave(wave, X)
    dropped = inspect_wave(wave, Roles(quasi_identifiers=("x",), other="drop"))
    assert (dropped.dropped, dropped.released) == (("b", "a"), ("x",))
    kept = inspect_wave(wave, Roles(quasi_identifiers=("x",), other="keep"))
    assert (kept.dropped, kept.released, kept.open_to_intruders) == ((), ("x", "b", "a"), ("b", "a"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["1", "2"]), "string"),
        (pa.array([True, False]), "bool"),
        (pa.array([1, 2], pa.timestamp("s")), "timestamp"),
        (pa.array([[1.0], [2.0]]), "list"),
        (pa.array(["1", "2"]).dictionary_encode(), "dictionary"),
        (pa.nulls(2), "null"),
    ],
)
def test_a_quasi_identifier_that_is_not_numeric(values, kind, write_wave):
    with pytest.raises(WaveError, match=f"quasi-identifier 'x' is not numeric but {kind}"):
        inspect_wave(write_wave(pa.table({"x": values})), X)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0, None, None], r"missing cells in x \(2\)"),
        ([1.0, float("nan"), 2.0], r"missing cells in x \(1\)"),
        (pa.nulls(3, pa.float64()), r"missing cells in x \(3\)"),
        (pa.array([1, None, 3], pa.int64()), r"missing cells in x \(1\)"),
        ([1.0, float("inf"), -float("inf")], r"infinite cells in x \(2\)"),
        ([1.0, 1e200, 2.0], r"cells beyond 1e\+150 in x \(1\)"),
    ],
)
def test_cells_that_cannot_be_protected_are_counted(values, sentence, write_wave):
    wave = write_wave(pa.table({"x": values, "y": [1.0, 2.0, 3.0]}))
    with pytest.raises(WaveError, match=sentence):
        read_values(wave, ["x", "y"])


def test_missing_cells_are_counted_per_column(write_wave):
    wave = write_wave(pa.table({"x": [None, 1.0, None], "y": [1.0, 2.0, 3.0], "z": [1.0, None, 2.0]}))
    with pytest.raises(WaveError, match=r"missing cells in x \(2\), z \(1\);"):
        read_values(wave, ["x", "y", "z"])


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.int8()),
        pa.array([1, 2, 3], pa.uint64()),
        pa.array([1, 2, 3], pa.float32()),
        pa.array(np.array([1, 2, 3], np.float16)),
        pa.array([Decimal(1), Decimal(2), Decimal(3)], pa.decimal128(5, 2)),
    ],
    ids=lambda values: str(values.type),
)
def test_every_kind_of_number_is_read(values, write_wave):
    x = read_values(write_wave(pa.table({"x": values})), ["x"])
    np.testing.assert_array_equal(x, [[1.0], [2.0], [3.0]])
    assert x.dtype == np.float64


def test_columns_come_in_the_order_asked_for(write_wave):
    wave = write_wave({"income.total": [1.0], "income": [2.0], "age": [3.0]})
    np.testing.assert_array_equal(
        read_values(wave, ["age", "income", "income.total"]), [[3.0, 2.0, 1.0]]
    )


def test_a_constant_column_is_allowed(write_wave):
    np.testing.assert_array_equal(read_values(write_wave({"x": [5.0, 5.0]}), ["x"]), [[5.0], [5.0]])


@pytest.mark.parametrize("wrong", [None, float("nan"), float("inf"), 0.0, -1.0])
def test_weights_that_are_no_weights(wrong, write_wave):
    with pytest.raises(WaveError, match="1 of 3 weights are missing, infinite, not above 0 or beyond"):
        read_weights(write_wave(pa.table({"w": [1.0, wrong, 2.0]})), "w")


def test_weights_that_are_no_numbers(write_wave):
    with pytest.raises(WaveError, match="weight 'w' is not numeric but string"):
        read_weights(write_wave({"w": ["1", "2"]}), "w")


KEYS = {
    "text": pa.array(["a", "b", "c"]),
    "large text": pa.array(["a", "b", "c"], pa.large_string()),
    "whole": pa.array([1, 2, 3]),
    "category": pa.array(["a", "b", "c"]).dictionary_encode(),
    "binary": pa.array([b"a", b"b", b"c"]),
    "decimal": pa.array([Decimal(1), Decimal(2), Decimal(3)]),
    "timestamp": pa.array([1, 2, 3], pa.timestamp("us")),
    "struct": pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_keys_name_one_record_each(keys, write_wave):
    check_keys(write_wave(pa.table({"id": keys})), "id")
    twice = keys.take(pa.array([0, 1, 1]))
    with pytest.raises(WaveError, match=r"'id' names more than one record: 1 of 3 records repeat"):
        check_keys(write_wave(pa.table({"id": twice})), "id")
    missing = keys.take(pa.array([0, None, 2]))
    with pytest.raises(WaveError, match="key 'id' is missing in 1 records"):
        check_keys(write_wave(pa.table({"id": missing})), "id")


def test_units_are_codes(write_wave):
    wave = write_wave(
        pa.table({"u": ["b", "a", "b"], "c": pa.array(["x", "y", "y"]).dictionary_encode()})
    )
    assert read_units(wave, "u").tolist() == [0, 1, 0]
    assert read_units(wave, "c").tolist() == [0, 1, 1]
    with pytest.raises(WaveError, match="unit 'u' is missing in 1 records"):
        read_units(write_wave(pa.table({"u": ["a", None]})), "u")


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "a", None]),
        pa.array(["a", None, "a", None]).dictionary_encode(),
        pa.array([1.5, float("nan"), 1.5, float("nan")]),
        pa.array([[1], None, [1], None]),
        pa.array([True, None, True, None]),
    ],
    ids=lambda values: str(values.type),
)
def test_codes_are_equal_where_values_are(values, write_wave):
    (codes,) = read_codes(write_wave(pa.table({"c": values})), ["c"])
    assert codes[0] == codes[2] != codes[1] == codes[3]


def test_columns_are_sorted_into_roles_in_file_order(write_wave):
    table = pa.table(
        {"c": [1], "w": [1.0], "b": [2.0], "id": [1], "u": [1], "n": ["x"], "a": [2], "o": [1]}
    )
    roles = Roles(
        key="id",
        unit="u",
        weight="w",
        release_weight=True,
        identifiers=("n",),
        quasi_identifiers=("a", "b"),
        confidential=("c",),
        other="keep",
    )
    columns = inspect_wave(write_wave(table), roles)
    assert columns.rows == 1
    assert columns.quasi_identifiers == ("b", "a")
    assert columns.integers == ("a",)
    assert columns.untouched == ("c", "w", "o")
    assert columns.open_to_intruders == ("w", "o")
    assert columns.dropped == ("id", "u", "n")
    assert columns.released == ("c", "w", "b", "a", "o")


def test_a_digest_follows_the_bytes(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    first = digest_of(path)
    path.write_bytes(b"three")
    assert digest_of(path) != first
    assert len(first) == 64


def test_several_row_groups_are_one_column(tmp_path):
    pq.write_table(pa.table({"x": np.arange(10.0)}), tmp_path / "w.parquet", row_group_size=3)
    np.testing.assert_array_equal(read_values(tmp_path / "w.parquet", ["x"])[:, 0], np.arange(10.0))
