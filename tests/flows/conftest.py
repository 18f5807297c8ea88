"""A pair of files for `kohort evaluate`: the small survey, and a coarse copy not made by kohort."""

import contextlib
import io
import json

import numpy as np
import pyarrow as pa
import pytest

from kohort.flows.cli import main

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
