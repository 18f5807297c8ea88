"""The command line: exit codes, one sentence a refusal, nothing left behind, no server left running."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.flows.cli import main
from kohort.flows.server import EMBEDDED, _wait_until_healthy

KOHORT = [sys.executable, "-m", "kohort.flows.cli"]


def environment(**changes):
    """This process's environment, without a server unless it is named."""
    base = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    return {**base, "COLUMNS": "80", **{name: str(value) for name, value in changes.items()}}


def kohort(*arguments, timeout=120, **changes):
    return subprocess.run(
        [*KOHORT, *map(str, arguments)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# Refusals that need no run. One process, in which Prefect cannot be imported, tries them all.

DRIVER = """
import contextlib, io, json, sys
from kohort.flows.cli import main
answers = {}
for name, arguments in json.load(sys.stdin).items():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    answers[name] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(answers))
"""


def without_prefect(folder, cases):
    (folder / "prefect").mkdir()
    (folder / "prefect" / "__init__.py").write_text("raise RuntimeError('Prefect was imported')")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(cases),
        env=environment(PYTHONPATH=folder, KOHORT_HOME=folder / "home", NUMBA_CACHE_DIR=numba_cache()),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def numba_cache():
    return Path(os.environ["KOHORT_HOME"]) / "numba"


def table_of(columns, **changes):
    changed = {**columns, **changes}
    return pa.table({name: values for name, values in changed.items() if values is not None})


def with_cell(values, cell):
    values = np.array(values, dtype=float)
    values[3] = cell
    return values


PLAN_REFUSALS = {
    "k = 1": ({"partition": {"method": "optimal", "k": 1}}, "partition.k must be at least 2, got 1"),
    "k = 2.5": ({"partition": {"method": "optimal", "k": 2.5}}, "partition.k must be a whole number"),
    "k = 2": ({"partition": {"method": "optimal", "k": 2}}, r"\(2c - x\); use k = 3 or more"),
    "unknown method": ({"partition": {"method": "magic", "k": 3}}, "partition.method must be one of"),
    "unknown parameter": ({"centroid": {"method": "mean", "trim": 1}}, "centroid.trim is not a field"),
    "named twice": (
        {"roles": {"quasi_identifiers": ["age", "age", "income", "rent"]}},
        "'age' is named twice in quasi_identifiers",
    ),
    "two roles": ({"roles": {"identifiers": ["name", "rent"]}}, "'rent' has two roles"),
    "no partition": (
        {"block": {"method": "explicit", "blocks": [["age"], ["rent"]]}},
        "'income' is in no block",
    ),
    "unknown schema": ({"schema": 7}, "schema = 7 is not known"),
    "weights wanted": (
        {"roles": {"weight": None, "other": "drop"}, "centroid": {"method": "weighted_mean"}},
        "needs roles.weight",
    ),
    "unclear lifetime": ({"store": {"keep": "7"}}, 'store.keep: a duration is written as "12h", "7d"'),
    "no lifetime": ({"store": {"keep": "0d"}}, "a lifetime of nothing is `kohort protect --discard`"),
    "columns without a role": ({"roles": {"confidential": None}}, "columns without a role: 'cost'"),
}
FOOTER_REFUSALS = {
    "empty": (lambda c: table_of(c).slice(0, 0), "has no records"),
    "fewer rows than k": (
        lambda c: table_of(c).slice(0, 2),
        "the wave has 2 records but k = 3; lower k",
    ),
    "missing column": (lambda c: table_of(c, rent=None), "has no column 'rent' that the plan names"),
    "column twice": (
        lambda c: table_of(c).append_column("age", pa.array(c["age"])),
        "two columns named 'age'",
    ),
    "text": (lambda c: table_of(c, age=c["name"]), "quasi-identifier 'age' is not numeric but string"),
}
DATA_REFUSALS = {
    "missing cells": (
        lambda c: table_of(c, rent=with_cell(c["rent"], np.nan)),
        r"missing cells in rent \(1\)",
    ),
    "all missing": (
        lambda c: table_of(c, rent=pa.nulls(40, pa.float64())),
        r"missing cells in rent \(40\)",
    ),
    "infinite": (
        lambda c: table_of(c, rent=with_cell(c["rent"], np.inf)),
        r"infinite cells in rent \(1\)",
    ),
    "duplicate keys": (
        lambda c: table_of(c, id=["same"] * 2 + c["id"][2:]),
        "key 'id' names more than one",
    ),
    "missing key": (lambda c: table_of(c, id=[None, *c["id"][1:]]), "key 'id' is missing in 1 records"),
    "missing unit": (
        lambda c: table_of(c, house=[None, *c["house"][1:]]),
        "unit 'house' is missing in 1",
    ),
    **{
        f"weight {cell}": (
            lambda c, cell=cell: table_of(c, weight=with_cell(c["weight"], cell)),
            "1 of 40 weights are missing, infinite, not above 0 or beyond",
        )
        for cell in (np.nan, np.inf, 0.0, -1.0)
    },
}


FILE_REFUSALS = {
    "no plan": (["none.toml", "wave.parquet", "--out", "out"], 2, "there is no plan .*none.toml"),
    "not TOML": (["wave.parquet", "wave.parquet", "--out", "out"], 2, "is not valid TOML"),
    "no wave": (["plan.toml", "none.parquet", "--out", "out"], 3, "there is no file .*none.parquet"),
    "a folder": (["plan.toml", "empty", "--out", "out"], 3, "the folder .*empty has no Parquet file"),
    "not Parquet": (["plan.toml", "plan.toml", "--out", "out"], 3, "is not a readable Parquet file"),
    "damaged": (["plan.toml", "damaged.parquet", "--out", "out"], 3, "is not a readable Parquet file"),
    "out is a file": (["plan.toml", "wave.parquet", "--out", "plan.toml"], 2, "plan.toml is a file"),
    "out is in a file": (
        ["plan.toml", "wave.parquet", "--out", "plan.toml/out"],
        2,
        "plan.toml is a file",
    ),
    "store without effect": (
        ["plan.toml", "wave.parquet", "--out", "out", "--in-memory", "--store", "s"],
        2,
        "--store has no effect with --in-memory",
    ),
}
EARLY = {
    **{f"plan: {name}": (2, sentence) for name, (_, sentence) in PLAN_REFUSALS.items()},
    **{f"footer: {name}": (3, sentence) for name, (_, sentence) in FOOTER_REFUSALS.items()},
    **{f"data: {name}": (3, sentence) for name, (_, sentence) in DATA_REFUSALS.items()},
    **{f"file: {name}": (code, sentence) for name, (_, code, sentence) in FILE_REFUSALS.items()},
}


@pytest.fixture(scope="module")
def early(tmp_path_factory, make_columns, plan_of, toml_of):
    """Every refusal that needs no run, and those of data in memory; and what they left behind."""
    folder = tmp_path_factory.mktemp("early")
    columns = make_columns()
    (folder / "plan.toml").write_text(toml_of(plan_of()))
    pq.write_table(table_of(columns), folder / "wave.parquet")
    content = (folder / "wave.parquet").read_bytes()
    (folder / "empty").mkdir()
    (folder / "damaged.parquet").write_bytes(content[:-30] + b"\xff" * 22 + content[-8:])
    cases = {}
    for name, (changes, _) in PLAN_REFUSALS.items():
        (folder / f"{name}.toml").write_text(toml_of(plan_of(**changes)))
        cases[f"plan: {name}"] = [f"{name}.toml", "wave.parquet", "--out", "out"]
    for kind, refusals in (("footer", FOOTER_REFUSALS), ("data", DATA_REFUSALS)):
        for name, (change, _) in refusals.items():
            pq.write_table(change(columns), folder / f"{name}.parquet")
            cases[f"{kind}: {name}"] = ["plan.toml", f"{name}.parquet", "--out", "out"]
            if kind == "data":
                cases[f"{kind}: {name}"].append("--in-memory")
    cases |= {f"file: {name}": arguments for name, (arguments, *_) in FILE_REFUSALS.items()}
    before = everything_in(folder)
    with_paths = {
        name: ["protect", *(a if a.startswith("--") else str(folder / a) for a in arguments)]
        for name, arguments in cases.items()
    }
    poison = tmp_path_factory.mktemp("poison")
    answers = without_prefect(poison, with_paths)
    left = set(everything_in(folder)) - set(before)
    return answers, left, everything_in(poison)


@pytest.mark.parametrize("name", EARLY)
def test_a_refusal_is_one_sentence_with_its_exit_code(name, early):
    expected, sentence = EARLY[name]
    code, out, err = early[0][name]
    assert re.search(sentence, err)
    assert code == expected
    assert out == ""
    assert err.startswith("kohort: ")
    assert err.count("\n") == 1


def test_refusals_leave_nothing_and_do_not_import_prefect(early):
    _, left, beside_poison = early
    assert left == set()
    assert beside_poison == ["prefect", "prefect/__init__.py"]  # no state folder either


@pytest.mark.parametrize("name", ["missing cells", "duplicate keys", "weight 0.0"])
def test_data_are_refused_in_the_flow_too(
    name, columns, plan_of, write_plan, write_wave, tmp_path, capfd, prefect_url
):
    change, sentence = DATA_REFUSALS[name]
    plan, wave = write_plan(plan_of()), write_wave(change(columns))
    code = main(
        ["protect", str(plan), str(wave), "--out", str(tmp_path / "out"), "--store", str(tmp_path / "s")]
    )
    captured = capfd.readouterr()
    assert (code, captured.out) == (3, "")
    assert re.fullmatch(f"kohort: .*{sentence}.*\n", captured.err)
    assert not (tmp_path / "out").exists()


def test_a_foreign_exception_is_one_sentence_without_its_text(tmp_path, monkeypatch, capsys, write_wave):
    def quote_a_cell(wave):
        pa.array(["SECRET"]).cast(pa.float64())

    monkeypatch.setattr("kohort.flows.drafting.draft_plan", quote_a_cell)
    assert main(["plan", "init", str(write_wave({"x": [1.0]}))]) == 1
    assert capsys.readouterr().err == "kohort: stopped on ArrowInvalid\n"


@pytest.fixture
def survey(columns, plan_of, write_plan, write_wave):
    """Plan and wave of the small survey."""
    return str(write_plan(plan_of())), str(write_wave(columns))


def test_plan_init_and_check_print(survey, tmp_path, capsys):
    assert main(["plan", "init", survey[1]]) == 0
    drafted = capsys.readouterr().out
    (tmp_path / "drafted.toml").write_text(drafted)
    assert main(["plan", "check", str(tmp_path / "drafted.toml"), survey[1]]) == 0
    assert capsys.readouterr().out.startswith("the plan fits the wave: 40 records")
    assert main(["plan", "check", survey[0], str(tmp_path / "none.parquet")]) == 3


@pytest.mark.parametrize("how", ["flow", "in memory"])
def test_json_on_standard_output_and_lines_on_standard_error(how, survey, tmp_path, prefect_url):
    out = tmp_path / "out"
    more = ["--in-memory"] if how == "in memory" else ["--store", tmp_path / "store"]
    done = kohort("protect", *survey, "--out", out, "--json", *more, PREFECT_API_URL=prefect_url)
    assert done.returncode == 0
    result = json.loads(done.stdout)
    release = out / "v1"
    assert result["out"] == str(release)
    assert {path for path in everything_in(release) if (release / path).is_file()} == set(
        result["files"]
    )
    manifest = json.loads((release / "internal" / "manifest.json").read_text())
    assert result["stages"][: len(manifest["stages"])] == manifest["stages"]
    said = {"stage", "block", "sha256", "rows", "seconds", "cached", "attempts", "repaired"}
    assert set(result["stages"][0]) == said
    labels = [
        r["stage"] + ("" if r["block"] is None else f", block {r['block']}") for r in result["stages"]
    ]
    lines = done.stderr.splitlines()
    assert sorted(line.split(":")[0] for line in lines) == sorted(labels)  # as they finish
    assert all(re.fullmatch(r"[a-z_]+(, block \d+)?: (\d+\.\d\d s|cached)", line) for line in lines)


def test_a_person_reads_a_summary(survey, tmp_path, capsys):
    arguments = ["protect", *survey, "--out", str(tmp_path / "out"), "--in-memory"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith("protected 40 records in ")
    assert "every record is identical to at least 2 others on all quasi-identifiers" in text
    assert str(tmp_path / "out" / "v1" / "public" / "protected.parquet") in text
    assert main(arguments) == 0
    assert "nothing rewritten: version 1 is this release already" in capsys.readouterr().out


def test_another_release_is_a_new_version(survey, columns, write_wave, tmp_path, capsys):
    arguments = ["protect", *survey, "--out", str(tmp_path / "out"), "--in-memory"]
    assert main(arguments) == 0
    columns["rent"][0] += 500
    write_wave(columns)
    capsys.readouterr()
    assert main(arguments) == 0
    assert "version 2 of this wave's release, beside the earlier ones" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["v1", "v2"]


def test_a_terminal_shows_a_bar(survey, tmp_path):
    controller, terminal = pty.openpty()
    command = [*KOHORT, "protect", *survey, "--out", tmp_path / "out", "--in-memory"]
    with subprocess.Popen(
        command, env=environment(TERM="xterm"), stdout=subprocess.PIPE, stderr=terminal, text=True
    ) as process:
        os.close(terminal)
        shown = b""
        while chunk := _read(controller):
            shown += chunk
        out = process.stdout.read()
    os.close(controller)
    assert process.returncode == 0
    assert b"kohort" in shown
    assert "━".encode() in shown
    assert b"\x1b[" in shown
    assert b"ingest: " not in shown
    assert out.startswith("protected 40 records")


def _read(controller):
    try:
        return os.read(controller, 4096)
    except OSError:  # the other end is closed
        return b""


def test_usage_is_explained():
    assert kohort("--version").stdout.startswith("kohort 0.")
    done = kohort("protect", "plan.toml")
    assert done.returncode == 2
    assert "usage: kohort protect" in done.stderr


# Servers: dead, dying, killed, many at once.


def test_a_server_that_is_not_there(survey, tmp_path):
    started = time.monotonic()
    done = kohort(
        "protect", *survey, "--out", tmp_path / "out", PREFECT_API_URL="http://127.0.0.1:9/api"
    )
    assert time.monotonic() - started < 30
    assert done.returncode == 1
    assert re.fullmatch(
        r"kohort: the Prefect server http://127.0.0.1:9/api does not answer; .*\n", done.stderr
    )
    assert not (tmp_path / "out").exists()


def test_a_server_that_accepts_and_says_nothing(survey, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        started = time.monotonic()
        done = kohort("protect", *survey, "--out", tmp_path / "out", PREFECT_API_URL=url)
    assert time.monotonic() - started < 30
    assert done.returncode == 1
    assert re.fullmatch(r"kohort: the Prefect server .* does not answer; .*\n", done.stderr)


def test_an_address_that_is_none(survey, tmp_path):
    done = kohort("protect", *survey, "--out", tmp_path / "out", PREFECT_API_URL="nonsense")
    assert done.returncode == 2
    assert re.fullmatch(r"kohort: PREFECT_API_URL = nonsense is no address; .*\n", done.stderr)


def test_a_state_folder_that_is_a_file(survey, tmp_path):
    (tmp_path / "file").write_text("")
    done = kohort("protect", *survey, "--out", tmp_path / "out", KOHORT_HOME=tmp_path / "file")
    assert done.returncode == 1
    assert re.fullmatch(r"kohort: the state folder .* cannot be used .*\n", done.stderr)
    assert not (tmp_path / "out").exists()


@contextmanager
def running(*arguments, **changes):
    """A command whose first stage is done."""
    command = [*KOHORT, "protect", *map(str, arguments)]
    process = subprocess.Popen(
        command, env=environment(**changes), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr.readline().startswith("ingest: ")
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def test_a_server_that_dies_midway(sample_plan, sample_wave, tmp_path, home, prefect_url):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        server = subprocess.Popen(
            [sys.executable, "-m", "kohort.flows.embedded", str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            env=environment(**EMBEDDED, PREFECT_API_URL=url),
        )
    try:
        _wait_until_healthy(server, url)
        where = ["--out", tmp_path / "out", "--store", tmp_path / "store"]
        with running(sample_plan, sample_wave, *where, PREFECT_API_URL=url) as process:
            server.kill()
            killed = time.monotonic()
            _, err = process.communicate(timeout=60)
            assert time.monotonic() - killed < 30
    finally:
        server.kill()
        server.communicate()
    assert process.returncode == 1
    assert re.fullmatch(
        r"kohort: .* at the Prefect server .*; finished stages are kept.*", err.splitlines()[-1]
    )
    assert all(re.match(r"[a-z_]+(, block \d+)?: ", line) for line in err.splitlines()[:-1])
    # Stages go on without the server; what they released is whole, or is not there.
    assert released_in(tmp_path / "out") in ([], RELEASED)


RELEASED = [
    "v1/internal/evaluation.json",
    "v1/internal/log.jsonl",
    "v1/internal/manifest.json",
    "v1/public/manifest.json",
    "v1/public/protected.parquet",
]


def released_in(out):
    """The files of all versions in a folder of releases."""
    return sorted(str(path.relative_to(out)) for path in out.glob("v*/*/*"))


def servers_of(process):
    """Process ids of the embedded servers that a command has started."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [
        int(pid) for pid, ppid, args in rows if int(ppid) == process.pid and "flows.embedded" in args
    ]


def is_alive(pid):
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return listed.returncode == 0 and not listed.stdout.startswith("Z")


def gone_within(seconds, pid):
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_a_killed_command_leaves_no_server(sample_plan, sample_wave, tmp_path):
    where = ["--out", tmp_path / "out", "--store", tmp_path / "store"]
    with running(sample_plan, sample_wave, *where) as process:
        (server,) = servers_of(process)
        process.kill()
        process.wait()
        assert gone_within(15, server)
    assert released_in(tmp_path / "out") == []


def test_an_interrupted_command_says_so(sample_plan, sample_wave, tmp_path):
    where = ["--out", tmp_path / "out", "--store", tmp_path / "store"]
    with running(sample_plan, sample_wave, *where) as process:
        (server,) = servers_of(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert gone_within(15, server)
    assert process.returncode == 130
    assert (
        err.splitlines()[-1] == "kohort: interrupted; finished stages are kept, run it again to continue"
    )
    assert all(re.match(r"[a-z_]+(, block \d+)?: ", line) for line in err.splitlines()[:-1])
    assert not (tmp_path / "out").exists()


def test_eight_first_starts_at_once(survey, tmp_path):
    """The slowest test: eight commands make the database of one fresh home together."""
    fresh = environment(KOHORT_HOME=tmp_path / "home", NUMBA_CACHE_DIR=numba_cache())
    commands = [
        subprocess.Popen(
            [*KOHORT, "protect", *survey, "--out", tmp_path / f"out-{number}"],
            env=fresh,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    answers = [command.communicate(timeout=240) for command in commands]
    assert [command.returncode for command in commands] == [0] * 8, [err for _, err in answers]
    released = {path.read_bytes() for path in tmp_path.glob("out-?/v1/public/protected.parquet")}
    assert len(list(tmp_path.glob("out-?/v1/internal/manifest.json"))) == 8
    assert len(released) == 1
    state = tmp_path / "home"
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "prefect" / "prefect.db").stat().st_mode & 0o777 == 0o600
