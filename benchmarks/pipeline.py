"""The flow on a million records: time against `kohort.protect` with its I/O, cached, and memory.

Each figure comes from a process of its own, so that peak memory is that of the work alone. The flow's
time is warm, from the call until the release is in place: Prefect's start-up, and the second that it
waits for its heartbeat at the end of every flow, are outside it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import ATTRIBUTES, RECORDS, K, Row, print_table, write_wave

TABLE = RECORDS * ATTRIBUTES * 8 / 1e6  # MB


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("KOHORT_HOME", f"{folder}/home")
        write_wave(Path(folder) / "wave.parquet")
        _child("flow", folder)  # compiles what is not compiled yet
        plain = _child("memory", folder)
        empty = _child("empty", folder)
        flow = _child("flow", folder)
        peak = flow["peak"] - empty["peak"]
    print_table(
        "the flow on 1e6 x 13, blocks of 4, k = 5",
        [
            Row("flow", flow["cold"], "read + protect + write", plain["seconds"], "at most 5"),
            Row("flow, all cached", flow["cached"], "empty flow", empty["seconds"], "at most 3 s more"),
            Row("peak memory above an empty flow", peak, "the table", TABLE, "at most 4", unit="MB"),
        ],
    )


def _child(what: str, folder: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.pipeline", what, folder]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _peak() -> float:
    """Peak memory of this process, in MB; Linux's ru_maxrss would count the parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measure_memory_path(folder: Path) -> dict[str, float]:
    """`kohort.protect` with its I/O, warm."""
    from benchmarks.protect import whole_way

    return {"seconds": whole_way(folder).measured}


def measure_empty(folder: Path) -> dict[str, float]:
    """A flow with one task that does nothing, warm."""
    from kohort.flows.server import prefect_server

    with prefect_server():
        from prefect import flow, task

        from kohort.flows import protect  # noqa: F401  # the same imports as the real one

        @task
        def nothing() -> None:
            pass

        @flow
        def empty() -> None:
            nothing.submit().result()

        empty()
        started = time.perf_counter()
        empty()
        return {"seconds": time.perf_counter() - started, "peak": _peak()}


def measure_flow(folder: Path) -> dict[str, float]:
    """The flow with an empty store, and again with everything cached."""
    from kohort.flows.plan import Plan
    from kohort.flows.server import prefect_server

    plan = Plan.model_validate(
        {
            "schema": 1,
            "roles": {"quasi_identifiers": [f"a{j}" for j in range(ATTRIBUTES)]},
            "block": {"method": "consecutive", "size": 4},
            "partition": {"method": "optimal", "k": K},
            "release": {"claim": "per-block"},
        }
    )

    with prefect_server():
        from kohort.flows import protect, running
        from kohort.flows.progress import Silent, StageRow

        class Clock(Silent):
            """Notes when the last stage was done."""

            def finished(self, row: StageRow) -> None:
                self.last = time.perf_counter()

        running.LISTENER = clock = Clock()

        def run(store: str, *, fresh: bool = False) -> tuple[float, float]:
            if fresh:  # as the reference does, write over what was written before
                shutil.rmtree(folder / store, ignore_errors=True)
                shutil.rmtree(folder / f"out-{store}", ignore_errors=True)
            started = time.perf_counter()
            protect.protect_wave(
                plan=plan,
                wave=folder / "wave.parquet",
                out=folder / f"out-{store}",
                store=folder / store,
            )
            return clock.last - started, time.perf_counter() - started

        run(f"first-{os.getpid()}")
        peak = _peak()
        cold = min(run("again", fresh=True)[0] for _ in range(5))
        cached = min(run(f"first-{os.getpid()}")[1] for _ in range(3))
        return {"cold": cold, "cached": cached, "peak": peak}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        measures = {"memory": measure_memory_path, "empty": measure_empty, "flow": measure_flow}
        print(json.dumps(measures[sys.argv[1]](Path(sys.argv[2]))))
