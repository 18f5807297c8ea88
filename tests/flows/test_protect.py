"""The flow gives what `kohort.protect` gives, and computes nothing twice."""

import base64
import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kohort
from kohort.errors import WaveError
from kohort.flows.in_memory import protect_in_memory
from kohort.flows.plan import Plan
from kohort.flows.progress import Silent

pytestmark = pytest.mark.usefixtures("prefect_url")
QUASI_IDENTIFIERS = ["age", "income", "rent"]


BLOCKS = {"block": {"method": "consecutive", "size": 2}}


def released(result):
    return (Path(result["out"]) / "public" / "protected.parquet").read_bytes()


def stages(result, *, cached):
    return {(row["stage"], row["block"]) for row in result["stages"] if row["cached"] is cached}


PLANS = {
    "default": {},
    "pcp": {"project": {"method": "pcp"}},
    "zscores": {"project": {"method": "zscores"}},
    "sugeno": {"project": {"method": "sugeno"}, "block": {"method": "consecutive", "size": 2}},
    "quantifier": {"project": {"method": "sugeno", "quantifier": {"method": "power", "alpha": 2}}},
    "attribute": {"project": {"method": "attribute", "name": "rent"}},
    "fixed": {"partition": {"method": "fixed", "order": "descending", "k": 4}},
    "cost block": {
        "partition": {"method": "optimal", "cost": "block", "k": 3},
        "normalize": {"method": "robust"},
    },
    "weighted, weight released": {
        "centroid": {"method": "weighted_mean"},
        "roles": {"release_weight": True},
    },
    "median": {"centroid": {"method": "median"}},
    "single": {"block": {"method": "single"}},
    "explicit": {"block": {"method": "explicit", "blocks": [["rent", "age"], ["income"]]}},
    "rounded": {"release": {"round_integers": True}},
    "sorted": {"release": {"order": "sorted"}, **BLOCKS},
    "other kept": {"roles": {"confidential": None, "other": "keep"}},
    "few roles": {"roles": {"key": None, "weight": None, "unit": None, "other": "drop"}},
    "pairs": {"partition": {"method": "optimal", "k": 2, "allow_pairs": True}},
    "all in one group": {"partition": {"method": "optimal", "k": 40}},
    "owa": {"project": {"method": "owa"}},
    "choquet": {"project": {"method": "choquet", "importance": {"rent": 2.0}}},
    "mdav": {"partition": {"method": "mdav", "k": 3}},
    "vmdav, ranks": {
        "partition": {"method": "vmdav", "gamma": 1.0, "k": 3},
        "normalize": {"method": "rank"},
    },
    "md": {"partition": {"method": "md", "k": 3}},
    "kward": {"partition": {"method": "kward", "k": 3}},
    "kward in space": {"partition": {"method": "kward", "cost": "block", "start": "md", "k": 3}},
    "correlated": {"block": {"method": "correlated", "size": 2}},
    "decorrelated": {"block": {"method": "decorrelated", "size": 2}},
    "dependence": {"dependence": {"weight": 0.4}, "gate": {"l_min": 1}},
    "dependence in space, blocks": {
        "dependence": {"weight": 0.7},
        "gate": {"l_one": 1},
        "partition": {"method": "mdav", "k": 3},
        "block": {"method": "consecutive", "size": 2},
    },
    "mic1d": {"partition": {"method": "mic1d", "k": 30}},
    "mic1d, optimal": {"partition": {"method": "mic1d", "chunks": "optimal", "k": 30}},
}


