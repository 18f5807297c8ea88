"""What flow tests share: a first run, and a pair of files for `kohort evaluate`."""

import contextlib
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.flows.cli import main
from kohort.flows.plan import Plan

NAMES = ["age", "income", "rent"]


@pytest.fixture
def released(columns):
    """A file that kohort did not make: values rounded to tens, one column gone and one added."""
    coarse = {name: np.round(np.asarray(columns[name], dtype=float), -1) for name in NAMES}
    kept = {name: columns[name] for name in ("id", "cost", "house", "name")}
    return {**kept, **coarse, "remark": ["coarse"] * len(columns["id"])}


@pytest.fixture
def pair(columns, released, write_wave):
    return write_wave(columns, "original.parquet"), write_wave(released, "protected.parquet")


@pytest.fixture
def shuffled(released, write_wave):
    order = np.random.default_rng(3).permutation(len(released["id"]))
    return write_wave(pa.table(released).take(pa.array(order)), "shuffled.parquet")


@pytest.fixture
def by_flow(prefect_url, tmp_path):
    from kohort.flows.evaluate import evaluate_files

    def run(original, protected, **request):
        return evaluate_files(original, protected, store=tmp_path / "store", **request)

    return run


@pytest.fixture
def protect_alone(write_plan):
    """Protect a wave by `kohort protect --in-memory` and give its result."""

    def run(plan, wave, out):
        printed = io.StringIO()
        arguments = ["protect", write_plan(plan), wave, "--out", out, "--in-memory", "--json"]
        with contextlib.redirect_stdout(printed):
            assert main([str(each) for each in arguments]) == 0
        return json.loads(printed.getvalue())

    return run


@pytest.fixture
def run(tmp_path):
    """Run the flow on the store that every test has; each run has a release folder of its own."""
    from kohort.flows.protect import protect_wave

    numbers = iter(range(100))

    def run(plan, wave, **options):
        where = {"store": tmp_path / "store", "out": tmp_path / f"out-{next(numbers)}", **options}
        plan = plan if isinstance(plan, Plan) else Plan.model_validate(plan)
        return protect_wave(plan=plan, wave=wave, **where)

    return run


@pytest.fixture(scope="module")
def first_run(prefect_url, tmp_path_factory, make_columns, plan_of):
    """One run of the small survey in two blocks, whose store tests copy."""
    from kohort.flows.protect import protect_wave

    folder = tmp_path_factory.mktemp("first")
    pq.write_table(pa.table(make_columns()), folder / "wave.parquet")
    return protect_wave(
        plan=Plan.model_validate(plan_of(block={"method": "consecutive", "size": 2})),
        wave=folder / "wave.parquet",
        out=folder / "out",
        store=folder / "store",
    )


@pytest.fixture
def wave(first_run):
    """The wave of the first run."""
    return Path(first_run["out"]).parents[1] / "wave.parquet"


@pytest.fixture
def done(first_run, tmp_path):
    """The first run's result, its store copied to where `run` looks."""
    shutil.copytree(Path(first_run["out"]).parents[1] / "store", tmp_path / "store")
    return first_run
