"""A survey's folder with a real Prefect server and process worker on loopback, for tests.

The commands are those that deployments/prefect.yaml shows, as they stand there; server and worker have
a port, a PREFECT_HOME and a KOHORT_HOME of their own. The survey's root is a copy of the deployment in
which only the cron line differs.
"""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[1]
PREFECT_YAML = ROOT / "deployments" / "prefect.yaml"
BIN = Path(sys.executable).parent
START_SERVER, CREATE_POOL, DEPLOY, START_WORKER = COMMANDS = (
    "prefect server start",
    "prefect work-pool create kohort --type process",
    "prefect --no-prompt deploy --all --prefect-file deployments/prefect.yaml",
    "prefect worker start --pool kohort",
)
CRON = '"0 6 * * *"'
QUIET = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
IMPATIENT = {  # Prefect's own pauses, shorter: how often work is asked for, how long a queued run rests
    "PREFECT_WORKER_QUERY_SECONDS": "1",
    "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
}
START_PATIENCE = 60.0  # seconds at the most; on two cores 16 are usual


@dataclass(frozen=True)
class Site:
    """A survey's folder with a server and a worker."""

    root: Path
    environment: dict[str, str]
    logs: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """What goes on: by what it is, "server" and "worker"."""

    def run(self, command: str, code: int = 0) -> str:
        """What a command prints; it must end with the code."""
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
        assert done.returncode == code, f"{command}\n{done.stdout}"
        return done.stdout

    def start(self, command: str, name: str) -> subprocess.Popen[bytes]:
        """A command that goes on, with what it prints in a log."""
        with (self.logs / f"{name}.log").open("ab") as sink:
            self.processes[name] = subprocess.Popen(
                self._words(command),
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.processes[name]

    def start_server(self) -> None:
        """Start the server and wait until it is healthy."""
        self.start(START_SERVER, "server")
        self.wait(self.is_healthy, "a healthy server", time.monotonic() + START_PATIENCE)

    def start_worker(self) -> None:
        """Start a worker."""
        self.start(START_WORKER, "worker")

    def end(self) -> None:
        """Kill all that goes on."""
        for process in reversed(self.processes.values()):
            end(process)

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

    def told(self) -> str:
        """The logs of server and worker."""
        return "\n".join(f"== {log.name}\n{log.read_text()}" for log in sorted(self.logs.iterdir()))

    def wait(self, condition: Callable[[], Any], what: str, deadline: float, pause: float = 0.3) -> Any:
        """Ask until it is so, or fail with the logs; what was answered."""
        while not (answer := condition()):
            if time.monotonic() > deadline:
                pytest.fail(f"{what}: not in time\n{self.told()}")
            time.sleep(pause)
        return answer

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


@contextmanager
def running_site(home: Path, *, cron: str) -> Iterator[Site]:
    """A root with the first wave, deployed, with server and worker running.

    Parameters
    ----------
    home : Path
        An empty folder for all of it.
    cron : str
        When the deployment runs, instead of once a day.
    """
    root, logs, port = home / "root", home / "logs", free_port()
    for folder in (root / "data", logs):
        folder.mkdir(parents=True)
    shutil.copytree(ROOT / "deployments", root / "deployments")
    daily = PREFECT_YAML.read_text()
    assert daily.count(CRON) == 1
    (root / "deployments" / "prefect.yaml").write_text(daily.replace(CRON, f'"{cron}"'))
    drop_wave(root, "2026q1")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = inherited | QUIET | IMPATIENT
    environment |= {
        "PREFECT_HOME": str(home / "prefect"),
        "KOHORT_HOME": str(home / "kohort"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_API_PORT": str(port),
    }
    site = Site(root, environment, logs)
    try:
        site.start_server()
        site.run(CREATE_POOL)
        site.run(DEPLOY)
        site.start_worker()
        yield site
    finally:
        site.end()


def drop_wave(root: Path, quarter: str) -> None:
    """Put a wave into the survey's folder, whole at once."""
    name = f"household-{quarter}.parquet"
    shutil.copy(ROOT / "data" / name, root / "data" / f".{name}")
    (root / "data" / f".{name}").rename(root / "data" / name)