@pytest.mark.parametrize("changes", PLANS.values(), ids=PLANS)
def test_the_flow_equals_protect_and_the_in_memory_path(changes, columns, plan_of, wave, run, tmp_path):
    plan = Plan.model_validate(plan_of(**{"release": {"order": "input"}, **changes}))
    result = run(plan, wave)
    alone = protect_in_memory(plan, wave, tmp_path / "memory", listener=Silent())
    assert released(result) == released(alone)
    assert result["measures"] == alone["measures"]
    assert result["blocks"] == alone["blocks"]
    assert result["sha256"] == hashlib.sha256(released(result)).hexdigest()
    if plan.stages.whole_file is None:
        assert min(block["min_anonymity"] for block in result["blocks"]) >= plan.k
    else:
        assert "anonymity is measured, not promised" in result["claim_in_words"]

    table = pq.read_table(Path(result["out"]) / "public" / "protected.parquet").to_pandas()
    expected = protected_values(plan, columns)
    for name in set(table.columns) - set(QUASI_IDENTIFIERS):
        expected[name] = columns[name]
    expected = expected[list(table.columns)].astype(table.dtypes)
    if plan.release.order == "sorted":
        expected = expected.sort_values(list(table.columns), ignore_index=True)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


def protected_values(plan, columns):
    methods = plan.stages
    weights = columns["weight"] if methods.centroid.takes_weights else None
    values = kohort.protect(
        pd.DataFrame({name: columns[name] for name in QUASI_IDENTIFIERS}),
        k=plan.k,
        normalize=methods.normalize,
        blocks=methods.blocks,
        project=methods.project,
        partition=methods.partition,
        centroid=methods.centroid,
        weights=weights,
        confidential=None if plan.dependence is None else pd.DataFrame({"cost": columns["cost"]}),
        dependence=methods.dependence,
    ).values
    if plan.release.round_integers:
        values["age"] = np.rint(values["age"])
    return values


def test_the_sample_survey(sample_plan, sample_wave, run, tmp_path):
    from kohort.flows.plan import load_plan

    plan = load_plan(sample_plan)
    result = run(plan, sample_wave)
    alone = protect_in_memory(plan, sample_wave, tmp_path / "memory", listener=Silent())
    assert released(result) == released(alone)
    assert [block["min_anonymity"] >= 5 for block in result["blocks"]] == [True] * 4
    manifest = json.loads((Path(result["out"]) / "internal" / "manifest.json").read_text())
    assert Plan.model_validate(manifest["plan"]) == plan
    assert manifest["input"] == {
        "wave": "household-2026q1.parquet",
        "sha256": hashlib.sha256(sample_wave.read_bytes()).hexdigest(),
        "rows": 2199,
    }
    assert manifest["output"]["sha256"] == result["sha256"]
    assert manifest["schema"] == 1
    assert {"numpy", "scipy", "numba", "pyarrow"} <= set(manifest["versions"])
    assert set(manifest["whole_numbers_released_as_floats"]) > {"age", "income"}
    assert not {"person_id", "name", "region", "household_id", "weight"} & set(
        manifest["output"]["columns"]
    )
    listed = [(row["stage"], row["block"]) for row in manifest["stages"]]
    assert listed == [(row["stage"], row["block"]) for row in result["stages"]][: len(listed)]
    assert all(len(row["sha256"]) == 64 for row in manifest["stages"] if row["stage"] != "verify")


ALWAYS = {("verify", None), ("gate", None), ("publish", None)}


def test_a_second_run_computes_nothing(done, plan_of, wave, run):
    first, second = done, run(plan_of(**BLOCKS), wave)
    assert stages(first, cached=True) == set()
    assert stages(second, cached=False) == ALWAYS
    assert stages(second, cached=True) == stages(first, cached=False) - ALWAYS
    assert released(second) == released(first)
    digests = [[row["sha256"] for row in result["stages"]] for result in (first, second)]
    assert digests[0] == digests[1]


