"""No value of a respondent gets into a log, a message, a record, a report or Prefect's database.

Every column of a wave is planted with values that occur nowhere else. Only protected.parquet and the
store's Parquet files may hold them.
"""

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

from kohort.errors import KohortError
from kohort.flows.cli import main
from kohort.flows.server import QUIET

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
