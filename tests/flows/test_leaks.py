"""No value of a respondent gets into a log, a message, a record, a report or Prefect's database.

Every column of a wave is planted with values that occur nowhere else. Only protected.parquet and the
store's Parquet files may hold them.
"""

import errno
import logging
import os
import re
import subprocess
import sys
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import GuaranteeBroken, KohortError
from kohort.flows.cli import main
from kohort.flows.server import QUIET
from kohort.tasks import verify

N = 30
TEXTS = {"id": "SENTINELKEY", "name": "SENTINELNAME", "house": "SENTINELUNIT", "note": "SENTINELNOTE"}
NUMBERS = {
    "age": 71930451,
    "income": 52817.4639,
    "rent": 83610.7529,
    "cost": 60429.1837,
    "weight": 9.4716283,
}
TOO_LARGE = 2**64 - 5  # as a float it is 2**64, which Arrow refuses by quoting it
DIGITS = re.compile(
    "|".join(str(number).replace(".", r"\.")[:7] for number in (*NUMBERS.values(), 2**64))
)
WORDS = re.compile("|".join(TEXTS.values()))
DEBUG = {name: "DEBUG" for name in QUIET if name.endswith("LEVEL")}


def planted(**changes):
    """A wave whose every cell is a sentinel; columns are replaced by the changes."""
    few = np.arange(N)
    columns = {name: [f"{text}{i}" for i in few] for name, text in TEXTS.items()}
    columns |= {name: number + few * (1 if name == "age" else 1e-9) for name, number in NUMBERS.items()}
    return pa.table({**columns, **changes})


def with_cell(name, cell):
    values = planted().column(name).to_pylist()
    values[7] = cell
    return {name: pa.array(values, pa.float64())}


CASES = {
    "success": ({}, {}, 0),
    "weighted and rounded": (
        {},
        {"centroid": {"method": "weighted_mean"}, "release": {"round_integers": True}},
        0,
    ),
    "missing cell": (with_cell("rent", None), {}, 3),
    "infinite cell": (with_cell("income", np.inf), {}, 3),
    "huge cell": (with_cell("income", 5.2817e200), {}, 3),
    "bad weight": (with_cell("weight", -9.4716283), {"centroid": {"method": "weighted_mean"}}, 3),
    "same key twice": ({"id": ["SENTINELKEY"] * N}, {}, 3),
    "missing unit": ({"house": [None] + ["SENTINELUNIT"] * (N - 1)}, {}, 3),
    "text for a number": ({"age": ["SENTINELNOTE"] * N}, {}, 3),
    "column without a role": ({}, {"roles": {"other": None}}, 2),
    "sorted by a list": ({"note": [["SENTINELNOTE"]] * N}, {}, 3),
    "several bounds not kept": (
        {},
        {"gate": {"loss": 1e-9, "sse": 1e-9, "dld": 1e-9, "l_min": 1e9, "delta_W": 1e-9}},
        4,
    ),
    "unfit for its claim": ({}, {"release": {"claim": "k-anonymous"}}, 4),
    "number too large to round": (
        {"age": pa.array([TOO_LARGE] * N, pa.uint64())},
        {"release": {"round_integers": True}},
        3,
    ),
}


def sentinels_in(content):
    text = content if isinstance(content, str) else content.decode("latin-1")
    return [*WORDS.findall(text), *DIGITS.findall(text)]


def test_the_search_finds_what_is_there(tmp_path):
    pq.write_table(planted(), tmp_path / "wave.parquet", compression="none")
    assert len(set(WORDS.findall((tmp_path / "wave.parquet").read_bytes().decode("latin-1")))) == 4
    for name in NUMBERS:
        assert sentinels_in(str(planted().column(name)[0].as_py()))


@pytest.fixture
def survey(plan_of, write_plan, write_wave):
    def survey(case):
        changes, plan, _ = CASES[case]
        roles = {"other": "keep", **plan.get("roles", {})}
        written = write_plan(plan_of(**{**plan, "roles": roles}), f"{case}.toml")
        return written, write_wave(planted(**changes), f"{case}.parquet")

    return survey


@pytest.mark.parametrize("in_memory", [False, True], ids=["flow", "in memory"])
@pytest.mark.parametrize("case", CASES)
def test_no_value_is_said_or_written(
    case, in_memory, survey, tmp_path, capfd, caplog, home, prefect_url
):
    plan, wave = survey(case)
    code = CASES[case][-1]
    more = ["--in-memory"] if in_memory else ["--store", str(tmp_path / "store")]
    with caplog.at_level(logging.DEBUG):
        assert main(["protect", str(plan), str(wave), "--out", str(tmp_path / "out"), *more]) == code
    captured = capfd.readouterr()
    said = {"out": captured.out, "err": captured.err, "log": caplog.text}
    assert {where: sentinels_in(text) for where, text in said.items()} == {
        "out": [],
        "err": [],
        "log": [],
    }
    assert captured.err.count("kohort: ") == (code != 0)
    searched = search(tmp_path, wave) + search(home)
    assert searched > (3 if code == 0 else 0)


def search(folder, *but):
    """Look into every file that may not hold a value; how many there were."""
    count = 0
    for path in folder.rglob("*"):
        is_data = path.name == "protected.parquet" or path.parent.parent.name == "objects"
        if not path.is_file() or is_data or path in but or path.suffix in (".nbi", ".nbc"):
            continue
        assert sentinels_in(path.read_bytes()) == [], path.name
        count += 1
    return count


