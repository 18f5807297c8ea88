"""The store: files named by their bytes, whole or not there, for the owner alone."""

import hashlib
import os
import stat

import numpy as np
import pyarrow as pa
import pytest

from kohort.errors import StageFailed
from kohort.tasks.store import Artifact, Store

VALUES = {"x": np.array([1.5, -2.0, 3.25]), "y": np.array([1, 2, 3])}


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_named_by_its_bytes(store):
    artifact = store.write(VALUES)
    assert hashlib.sha256(store.path(artifact).read_bytes()).hexdigest() == artifact.sha256
    assert artifact.rows == 3
    assert store.holds(artifact)


def test_what_was_written_is_read(store):
    artifact = store.write(VALUES)
    assert store.read(artifact).to_pydict() == {"x": [1.5, -2.0, 3.25], "y": [1, 2, 3]}
    assert store.read(artifact, ["y"]).column_names == ["y"]
    floats = store.read_floats(artifact, ["y", "x"])
    np.testing.assert_array_equal(floats, [[1, 1.5], [2, -2.0], [3, 3.25]])
    assert floats.flags.f_contiguous


def test_the_same_values_are_one_file(store):
    assert store.write(VALUES) == store.write(pa.table(VALUES))
    assert len(files_of(store.root)) == 1


def test_columns_whose_names_share_a_prefix_are_not_confused(store):
    artifact = store.write({"income.total": np.array([1.0]), "income": np.array([2.0])})
    np.testing.assert_array_equal(store.read_floats(artifact, ["income"]), [[2.0]])


def test_only_the_owner_may_look(tmp_path):
    before = os.umask(0)
    try:
        store = Store(tmp_path / "deep" / "store").prepare()
        artifact = store.write(VALUES)
    finally:
        os.umask(before)
    place = store.path(artifact)
    assert mode_of(place) == 0o600
    folders = [place.parent, place.parent.parent, store.records, store.root, store.root.parent]
    assert [mode_of(folder) for folder in folders] == [0o700] * 5


def test_a_failed_write_leaves_nothing(store):
    def fail(sink):
        sink.write(b"half of it")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.keep(fail, 1)
    assert files_of(store.root) == []


def test_a_file_appears_only_when_it_is_whole(store):
    seen = []

    def write(sink):
        sink.write(b"first")
        seen.append(files_of(store.root / "objects"))
        sink.write(b"second")

    artifact = store.keep(write, 1)
    assert seen == [[]]
    assert store.path(artifact).read_bytes() == b"firstsecond"


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "bit flipped": flip_a_bit,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "deleted": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_noticed_and_written_over(damage, store):
    artifact = store.write(VALUES)
    damage(store.path(artifact))
    assert not store.holds(artifact)
    if store.path(artifact).is_dir():
        return  # a folder is nothing that a stage could have left; it is not removed
    assert store.write(VALUES) == artifact
    assert store.holds(artifact)


def test_a_symlink_is_not_believed_and_not_written_through(store, tmp_path):
    artifact = store.write(VALUES)
    elsewhere = tmp_path / "elsewhere"
    store.path(artifact).rename(elsewhere)
    store.path(artifact).symlink_to(elsewhere)
    content = elsewhere.read_bytes()
    assert not store.holds(artifact)
    elsewhere.write_bytes(b"other")
    store.write(VALUES)
    assert elsewhere.read_bytes() == b"other"
    assert not store.path(artifact).is_symlink()
    assert store.path(artifact).read_bytes() == content


@pytest.mark.parametrize("damage", ["deleted", "truncated", "empty"])
def test_a_file_lost_during_the_run_is_one_sentence(damage, store):
    artifact = store.write(VALUES)
    DAMAGE[damage](store.path(artifact))
    with pytest.raises(StageFailed, match="was removed or damaged during the run; run it again"):
        store.read(artifact)


def test_a_store_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StageFailed, match=r"the store .* cannot be made .*--store"):
        Store(tmp_path / "file" / "store").prepare()


def test_a_store_can_be_moved(store, tmp_path):
    artifact = store.write(VALUES)
    store.root.rename(tmp_path / "moved")
    moved = Store(tmp_path / "moved")
    assert moved.holds(artifact)
    assert moved.read(artifact).num_rows == 3


def test_an_unknown_artifact_is_not_held(store):
    assert not store.holds(Artifact("0" * 64, 1))
