"""The deployment on a real Prefect server and process worker: a schedule makes a run, the run a release.

The survey's root is a copy in which only the cron line differs, to every ten seconds instead of once a
day. The commands are those that deployments/prefect.yaml shows, as they stand there; server and worker
have a port, a PREFECT_HOME and a KOHORT_HOME of their own.
"""

import itertools
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
import yaml

from kohort.flows.plan import Plan, load_plan

ROOT = Path(__file__).parents[2]
PREFECT_YAML = ROOT / "deployments" / "prefect.yaml"
BIN = Path(sys.executable).parent
START_SERVER, CREATE_POOL, DEPLOY, START_WORKER = COMMANDS = (
    "prefect server start",
    "prefect work-pool create kohort --type process",
    "prefect --no-prompt deploy --all --prefect-file deployments/prefect.yaml",
    "prefect worker start --pool kohort",
)
CRON, EVERY_TEN_SECONDS = '"0 6 * * *"', '"* * * * * */10"'  # a sixth field counts seconds
QUIET = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
IMPATIENT = {  # Prefect's own pauses, shorter: how often work is asked for, how long a queued run rests
    "PREFECT_WORKER_QUERY_SECONDS": "1",
    "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
}
START_PATIENCE, PATIENCE = 60.0, 100.0  # seconds at the most; on two cores 16 and 40 are usual


@dataclass(frozen=True)
class Site:
    """A survey's folder with a server and a worker."""

    root: Path
    environment: dict[str, str]
    logs: Path

    def run(self, command: str) -> str:
        """What a command prints; it must succeed."""
        done = subprocess.run(
            self._words(command),
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,  # nobody is there to answer a prompt
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=START_PATIENCE,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def start(self, command: str, log: str) -> subprocess.Popen[bytes]:
        """A command that goes on, with what it prints in a log."""
        with (self.logs / log).open("wb") as sink:
            return subprocess.Popen(
                self._words(command),
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _words(self, command: str) -> list[str]:
        name, *arguments = shlex.split(command)
        return [str(BIN / name), *arguments]

    def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        """What the server's API answers."""
        return httpx.request(
            method, self.environment["PREFECT_API_URL"] + path, json=content or None, timeout=30
        )

    def deployment(self) -> dict[str, Any]:
        """The deployment as the server has it."""
        return self.request("GET", "/deployments/name/protect-wave/household").json()

    def completed(self) -> list[dict[str, Any]]:
        """Completed runs that a schedule made, the first first; no run may have ended otherwise."""
        runs = self.request("POST", "/flow_runs/filter", sort="START_TIME_ASC").json()
        ended = [run for run in runs if run["end_time"] is not None]
        assert {run["state_type"] for run in ended} <= {"COMPLETED"}, self.told()
        return [run for run in ended if run["auto_scheduled"]]

    def told(self) -> str:
        """The logs of server and worker."""
        return "\n".join(f"== {log.name}\n{log.read_text()}" for log in sorted(self.logs.iterdir()))

    def wait(self, condition: Callable[[], Any], what: str, deadline: float) -> None:
        """Ask until it is so, or fail with the logs."""
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what}: not in time\n{self.told()}")
            time.sleep(0.3)

    def is_healthy(self) -> bool:
        """Whether the server answers."""
        try:
            return self.request("GET", "/health").status_code == 200
        except httpx.TransportError:
            return False


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started: a worker puts each run into a session of its own."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGSTOP)  # it starts no more while we look
        table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
        parent_of = dict(map(int, line.split()) for line in table.stdout.splitlines())
        family = [process.pid]
        for member in family:  # grows while we go through it
            family += [child for child, parent in parent_of.items() if parent == member]
        for member in family:
            try:
                os.kill(member, signal.SIGKILL)
            except ProcessLookupError:
                continue
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """A root with the first wave, deployed, with server and worker running."""
    home = tmp_path_factory.mktemp("site")
    root, logs, port = home / "root", home / "logs", free_port()
    for folder in (root / "data", logs):
        folder.mkdir(parents=True)
    shutil.copytree(ROOT / "deployments", root / "deployments")
    daily = PREFECT_YAML.read_text()
    assert daily.count(CRON) == 1
    (root / "deployments" / "prefect.yaml").write_text(daily.replace(CRON, EVERY_TEN_SECONDS))
    drop_wave(root, "2026q1")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = inherited | QUIET | IMPATIENT
    environment |= {
        "PREFECT_HOME": str(home / "prefect"),
        "KOHORT_HOME": str(home / "kohort"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_API_PORT": str(port),
    }
    site, processes = Site(root, environment, logs), []
    try:
        processes.append(site.start(START_SERVER, "server.log"))
        site.wait(site.is_healthy, "a healthy server", time.monotonic() + START_PATIENCE)
        site.run(CREATE_POOL)
        site.run(DEPLOY)
        processes.append(site.start(START_WORKER, "worker.log"))
        yield site
    finally:
        for process in reversed(processes):
            end(process)


def drop_wave(root: Path, quarter: str) -> None:
    """Put a wave into the survey's folder, whole at once."""
    name = f"household-{quarter}.parquet"
    shutil.copy(ROOT / "data" / name, root / "data" / f".{name}")
    (root / "data" / f".{name}").rename(root / "data" / name)


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

    site.wait(site.completed, "a run that the schedule made", deadline)
    made = contents(first)
    assert sorted(made) == [
        "v1/internal/evaluation.json",
        "v1/internal/log.jsonl",
        "v1/internal/manifest.json",
        "v1/public/manifest.json",
        "v1/public/protected.parquet",
    ]

    # The wave is unchanged: the next run succeeds and rewrites nothing.
    so_far = len(site.completed())
    site.wait(lambda: len(site.completed()) > so_far, "the next run", deadline)
    assert contents(first) == made

    # A new wave: the next run releases it, beside the first.
    drop_wave(site.root, "2026q2")
    site.wait(
        (second / "v1" / "public" / "protected.parquet").exists, "the release of the new wave", deadline
    )
    assert sorted(path.name for path in releases.iterdir()) == [first.name, second.name]
    assert contents(first) == made

    runs = site.completed()
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
