"""`kohort evaluate`: any pair of files, by position or by key; the same numbers however it is run."""

import json
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kohort
from kohort.evaluation import MEASURES
from kohort.flows.cli import main
from kohort.flows.comparison import compare_files
from kohort.flows.evaluate_in_memory import evaluate_in_memory
from kohort.flows.plan import Plan
from kohort.flows.progress import Silent

NAMES = ["age", "income", "rent"]
BLOCKS = {"block": {"method": "consecutive", "size": 2}}
ALL = [measure.name for measure in MEASURES]


def in_memory(original, protected, *, out=None, **request):
    comparison = compare_files(original, protected, **request)
    return evaluate_in_memory(comparison, out=out, listener=Silent())


def frames(columns, released, names=NAMES):
    return [pd.DataFrame({name: table[name] for name in names}) for table in (columns, released)]


def cached(evaluated):
    return {row.stage for row in evaluated.stages if row.cached}


def test_without_a_plan_all_common_numbers_are_one_block(pair, columns, released, by_flow):
    flow, alone = by_flow(*pair), in_memory(*pair)
    names = [name for name in columns if name in (*NAMES, "cost")]
    expected = kohort.evaluate(*frames(columns, released, names))
    assert flow.evaluation == alone.evaluation == expected
    assert flow.content() == alone.content()
    assert flow.comparison.names == tuple(names)
    assert flow.blocks == [names]
    assert [result.measure for result in flow.results] == ALL
    assert flow.evaluation["loss"] > 0
    assert "needs confidential" in str(flow.evaluation["d_y"])
    assert flow.comparison.notes[:3] == (
        "ignored 1 column that only the original file has: weight",
        "ignored 1 column that only the protected file has: remark",
        "ignored 3 columns that are not numeric in both files: id, name, house",
    )