def test_prefect_shows_the_stages_as_cached(done, plan_of, wave, run):
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.client.schemas.sorting import FlowRunSort

    run(plan_of(**BLOCKS), wave)
    with get_client(sync_client=True) as client:
        (last,) = client.read_flow_runs(limit=1, sort=FlowRunSort.START_TIME_DESC)
        ours = FlowRunFilter(id=FlowRunFilterId(any_=[last.id]))
        states = {task.name: task.state.name for task in client.read_task_runs(flow_run_filter=ours)}
    assert last.state.name == "Completed"
    uncached = {name.split("-")[0]: state for name, state in states.items() if state != "Cached"}
    assert uncached == {"verify": "Completed", "gate": "Completed", "publish": "Completed"}
    assert len(states) == 14


BEFORE_PARTITION = {("ingest", None), ("normalize", None), ("assign_blocks", None)}
PROJECTED = {("project", 0), ("project", 1)}


def test_a_changed_k_recomputes_from_partition_on(done, plan_of, wave, run):
    changed = run(plan_of(**BLOCKS, partition={"method": "optimal", "k": 4}), wave)
    assert stages(changed, cached=True) == BEFORE_PARTITION | PROJECTED


CHANGES = {
    "centroid": (
        {"centroid": {"method": "median"}},
        {"ingest", "normalize", "assign_blocks", "project", "partition"},
    ),
    "projection": ({"project": {"method": "sugeno"}}, {"ingest", "normalize", "assign_blocks"}),
    "order": (
        {"release": {"order": "input"}},
        {"ingest", "normalize", "assign_blocks", "project", "partition", "replace", "evaluate"},
    ),
    "title": (
        {"title": "another"},
        {
            "ingest",
            "normalize",
            "assign_blocks",
            "project",
            "partition",
            "replace",
            "assemble",
            "evaluate",
        },
    ),
    "normalizer with cost block": (
        {"normalize": {"method": "rank"}, "partition": {"method": "optimal", "cost": "block", "k": 3}},
        {"ingest", "assign_blocks", "project"},
    ),
}


@pytest.mark.parametrize(("change", "kept"), CHANGES.values(), ids=CHANGES)
def test_a_change_recomputes_what_depends_on_it(change, kept, done, plan_of, wave, run):
    changed = run(plan_of(**BLOCKS, **change), wave)
    # Block 0: of block 1, rent alone, all axes give the same groups.
    assert {stage for stage, block in stages(changed, cached=True) if block != 1} == kept


def test_a_changed_file_recomputes_everything(done, columns, plan_of, write_wave, run):
    for name in QUASI_IDENTIFIERS:
        columns[name][0] += 1
    changed = run(plan_of(**BLOCKS), write_wave(columns))
    blocks_by_name = {("assign_blocks", None)}  # no value decides them
    assert stages(changed, cached=True) == blocks_by_name


def test_one_changed_column_recomputes_what_it_is_in(done, columns, plan_of, write_wave, run):
    columns["age"][0] += 1
    changed = run(plan_of(**BLOCKS), write_wave(columns))
    same_axis = {("partition", 1)}  # of rent alone
    assert stages(changed, cached=True) == {("assign_blocks", None)} | same_axis


def test_a_moved_file_and_a_moved_store_are_the_same(done, columns, plan_of, write_wave, run):
    moved = run(plan_of(**BLOCKS), write_wave(columns, "moved.parquet"))
    assert stages(moved, cached=False) == ALWAYS
    assert released(moved) == released(done)


