"""The memory of a run: estimated not below what it takes, not far above, and refused beforehand."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import PlanError
from kohort.flows import memory_estimate, precheck
from kohort.flows.cli import main
from kohort.flows.in_memory import protect_in_memory
from kohort.flows.memory_estimate import check_memory, estimate
from kohort.flows.plan import Plan
from kohort.flows.precheck import what_would_be_done
from kohort.flows.progress import Silent
from kohort.tasks import available
from kohort.tasks.available import available_memory
from kohort.tasks.wave import inspect_wave, layout_of

SLACK = 40e6  # what PROCESS has to spare for arenas and threads, whatever the wave

# Run small, to have everything compiled and imported, then large; print what the large run took more.
CHILD = """
import json, re, sys
from pathlib import Path
from kohort.flows.in_memory import protect_in_memory
from kohort.flows.plan import Plan
from kohort.flows.progress import Silent
from kohort.tasks.memory import return_unused

def kilobytes(name):
    return int(re.search(rf"{name}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

folder, plan = Path(sys.argv[1]), Plan.model_validate(json.loads(sys.argv[2]))
run = lambda name: protect_in_memory(
    plan, folder / f"{name}.parquet", folder / f"out-{name}", listener=Silent()
)
run("small")
return_unused()
before = kilobytes("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
run("large")
print(1024 * (kilobytes("VmHWM") - before))
"""

FOURS = {"method": "consecutive", "size": 4}
CASES = {
    "optimal": (200_000, 13, {"partition": {"method": "optimal", "k": 5}, "block": FOURS}),
    "fixed": (200_000, 13, {"partition": {"method": "fixed", "k": 5}}),
    "mdav": (100_000, 13, {"partition": {"method": "mdav", "k": 5}, "block": FOURS}),
    "mic1d": (200_000, 13, {"partition": {"method": "mic1d", "k": 50}}),
    "dld": (
        200_000,
        13,
        {
            "partition": {"method": "optimal", "k": 5},
            "block": FOURS,
            "evaluate": {"measures": ["dld"]},
        },
    ),
    "text": (200_000, 8, {"partition": {"method": "optimal", "k": 5}}),
}


def table_of(rows, attributes, text):
    rng = np.random.default_rng(1)
    columns = {f"a{j}": rng.lognormal(size=rows) for j in range(attributes)}
    if text:
        columns |= {"id": [f"person {i:09d}" for i in rng.permutation(rows)]}
        columns |= {"house": [f"household {i // 2}" for i in range(rows)], "cost": rng.normal(size=rows)}
    return pa.table(columns)


def plan_for(attributes, text, **sections):
    roles = {"quasi_identifiers": [f"a{j}" for j in range(attributes)]}
    if text:
        roles |= {"key": "id", "unit": "house", "confidential": ["cost"]}
    whole_file = sections.get("partition", {}).get("method") == "mic1d"
    release = {"claim": "none" if whole_file else "per-block"}
    return {"schema": 1, "roles": roles, "release": release, **sections}


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of a process is read on Linux only"
)
@pytest.mark.parametrize("case", CASES)
def test_the_estimate_is_not_below_the_peak_and_not_far_above(case, tmp_path):
    rows, attributes, sections = CASES[case]
    content = plan_for(attributes, case == "text", **sections)
    for name, count in (("small", 2000), ("large", rows)):
        pq.write_table(table_of(count, attributes, case == "text"), tmp_path / f"{name}.parquet")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path, json.dumps(content)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    took = int(done.stdout)
    plan, wave = Plan.model_validate(content), tmp_path / "large.parquet"
    columns = inspect_wave(wave, plan.roles.build())
    estimated = estimate(plan, columns, dict(layout_of(wave).columns), in_memory=True)
    assert took <= estimated + SLACK
    assert estimated <= 2.5 * took


# Refusals


@pytest.fixture
def survey(tmp_path):
    def survey(rows=1000, **sections):
        pq.write_table(table_of(rows, 3, False), tmp_path / "wave.parquet")
        sections = {"partition": {"method": "optimal", "k": 5}, **sections}
        return Plan.model_validate(plan_for(3, False, **sections)), tmp_path / "wave.parquet"

    return survey


def refusal(plan, wave, in_memory=True):
    with pytest.raises(PlanError) as error:
        check_memory(plan, wave, inspect_wave(wave, plan.roles.build()), in_memory=in_memory)
    return str(error.value)


def test_a_run_past_memory_is_refused_with_what_would_help(survey, monkeypatch):
    plan, wave = survey()
    monkeypatch.setattr(memory_estimate, "resident_memory", lambda: 0)
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: 300_000_000)
    assert refusal(plan, wave) == (
        "the run needs about 0.5 GB of memory for 1000 records of 3 quasi-identifiers by optimal, but "
        "0.3 GB are free; protect fewer columns or fewer records at a time, or use a machine with 1 GB"
    )
    plan, wave = survey(
        partition={"method": "kward", "cost": "block", "start": "md", "k": 5},
        evaluate={"measures": ["dld"]},
    )
    said = refusal(plan, wave)
    assert "use a method that needs less (optimal or fixed on an axis)" in said
    assert "ask for fewer measures in [evaluate]" in said


def test_what_this_process_has_already_is_not_asked_for_again(survey, monkeypatch):
    plan, wave = survey()
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: 300_000_000)
    monkeypatch.setattr(memory_estimate, "resident_memory", lambda: 250_000_000)
    check_memory(plan, wave, inspect_wave(wave, plan.roles.build()), in_memory=True)
    assert "needs about 0.7 GB" in refusal(plan, wave, in_memory=False)  # the server comes on top


@pytest.mark.parametrize("way", [[], ["--in-memory"]])
def test_the_command_refuses_before_it_starts(survey, tmp_path, monkeypatch, capsys, toml_of, way):
    _, wave = survey()
    (tmp_path / "plan.toml").write_text(
        toml_of(plan_for(3, False, partition={"method": "optimal", "k": 5}))
    )
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: 1)
    code = main(["protect", f"{tmp_path}/plan.toml", f"{wave}", "--out", f"{tmp_path}/out", *way])
    assert code == 2
    assert "the run needs about" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_every_way_to_run_refuses_by_itself(survey, tmp_path, monkeypatch, prefect_url):
    from kohort.flows.protect import protect_wave

    plan, wave = survey()
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: 1)
    with pytest.raises(PlanError, match="the run needs about"):
        protect_in_memory(plan, wave, tmp_path / "out", listener=Silent())
    with pytest.raises(PlanError, match="the run needs about"):
        protect_wave(plan=plan, wave=wave, out=tmp_path / "out", store=tmp_path / "store")
    assert not (tmp_path / "out").exists()


def test_plan_check_says_how_much_and_refuses_before_it_reads(survey, monkeypatch):
    plan, wave = survey()
    assert what_would_be_done(plan, wave).endswith("  memory: about 0.7 GB")
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: 1)
    monkeypatch.setattr(precheck, "read_values", None)
    with pytest.raises(PlanError, match="the run needs about"):
        what_would_be_done(plan, wave)


@pytest.mark.parametrize(
    "sections",
    [
        {"block": {"method": "correlated", "size": 2}},
        {"block": {"method": "explicit", "blocks": [["a0", "a1"], ["a2"]]}},
        {"partition": {"method": "mdav", "k": 5}, "normalize": {"method": "rank"}},
        {"centroid": {"method": "median"}},
        {"evaluate": {"measures": "all", "intruder": {"method": "subsets", "limit": 7}}},
    ],
)
def test_whatever_needs_more_is_estimated_higher(survey, sections):
    decoded_by = {}
    for name, more in (("plain", {}), ("more", sections)):
        plan, wave = survey(**more)
        columns = inspect_wave(wave, plan.roles.build())
        decoded_by[name] = estimate(plan, columns, dict(layout_of(wave).columns), in_memory=False)
    assert decoded_by["more"] >= decoded_by["plain"] > 0


# What is free


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A system's files, written by the test."""
    monkeypatch.setattr(available, "PROC", tmp_path / "proc")
    monkeypatch.setattr(available, "CGROUPS", tmp_path / "cgroup")

    def write(files):
        for name, content in {"proc/meminfo": "MemAvailable:   8000 kB\n", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    return write


def test_the_machine(system):
    system({})
    assert available_memory() == 8000 * 1024


def test_a_system_that_does_not_say(tmp_path, monkeypatch):
    monkeypatch.setattr(available, "PROC", tmp_path)
    assert available_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert available.resident_memory() == 0


def test_control_groups_of_version_two(system):
    system(
        {
            "proc/self/cgroup": "0::/jobs/one\n",
            "cgroup/jobs/one/memory.max": "max\n",
            "cgroup/jobs/one/memory.current": "1\n",
            "cgroup/jobs/memory.max": "5000000\n",
            "cgroup/jobs/memory.current": "4000000\n",
            "cgroup/jobs/memory.stat": "anon 3500000\ninactive_file 500000\n",
        }
    )
    assert available_memory() == 1_500_000


def test_control_groups_of_version_one_seen_from_a_container(system):
    system(
        {
            "proc/self/cgroup": "5:cpu:/\n4:memory:/of/the/host\n0::/\n",
            "cgroup/memory/memory.limit_in_bytes": "3000000\n",
            "cgroup/memory/memory.usage_in_bytes": "4000000\n",
            "cgroup/memory/memory.stat": "total_inactive_file 10\n",
        }
    )
    assert available_memory() == 0


def test_a_limit_of_the_address_space(system, monkeypatch):
    system({"proc/self/status": "VmSize:   1000 kB\nVmRSS:     500 kB\n"})
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_500_000, resource.RLIM_INFINITY))
    assert available_memory() == 1_500_000 - 1000 * 1024


def test_this_machine():
    assert 10**6 < available_memory() < 10**15
    if Path("/proc/self/status").exists():
        assert available.resident_memory() > 10**7