def test_shuffled_rows_by_key_are_the_same_and_cost_only_the_match(pair, shuffled, by_flow):
    original, protected = pair
    position = by_flow(original, protected)
    key = by_flow(original, shuffled, key="id")
    assert key.evaluation == position.evaluation
    assert key.evaluation == in_memory(original, shuffled, key="id").evaluation
    assert in_memory(original, shuffled).evaluation != position.evaluation
    done = {row.stage for row in key.stages if not row.cached}
    assert done == {"read_key", "match_rows", "read_protected"}
    assert key.content()["matched_by"] == "key id"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.uint64()),
        (pa.string(), pa.large_string()),
        (pa.string(), pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_a_key_may_be_written_in_another_width(before, after, columns, released, write_wave):
    order = np.random.default_rng(5).permutation(40)
    numbers = [int(i[1:]) if pa.types.is_integer(before) else i for i in columns["id"]]
    originals = pa.table({**columns, "id": pa.array(numbers, before)})
    protected = pa.table({**released, "id": pa.array(numbers).cast(after)}).take(pa.array(order))
    files = write_wave(originals, "a.parquet"), write_wave(protected, "b.parquet")
    found = in_memory(*files, key="id", measures=["loss", "dld"])
    assert "id" not in found.comparison.names
    expected = kohort.evaluate(
        *frames(columns, released, found.comparison.names), measures=["loss", "dld"]
    )
    assert found.evaluation == expected


def test_a_plan_gives_roles_blocks_and_measures(pair, columns, released, plan_of, by_flow):
    request = {
        "measures": "all",
        "intruder": {"method": "several_blocks"},
        "ties": "first",
        "tau": 0.3,
    }
    content = plan_of(**BLOCKS, evaluate=request, release={"order": "input"})
    plan = Plan.model_validate(content)
    flow, alone = by_flow(*pair, plan=plan), in_memory(*pair, plan=plan)
    expected = kohort.evaluate(
        *frames(columns, released),
        confidential=pd.DataFrame({"cost": columns["cost"]}),
        blocks=[(0, 1), (2,)],
        weights=columns["weight"],
        units=columns["house"],
        intruder="several_blocks",
        ties="first",
        tau=0.3,
    )
    assert flow.evaluation == alone.evaluation == expected
    assert flow.content() == alone.content()
    assert flow.blocks == [["age", "income"], ["rent"]]
    assert all(isinstance(flow.evaluation[name], float) for name in ALL)


def test_blocks_that_values_decide_are_those_of_the_original(pair, plan_of, by_flow):
    plan = Plan.model_validate(
        plan_of(block={"method": "correlated", "size": 2}, release={"order": "input"})
    )
    x = pq.read_table(pair[0]).select(NAMES).to_pandas().to_numpy(float)
    blocks = plan.stages.blocks.assign_blocks(x, names=NAMES)
    expected = [[NAMES[j] for j in block] for block in blocks]
    assert by_flow(*pair, plan=plan).blocks == in_memory(*pair, plan=plan).blocks == expected


def test_open_columns_are_those_that_readers_of_the_release_see(columns, plan_of, write_wave, by_flow):
    plan = Plan.model_validate(plan_of(roles={"confidential": None, "other": "keep", "unit": None}))
    assert plan.roles.other == "keep"
    constant = {name: np.full(40, 5.0) for name in NAMES}
    kept = {**constant, "id": columns["id"], "cost": np.arange(40) // 10, "house": ["h"] * 40}
    order = np.random.default_rng(3).permutation(40)
    original = write_wave(columns, "original.parquet")
    protected = write_wave(pa.table(kept).take(pa.array(order)), "protected.parquet")
    names = ["min_anonymity", "unique"]
    flow = by_flow(original, protected, plan=plan, key="id", measures=names)
    assert flow.evaluation["min_anonymity"] == 10  # of cost as released; as it was, all are unique
    assert (
        flow.evaluation
        == in_memory(*(original, protected), plan=plan, key="id", measures=names).evaluation
    )
    without = write_wave(pa.table(kept).drop_columns(["cost"]), "without.parquet")
    alone = in_memory(original, without, plan=plan, key="id", measures=names)
    assert alone.evaluation["min_anonymity"] == 40
    assert alone.comparison.notes == (
        "ignored 1 column that the plan releases but the protected file does not have: cost",
    )


def test_a_weight_that_is_released_is_both(columns, released, plan_of, write_wave, by_flow):
    plan = Plan.model_validate(plan_of(roles={"release_weight": True}, release={"order": "input"}))
    files = (
        write_wave(columns, "a.parquet"),
        write_wave({**released, "weight": columns["weight"]}, "b.parquet"),
    )
    flow = by_flow(*files, plan=plan)
    assert flow.evaluation == in_memory(*files, plan=plan).evaluation
    expected = kohort.evaluate(
        *frames(columns, released),
        measures=["dominance", "unique"],
        weights=columns["weight"],
        others=np.asarray(columns["weight"]),
        units=columns["house"],
    )
    assert [flow.evaluation[n] for n in ("dominance", "unique")] == [
        expected[n] for n in ("dominance", "unique")
    ]


@pytest.mark.parametrize("method", ["optimal", "mic1d"])
def test_a_release_of_kohort_in_the_order_of_its_input(
    method, columns, plan_of, write_wave, protect_alone, tmp_path
):
    wave = write_wave(columns)
    k = {"optimal": 3, "mic1d": 30}[method]
    content = plan_of(
        **({} if method == "mic1d" else BLOCKS),
        partition={"method": method, "k": k},
        evaluate={"measures": "all"},
        release={"order": "input"},
    )
    made = protect_alone(content, wave, tmp_path / "out")
    file = next((tmp_path / "out").rglob("protected.parquet"))
    found = in_memory(wave, file, plan=Plan.model_validate(content))
    assert {result.measure: result.to_dict()["value"] for result in found.results} == {
        name: made["measures"][name] for name in ALL
    }


def test_an_added_measure_costs_only_itself(pair, by_flow):
    by_flow(*pair, measures=["loss", "dld"])
    more = by_flow(*pair, measures=["loss", "dld", "id"])
    assert {row.stage for row in more.stages if not row.cached} == {"measure id"}
    assert len(cached(more)) == 5


# The command.


@pytest.mark.parametrize("how", ["flow", "in memory"])
def test_the_command_writes_for_the_owner_alone(how, pair, prefect_url, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    out = tmp_path / "deep" / "out"
    options = ["--in-memory"] if how == "in memory" else ["--store", str(tmp_path / "store")]
    arguments = ["evaluate", *map(str, pair), "--out", str(out), "--measures", "loss, d_x,il", *options]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("40 records, 4 attributes, intruder: everything\nloss\n  loss ")
    assert "rows matched by position\nignored 1 column" in printed
    assert printed.endswith(f"{out / 'evaluation.json'}\n")
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert stat.S_IMODE((out / "evaluation.json").stat().st_mode) == 0o600
    content = json.loads((out / "evaluation.json").read_text())
    assert content == in_memory(*pair, measures=["loss", "d_x", "il"]).content()
    assert [path.name for path in out.iterdir()] == ["evaluation.json"]

    changed = (out / "evaluation.json").stat().st_mtime_ns
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed.pop("stages")) == (2 if how == "in memory" else 3 + 7)
    assert printed == content
    assert (out / "evaluation.json").stat().st_mtime_ns == changed


def test_unprotected_and_one_group(columns, write_wave):
    original = write_wave(columns, "original.parquet")
    same = in_memory(original, original, measures=["loss", "dld", "unchanged", "group_sizes"])
    assert [same.evaluation[n] for n in ("loss", "dld", "unchanged", "group_sizes")] == [0, 100, 1, 1]
    means = {name: np.full(40, np.mean(columns[name])) for name in NAMES}
    one = in_memory(
        original, write_wave(means, "means.parquet"), measures=["loss", "group_sizes", "delta_r"]
    )
    assert one.evaluation["loss"] == pytest.approx(1)
    assert one.evaluation["group_sizes"] == 40
    assert "not applicable" in str(one.evaluation["delta_r"])
