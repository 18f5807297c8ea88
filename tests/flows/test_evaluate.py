"""`kohort evaluate`: any pair of files, by position or by key; the same numbers however it is run."""

import json
import re
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kohort
from kohort.errors import PlanError, WaveError
from kohort.evaluation import MEASURES
from kohort.flows.cli import main
from kohort.flows.comparison import compare_files
from kohort.flows.evaluate_in_memory import evaluate_in_memory
from kohort.flows.in_memory import protect_in_memory
from kohort.flows.plan import Plan
from kohort.flows.progress import Silent

NAMES = ["age", "income", "rent"]
BLOCKS = {"block": {"method": "consecutive", "size": 2}}
ALL = [measure.name for measure in MEASURES]


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
def test_a_release_of_kohort_in_the_order_of_its_input(method, columns, plan_of, write_wave, tmp_path):
    wave = write_wave(columns)
    k = {"optimal": 3, "mic1d": 30}[method]
    plan = Plan.model_validate(
        plan_of(
            **({} if method == "mic1d" else BLOCKS),
            partition={"method": method, "k": k},
            evaluate={"measures": "all"},
            release={"order": "input"},
        )
    )
    made = protect_in_memory(plan, wave, tmp_path / "out", force=False, listener=Silent())
    file = next((tmp_path / "out").rglob("protected.parquet"))
    found = in_memory(wave, file, plan=plan)
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


def test_another_evaluation_in_the_folder_stays(pair, tmp_path, capsys):
    (tmp_path / "evaluation.json").write_text("{}")
    arguments = [
        "evaluate",
        *map(str, pair),
        "--out",
        str(tmp_path),
        "--measures",
        "loss",
        "--in-memory",
    ]
    assert main(arguments) == 2
    assert "is already there and is another evaluation" in capsys.readouterr().err
    assert (tmp_path / "evaluation.json").read_text() == "{}"


def test_stderr_of_the_table_has_no_value(pair, tmp_path, capsys):
    assert main(["evaluate", *map(str, pair), "--in-memory"]) == 0
    first = capsys.readouterr()
    assert main(["evaluate", *map(str, pair), "--in-memory", "--json"]) == 0
    texts = first.out + first.err + capsys.readouterr().out
    for name in ("p001", "p039", "name 3", "h19", "coarse"):
        assert name not in texts


def with_cell(values, cell):
    values = np.array(values, dtype=float)
    values[3] = cell
    return values


def doubled(columns, name):
    return pa.table(columns).append_column(name, pa.array(columns[name]))


DATA = {  # changes to the original, to the protected file, options, message
    "missing": (
        lambda c: {**c, "rent": with_cell(c["rent"], np.nan)},
        None,
        [],
        r"original\.parquet: missing cells in rent \(1\)",
    ),
    "missing after": (
        None,
        lambda c: {**c, "rent": with_cell(c["rent"], np.nan)},
        [],
        r"protected\.parquet: missing cells in rent \(1\)",
    ),
    "infinite": (
        None,
        lambda c: {**c, "income": with_cell(c["income"], np.inf)},
        [],
        r"protected\.parquet: infinite cells in income \(1\)",
    ),
    "no common number": (
        None,
        lambda c: {"id": c["id"], "other": c["rent"]},
        [],
        "no numeric column in common",
    ),
    "empty": (lambda c: pa.table(c).slice(0, 0), None, [], r"original\.parquet has no records"),
    "fewer": (None, lambda c: pa.table(c).slice(0, 38), [], r"has 40 records but .* has 38"),
    "twice": (None, lambda c: doubled(c, "rent"), [], "two columns named 'rent'"),
    "no key": (
        None,
        lambda c: pa.table(c).drop_columns(["id"]),
        ["--key", "id"],
        r"protected\.parquet has no column 'id' to match rows by",
    ),
    "key missing": (
        lambda c: {**c, "id": [None, *c["id"][1:]]},
        None,
        ["--key", "id"],
        r"original\.parquet: key 'id' is missing in 1 records",
    ),
    "key repeated": (
        None,
        lambda c: {**c, "id": [*c["id"][:3], *c["id"][:37]]},
        ["--key", "id"],
        r"protected\.parquet: key 'id' names more than one record: 3 of 40",
    ),
    "records missing": (
        lambda c: pa.table(c).slice(0, 37),
        lambda c: pa.table(c).slice(1, 38),
        ["--key", "id"],
        "by key 'id', 1 of 37 original records are not in the protected file, and 2 of 38 protected",
    ),
    "other keys": (
        None,
        lambda c: {**c, "id": np.arange(40)},
        ["--key", "id"],
        "key 'id' is string in the original file but int64 in the protected one",
    ),
}


@pytest.mark.parametrize(("before", "after", "options", "message"), DATA.values(), ids=DATA)
def test_data_that_break_a_rule(
    before, after, options, message, columns, released, write_wave, tmp_path, capsys
):
    original = write_wave(before(columns) if before else columns, "original.parquet")
    protected = write_wave(after(released) if after else released, "protected.parquet")
    refused(["evaluate", original, protected, *options], 3, message, tmp_path, capsys)


