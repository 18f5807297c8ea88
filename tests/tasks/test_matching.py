"""Rows of two files that are matched by a key."""

import numpy as np
import pyarrow as pa
import pytest

from kohort.errors import WaveError
from kohort.tasks.matching import match_keys, of_file, unchanged_file
from kohort.tasks.wave import digest_of


def column(values, kind=None):
    return pa.chunked_array([pa.array(values[:2], kind), pa.array(values[2:], kind)])


@pytest.mark.parametrize(
    ("original", "protected"),
    [
        (column([3, 1, 2]), column([1, 2, 3])),
        (column([3, 1, 2], pa.int8()), column([1, 2, 3], pa.uint64())),
        (column([2**63 - 1, -1, 5]), column([-1, 5, 2**63 - 1], pa.int64())),
        (column([2**63 - 1, 0, 5]), column([0, 5, 2**63 - 1], pa.uint64())),
        (column(["c", "a", "b"]), column(["a", "b", "c"], pa.large_string())),
        (column([0.3, 0.1, 0.2]), column([0.1, 0.2, 0.3])),
        (column([b"c", b"a", b"b"]), column([b"a", b"b", b"c"])),
    ],
)
def test_every_record_finds_its_row(original, protected):
    rows = match_keys(original, protected, key="id")
    assert rows.tolist() == [2, 0, 1]
    assert rows.dtype == np.int64


def test_numbers_that_a_float_or_a_signed_number_cannot_hold_stay_apart():
    large = column([2**64 - 1, 2**64 - 2, 0], pa.uint64())
    with pytest.raises(WaveError, match=r"2 of 3 original .* 2 of 3 protected records"):
        match_keys(large, column([-1, -2, 0]), key="id")
    near = column([2**53, 2**53 + 1, 0])
    assert match_keys(near, column([2**53 + 1, 2**53, 0], pa.uint64()), key="id").tolist() == [1, 0, 2]


def test_counts_of_what_is_missing_on_either_side():
    with pytest.raises(
        WaveError, match=r"by key 'id', 2 of 3 original .* 2 of 3 protected records"
    ) as error:
        match_keys(
            column(["secret 1", "b", "secret 2"]), column(["b", "secret 3", "secret 4"]), key="id"
        )
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "other", [column([1.0, 2.0, 3.0]), column(["1", "2", "3"])], ids=["float", "text"]
)
def test_kinds_that_cannot_be_compared(other):
    with pytest.raises(
        WaveError, match=r"key 'id' is int64 in the original file but .* write it as the same"
    ):
        match_keys(column([1, 2, 3]), other, key="id")


def test_a_refusal_says_which_file(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(WaveError) as error, of_file(path):
        raise WaveError("missing cells in rent (1)")
    assert str(error.value) == f"{path}: missing cells in rent (1)"
    with pytest.raises(WaveError) as error, of_file(path):
        raise WaveError(f"{path} cannot be read")
    assert str(error.value) == f"{path} cannot be read"


def test_a_file_that_changes_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"one")
    digest = digest_of(path)
    with unchanged_file(path, digest):
        pass
    path.write_bytes(b"another")
    with pytest.raises(WaveError, match="changed while it was read"), unchanged_file(path, digest):
        pass
