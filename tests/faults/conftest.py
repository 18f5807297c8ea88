"""What the fault tests share: a seed, a tally, one survey with its undisturbed result, and sites.

Every fault that is tried is noted and judged by `tally`:

lost       work that had finished and was computed again although nothing damaged it, or a release that
           disappeared
wrong      other bytes of protected.parquet than an undisturbed run gives, a half-written file that can
           be seen, or a store that is not consistent
recovered  the next run ended with the right bytes
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import pytest

from kohort.flows.cli import main
from kohort.flows.runs import PastRun, read_run
from kohort.tasks.housekeeping import leftovers
from kohort.tasks.inventory import problems
from kohort.tasks.store import Store

SEED = 20261118
HANG = 180.0  # seconds after which a command hangs; the longest takes a tenth of that
KOHORT = [sys.executable, "-m", "kohort.flows.cli"]
EVALUATE = """
[evaluate]
measures = ["dld", "id", "dominance"]
intruder = { method = "subsets", limit = 40 }
"""
WHOLE = [
    "v1/internal/evaluation.json",
    "v1/internal/log.jsonl",
    "v1/internal/manifest.json",
    "v1/public/manifest.json",
    "v1/public/protected.parquet",
]
UNCACHED = ("verify", "gate", "publish")


@pytest.fixture(scope="session")
def seed() -> int:
    """What decides moments and victims: `KOHORT_FAULT_SEED`, else always the same."""
    return int(os.environ.get("KOHORT_FAULT_SEED") or SEED)


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """Chance of a test's own, so that a test alone does what it does among the others."""
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture(scope="session")
def tally() -> Callable[..., None]:
    """Note what became of a fault in the file that `KOHORT_FAULT_TALLY` names, then insist on it."""

    def note(
        fault: str,
        *,
        tried: int = 1,
        lost: Collection[Any] = (),
        wrong: Collection[Any] = (),
        recovered: bool,
    ) -> None:
        counts = {
            "tried": tried,
            "lost": len(lost),
            "wrong": len(wrong),
            "recovered": tried if recovered else 0,
        }
        if path := os.environ.get("KOHORT_FAULT_TALLY"):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"fault": fault, **counts}) + "\n")
        assert not lost, f"{fault}: lost {lost}"
        assert not wrong, f"{fault}: wrong: {wrong}"
        assert recovered, f"{fault}: not recovered"

    return note


@dataclass(frozen=True)
class Survey:
    """A plan and a wave, and the bytes that protect() in memory makes of them."""

    plan: Path
    wave: Path
    expected: bytes


@pytest.fixture(scope="session")
def survey(tmp_path_factory: pytest.TempPathFactory, sample_plan: Path, sample_wave: Path) -> Survey:
    """The sample wave with an evaluation: 23 stages, one of them in many small tasks."""
    folder = tmp_path_factory.mktemp("survey")
    (folder / "plan.toml").write_text(sample_plan.read_text() + EVALUATE)
    return surveyed(folder / "plan.toml", sample_wave, folder / "undisturbed")


def surveyed(plan: Path, wave: Path, out: Path) -> Survey:
    """A survey with its undisturbed result."""
    assert main(["protect", str(plan), str(wave), "--out", str(out), "--in-memory"]) == 0
    return Survey(plan, wave, (out / "v1" / "public" / "protected.parquet").read_bytes())


@dataclass(frozen=True)
class Site:
    """A home, a store and a folder of releases of their own, and commands that use them."""

    folder: Path
    environment: dict[str, str]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def command(self, survey: Survey, *more: Any) -> list[str]:
        """`kohort protect` of a survey, as words."""
        where = ["--out", self.out, "--store", self.store]
        return [str(word) for word in ("protect", survey.plan, survey.wave, *where, *more)]

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            [*KOHORT, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: Any) -> subprocess.CompletedProcess[str]:
        """A command, start to end."""
        return subprocess.run(
            [*KOHORT, *map(str, words)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG,
        )

    def runs(self) -> list[PastRun]:
        """What the journals say, the newest first."""
        journals = sorted((self.home / "runs").glob("*.jsonl"), reverse=True)
        return [run for path in journals if (run := read_run(path)) is not None]

    def releases(self) -> list[str]:
        """The files of all versions."""
        return sorted(str(path.relative_to(self.out)) for path in self.out.glob("v*/*/*"))

    def protected(self, version: int = 1) -> bytes | None:
        """The bytes of a version's file, if it is there."""
        path = self.out / f"v{version}" / "public" / "protected.parquet"
        return path.read_bytes() if path.exists() else None

    def wrong_now(self, survey: Survey) -> list[str]:
        """What may never be seen, whatever happened: half a release, other bytes, a bad store."""
        found = [f"{each.kind}: {each.path.name}" for each in self.problems()]
        if self.releases() not in ([], WHOLE) or self.protected() not in (None, survey.expected):
            found.append(f"half a release: {self.releases()}")
        visible = {path.name for path in self.out.glob("[!.]*")} if self.out.is_dir() else set()
        return found + sorted(visible - {"v1"})

    def problems(self) -> list[Any]:
        """What `kohort cache verify` finds besides left-over partial files."""
        return list(problems(Store(self.store))) if (self.store / "objects").is_dir() else []

    def left_over(self) -> list[str]:
        """Half-written files that a run has to remove on its way: none after one that ended well."""
        found = [path.name for path in leftovers(Store(self.store))] if self.store.is_dir() else []
        return found + [path.name for path in self.out.glob(".kohort-*")]

    def processes(self) -> list[int]:
        """Processes that have this site's home in their environment."""
        listed = subprocess.run(
            ["ps", "axeww", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True
        )
        rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
        mark = f"KOHORT_HOME={self.home}"
        return [
            int(pid) for pid, state, *rest in rows if state[0] != "Z" and mark in " ".join(rest).split()
        ]

    def outlived(self, seconds: float = 15.0) -> list[int]:
        """Processes of this site that are still there after a while."""
        deadline = time.monotonic() + seconds
        while (alive := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return alive


@pytest.fixture
def new_site(tmp_path: Path, survey: Survey, prefect_url: str) -> Iterator[Callable[..., Site]]:
    """Make a site; its commands use the session's server, or embedded ones of their own."""
    made: list[Site] = []

    def make(name: str = "site", *, embedded: bool = False, **changes: str) -> Site:
        folder = tmp_path / name
        folder.mkdir()
        environment = {
            **os.environ,
            "KOHORT_HOME": str(folder / "home"),
            "NUMBA_CACHE_DIR": numba.config.CACHE_DIR,  # where making the survey has compiled them
            "PREFECT_API_URL": prefect_url,
            **changes,
        }
        if embedded:
            del environment["PREFECT_API_URL"]
        made.append(Site(folder, environment))
        return made[-1]

    yield make
    for site in made:
        for pid in site.processes():
            os.kill(pid, 9)