def refused(arguments, code, message, tmp_path, capsys):
    """One sentence, the exit code, nothing on standard output and nothing written."""
    out = tmp_path / "out"
    assert main([*map(str, arguments), "--out", str(out), "--in-memory"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    (sentence,) = said.err.splitlines()
    assert re.fullmatch(f"kohort: .*(?:{message}).*", sentence)
    assert not out.exists()


FILES = {
    "absent": (lambda path: path.unlink(), "there is no file"),
    "text": (lambda path: path.write_text("age,rent\n1,2\n"), "is not a readable Parquet file"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-40]), "is not a readable Parquet file"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
}


@pytest.mark.parametrize("which", [0, 1], ids=["original", "protected"])
@pytest.mark.parametrize(("damage", "message"), FILES.values(), ids=FILES)
def test_files_that_are_no_parquet(which, damage, message, pair, tmp_path, capsys):
    damage(pair[which])
    refused(
        ["evaluate", *pair],
        3,
        f"{pair[which].name}.* {message}|{message}.*{pair[which].name}",
        tmp_path,
        capsys,
    )


PLANS = {  # changes to the plan, changes to the released file, options, exit code, message
    "sorted": (
        {},
        None,
        [],
        2,
        r'order = "sorted".*--key, or release with order = "input".*evaluation\.json made with it',
    ),
    "key is protected": ({}, None, ["--key", "age"], 2, "key 'age' is a quasi-identifier"),
    "measures twice": (
        {"evaluate": {"measures": ["loss"]}},
        None,
        ["--key", "id", "--measures", "dld"],
        2,
        r"--measures has no effect with a plan that has \[evaluate\]",
    ),
    "unfit roles": (
        {"roles": {"confidential": None}},
        None,
        ["--key", "id"],
        2,
        "without a role: 'cost'",
    ),
    "no confidential": (
        {"roles": {"confidential": None, "other": "drop"}},
        None,
        ["--key", "id", "--measures", "loss,d_y"],
        2,
        "measure 'd_y' needs confidential attributes",
    ),
    "column gone": ({}, {"rent": None}, ["--key", "id"], 3, r"protected\.parquet has no column 'rent'"),
    "column is text": (
        {},
        {"rent": ["low"] * 40},
        ["--key", "id"],
        3,
        r"quasi-identifier 'rent' is not numeric but string in .*protected\.parquet",
    ),
}


@pytest.mark.parametrize(("changes", "cells", "options", "code", "message"), PLANS.values(), ids=PLANS)
def test_plans_that_do_not_fit(
    changes,
    cells,
    options,
    code,
    message,
    columns,
    released,
    plan_of,
    write_plan,
    write_wave,
    tmp_path,
    capsys,
):
    changed = {n: v for n, v in {**released, **(cells or {})}.items() if v is not None}
    files = write_wave(columns, "original.parquet"), write_wave(changed, "protected.parquet")
    plan = write_plan(plan_of(**changes))
    refused(["evaluate", *files, "--plan", plan, *options], code, message, tmp_path, capsys)


OPTIONS = {
    "store": (["--store", "s"], "--store has no effect with --in-memory"),
    "unknown measure": (["--measures", "loss,lost"], "measures must be one of"),
    "measure twice": (["--measures", "loss,loss"], "each once"),
    "no measure": (["--measures", ""], "measures must be one of"),
    "needs confidential": (["--measures", "l_avg"], r"measure 'l_avg' needs confidential.*--plan"),
    "no plan": (["--plan", "absent.toml"], r"there is no plan absent\.toml"),
}


@pytest.mark.parametrize(("options", "message"), OPTIONS.values(), ids=OPTIONS)
def test_options_without_effect(options, message, pair, tmp_path, capsys):
    refused(["evaluate", *pair, *options], 2, message, tmp_path, capsys)


def test_a_folder_that_cannot_be_made(pair, tmp_path, capsys):
    arguments = ["evaluate", *pair, "--in-memory", "--out", pair[0] / "out"]
    assert main([str(each) for each in arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"kohort: the output folder .* cannot be made: .* is a file; .*\n", said.err)


def test_the_flow_refuses_in_the_same_words(pair, shuffled, columns, write_wave, by_flow, tmp_path):
    original, protected = pair
    fewer = write_wave(pa.table(columns).slice(0, 30), "fewer.parquet")
    with pytest.raises(WaveError, match=r"0 of 30 original records .* 10 of 40 protected records"):
        by_flow(fewer, shuffled, key="id", out=tmp_path / "out")
    with pytest.raises(WaveError, match="so that rows cannot be matched by position"):
        by_flow(fewer, protected, out=tmp_path / "out")
    with pytest.raises(PlanError, match="measures must be one of"):
        by_flow(original, protected, measures=["lost"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


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
