"""Verify looks at the written file, whatever the stages before it promised."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from kohort.errors import GuaranteeBroken, StageFailed
from kohort.tasks.release import write_release
from kohort.tasks.roles import Roles
from kohort.tasks.verify import verify
from kohort.tasks.wave import inspect_wave

ROLES = Roles(key="id", quasi_identifiers=("a", "b"), confidential=("c",))
GOOD = {"a": np.repeat([1.0, 2.0], 3), "b": np.repeat([3.0, 4.0], 3), "c": np.arange(6)}


@pytest.fixture
def columns_of_wave(write_wave):
    return inspect_wave(write_wave({"id": np.arange(6), **GOOD}), ROLES)


def check(store, columns, out, table, blocks=(("a",), ("b",)), k=3):
    out.mkdir(exist_ok=True)
    candidate = store.keep(lambda sink: write_release(pa.table(table), sink), 6)
    named = [list(block) for block in blocks]
    return verify.fn(store.root, candidate, out, blocks=named, columns=columns, k=k)


def test_a_good_candidate_lies_beside_its_destination(store, columns_of_wave, tmp_path):
    path = check(store, columns_of_wave, tmp_path / "out", GOOD)
    (beside,) = (tmp_path / "out").iterdir()
    assert str(beside) == path
    candidate = next((store.root / "objects").rglob("*.parquet"))
    assert hashlib.sha256(beside.read_bytes()).hexdigest() == candidate.stem


TAMPERED = {
    "a class too small": {**GOOD, "a": np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.5])},
    "a last digit": {**GOOD, "b": np.append(GOOD["b"][:-1], np.nextafter(4.0, 5.0))},
    "a record less": {name: values[:-1] for name, values in GOOD.items()},
    "the key": {"id": np.arange(6), **GOOD},
    "a column less": {"a": GOOD["a"], "b": GOOD["b"]},
    "columns exchanged": {"b": GOOD["b"], "a": GOOD["a"], "c": GOOD["c"]},
}


@pytest.mark.parametrize("table", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_candidate_is_deleted(table, store, columns_of_wave, tmp_path):
    with pytest.raises(GuaranteeBroken) as broken:
        check(store, columns_of_wave, tmp_path / "out", table)
    assert "\n" not in str(broken.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_classes_are_counted_per_block(store, columns_of_wave, tmp_path):
    crossed = {**GOOD, "b": np.array([3.0, 4.0, 3.0, 4.0, 3.0, 4.0])}
    check(store, columns_of_wave, tmp_path / "out", crossed)
    with pytest.raises(GuaranteeBroken, match=r"block 0 of the written file has a class of 1 .* k = 3"):
        check(store, columns_of_wave, tmp_path / "out", crossed, blocks=(("a", "b"),))


def test_a_candidate_damaged_in_the_store_is_not_released(store, columns_of_wave, tmp_path):
    candidate = store.keep(lambda sink: write_release(pa.table(GOOD), sink), 6)
    content = bytearray(store.path(candidate).read_bytes())
    content[20] ^= 1
    store.path(candidate).write_bytes(content)
    (tmp_path / "out").mkdir()
    with pytest.raises(GuaranteeBroken, match="other bytes than were assembled"):
        verify.fn(store.root, candidate, tmp_path / "out", blocks=[["a"]], columns=columns_of_wave, k=3)
    assert list((tmp_path / "out").iterdir()) == []
    store.path(candidate).unlink()
    with pytest.raises(StageFailed, match="verify: FileNotFoundError"):
        verify.fn(store.root, candidate, tmp_path / "out", blocks=[["a"]], columns=columns_of_wave, k=3)
