"""Stages that are tried again, files that are made again, and lifetimes of intermediate results."""

import errno
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from kohort.errors import GuaranteeBroken, StageFailed, WaveError
from kohort.flows.progress import Bar, Lines, StageRow
from kohort.tasks import partitioning, verify
from kohort.tasks import store as storing
from kohort.tasks.inventory import problems, stored
from kohort.tasks.store import Store

pytestmark = pytest.mark.usefixtures("prefect_url")
BLOCKS = {"block": {"method": "consecutive", "size": 2}}
ALWAYS = {("verify", None), ("gate", None), ("publish", None)}


def released(result):
    return (Path(result["out"]) / "public" / "protected.parquet").read_bytes()


def row_of(result, stage, block=None):
    return next(row for row in result["stages"] if (row["stage"], row["block"]) == (stage, block))


def computed(result):
    return {(row["stage"], row["block"]) for row in result["stages"] if not row["cached"]}


def files_in(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


# Retries


@pytest.fixture
def failing(monkeypatch):
    """Let a function of a module fail some times first; no waiting between attempts."""

    def failing(task, module, name, error, times):
        monkeypatch.setattr(task, "retry_delay_seconds", [0, 0, 0])
        function, left = getattr(module, name), [error] * times

        def fail(*args, **arguments):
            if left:
                raise left.pop()
            return function(*args, **arguments)

        monkeypatch.setattr(module, name, fail)

    return failing


def test_a_stage_is_tried_again_and_that_is_said(plan_of, wave, run, failing, first_run):
    failing(partitioning.partition, partitioning, "Store", OSError(errno.EIO, "SECRET"), 2)
    result = run(plan_of(), wave)
    row = row_of(result, "partition", 0)
    assert (row["attempts"], row["cached"]) == (3, False)
    assert row_of(result, "ingest")["attempts"] == 1
    manifest = json.loads((Path(result["out"]) / "internal" / "manifest.json").read_text())
    assert row_of(manifest, "partition", 0)["attempts"] == 3
    assert row_of(run(plan_of(), wave), "partition", 0) == {**row, "cached": True}


def test_a_stage_that_is_never_cached_is_tried_again_too(done, plan_of, wave, run, failing):
    failing(verify.verify, verify, "count_identical", OSError(errno.ESTALE, "SECRET"), 1)
    result = run(plan_of(**BLOCKS), wave)
    assert row_of(result, "verify")["attempts"] == 2
    assert row_of(result, "publish")["attempts"] == 1
    assert released(result) == released(done)


def test_what_does_not_pass_ends_after_four_attempts(done, plan_of, wave, run, failing, tmp_path):
    failing(verify.verify, verify, "count_identical", OSError(errno.EIO, "SECRET"), 4)
    with pytest.raises(StageFailed, match=r"^verify: OSError \(Input/output error\)$"):
        run(plan_of(**BLOCKS), wave)
    assert not (tmp_path / "out-0").exists()
    assert computed(run(plan_of(**BLOCKS), wave)) == ALWAYS


NEVER = [
    GuaranteeBroken("ours"),
    WaveError("ours"),
    OSError(errno.ENOSPC, ""),
    TypeError(),
    MemoryError(),
]


@pytest.mark.parametrize("error", NEVER, ids=lambda error: type(error).__name__)
def test_what_waiting_does_not_help_is_tried_once(error, done, plan_of, wave, run, failing):
    failing(verify.verify, verify, "count_identical", error, 1)
    with pytest.raises((StageFailed, WaveError, GuaranteeBroken)):
        run(plan_of(**BLOCKS), wave)


def test_a_full_disk_names_the_store_and_is_continued(
    plan_of, wave, run, monkeypatch, first_run, tmp_path
):
    write, room = storing.write_plain, iter([True] * 4)

    def until_full(table, path):
        if not next(room, False):
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "Error writing bytes to file.")
        write(table, path)

    monkeypatch.setattr(storing, "write_plain", until_full)
    with pytest.raises(
        StageFailed, match=r"block \d: the disk of the store .* is full; free some room or"
    ):
        run(plan_of(**BLOCKS), wave)
    kept = Store(tmp_path / "store")
    assert list(problems(kept)) == []
    assert list(kept.partial.iterdir()) == []
    assert len(stored(kept)) == 4
    monkeypatch.undo()
    again = run(plan_of(**BLOCKS), wave)
    assert sum(row["cached"] for row in again["stages"]) == 4
    assert released(again) == released(first_run)


def test_records_that_cannot_be_written_do_not_stop_a_run(
    plan_of, wave, run, monkeypatch, first_run, tmp_path
):
    from kohort.tasks.recording import RecordFolder

    def full(self, path, content, _sync=None):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RecordFolder, "write_path", full)
    assert released(run(plan_of(**BLOCKS), wave)) == released(first_run)
    assert list((tmp_path / "store" / "records").iterdir()) == []


# Damage


def record_of(kept, sha256):
    return next(path for path in kept.records.iterdir() if sha256 in path.read_text())


def overwrite(kept, row, content):
    record_of(kept, row["sha256"]).write_text(content)


def object_of(kept, row):
    return kept.root / "objects" / row["sha256"][:2] / f"{row['sha256']}.parquet"


def link(path, elsewhere):
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


