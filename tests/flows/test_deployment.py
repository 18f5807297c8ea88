"""The deployment on a real Prefect server and process worker: a schedule makes a run, the run a release.

The survey's root is a copy in which only the cron line differs, to every ten seconds instead of once a
day.
"""

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from kohort.flows.plan import Plan, load_plan
from tests.site import COMMANDS, PREFECT_YAML, ROOT, Site, drop_wave, running_site

EVERY_TEN_SECONDS = "* * * * * */10"  # a sixth field counts seconds
PATIENCE = 100.0  # seconds at the most; on two cores 40 are usual


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), cron=EVERY_TEN_SECONDS) as site:
        yield site


def completed(site: Site) -> list[dict[str, Any]]:
    """Completed runs that a schedule made, the first first; no run may have ended otherwise."""
    runs = site.request("POST", "/flow_runs/filter", sort="START_TIME_ASC").json()
    ended = [run for run in runs if run["end_time"] is not None]
    assert {run["state_type"] for run in ended} <= {"COMPLETED"}, site.told()
    return [run for run in ended if run["auto_scheduled"]]


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file was written, and its bytes."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def deployments() -> list[dict[str, Any]]:
    return yaml.safe_load(PREFECT_YAML.read_text())["deployments"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_file_shows_the_commands_that_are_tested(command):
    assert f"#   {command}\n" in PREFECT_YAML.read_text()


def test_the_parameters_are_the_sample_survey_and_its_plan():
    (deployment,) = deployments()
    parameters = deployment["parameters"]
    plan = load_plan(ROOT / "deployments" / "plans" / "household.toml")
    assert Plan.model_validate(parameters["plan"]) == plan
    assert sorted(parameters) == ["out", "plan", "wave"]
    assert (ROOT / parameters["wave"]).is_dir()


def test_the_server_has_it_scheduled_in_a_time_zone_one_at_a_time_and_queued(site):
    deployed = site.deployment()
    (schedule,) = deployed["schedules"]
    assert schedule["active"]
    assert schedule["schedule"]["timezone"] == deployments()[0]["schedules"][0]["timezone"]
    assert deployed["global_concurrency_limit"]["limit"] == 1
    assert deployed["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert deployed["enforce_parameter_schema"]
    assert deployed["work_pool_name"] == "kohort"
    assert site.request("GET", "/work_pools/kohort").json()["type"] == "process"


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition": {"method": "optimal", "cost": "axis", "k": 1}},
        {"partition": {"method": "unheard_of", "k": 5}},
        {"roles": {}},
        {"sede": 0},
    ],
)
def test_a_wrong_plan_is_refused_when_a_run_is_created(site, wrong):
    deployed = site.deployment()
    path = f"/deployments/{deployed['id']}/create_flow_run"
    plan = {**deployed["parameters"]["plan"], **wrong}
    answer = site.request("POST", path, parameters={"plan": plan}, state={"type": "SCHEDULED"})
    assert answer.status_code == 409
    assert "Validation failed for field 'plan" in answer.json()["detail"]


def test_a_schedule_makes_runs_and_the_runs_the_releases(site):
    deadline = time.monotonic() + PATIENCE
    releases = site.root / "out" / "releases"
    first, second = releases / "household-2026q1", releases / "household-2026q2"

    site.wait(lambda: completed(site), "a run that the schedule made", deadline)
    made = contents(first)
    assert sorted(made) == [
        "v1/internal/evaluation.json",
        "v1/internal/log.jsonl",
        "v1/internal/manifest.json",
        "v1/public/manifest.json",
        "v1/public/protected.parquet",
    ]

    # The wave is unchanged: the next run succeeds and rewrites nothing.
    so_far = len(completed(site))
    site.wait(lambda: len(completed(site)) > so_far, "the next run", deadline)
    assert contents(first) == made

    # A new wave: the next run releases it, beside the first.
    drop_wave(site.root, "2026q2")
    site.wait(
        (second / "v1" / "public" / "protected.parquet").exists, "the release of the new wave", deadline
    )
    assert sorted(path.name for path in releases.iterdir()) == [first.name, second.name]
    assert contents(first) == made

    runs = completed(site)
    for earlier, later in itertools.pairwise(runs):
        assert earlier["end_time"] <= later["start_time"]  # one at a time

    for release in (first, second):
        memory = site.root / "memory" / release.name
        wave = f"data/{release.name}.parquet"
        site.run(f"kohort protect deployments/plans/household.toml {wave} --out {memory} --in-memory")
        file = "v1/public/protected.parquet"
        assert (release / file).read_bytes() == (memory / file).read_bytes()

    told = site.told()
    assert "Finished in state Completed()" in told
    assert "Traceback" not in told
    stored = "".join(
        path.read_text(encoding="latin-1")
        for path in Path(site.environment["PREFECT_HOME"]).rglob("*")
        if path.is_file()
    )
    assert not set(re.findall(r"[\w.]+", told + stored)) & cells(site.root / "data")


def cells(folder: Path) -> set[str]:
    """Cells of the waves that no log can hold by chance."""
    found: set[str] = set()
    for path in folder.glob("*.parquet"):
        table = pq.read_table(
            path, columns=["person_id", "household_id", "name", "weight", "energy_use"]
        )
        for column in table.columns:
            found.update(word for cell in column.to_pylist() for word in str(cell).split())
    return found
