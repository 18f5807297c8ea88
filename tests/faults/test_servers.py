"""A flow's process, its worker or the Prefect server dies or hangs midway: nothing is lost or wrong.

A real server and process worker on loopback, one of each for all tests; who ends one starts it again.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.site import BIN, Site, running_site

NEVER = "0 6 29 2 *"
PATIENCE = 60.0  # seconds at the most for what takes ten
PLAN, WAVE = "deployments/plans/household.toml", "data/household-2026q1.parquet"
PROTECTED = "v1/public/protected.parquet"
TIMEOUT = 2.0  # seconds for which the server may not answer; a command's own default is 20


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), cron=NEVER) as site:
        yield site


@pytest.fixture(scope="module")
def undisturbed(site) -> bytes:
    """The release of a run in memory."""
    site.run(f"kohort protect {PLAN} {WAVE} --out memory --in-memory")
    return (site.root / "memory" / PROTECTED).read_bytes()


@dataclass(frozen=True)
class Begun:
    """A run that is midway."""

    journal: Path
    pid: int

    @property
    def finished(self) -> int:
        """Its finished stages that can be cached."""
        return sum(bool(line.get("sha256")) for line in lines_of(self.journal))


def lines_of(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


@contextmanager
def stopped_midway(site: Site) -> Iterator[list[Begun]]:
    """Start a run within; afterwards it has finished a partition, and its process is stopped."""
    folder = Path(site.environment["KOHORT_HOME"]) / "runs"
    known, found = set(folder.glob("*.jsonl")), []
    yield found

    def midway() -> Begun | None:
        for journal in set(folder.glob("*.jsonl")) - known:
            lines = lines_of(journal)
            if any(line.get("stage") == "partition" for line in lines):
                return Begun(journal, lines[0]["pid"])
        return None

    begun = site.wait(midway, "a run that is midway", time.monotonic() + PATIENCE, pause=0.002)
    os.kill(begun.pid, signal.SIGSTOP)
    assert lines_of(begun.journal)[-1]["event"] == "stage", "the run was over before it was stopped"
    found.append(begun)


def deployed_run(site: Site, case: str) -> str:
    """Create a run of the deployment, with a store and an output folder of its own."""
    path = f"/deployments/{site.deployment()['id']}/create_flow_run"
    parameters = {"out": f"out/{case}", "store": str(site.root / f"store-{case}")}
    answer = site.request("POST", path, parameters=parameters, state={"type": "SCHEDULED"})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def state_of(site: Site, run: str) -> str:
    return site.request("GET", f"/flow_runs/{run}").json()["state_name"]


def wait_for(site: Site, run: str, *states: str) -> str:
    site.wait(lambda: state_of(site, run) in states, f"{states}", time.monotonic() + PATIENCE)
    return state_of(site, run)


def kohort(site: Site, case: str, **environment: str) -> subprocess.Popen[str]:
    """Start `kohort protect` on the site's server."""
    words = [BIN / "kohort", "protect", PLAN, WAVE, "--out", f"out/{case}", "--store", f"store-{case}"]
    return subprocess.Popen(
        words,
        cwd=site.root,
        env={**site.environment, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """The process, which does not outlive a test that fails."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def states(site: Site, case: str) -> list[str]:
    """What `kohort runs` says of the runs of a case, the last first."""
    runs = json.loads(site.run("kohort runs --json"))
    return [run["state"] for run in runs if run["store"].endswith(f"store-{case}")]


def check_resumed(site: Site, case: str, begun: Begun, undisturbed: bytes) -> None:
    """The same bytes as in memory, and of its stages those are cached that were finished before."""
    (folder,) = (site.root / "out" / case).iterdir()
    assert (folder / PROTECTED).read_bytes() == undisturbed
    stages = json.loads((folder / "v1/internal/manifest.json").read_bytes())["stages"]
    assert (
        sum(stage["cached"] for stage in stages) >= begun.finished >= 3
    )  # ingest, blocks, axes, groups
    assert not [path for path in folder.iterdir() if path.name.startswith(".kohort-")]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def retry(site: Site, run: str) -> None:
    """As a person does it; the worker picks the run up."""
    site.run(f"prefect flow-run retry {run}")
    assert wait_for(site, run, "Completed", "Failed", "Crashed") == "Completed", site.told()


def test_a_killed_flow_is_crashed_and_retried(site, undisturbed):
    with stopped_midway(site) as found:
        run = deployed_run(site, "flow")
    kill(found[0].pid)
    wait_for(site, run, "Crashed")
    # The process's runner notices first and the worker seconds later, who would take a retry between the
    # two for the crash.
    remark = "prefect.flow_runs.worker - Check whether the flow run exceeded its memory"
    site.wait(lambda: remark in site.told(), "the worker's remark", time.monotonic() + PATIENCE)
    assert states(site, "flow") == ["vanished"]
    retry(site, run)
    assert states(site, "flow") == ["released", "vanished"]
    check_resumed(site, "flow", found[0], undisturbed)


def test_a_killed_worker_is_replaced_and_the_run_retried(site, undisturbed):
    with stopped_midway(site) as found:
        run = deployed_run(site, "worker")
    worker = site.processes["worker"]
    worker.kill()
    worker.wait()
    kill(found[0].pid)
    site.start_worker()
    assert states(site, "worker") == ["vanished"]
    # Nobody is left to tell the server, which has the run as running: a person says that it is not.
    assert state_of(site, run) == "Running"
    path = f"/flow_runs/{run}/set_state"
    site.request("POST", path, state={"type": "CRASHED", "name": "Crashed"}, force=True)
    retry(site, run)
    assert states(site, "worker") == ["released", "vanished"]
    check_resumed(site, "worker", found[0], undisturbed)


def test_a_server_killed_under_a_deployed_run(site, undisturbed):
    with stopped_midway(site) as found:
        run = deployed_run(site, "deployed")
    kill_server(site)
    os.kill(found[0].pid, signal.SIGCONT)
    # Stages need no server; the run goes on, and waits for one at its end.
    site.wait(
        lambda: lines_of(found[0].journal)[-1]["event"] == "ended",
        "its end",
        time.monotonic() + PATIENCE,
    )
    site.start_server()
    wait_for(site, run, "Completed", "Failed", "Crashed")
    again = deployed_run(site, "deployed")
    assert wait_for(site, again, "Completed", "Failed", "Crashed") == "Completed", site.told()
    assert states(site, "deployed") == ["released", "released"]
    assert all_cached(site, "deployed")
    (folder,) = (site.root / "out" / "deployed").iterdir()
    assert [path.name for path in folder.iterdir()] == ["v1"]
    assert (folder / PROTECTED).read_bytes() == undisturbed


def all_cached(site: Site, case: str) -> bool:
    """Whether the last run of a case found every stage that can be cached."""
    runs = json.loads(site.run("kohort runs --json"))
    last = next(run["id"] for run in runs if run["store"].endswith(f"store-{case}"))
    stages = json.loads(site.run(f"kohort runs {last} --json"))["stages"]
    return all(stage["cached"] for stage in stages if stage["sha256"])


def kill_server(site: Site) -> None:
    server = site.processes["server"]
    server.kill()
    server.wait()


SENTENCE = "kohort: the run stopped on {} at the Prefect server"


def test_a_server_killed_under_a_command(site, undisturbed):
    with ended(kohort(site, "command")) as command:
        with stopped_midway(site) as found:
            pass
        kill_server(site)
        os.kill(found[0].pid, signal.SIGCONT)
        began = time.monotonic()
        _, err = command.communicate(timeout=PATIENCE)
        took = time.monotonic() - began
    try:
        assert command.returncode == 1
        assert took < 30
        last = err.splitlines()[-1]
        assert last.startswith(SENTENCE.format("ConnectError"))
        assert last.endswith("finished stages are kept, run it again to continue")
        assert err.count("kohort: ") == 1
        assert "Traceback" not in err
    finally:
        site.start_server()
    with ended(kohort(site, "command")) as command:
        command.communicate(timeout=PATIENCE)
    assert command.returncode == 0
    assert states(site, "command")[0] == "released"
    assert "running" not in states(site, "command")
    assert all_cached(site, "command")
    assert (site.root / "out" / "command" / PROTECTED).read_bytes() == undisturbed


@contextmanager
def hanging(site: Site) -> Iterator[None]:
    """The server is there and does not answer."""
    server = site.processes["server"]
    server.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.send_signal(signal.SIGCONT)


def test_a_server_that_hangs_ends_a_command_in_a_bounded_time(site, undisturbed):
    """Four answers are waited for, of 20 seconds each if nothing else is set: 80 seconds in all."""
    impatient = {"PREFECT_API_REQUEST_TIMEOUT": str(TIMEOUT)}
    with ended(kohort(site, "hangs", **impatient)) as command:
        with stopped_midway(site) as found:
            pass
        with hanging(site):
            os.kill(found[0].pid, signal.SIGCONT)
            _, err = command.communicate(timeout=PATIENCE)
    assert command.returncode == 1
    assert err.splitlines()[-1].startswith(SENTENCE.format("ReadTimeout"))
    assert err.count("kohort: ") == 1
    site.wait(site.is_healthy, "the server", time.monotonic() + PATIENCE)
    site.run(f"kohort protect {PLAN} {WAVE} --out out/hangs --store store-hangs")
    assert states(site, "hangs")[0] == "released"
    assert all_cached(site, "hangs")
    assert (site.root / "out" / "hangs" / PROTECTED).read_bytes() == undisturbed


def test_a_server_that_hangs_for_a_moment_is_waited_for(site, undisturbed):
    with ended(kohort(site, "moment")) as command:
        with stopped_midway(site) as found:
            pass
        with hanging(site):
            os.kill(found[0].pid, signal.SIGCONT)
            time.sleep(5)
            assert command.poll() is None
        command.communicate(timeout=PATIENCE)
    assert command.returncode == 0
    assert states(site, "moment") == ["released"]
    assert (site.root / "out" / "moment" / PROTECTED).read_bytes() == undisturbed