DAMAGE = {
    "deleted": lambda kept, row: object_of(kept, row).unlink(),
    "damaged": lambda kept, row: object_of(kept, row).write_bytes(b"PAR1"),
    "linked": lambda kept, row: link(object_of(kept, row), kept.root.parent / "away"),
    "damaged record": lambda kept, row: overwrite(kept, row, "{"),
    "foreign record": lambda kept, row: overwrite(kept, row, '{"metadata": {}}'),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_made_again_is_said(kind, done, plan_of, wave, run, tmp_path):
    DAMAGE[kind](Store(tmp_path / "store"), row_of(done, "partition", 1))
    again = run(plan_of(**BLOCKS), wave)
    assert computed(again) == ALWAYS | {("partition", 1)}
    assert row_of(again, "partition", 1)["repaired"] == kind
    assert [row["repaired"] for row in again["stages"]].count(None) == len(again["stages"]) - 1
    manifest = json.loads((Path(again["out"]) / "internal" / "manifest.json").read_text())
    assert row_of(manifest, "partition", 1)["repaired"] == kind
    third = run(plan_of(**BLOCKS), wave)
    assert {row["repaired"] for row in third["stages"]} == {None}
    assert released(again) == released(third) == released(done)


def test_swapped_records_are_not_believed(done, plan_of, wave, run, tmp_path):
    kept = Store(tmp_path / "store")
    first, second = (record_of(kept, row_of(done, "partition", b)["sha256"]) for b in (0, 1))
    content = first.read_text()
    first.write_text(second.read_text())
    second.write_text(content)
    again = run(plan_of(**BLOCKS), wave)
    assert computed(again) == ALWAYS | {("partition", 0), ("partition", 1)}
    assert released(again) == released(done)


LINES = {
    "0.31 s": {},
    "cached": {"cached": True, "attempts": 3},
    "0.31 s, 2 attempts": {"attempts": 2},
    "0.31 s, made again: its file was damaged": {"repaired": "damaged"},
    "0.31 s, 2 attempts, made again: its record was damaged": {
        "attempts": 2,
        "repaired": "damaged record",
    },
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_says_it(line, capsys):
    row = {"stage": "partition", "block": 2, "sha256": None, "rows": 9, "seconds": 0.31, "cached": False}
    Lines().finished(StageRow(**{**row, **LINES[line]}))
    assert capsys.readouterr().err == f"partition, block 2: {line}\n"


# Lifetimes


def test_a_lifetime_ends_before_and_after_a_run(done, plan_of, wave, run, tmp_path):
    kept = Store(tmp_path / "store")
    old = object_of(kept, row_of(done, "replace", 0))
    os.utime(old, (1, 1))
    assert computed(run(plan_of(**BLOCKS, store={"keep": "1h"}), wave)) == ALWAYS | {("replace", 0)}
    assert len(stored(kept)) == len({row["sha256"] for row in done["stages"]} - {None})
    other = plan_of(**BLOCKS, partition={"method": "optimal", "k": 4}, store={"keep": "1h"})
    os.utime(old, (1, 1))
    run(other, wave)
    assert not old.exists()
    assert list(problems(kept)) == []


@pytest.mark.parametrize("discard", [True, False])
def test_a_discarding_run_leaves_nothing(discard, plan_of, wave, run, tmp_path, first_run):
    result = run(plan_of(**BLOCKS), wave, discard=discard)
    assert released(result) == released(first_run)
    assert (files_in(tmp_path / "store") == {tmp_path / "store" / "lock"}) is discard


@pytest.mark.parametrize("error", [WaveError("ours"), OSError(errno.ENOSPC, ""), TypeError()])
def test_a_discarding_run_that_fails_leaves_nothing(error, plan_of, wave, run, tmp_path, monkeypatch):
    """One block fails while the other is still at work."""
    errors = [error]

    def fail_first(root):
        if errors:
            raise errors.pop()
        time.sleep(0.3)
        return Store(root)

    monkeypatch.setattr(partitioning, "Store", fail_first)
    with pytest.raises((StageFailed, WaveError)):
        run(plan_of(**BLOCKS), wave, discard=True)
    assert files_in(tmp_path / "store") == {tmp_path / "store" / "lock"}
    assert list((tmp_path / "store" / "discarded").iterdir()) == []


def test_a_run_waits_for_what_is_under_way_and_cancels_the_rest(tmp_path):
    from prefect.futures import PrefectConcurrentFuture

    from kohort.flows.running import Run

    ended, begun = [], threading.Event()

    def work(number):
        begun.set()
        time.sleep(0.2)
        ended.append(number)
        raise ValueError

    with ThreadPoolExecutor(1) as threads:
        futures = [PrefectConcurrentFuture(uuid4(), threads.submit(work, n)) for n in range(5)]
        begun.wait()
        Run(Store(tmp_path), started=futures).settle()
        assert ended == [0]
    assert ended == [0]


def test_a_screen_keeps_what_is_out_of_the_ordinary():
    said = []

    class Screen:
        console = property(lambda self: self)

        def add_task(self, *_, **__): ...

        def update(self, *_, **__): ...

        def print(self, line, **_):
            said.append(line)

    bar = Bar(Screen())
    for changes in LINES.values():
        bar.finished(StageRow("verify", None, None, None, 0.31, **{"cached": False, **changes}))
    assert said == [f"verify: {line}" for line in LINES if line not in ("0.31 s", "cached")]
