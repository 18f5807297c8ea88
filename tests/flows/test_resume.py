"""`kohort resume`: a run that was killed, failed or interrupted goes on where it was."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

KOHORT = [sys.executable, "-m", "kohort.flows.cli"]


@pytest.fixture(scope="module")
def numba_cache(home):
    return home / "numba"


@pytest.fixture
def environment(tmp_path, numba_cache):
    """A home of its own, so that the runs in it are those of the test."""
    base = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    home = tmp_path / "home"
    return {
        **base,
        "KOHORT_HOME": str(home),
        "PREFECT_HOME": str(home / "prefect"),
        "NUMBA_CACHE_DIR": str(numba_cache),
    }


@pytest.fixture
def kohort(environment):
    def kohort(*arguments, code=0):
        done = subprocess.run(
            [*KOHORT, *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == code, done.stderr
        return done

    return kohort


def ended_midway(environment, arguments, how):
    """Start a run, send it a signal when its third partition is done, and wait for its end."""
    with subprocess.Popen(
        [*KOHORT, *map(str, arguments)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        for line in child.stderr:
            if line.startswith("partition, block 2"):
                child.send_signal(how)
                break
        child.stderr.read()
    return child.returncode


def test_kill_nine_then_resume_gives_the_same_bytes(
    kohort, environment, tmp_path, sample_plan, sample_wave
):
    undisturbed = tmp_path / "undisturbed"
    kohort("protect", sample_plan, sample_wave, "--out", undisturbed, "--store", tmp_path / "other")
    out = tmp_path / "out"
    run = ["protect", sample_plan, sample_wave, "--out", out]
    assert ended_midway(environment, run, signal.SIGKILL) == -signal.SIGKILL
    assert not list(out.glob("**/protected.parquet"))

    vanished, released = json.loads(kohort("runs", "--json").stdout)
    assert (vanished["state"], released["state"]) == ("vanished", "released")
    assert vanished["bytes"] > 0
    finished = vanished["stages"]
    assert finished >= 9  # ingest, assign_blocks, 4 projections, 3 partitions
    assert "vanished" in kohort("runs").stdout.splitlines()[1]

    done = kohort("resume")
    first = done.stderr.splitlines()[0]
    assert first == f"resuming {vanished['id']}: {finished} of its stages are finished and kept"
    assert f", of which {done.stderr.count(': cached')} were cached" in done.stdout
    assert done.stderr.count(": cached") >= finished
    protected = "protected.parquet"
    (mine,), (theirs,) = out.glob(f"**/{protected}"), undisturbed.glob(f"**/{protected}")
    assert mine.read_bytes() == theirs.read_bytes()

    states = [each["state"] for each in json.loads(kohort("runs", "--json").stdout)]
    assert states == ["released", "vanished", "released"]
    refused = kohort("resume", code=2)
    assert refused.stderr.count("\n") == 1
    assert "there is nothing to resume" in refused.stderr


def test_an_interrupted_run_is_resumed_by_name_as_json(
    kohort, environment, tmp_path, sample_plan, sample_wave
):
    store = tmp_path / "store"
    run = ["protect", sample_plan, sample_wave, "--out", tmp_path / "out", "--store", store]
    assert ended_midway(environment, run, signal.SIGINT) == 130
    (interrupted,) = json.loads(kohort("runs", "--json").stdout)
    assert interrupted["state"] == "interrupted"
    assert interrupted["store"] == str(store)
    result = json.loads(kohort("resume", interrupted["id"][:-3], "--json").stdout)
    assert result["resumed"] == interrupted["id"]
    assert sum(stage["cached"] for stage in result["stages"]) >= interrupted["stages"]


def test_a_failed_run_is_not_resumed_on_other_bytes(
    kohort, tmp_path, columns, plan_of, write_plan, write_wave
):
    columns["rent"][3] = float("nan")
    wave, plan = write_wave(columns), write_plan(plan_of())
    refused = kohort("protect", plan, wave, "--out", tmp_path / "out", code=3)
    (failed,) = json.loads(kohort("runs", "--json").stdout)
    assert failed["state"] == "failed"
    assert failed["error"] in refused.stderr
    again = kohort("resume", code=3)
    assert "resuming" in again.stderr
    assert failed["error"] in again.stderr

    columns["rent"][3] = 1.0
    write_wave(columns)
    changed = kohort("resume", failed["id"], code=3)
    assert changed.stderr == f"kohort: {wave} changed since the run; use kohort protect\n"
    shutil.move(wave, tmp_path / "elsewhere.parquet")
    assert "there is no file" in kohort("resume", failed["id"], code=3).stderr


def test_nothing_to_resume_is_one_sentence(kohort):
    for arguments in (["resume"], ["resume", "2026"]):
        assert kohort(*arguments, code=2).stderr.count("\n") == 1
