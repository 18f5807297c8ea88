"""The journal of a run, and `kohort runs`: every state, permissions, torn lines, a full disk."""

import contextlib
import errno
import fcntl
import json
import os
import re
import subprocess
import sys

import pytest

from kohort.errors import GateRefused, PlanError, StageFailed
from kohort.flows import journal as journal_module
from kohort.flows.cli import main
from kohort.flows.journal import Journal, is_locked
from kohort.flows.plan import Plan
from kohort.flows.progress import StageRow
from kohort.flows.runs import find_run, past_runs, read_run, run_to_resume
from kohort.tasks.store import Store


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("KOHORT_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "home" / "runs"


@pytest.fixture
def start(plan_of, tmp_path):
    def start(title="Small survey", out="out", **changes):
        plan = Plan.model_validate({**plan_of(), "title": title, **changes})
        return Journal.start(
            flow="protect-wave",
            plan=plan,
            wave=tmp_path / "wave.parquet",
            wave_sha256="ab" * 32,
            out=tmp_path / out,
            store=tmp_path / "store",
        )

    return start


def row(stage="ingest", sha256=None, **changes):
    return StageRow(
        **{"block": None, "rows": 40, "seconds": 0.5, "cached": False, **changes},
        stage=stage,
        sha256=sha256,
    )


def end(journal, error=None):
    with contextlib.suppress(BaseException), journal:
        if error is not None:
            raise error
    return journal


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_file_a_run_for_its_owner_alone(start, folder, tmp_path):
    with start() as journal:
        journal.stage(row(sha256="cd" * 32))
    path = folder / f"{journal.id}.jsonl"
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", journal.id)
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    started, stage, ended = lines_of(path)
    assert list(started) == [
        *("event", "schema", "id", "flow", "plan", "plan_title"),
        *("wave", "wave_sha256", "out", "store", "discard", "pid", "at"),
    ]
    assert started["wave"] == str(tmp_path / "wave.parquet")
    assert Plan.model_validate(started["plan"]).k == 3
    assert {"event": "stage", **row(sha256="cd" * 32).as_json()}.items() <= stage.items()
    assert (ended["event"], ended["state"], ended["error"]) == ("ended", "released", None)
    assert [json.loads(line) for line in journal.lines()] == [started, stage, ended]


def test_a_folder_that_is_open_to_others_is_closed(start, folder):
    folder.mkdir(parents=True, mode=0o755)
    end(start())
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("error", "state", "sentence"),
    [
        (None, "released", None),
        (GateRefused("loss is 0.5"), "refused", "loss is 0.5"),
        (StageFailed("partition, block 2: OSError"), "failed", "partition, block 2: OSError"),
        (ValueError("a cell: 83610.7529"), "failed", "stopped on ValueError"),
        (KeyboardInterrupt(), "interrupted", None),
        (SystemExit(143), "interrupted", None),
    ],
)
def test_how_a_run_ended(start, folder, error, state, sentence):
    journal = end(start(), error)
    (run,) = past_runs()
    assert (run.id, run.state, run.error) == (journal.id, state, sentence)
    assert "83610" not in (folder / f"{journal.id}.jsonl").read_text()


def test_a_run_that_lives_holds_its_lock(start, folder):
    with start() as journal:
        assert is_locked(folder / f"{journal.id}.jsonl")
        assert past_runs()[0].state == "running"
    assert not is_locked(folder / f"{journal.id}.jsonl")


def test_a_killed_process_leaves_a_run_that_vanished(start, folder):
    code = (
        "import fcntl, os, signal, sys\n"
        "fcntl.flock(os.open(sys.argv[1], os.O_WRONLY), fcntl.LOCK_EX)\n"
        "print('locked', flush=True); signal.pause()"
    )
    journal = end(start())
    path = folder / f"{journal.id}.jsonl"
    path.write_text("\n".join(journal.lines()[:-1]) + "\n")
    child = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    with child:
        child.stdout.readline()
        assert read_run(path).state == "running"
        child.kill()
    assert read_run(path).state == "vanished"


@pytest.mark.parametrize("torn", ['{"event": "sta', '{"event": "stage", "sta\n', "\x00\x00\x00"])
def test_a_torn_last_line_is_left_out(start, folder, torn):
    journal = start()
    with journal:
        journal.stage(row())
    path = folder / f"{journal.id}.jsonl"
    path.write_text("\n".join(journal.lines()[:-1]) + "\n" + torn)
    run = read_run(path)
    assert (run.state, len(run.stages)) == ("vanished", 1)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]\n",
        '{"event": "started", "schema": 1}\n',
        '{"event": "ended", "state": "released"}\n',
        "7\n",
    ],
)
def test_a_file_that_is_no_journal_is_passed_over(start, folder, content):
    journal = end(start())
    (folder / "20200101-000000-aaaaaa.jsonl").write_text(content)
    (folder / "20200101-000000-bbbbbb.jsonl").symlink_to(folder / f"{journal.id}.jsonl")
    (folder / "20200101-000000-cccccc.jsonl").mkdir()
    assert [run.id for run in past_runs()] == [journal.id]


def test_a_journal_of_another_schema_is_passed_over(start, folder):
    journal = end(start())
    path = folder / f"{journal.id}.jsonl"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2', 1))
    assert read_run(path) is None


