"""The store: files named by their bytes, whole or not there, for the owner alone."""

import errno
import hashlib
import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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


@pytest.mark.parametrize("umask", [0, 0o277, 0o777])
def test_only_the_owner_may_look(umask, tmp_path):
    before = os.umask(umask)
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
    def fail(path):
        path.write_bytes(b"half of it")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.keep(fail, 1)
    assert files_of(store.root) == []


def test_a_file_appears_only_when_it_is_whole(store):
    seen = []

    def write(path):
        path.write_bytes(b"first")
        seen.append(files_of(store.root / "objects"))
        path.write_bytes(b"firstsecond")

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


WRONG = {"deleted": "deleted", "truncated": "damaged", "bit flipped": "damaged", "a folder": "damaged"}


@pytest.mark.parametrize("damage", WRONG)
def test_what_is_wrong_is_said(damage, store):
    artifact = store.write(VALUES)
    DAMAGE[damage](store.path(artifact))
    assert store.lacks(artifact) == WRONG[damage]


def test_a_linked_folder_is_not_believed_and_not_written_through(store, tmp_path):
    artifact = store.write(VALUES)
    folder = store.path(artifact).parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert store.lacks(artifact) == "linked"
    store.path(artifact).unlink()
    store.write(VALUES)
    assert store.holds(artifact)
    assert not folder.is_symlink()
    assert files_of(tmp_path / "elsewhere") == []


def test_use_renews_a_lifetime(store):
    artifact = store.write(VALUES)
    os.utime(store.path(artifact), (1, 1))
    assert store.holds(artifact)
    assert store.path(artifact).stat().st_mtime > 1


@pytest.mark.parametrize("folder", ["", "objects", "records", "partial"])
def test_a_store_that_is_open_to_others_is_refused(folder, store):
    (store.root / folder).chmod(0o750)
    with pytest.raises(StageFailed, match=r"is open to others \(mode 0750\); close it with chmod 700"):
        store.prepare()


def test_a_store_of_another_user_is_refused(store, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StageFailed, match=r"the store .* belongs to another user; choose another"):
        store.prepare()


@pytest.mark.parametrize("folder", ["objects", "records", "partial", "discarded"])
def test_a_link_for_a_folder_is_refused(folder, store, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    if (store.root / folder).exists():
        (store.root / folder).rmdir()
    (store.root / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StageFailed, match=rf"{folder} of the store is not a folder; remove it or"):
        store.prepare()


def test_a_store_may_be_reached_by_a_link(store, tmp_path):
    """The user's own link, outside of the store: what it leads to is what is checked."""
    (tmp_path / "link").symlink_to(store.root)
    Store(tmp_path / "link").prepare()
    store.root.chmod(0o755)
    with pytest.raises(StageFailed, match="is open to others"):
        Store(tmp_path / "link").prepare()


CODES = {
    errno.ENOSPC: "the disk of the store .* is full; free some room or choose another with --store; "
    "finished stages are kept, run it again to continue",
    errno.EROFS: "the store .* is on a read-only file system; make it writable",
}


@pytest.mark.parametrize("code", CODES)
def test_a_disk_that_refuses_is_one_sentence_and_leaves_nothing(code, store, monkeypatch):
    def refuse(table, path, **_):
        path.write_bytes(b"half of it")
        raise OSError(code, f"Error writing bytes to file. Detail: [errno {code}]")  # as pyarrow does

    monkeypatch.setattr(pq, "write_table", refuse)
    with pytest.raises(StageFailed, match=CODES[code]) as failure:
        store.write(VALUES)
    assert not failure.value.can_pass
    assert files_of(store.root) == []


def test_a_store_that_went_away_is_one_sentence(store, tmp_path):
    artifact = store.write(VALUES)
    store.root.rename(tmp_path / "away")
    for use in (lambda: store.write(VALUES), lambda: store.read(artifact)):
        with pytest.raises(StageFailed, match=r"the store .* is gone; mount it again") as failure:
            use()
        assert failure.value.can_pass
    (tmp_path / "away").rename(store.root)
    assert store.read(artifact).num_rows == 3


def test_nothing_is_made_where_a_store_was_mounted(store, tmp_path, monkeypatch):
    def digest_and_lose(path):
        store.root.rename(tmp_path / "away")
        return "0" * 64

    monkeypatch.setattr("kohort.tasks.store.file_digest", digest_and_lose)
    with pytest.raises(StageFailed, match="is gone; mount it again"):
        store.write(VALUES)
    assert not store.root.exists()


def test_an_unknown_artifact_is_not_held(store):
    assert not store.holds(Artifact("0" * 64, 1))


def test_a_file_that_was_replaced_after_its_check_is_not_read(store):
    artifact, other = store.write(VALUES), store.write({"x": np.arange(3.0)})
    assert store.read(artifact).num_rows == 3
    store.path(other).replace(store.path(artifact))
    for read in (store.read, store.read_floats):
        with pytest.raises(StageFailed, match="was removed or damaged during the run; run it again"):
            read(artifact)


def test_a_file_that_was_only_touched_is_read(store):
    artifact = store.write(VALUES)
    os.utime(store.path(artifact))
    assert store.read(artifact).num_rows == 3
