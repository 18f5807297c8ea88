"""Who uses a store and what may be removed: nothing of a living run, everything of a dead one."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from kohort.errors import PlanError, StageFailed
from kohort.tasks.housekeeping import alone, in_use, leftovers, remove, remove_leftovers, seconds_of
from kohort.tasks.inventory import makers, problems, stored
from kohort.tasks.locking import held_file
from kohort.tasks.recording import RecordFolder
from kohort.tasks.records import expected_serializer, note_of
from kohort.tasks.store import Store

HOLD = """
import sys, time
from pathlib import Path
from kohort.tasks.housekeeping import in_use
from kohort.tasks.locking import held_file
from kohort.tasks.store import Store
store = Store(Path(sys.argv[1]))
with in_use(store, discard=True) as private, held_file(store.partial):
    private.write({"x": [1.0]})
    print(private.root.name, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other_run(store):
    """Another process, in the middle of a discarding run and of writing a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.root)], stdout=subprocess.PIPE, text=True
    )
    process.private = store.root / "discarded" / process.stdout.readline().strip()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def put(store, value, key, *, stage="partition", age=0.0):
    """An artifact with its record, as a stage leaves them."""
    artifact = store.write({"x": np.array([value])})
    metadata = {
        "storage_key": str(store.records / key),
        "expiration": None,
        "serializer": expected_serializer(),
        "prefect_version": "3",
        "storage_block_id": None,
    }
    note = note_of(artifact, stage=stage, seconds=0.1)
    record = json.dumps({"metadata": metadata, "result": json.dumps(note)})
    RecordFolder(basepath=str(store.records)).write_path(key, record.encode())
    for path in (store.path(artifact), store.records / key):
        os.utime(path, (time.time() - age,) * 2)
    return artifact


KEYS = ["a" * 64, "b" * 64, "c" * 64]


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("4w", 2_419_200)]
)
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "7", "d", "0d", "-1d", "1.5d", "7 d", "7D", "1d12h", "07d", "7y", "٧d", "7d\n"]
)
def test_unclear_durations_are_refused(text):
    with pytest.raises(PlanError, match='a duration is written as "12h", "7d" or "4w", got'):
        seconds_of(text)


def test_a_store_in_use_is_not_pruned(store):
    with in_use(store), pytest.raises(StageFailed, match="a run is using the store"), alone(store):
        pass
    with alone(store):
        pass


def test_two_runs_share_a_store(store):
    with in_use(store), in_use(store) as second:
        assert second.root == store.root


def test_nothing_of_a_living_process_is_removed(store, other_run):
    partial = list(store.partial.iterdir())
    assert len(partial) == 1
    assert list(leftovers(store)) == []
    with in_use(store):
        assert list(store.partial.iterdir()) == partial
        assert len(stored(Store(other_run.private))) == 1
    with pytest.raises(StageFailed, match="a run is using the store"), alone(store):
        pass


def test_a_dead_process_is_cleaned_up_after(store, other_run):
    other_run.send_signal(signal.SIGKILL)
    other_run.wait()
    assert other_run.private.is_dir()
    assert {path.parent.name for path in leftovers(store)} == {"partial", "discarded"}
    with in_use(store):
        assert list(store.partial.iterdir()) == []
        assert list((store.root / "discarded").iterdir()) == []


def test_leftovers_of_any_form_are_removed_and_links_not_followed(store, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("")
    (store.partial / "file").write_text("half")
    (store.partial / "link").symlink_to(tmp_path / "kept")
    (store.partial / "nowhere").symlink_to(tmp_path / "nowhere")
    (store.partial / "folder").mkdir()
    (store.root / "discarded").mkdir(mode=0o700)
    (store.root / "discarded" / "link").symlink_to(tmp_path / "kept")
    (store.root / "discarded" / "x").mkdir()
    assert remove_leftovers(store) == 6
    assert list(store.partial.iterdir()) == []
    assert list((store.root / "discarded").iterdir()) == []
    assert (tmp_path / "kept" / "file").exists()


def test_a_file_taken_for_a_leftover_before_it_is_locked_is_made_anew(store, monkeypatch):
    names = iter(["first", "second"])
    monkeypatch.setattr("uuid.uuid4", lambda: type("Name", (), {"hex": next(names)}))

    def removed_meanwhile(handle, kind):
        (store.partial / "first").unlink(missing_ok=True)

    monkeypatch.setattr("fcntl.flock", removed_meanwhile)
    with held_file(store.partial) as path:
        assert path.name == "second"


def test_a_discarding_run_leaves_nothing(store):
    before = sorted(store.root.rglob("*"))
    with in_use(store, discard=True) as private:
        private.write({"x": [1.0]})
        assert private.root.parent == store.root / "discarded"
        assert private.root.stat().st_mode & 0o777 == 0o700
    after = {path for path in store.root.rglob("*") if path.is_file()}
    assert after == {store.root / "lock"}
    with pytest.raises(ZeroDivisionError), in_use(store, discard=True) as private:
        private.write({"x": [1 / len(stored(private))]})
    assert {path for path in store.root.rglob("*") if path.is_file()} == after
    assert set(before) <= set(store.root.rglob("*"))


def test_what_nobody_used_for_longer_than_its_lifetime_is_removed(store):
    old, young = put(store, 1.0, KEYS[0], age=8 * 86_400), put(store, 2.0, KEYS[1], age=3600)
    with in_use(store, keep=7 * 86_400.0):
        assert [each.sha256 for each in stored(store)] == [young.sha256]
        assert [path.name for path in store.records.iterdir()] == [KEYS[1]]
        for path in (store.path(young), store.records / KEYS[1]):  # it ages while the run goes on
            os.utime(path, (1, 1))
    assert stored(store) == []
    assert list(store.records.iterdir()) == []
    assert not store.path(old).parent.exists()


def test_a_lifetime_waits_for_a_living_run(store):
    put(store, 1.0, KEYS[0], age=8 * 86_400)
    with in_use(store):
        with in_use(store, keep=86_400.0):
            assert len(stored(store)) == 1
        assert len(stored(store)) == 1
    with in_use(store, keep=86_400.0):
        assert stored(store) == []


def test_records_go_with_their_artifacts(store):
    first, second = put(store, 1.0, KEYS[0]), put(store, 2.0, KEYS[1])
    assert put(store, 1.0, KEYS[2], stage="project") == first
    assert sorted(note.stage for note in makers(store)[first.sha256]) == ["partition", "project"]
    removed = remove(store, lambda each: each.sha256 == first.sha256)
    assert (removed.artifacts, removed.records) == (1, 2)
    assert removed.bytes > 100
    assert [path.name for path in store.records.iterdir()] == [KEYS[1]]
    assert store.holds(second)


def test_a_whole_store_has_no_problems(store):
    put(store, 1.0, KEYS[0])
    with in_use(store, discard=True):
        assert list(problems(store)) == []


def test_problems_are_found(store, tmp_path):
    damaged, deleted, linked = (put(store, float(i), key) for i, key in enumerate(KEYS))
    store.path(damaged).write_bytes(b"x")
    store.path(deleted).unlink()
    store.path(linked).rename(tmp_path / "away")
    store.path(linked).symlink_to(tmp_path / "away")
    (store.root / "objects" / "notes.txt").write_text("")
    (store.root / "notes.txt").write_text("")
    (store.records / ("d" * 64)).write_text("{")
    (store.records / ("e" * 64)).write_text("{}")
    found = {(each.kind, each.path.name[:4]) for each in problems(store)}
    assert found == {
        ("damaged", damaged.sha256[:4]),
        ("foreign", linked.sha256[:4]),
        ("foreign", "note"),
        ("deleted", "bbbb"),
        ("deleted", "cccc"),
        ("damaged record", "dddd"),
        ("foreign record", "eeee"),
    }


def test_a_record_is_whole_private_and_only_of_a_key(store, monkeypatch):
    records = RecordFolder(basepath=str(store.records))
    before = os.umask(0)
    try:
        records.write_path(KEYS[0], b"content")
    finally:
        os.umask(before)
    assert (store.records / KEYS[0]).read_bytes() == b"content"
    assert (store.records / KEYS[0]).stat().st_mode & 0o777 == 0o600
    records.write_path("what a failed stage said", b"content")
    assert len(list(store.records.iterdir())) == 1

    def full(path, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space left"):
        records.write_path(KEYS[1], b"content")
    assert len(list(store.records.iterdir())) == 1
    assert list(store.partial.iterdir()) == []
