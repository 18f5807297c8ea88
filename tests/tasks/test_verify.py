"""Verify looks at the written file, whatever the stages before it promised."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from kohort.errors import GuaranteeBroken, StageFailed
from kohort.tasks.placing import release_folder
from kohort.tasks.release import Promise, write_release
from kohort.tasks.roles import Roles
from kohort.tasks.verify import verify
from kohort.tasks.wave import inspect_wave

ROLES = Roles(key="id", quasi_identifiers=("a", "b"), confidential=("c",))
GOOD = {"a": np.repeat([1.0, 2.0], 3), "b": np.repeat([3.0, 4.0], 3), "c": np.arange(6)}


@pytest.fixture
def columns_of_wave(write_wave):
    return inspect_wave(write_wave({"id": np.arange(6), **GOOD}), ROLES)


def check(store, columns, out, table, blocks=(("a",), ("b",)), whole=()):
    candidate = store.keep(lambda sink: write_release(pa.table(table), sink), 6)
    promise = Promise(columns=columns.released, rows=6, blocks=blocks, whole=whole, k=3)
    with release_folder(out) as staging:
        counted = verify.fn(store.root, candidate, staging, promise=promise)
        return counted, hashlib.sha256((staging / "public/protected.parquet").read_bytes()).hexdigest()


def test_a_good_candidate_lies_beside_its_destination(store, columns_of_wave, tmp_path):
    counted, digest = check(store, columns_of_wave, tmp_path / "out", GOOD)
    assert counted is None
    assert digest == next((store.root / "objects").rglob("*.parquet")).stem
    assert check(store, columns_of_wave, tmp_path / "out", GOOD, whole=("a", "b"))[0] == 3
    assert check(store, columns_of_wave, tmp_path / "out", GOOD, whole=("a", "b", "c"))[0] == 1


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
    assert not (tmp_path / "out").exists()


def test_classes_are_counted_per_block(store, columns_of_wave, tmp_path):
    crossed = {**GOOD, "b": np.array([3.0, 4.0, 3.0, 4.0, 3.0, 4.0])}
    check(store, columns_of_wave, tmp_path / "out", crossed)
    with pytest.raises(GuaranteeBroken, match=r"block 0 of the written file has a class of 1 .* k = 3"):
        check(store, columns_of_wave, tmp_path / "out", crossed, blocks=(("a", "b"),))


def test_a_candidate_damaged_in_the_store_is_not_released(store, columns_of_wave, tmp_path):
    candidate = store.keep(lambda sink: write_release(pa.table(GOOD), sink), 6)
    promise = Promise(columns=columns_of_wave.released, rows=6, blocks=(("a",),), whole=(), k=3)
    content = bytearray(store.path(candidate).read_bytes())
    content[20] ^= 1
    store.path(candidate).write_bytes(content)
    with release_folder(tmp_path / "out") as staging:
        with pytest.raises(GuaranteeBroken, match="other bytes than were assembled"):
            verify.fn(store.root, candidate, staging, promise=promise)
        store.path(candidate).unlink()
        with pytest.raises(StageFailed, match="verify: FileNotFoundError"):
            verify.fn(store.root, candidate, staging, promise=promise)
    assert not (tmp_path / "out").exists()
