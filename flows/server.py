"""The Prefect server of a run: the one that PREFECT_API_URL names, else an embedded one.

The embedded server is a child of the command on a loopback socket that the command has bound, so that
no port is guessed. Start-up is serialised by a file lock until the server is healthy, because servers
that migrate one database at the same time fail. The child watches its standard input and ends when
that closes: a killed command leaves no server behind.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kohort.errors import KohortError, PlanError, StageFailed
from kohort.home import kohort_home, private_folder
from kohort.tasks.disk import full_disk, one_sentence_for, state_folder, trouble

PATIENCE = 120.0  # seconds for a first start on a busy machine: the database is made then
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_CLIENT_MAX_RETRIES": "1",  # a dead server is noticed in seconds, not in minutes
    "PREFECT_CLI_PROMPT": "false",
    "PREFECT_SHOW_WORKER_UPGRADE_MESSAGE": "false",
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",  # Prefect's own would outlive a killed command
}
HANGS = "20"  # seconds for one answer; a run notices a server that hangs after four of them
EMBEDDED = {
    "PREFECT_UI_ENABLED": "false",
    "PREFECT_MEMO_STORE_PATH": "",
}


@contextmanager
def prefect_server() -> Iterator[str]:
    """The address of a running server's API, set up for this process before Prefect is imported."""
    os.environ.update(QUIET)
    given = os.environ.get("PREFECT_API_URL")
    if given:
        os.environ.setdefault("PREFECT_API_REQUEST_TIMEOUT", HANGS)
        _check_alive(given)
        yield given
        return
    home = _state_folder()
    os.environ["PREFECT_HOME"] = str(home)
    for name in ("NO_PROXY", "no_proxy"):  # a proxy does not know our loopback server
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1"]))
    try:
        with ExitStack() as stack:
            with one_sentence_for(state_folder()):
                url = stack.enter_context(_started(home))
            yield url
    finally:
        os.environ.pop("PREFECT_API_URL", None)


@contextmanager
def one_sentence(url: str, folders: Mapping[str, Path] | None = None) -> Iterator[None]:
    """One sentence instead of what Prefect raises; the server hears of all stages before it ends.

    Parameters
    ----------
    url : str
        The server's address.
    folders : mapping, optional
        Folders that the run writes to, by what they are (see `kohort.tasks.disk.trouble`).
    """
    from prefect.events.worker import EventsWorker

    answers = True
    try:
        yield
    except KohortError:
        raise
    except Exception as error:
        answers = False
        written = {**(folders or {}), **state_folder()}  # the server's database is in the last
        raise StageFailed(
            trouble(error, written)
            or full_disk(written)
            or f"the run stopped on {type(error).__name__} at the Prefect server {url}; "
            "finished stages are kept, run it again to continue"
        ) from None
    finally:
        if answers:  # what the server shows of the stages travels as events, behind the run
            logging.getLogger(EventsWorker.__name__).setLevel(logging.CRITICAL)  # it says who waits
            EventsWorker.drain_all(timeout=5)


def _check_alive(url: str) -> None:
    """Refuse a server that does not answer at once; Prefect itself would wait for minutes."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=10):  # noqa: S310
            return
    except OSError as error:  # an answer other than 200 is an answer: Prefect will say what it means
        if isinstance(getattr(error, "reason", error), (ConnectionError, TimeoutError, socket.gaierror)):
            raise StageFailed(
                f"the Prefect server {url} does not answer; start it, or unset PREFECT_API_URL"
            ) from None
    except ValueError:
        raise PlanError(
            f"PREFECT_API_URL = {url} is no address; write it as http://HOST:PORT/api"
        ) from None


def _state_folder() -> Path:
    try:
        return private_folder(kohort_home() / "prefect")
    except OSError as error:
        raise StageFailed(
            trouble(error, state_folder())
            or f"the state folder {kohort_home()} cannot be used ({error.strerror}); set KOHORT_HOME"
        ) from None


@contextmanager
def _started(home: Path) -> Iterator[str]:
    """Start the embedded server and wait until it is healthy; end it afterwards."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        os.environ["PREFECT_API_URL"] = url  # before Prefect is imported: it looks only then
        with (home / "start.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # freed by the system when this process ends
            with (home / "server.log").open("wb") as log:
                child = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-m", "kohort.flows.embedded", str(listener.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    pass_fds=[listener.fileno()],
                    env={**os.environ, **EMBEDDED},
                    umask=0o077,
                    start_new_session=True,  # an interrupt ends the flow first
                )
            listener.close()  # the child has it; a dead server must refuse, not keep waiting
            try:
                import prefect  # noqa: F401  # two seconds, while the server starts

                _wait_until_healthy(child, url)
            except BaseException:
                child.kill()
                child.wait()
                raise
    try:
        yield url
    finally:
        if child.stdin is not None:
            child.stdin.close()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _wait_until_healthy(child: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if child.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise StageFailed(
        full_disk(state_folder())
        or f"the embedded Prefect server did not start; see {kohort_home() / 'prefect' / 'server.log'}"
    )