def test_another_store_knows_nothing(done, plan_of, wave, run, tmp_path):
    second = run(plan_of(**BLOCKS), wave, store=tmp_path / "other")
    assert stages(second, cached=True) == set()
    assert released(second) == released(done)
    names = [{p.name for p in (tmp_path / s / "objects").rglob("*.parquet")} for s in ("store", "other")]
    assert names[0] == names[1]


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "deleted": lambda path: path.unlink(),
    "bit flipped": flip_a_bit,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "symlink": lambda path: (
        path.rename(path.with_suffix(".away")),
        path.symlink_to(path.with_suffix(".away")),
    ),
}


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        ("deleted", "ingest"),
        ("bit flipped", "partition"),
        ("truncated", "assemble"),
        ("symlink", "evaluate"),
    ],
)
def test_a_damaged_intermediate_file_is_made_again(kind, stage, done, plan_of, wave, run, store):
    row = next(row for row in done["stages"] if row["stage"] == stage)
    DAMAGE[kind](store.root / "objects" / row["sha256"][:2] / f"{row['sha256']}.parquet")
    again = run(plan_of(**BLOCKS), wave)
    assert stages(again, cached=False) == ALWAYS | {(stage, row["block"])}
    assert released(again) == released(done)
    assert [row["sha256"] for row in again["stages"]] == [row["sha256"] for row in done["stages"]]


def test_all_damaged_at_once(done, plan_of, wave, run, store):
    for path in (store.root / "objects").rglob("*.parquet"):
        flip_a_bit(path)
    again = run(plan_of(**BLOCKS), wave)
    assert stages(again, cached=True) == set()
    assert released(again) == released(done)


def test_forged_records_do_not_run(done, plan_of, wave, run, store, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trap"),)

    payload = base64.encodebytes(pickle.dumps(Trap())).decode()
    for record in store.records.iterdir():
        content = json.loads(record.read_text())
        content["metadata"]["serializer"] = {"type": "pickle", "picklelib": "pickle"}
        record.write_text(json.dumps({**content, "result": payload}))
    again = run(plan_of(**BLOCKS), wave)
    assert not (tmp_path / "trap").exists()
    assert stages(again, cached=True) == set()
    assert released(again) == released(done)


def test_a_plan_may_come_as_a_dict(done, plan_of, wave, tmp_path):
    from kohort.flows.protect import protect_wave

    parameters = {"plan": plan_of(**BLOCKS), "wave": str(wave), "out": str(tmp_path / "dict")}
    as_dict = protect_wave(**parameters, store=str(tmp_path / "store"))
    assert stages(as_dict, cached=False) == ALWAYS
    assert released(as_dict) == released(done)


def test_the_same_release_is_not_rewritten_and_another_is_a_new_version(
    done, plan_of, wave, run, tmp_path
):
    out = tmp_path / "out"
    shutil.copytree(Path(done["out"]).parent, out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    same = run(plan_of(**BLOCKS), wave, out=out)
    assert (same["written"], same["version"]) == (False, 1)
    other = run(plan_of(**BLOCKS, partition={"method": "optimal", "k": 4}), wave, out=out)
    assert (other["written"], other["version"]) == (True, 2)
    assert released(other) != released(done)
    again = run(plan_of(**BLOCKS), wave, out=out)
    assert (again["written"], again["version"]) == (True, 3)
    assert released(again) == released(done)
    assert {path: path.stat().st_mtime_ns for path in before} == {
        path: stamp if path != out else path.stat().st_mtime_ns for path, stamp in before.items()
    }


def test_refused_data_leave_nothing(columns, plan_of, write_wave, run, tmp_path):
    columns["rent"][0] = np.nan
    with pytest.raises(WaveError, match=r"missing cells in rent \(1\)"):
        run(plan_of(), write_wave(columns), out=tmp_path / "deep" / "out")
    assert not (tmp_path / "deep").exists()


def test_columns_whose_names_share_a_prefix(columns, plan_of, write_wave, run, tmp_path):
    table = pa.table(columns).rename_columns(
        ["id", "name", "income.total", "income", "income.rent", "cost", "weight", "house"]
    )
    plan = Plan.model_validate(
        plan_of(
            roles={"quasi_identifiers": ["income", "income.rent", "income.total"]},
            block={"method": "explicit", "blocks": [["income"], ["income.rent", "income.total"]]},
        )
    )
    result = run(plan, write_wave(table))
    alone = protect_in_memory(plan, write_wave(table), tmp_path / "memory", listener=Silent())
    assert released(result) == released(alone)
