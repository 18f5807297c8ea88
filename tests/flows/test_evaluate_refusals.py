"""What `kohort evaluate` refuses: one sentence, an exit code, and nothing written."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import PlanError, WaveError
from kohort.flows.cli import main


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


def test_nothing_that_is_said_quotes_a_cell(pair, tmp_path, capsys):
    assert main(["evaluate", *map(str, pair), "--in-memory"]) == 0
    first = capsys.readouterr()
    assert main(["evaluate", *map(str, pair), "--in-memory", "--json"]) == 0
    texts = first.out + first.err + capsys.readouterr().out
    for name in ("p001", "p039", "name 3", "h19", "coarse"):
        assert name not in texts


def test_files_past_memory_are_refused_before_they_are_read(columns, write_wave, monkeypatch, capsys):
    files = write_wave(columns, "original.parquet"), write_wave(columns, "protected.parquet")
    monkeypatch.setattr("kohort.flows.comparison.available_memory", lambda: 1000)
    assert main(["evaluate", *map(str, files), "--key", "id", "--in-memory"]) == 2
    assert "the evaluation needs about" in capsys.readouterr().err
    monkeypatch.setattr("kohort.tasks.wave.available_memory", lambda: 10)
    assert main(["evaluate", *map(str, files), "--key", "id", "--in-memory"]) == 3
    assert "GB in memory, but" in capsys.readouterr().err


def test_a_sorted_release_is_not_matched_by_position(
    columns, plan_of, write_wave, protect_alone, tmp_path
):
    wave = write_wave(columns)
    file = "v1/public/protected.parquet"
    for order, code in (("sorted", 2), ("input", 0)):
        protect_alone(plan_of(release={"order": order}), wave, tmp_path / order)
        assert main(["evaluate", str(wave), str(tmp_path / order / file), "--in-memory"]) == code
    copied = write_wave(pq.read_table(tmp_path / "sorted" / file), "elsewhere.parquet")
    assert main(["evaluate", str(wave), str(copied), "--in-memory"]) == 0  # nothing tells
