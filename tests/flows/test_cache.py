"""Stages are tried again, damage is said, lifetimes end, and `kohort cache` tells of the store."""

import errno
import json
import os
import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import GuaranteeBroken, StageFailed, WaveError
from kohort.flows.cli import main
from kohort.flows.plan import Plan
from kohort.flows.progress import Bar, Lines, StageRow
from kohort.tasks import partitioning, verify
from kohort.tasks import store as storing
from kohort.tasks.housekeeping import in_use
from kohort.tasks.inventory import problems, stored
from kohort.tasks.store import Store

pytestmark = pytest.mark.usefixtures("prefect_url")
BLOCKS = {"block": {"method": "consecutive", "size": 2}}
ALWAYS = {("verify", None), ("gate", None), ("publish", None)}


@pytest.fixture
def run(tmp_path):
    """Run the flow on the store that every test has; each run has a release folder of its own."""
    from kohort.flows.protect import protect_wave

    numbers = iter(range(100))

    def run(plan, wave, **options):
        plan, out = Plan.model_validate(plan), tmp_path / f"out-{next(numbers)}"
        return protect_wave(plan=plan, wave=wave, out=out, store=tmp_path / "store", **options)

    return run


@pytest.fixture(scope="module")
def first_run(prefect_url, tmp_path_factory, make_columns, plan_of):
    from kohort.flows.protect import protect_wave

    folder = tmp_path_factory.mktemp("first")
    pq.write_table(pa.table(make_columns()), folder / "wave.parquet")
    return protect_wave(
        plan=Plan.model_validate(plan_of(**BLOCKS)),
        wave=folder / "wave.parquet",
        out=folder / "out",
        store=folder / "store",
    )


@pytest.fixture
def wave(first_run):
    return Path(first_run["out"]).parents[1] / "wave.parquet"


@pytest.fixture
def done(first_run, tmp_path):
    """The first run's result, its store copied to where `run` looks."""
    shutil.copytree(Path(first_run["out"]).parents[1] / "store", tmp_path / "store")
    return first_run


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


# The command


@pytest.fixture
def cache(tmp_path, capsys):
    """Run `kohort cache` on the store; gives exit code, output and error."""

    def cache(*arguments):
        code = main(["cache", *arguments, "--store", str(tmp_path / "store")])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return cache


def test_list_and_size(done, cache):
    code, out, _ = cache("list", "--json")
    artifacts = {row["sha256"]: row for row in json.loads(out)["artifacts"]}
    assert code == 0
    assert set(artifacts) == {row["sha256"] for row in done["stages"]} - {None}
    ingested = artifacts[row_of(done, "ingest")["sha256"]]
    assert (ingested["stages"], ingested["rows"]) == (["ingest"], 40)
    code, out, _ = cache("list")
    assert len(out.splitlines()) == len(artifacts)
    assert all(
        re.match(r"[0-9a-f]{12}  +\d+ (s|min|h|d)  +[\d.]+ k?B  +\d+ rows  \w", line)
        for line in out.splitlines()
    )
    total = json.loads(cache("size", "--json")[1])
    assert total["artifacts"] == len(artifacts)
    assert total["bytes"] == sum(row["bytes"] for row in artifacts.values())
    assert total["bytes"] == sum(each["bytes"] for each in total["stages"].values())
    assert total["stages"]["partition"]["artifacts"] == 2
    assert re.search(rf"^in all +{len(artifacts)} ", cache("size")[1], re.MULTILINE)


def test_verify_removes_only_when_told(done, cache, plan_of, wave, run, tmp_path):
    kept = Store(tmp_path / "store")
    assert cache("verify")[:2] == (0, f"{len(stored(kept))} artifacts are whole\n")
    DAMAGE["damaged"](kept, row_of(done, "ingest"))
    (kept.partial / "half").write_text("")
    before = files_in(kept.root)
    code, out, _ = cache("verify", "--json")
    assert code == 1
    assert {each["kind"] for each in json.loads(out)["problems"]} == {"damaged", "left over"}
    assert files_in(kept.root) == before
    assert cache("verify", "--repair")[0] == 0
    assert cache("verify")[0] == 0
    assert len(before - files_in(kept.root)) == 3  # the file, its record, the leftover
    assert computed(run(plan_of(**BLOCKS), wave)) == ALWAYS | {("ingest", None)}


