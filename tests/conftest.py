"""What tests share: a home of their own, a small survey, the sample survey, one Prefect server."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.flows.server import QUIET, prefect_server
from kohort.tasks.store import Store

ROOT = Path(__file__).parents[1]
HOME = Path(tempfile.mkdtemp(prefix="kohort-tests-"))

# Set before anything imports Prefect or compiles a kernel: both look at the environment only once.
os.environ.update(QUIET, KOHORT_HOME=str(HOME), PREFECT_HOME=str(HOME / "prefect"))
os.environ.pop("PREFECT_API_URL", None)


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def home() -> Path:
    """KOHORT_HOME of the session: kernels are compiled once for all tests."""
    return HOME


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of reference files."""
    folder = Path(os.environ.get("KOHORT_REFERENCE") or ROOT / "data" / "reference")
    if not folder.is_dir():
        pytest.skip("no reference files: set KOHORT_REFERENCE or fill data/reference")
    return folder


@pytest.fixture(scope="session")
def prefect_url() -> Iterator[str]:
    """The API of kohort's own embedded server, started once and used by all flow tests."""
    with prefect_server() as url:
        from prefect.settings import PREFECT_API_URL, temporary_settings

        with temporary_settings({PREFECT_API_URL: url}):
            yield url


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store").prepare()


@pytest.fixture(scope="session")
def sample_wave() -> Path:
    return ROOT / "data" / "household-2026q1.parquet"


@pytest.fixture(scope="session")
def sample_plan() -> Path:
    return ROOT / "deployments" / "plans" / "household.toml"


@pytest.fixture
def columns(make_columns: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The small survey, for one test to change."""
    return make_columns()


@pytest.fixture(scope="session")
def make_columns() -> Callable[[], dict[str, Any]]:
    """Make the small survey afresh."""
    return small_survey


def small_survey() -> dict[str, Any]:
    """A survey of 40 persons in 20 households: key, name, three quasi-identifiers, the rest."""
    rng = np.random.default_rng(7)
    n = 40
    return {
        "id": [f"p{i:03d}" for i in rng.permutation(n)],
        "name": [f"name {i}" for i in range(n)],
        "age": rng.permutation(np.arange(20, 20 + n)),
        "income": np.round(rng.lognormal(7, 1, n), 2),
        "rent": np.round(rng.gamma(3, 200, n), 2),
        "cost": np.round(rng.exponential(100, n), 2),
        "weight": rng.uniform(0.5, 3.0, n),
        "house": [f"h{i // 2}" for i in range(n)],
    }


@pytest.fixture
def write_wave(tmp_path: Path) -> Callable[..., Path]:
    """Write columns or a table as a wave."""

    def write(columns: Mapping[str, Any] | pa.Table, name: str = "wave.parquet") -> Path:
        table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
        pq.write_table(table, tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., dict[str, Any]]:
    """The small survey's plan as a dict, with sections replaced (or left out: None).

    Its households are small, so that it claims no more than its blocks unless a test says otherwise.
    """

    def plan(**changes: Any) -> dict[str, Any]:
        content: dict[str, Any] = {
            "schema": 1,
            "roles": {
                "key": "id",
                "identifiers": ["name"],
                "quasi_identifiers": ["age", "income", "rent"],
                "confidential": ["cost"],
                "weight": "weight",
                "unit": "house",
            },
            "partition": {"method": "optimal", "k": 3},
        }
        for section, change in changes.items():
            merged = {**content.get(section, {}), **change} if section == "roles" else change
            content[section] = merged
            if isinstance(merged, dict):
                content[section] = {n: v for n, v in merged.items() if v is not None}
        whole_file = content.get("partition", {}).get("method") == "mic1d"
        claim = {"claim": "none" if whole_file else "per-block"}
        content["release"] = {**claim, **(content.get("release") or {})}
        return copy.deepcopy({n: v for n, v in content.items() if v is not None})

    return plan


@pytest.fixture(scope="session")
def toml_of() -> Callable[[Mapping[str, Any]], str]:
    """TOML of a plan given as a dict."""
    return as_toml


@pytest.fixture
def write_plan(tmp_path: Path) -> Callable[..., Path]:
    """Write a plan (a dict, or TOML as it is) as a file."""

    def write(content: Mapping[str, Any] | str, name: str = "plan.toml") -> Path:
        text = content if isinstance(content, str) else as_toml(content)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def as_toml(content: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """TOML of nested dicts; JSON writes scalars and lists as TOML does."""
    lines = [f"[{'.'.join(path)}]"] if path else []
    lines += [f"{n} = {json.dumps(v)}" for n, v in content.items() if not isinstance(v, dict)]
    lines += [as_toml(v, (*path, n)) for n, v in content.items() if isinstance(v, dict)]
    return "\n".join(lines) + "\n"