QUOTE = f"SENTINELNAME7 {NUMBERS['income']} {NUMBERS['age']}"
FAILURES = {
    "numpy": ValueError(QUOTE),
    "pandas": KeyError(QUOTE),
    "pyarrow": pa.ArrowInvalid(QUOTE),
    "memory": MemoryError(QUOTE),
    "full disk": OSError(errno.ENOSPC, QUOTE),
    "disk that stays away": OSError(errno.EIO, QUOTE),
    "disk that comes back": OSError(errno.EIO, QUOTE),
    "bug": GuaranteeBroken("block 0 of the written file has a class of 1 identical records"),
}


@pytest.fixture
def failing(monkeypatch):
    """Let verify, which reads what was released, raise an error: the first time only, or always."""

    def fail(error, *, once):
        original = verify.count_identical
        raised = []

        def count(*arguments):
            if not (once and raised):
                raised.append(error)
                raise error
            return original(*arguments)

        monkeypatch.setattr(verify, "count_identical", count)
        return raised

    return fail


@pytest.mark.parametrize("name", FAILURES)
def test_failures_of_a_stage_quote_nothing(
    name, failing, survey, tmp_path, capfd, caplog, home, prefect_url
):
    plan, wave = survey("success")
    once = name == "disk that comes back"
    raised = failing(FAILURES[name], once=once)
    where = ["--out", str(tmp_path / "out"), "--store", str(tmp_path / "store")]
    with caplog.at_level(logging.DEBUG):
        assert main(["protect", str(plan), str(wave), *where]) == (0 if once else 1)
    captured = capfd.readouterr()
    assert sentinels_in(captured.out + captured.err + caplog.text) == []
    assert len(raised) == (4 if name == "disk that stays away" else 1)
    assert ("2 attempts" in captured.err) == once
    search(tmp_path, wave)
    search(home)
    assert (tmp_path / "out").exists() == once


def test_other_commands_say_no_value(survey, plan_of, write_plan, tmp_path, capfd, prefect_url):
    """Everything that looks at a wave, a release, a store or a run, also where these are damaged."""
    _, wave = survey("success")
    everything = {"evaluate": {"measures": "all"}, "release": {"order": "input"}}
    plan = write_plan(plan_of(roles={"other": "keep"}, **everything))
    out, store = tmp_path / "out", ["--store", tmp_path / "store"]
    released = out / "v1" / "public" / "protected.parquet"
    damaged = tmp_path / "damaged.parquet"

    def say(*arguments, code=0):
        assert main([str(each) for each in arguments]) == code
        said = capfd.readouterr()
        assert sentinels_in(said.out + said.err) == []
        assert said.out + said.err

    say("plan", "check", plan, wave)
    say("plan", "init", wave)
    say("protect", plan, wave, "--out", out, *store)
    say("evaluate", wave, released, "--plan", plan, *store)
    say("evaluate", wave, wave, "--key", "id", "--in-memory")
    say("evaluate", wave, wave, "--key", "weight", "--in-memory")
    say("verify", out, "--original", wave)
    say("runs")
    say("runs", "--json")
    for verb in ("list", "size", "verify"):
        say("cache", verb, *store)
    damaged.write_bytes(wave.read_bytes()[:-100])
    say("plan", "check", plan, damaged, code=3)
    table = pq.read_table(released)
    pq.write_table(table.set_column(0, "id", table.column(0)).slice(1), released)
    say("verify", out, code=3)
    say("evaluate", wave, released, code=3)
    search(tmp_path, wave, damaged, plan)


def test_exceptions_of_the_flow_quote_nothing(survey, tmp_path, prefect_url):
    from kohort.flows.plan import load_plan
    from kohort.flows.protect import protect_wave

    for number, case in enumerate(("missing cell", "same key twice", "number too large to round")):
        plan, wave = survey(case)
        with pytest.raises(KohortError) as error:
            protect_wave(
                plan=load_plan(plan), wave=wave, out=tmp_path / f"out-{number}", store=tmp_path / "store"
            )
        assert sentinels_in("".join(traceback.format_exception(error.value))) == []
        assert sentinels_in(repr(error.value)) == []


def test_prefect_at_debug_level_stores_and_prints_nothing(survey, tmp_path, home):
    """A worker's way to run: the flow itself, Prefect's logs at debug level and sent to the API."""
    runs = [survey(case) for case in ("success", "missing cell", "number too large to round")]
    script = f"""
import os
os.environ.update({DEBUG!r}, PREFECT_LOGGING_TO_API_ENABLED="true")
from pathlib import Path
from kohort.flows.plan import load_plan
from kohort.flows.server import QUIET, prefect_server
QUIET.clear()
with prefect_server():
    from kohort.flows.protect import protect_wave
    for plan, wave in {[tuple(map(str, run)) for run in runs]!r}:
        try:
            protect_wave(plan=load_plan(Path(plan)), wave=Path(wave), out=Path(wave + ".out"),
                         store=Path({str(tmp_path / "store")!r}))
            print("RELEASED")
        except Exception as error:
            print("FAILED", type(error).__name__)
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker
    APILogWorker.drain_all(timeout=10)
    EventsWorker.drain_all(timeout=10)
os._exit(0)
"""
    environment = {name: value for name, value in os.environ.items() if name not in QUIET}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "DO_NOT_TRACK": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split("\n")[:3] == ["RELEASED", "FAILED WaveError", "FAILED WaveError"]
    assert "DEBUG" in done.stderr
    assert sentinels_in(done.stdout + done.stderr) == []
    assert search(home) > 0
    assert search(tmp_path, *(wave for _, wave in runs)) > 0