def test_the_last_journals_are_kept_and_those_of_living_runs(start, folder, monkeypatch):
    monkeypatch.setattr(journal_module, "KEPT", 3)
    folder.mkdir(parents=True)
    old = [folder / f"2020010{day}-000000-aaaaaa.jsonl" for day in range(1, 6)]
    for path in old:
        path.touch()
    with old[0].open() as living:
        fcntl.flock(living, fcntl.LOCK_SH)
        fcntl.flock(living, fcntl.LOCK_EX)
        journal = end(start())
    assert sorted(path.name for path in folder.iterdir()) == [
        old[0].name,
        old[3].name,
        old[4].name,
        f"{journal.id}.jsonl",
    ]


def test_a_home_that_cannot_be_written_to_stops_no_run(start, tmp_path, capsys):
    (tmp_path / "home").write_text("a file where the folder should be")
    with start() as journal:
        journal.stage(row())
    assert [json.loads(line)["event"] for line in journal.lines()] == ["started", "stage", "ended"]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "its journal cannot be written" in said


def test_a_disk_that_is_full_for_a_while_stops_no_run_and_tears_no_line(
    start, folder, monkeypatch, capsys
):
    journal = start()
    write = os.write
    with journal:
        journal.stage(row("ingest"))
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:10]))
        journal.stage(row("normalize"))
        monkeypatch.setattr(os, "write", _no_space)
        journal.stage(row("project"))
        monkeypatch.setattr(os, "write", write)
    path = folder / f"{journal.id}.jsonl"
    assert [line["event"] for line in lines_of(path)] == ["started", "stage", "ended"]
    assert len(journal.lines()) == 5
    assert capsys.readouterr().err.count("\n") == 1


def _no_space(file, data):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# What is resumed


def test_a_run_is_found_by_the_beginning_of_its_id(start):
    first, second = end(start()), end(start())
    runs = past_runs()
    assert find_run(runs, first.id).id == first.id
    assert find_run(runs, second.id[:-1]).id == second.id
    with pytest.raises(PlanError, match="2 runs begin with 20"):
        find_run(runs, "20")
    for absent in ("1999", ""):
        with pytest.raises(PlanError, match="there is no run"):
            find_run(runs, absent)


def test_nothing_to_resume(start):
    with pytest.raises(PlanError, match="there is nothing to resume"):
        run_to_resume(None)
    end(start())
    with pytest.raises(PlanError, match="there is nothing to resume"):
        run_to_resume(None)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(None, "is released; there is nothing left"), (GateRefused("no"), "was refused by its gate")],
)
def test_what_cannot_be_resumed_is_refused_with_a_sentence(start, error, sentence):
    journal = end(start(), error)
    with pytest.raises(PlanError, match=f"run {journal.id} {sentence}"):
        run_to_resume(journal.id)


def test_a_running_one_is_refused(start):
    with start() as journal, pytest.raises(PlanError, match="is still running"):
        run_to_resume(journal.id)


def test_the_last_that_was_not_made_good_is_resumed(start, monkeypatch):
    clock = iter(range(10, 60))
    monkeypatch.setattr(journal_module.secrets, "token_hex", lambda _: f"{next(clock):06x}")
    other = end(start(out="other"), StageFailed("a"))
    end(start(), StageFailed("b"))
    end(start())  # makes the second good
    end(start(title="Another"))
    assert run_to_resume(None).id == other.id
    last = end(start(), KeyboardInterrupt())
    assert run_to_resume(None).id == last.id


# The command


def command(capsys, *arguments):
    code = main(["runs", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_no_runs(capsys):
    assert command(capsys) == (0, "no runs yet\n", "")
    assert json.loads(command(capsys, "--json")[1]) == []


def test_runs_and_what_they_hold(start, tmp_path, capsys):
    store = Store(tmp_path / "store").prepare()
    kept, lost = store.write({"a": [1.0] * 1000}), store.write({"a": [2.0]})
    size = store.path(kept).stat().st_size
    store.path(lost).unlink()
    journal = start()
    for stage, sha256 in (("ingest", kept.sha256), ("assemble", kept.sha256), ("project", lost.sha256)):
        journal.stage(row(stage, sha256))
    journal.stage(row("verify"))
    end(journal, StageFailed("evaluate: OSError (No space left on device)"))

    code, out, _ = command(capsys)
    headings, line = out.splitlines()
    assert code == 0
    assert headings.split() == ["RUN", "STATE", "STAGES", "HOLDS", "AGE", "WAVE", "TITLE"]
    assert re.fullmatch(
        rf"{journal.id}  failed  4 +{size / 1e3:.1f} kB +\d+ s +wave.parquet  Small survey", line
    )
    (listed,) = json.loads(command(capsys, "--json")[1])
    assert listed["bytes"] == size
    assert listed["stages"] == 4
    assert past_runs()[0].kept == 2


def test_one_run_with_its_stages_and_its_error(start, capsys):
    journal = start()
    journal.stage(row("partition", "ab" * 32, block=2, cached=True))
    end(journal, StageFailed("evaluate: OSError"))
    _, out, _ = command(capsys, journal.id[:-2])
    assert f"run {journal.id}: failed: evaluate: OSError" in out
    assert "partition, block 2  cached  removed" in out
    detail = json.loads(command(capsys, journal.id, "--json")[1])
    assert detail["error"] == "evaluate: OSError"
    assert [stage["stage"] for stage in detail["stages"]] == ["partition"]
    code, _, err = command(capsys, "1999")
    assert (code, err) == (2, "kohort: there is no run 1999; `kohort runs` lists them\n")