def test_verify_never_removes_what_lies_beside(done, cache, tmp_path):
    (tmp_path / "store" / "thesis.txt").write_text("")
    code, out, _ = cache("verify", "--repair")
    assert (code, (tmp_path / "store" / "thesis.txt").exists()) == (1, True)
    assert "thesis.txt" in out


def test_prune_by_age_and_all(done, cache, tmp_path):
    kept = Store(tmp_path / "store")
    os.utime(object_of(kept, row_of(done, "ingest")), (1, 1))
    removed = json.loads(cache("prune", "--older-than", "7d", "--json")[1])
    assert (removed["artifacts"], removed["records"]) == (1, 1)
    assert cache("verify")[0] == 0
    assert re.match(r"removed \d+ artifacts \([\d.]+ kB\) and \d+ records\n", cache("prune", "--all")[1])
    assert files_in(kept.root) == {kept.root / "lock"}


def journal(home, name, kept, rows):
    (home / "runs").mkdir(exist_ok=True, mode=0o700)
    named = dict.fromkeys(("flow", "plan", "plan_title", "wave", "wave_sha256", "out"))
    at = "2026-11-18T15:00:00+00:00"
    lines = [{"event": "started", "schema": 1, **named, "store": str(kept), "at": at}]
    lines += [{"event": "stage", **row} for row in rows]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (home / "runs" / f"{name}.jsonl").write_text(text + '{"event": "sta')


def test_prune_of_a_run_keeps_what_others_use(done, cache, plan_of, wave, run, tmp_path, monkeypatch):
    other = run(plan_of(**BLOCKS, partition={"method": "optimal", "k": 4}), wave)
    monkeypatch.setenv("KOHORT_HOME", str(tmp_path / "home"))  # of journals that the test writes
    (tmp_path / "home").mkdir()
    kept = Store(tmp_path / "store")
    journal(tmp_path / "home", "calm-owl", kept.root, done["stages"])
    journal(tmp_path / "home", "keen-fox", kept.root, other["stages"])
    assert cache("prune", "--run", "keen")[0] == 0
    assert {each.sha256 for each in stored(kept)} == {row["sha256"] for row in done["stages"]} - {None}
    assert cache("verify")[0] == 0
    journal(tmp_path / "home", "far-hen", "/elsewhere", [])
    assert cache("prune", "--run", "far-hen") == (
        2,
        "",
        "kohort: the run far-hen used the store /elsewhere; name it by --store\n",
    )
    assert "there is no run ../calm-owl" in cache("prune", "--run", "../calm-owl")[2]


def test_a_living_run_is_not_pruned(done, cache, tmp_path):
    kept = Store(tmp_path / "store")
    before = files_in(kept.root)
    with in_use(kept):
        for action in (["prune", "--all"], ["prune", "--older-than", "1m"], ["verify", "--repair"]):
            code, out, err = cache(*action)
            assert (code, out) == (1, "")
            assert err == f"kohort: a run is using the store {kept.root}; wait until it ends\n"
        assert cache("verify")[0] == 0
        assert cache("list")[0] == 0
    assert files_in(kept.root) == before


def test_refusals_are_one_sentence(cache, tmp_path, store):
    assert "a duration is written as" in cache("prune", "--older-than", "7")[2]
    store.root.chmod(0o755)
    for action in (["list"], ["size"], ["verify"], ["prune", "--all"]):
        code, _, err = cache(*action)
        assert code == 1
        assert "is open to others (mode 0755)" in err
    shutil.rmtree(store.root)
    code, _, err = cache("list")
    assert (code, err) == (2, f"kohort: there is no store {store.root}; name one with --store\n")
    with pytest.raises(SystemExit):
        cache("prune")
