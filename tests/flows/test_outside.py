"""A plan or a file of somebody else writes only to its folders, runs nothing, moves no terminal."""

import base64
import json
import os
import stat
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.flows.cli import main
from kohort.flows.drafting import draft_plan
from kohort.flows.plan import Plan

ESCAPES = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202e\x00"
BREAK = "\nkohort: all is well\n"
PATHS = {
    "age": "../../../escaped",
    "income": "/absolute",
    "rent": "a/b\\c",
    "cost": "$(touch escaped)",
    "note": "..",
}


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    """A KOHORT_HOME of the test alone, so that `kohort runs` lists its runs only."""
    monkeypatch.setenv("KOHORT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def survey(columns, plan_of, write_plan, write_wave):
    """Plan and wave of the small survey with columns renamed."""

    def survey(names=None, *, wave="wave.parquet", **changes):
        names = names or {}
        renamed = {names.get(name, name): values for name, values in columns.items()}
        roles = {
            "quasi_identifiers": [names.get(name, name) for name in ("age", "income", "rent")],
            "confidential": [names.get("cost", "cost")],
        }
        return write_plan(plan_of(roles=roles, **changes)), write_wave(renamed, wave)

    return survey


def tree(folder, *but):
    """Everything in a folder that is not in one of these."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not any(path.is_relative_to(each) for each in but)
    }


def run(*arguments, code=0):
    assert main([str(each) for each in arguments]) == code


def is_harmless(text):
    """Nothing but printable characters and ends of lines."""
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize("in_memory", [False, True], ids=["flow", "in memory"])
def test_columns_named_like_paths_are_names(in_memory, survey, tmp_path, home, prefect_url):
    plan, wave = survey(PATHS, block={"method": "single"})
    out, store = tmp_path / "deep" / "er" / "out", tmp_path / "store"
    before = tree(tmp_path)
    more = ["--in-memory"] if in_memory else ["--store", store]
    run("protect", plan, wave, "--out", out, *more)
    assert tree(tmp_path, tmp_path / "deep", store) == before
    assert {path.name for path in (out / "v1").rglob("*") if path.is_file()} == {
        "protected.parquet",
        "manifest.json",
        "evaluation.json",
        "log.jsonl",
    }
    released = pq.read_schema(out / "v1" / "public" / "protected.parquet").names
    assert {PATHS[name] for name in ("age", "income", "rent", "cost")} == set(released)


@pytest.mark.parametrize("bad", [ESCAPES, BREAK], ids=["escapes", "line break"])
def test_titles_and_names_move_no_terminal(bad, survey, tmp_path, capsys, own_home, prefect_url):
    names = {"age": f"age{bad}", "cost": f"cost{bad}"}
    wave_name = f"wave{bad.replace(chr(0), '')}.parquet"
    plan, wave = survey(names, wave=wave_name, title=f"title{bad}", release={"order": "input"})
    out = tmp_path / f"out{bad.replace(chr(0), '')}"
    run("plan", "check", plan, wave)
    run("plan", "init", wave)
    run("protect", plan, wave, "--out", out, "--store", tmp_path / "store")
    run("runs")
    name = json.loads(said(capsys, "runs", "--json"))[0]["id"]
    run("runs", name)
    run("verify", out)
    run("evaluate", wave, out / "v1" / "public" / "protected.parquet", "--in-memory")
    run("protect", tmp_path / f"no{bad.replace(chr(0), '')}", wave, "--out", out, code=2)
    run("runs", f"no{bad}", code=2)
    captured = capsys.readouterr()
    assert is_harmless(captured.out)
    assert is_harmless(captured.err)
    shown = (captured.out + captured.err).splitlines()
    assert [line for line in shown if line.startswith("kohort: all")] == []
    assert any("title\\" in line for line in shown)


def said(capsys, *arguments):
    """What a command prints, besides what was printed before."""
    before = capsys.readouterr()
    run(*arguments)
    printed = capsys.readouterr().out
    print(before.out, end="")
    return printed


@pytest.mark.parametrize("bad", [ESCAPES, BREAK, "\x7f\x85\u2028", "😀 é"])
def test_a_draft_with_odd_names_is_a_plan_of_those_names(bad, columns, write_wave):
    wave = write_wave({f"{name}{bad}": values for name, values in columns.items()})
    text = draft_plan(wave)
    assert is_harmless(text)
    draft = tomllib.loads(text)
    assert f"income{bad}" in draft["roles"]["quasi_identifiers"]
    assert set(draft) <= {field.alias or name for name, field in Plan.model_fields.items()}


def test_errors_name_odd_columns_on_one_line(columns, survey, tmp_path, capsys):
    columns["rent"][3] = float("nan")
    plan, wave = survey({"rent": f"rent{BREAK}{ESCAPES}"})
    run("protect", plan, wave, "--out", tmp_path / "out", "--in-memory", code=3)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert is_harmless(err)
    assert r"rent\nkohort: all is well\n\x1b[2J" in err


def test_a_name_that_is_no_text_can_be_said(survey, tmp_path, capfd):
    plan, _ = survey()
    run("protect", plan, os.fsdecode(b"no\xff.parquet"), "--out", tmp_path / "out", code=3)
    assert r"there is no file no\udcff.parquet" in capfd.readouterr().err


# Links: the user's own are followed, those in folders that kohort fills are not.


@pytest.fixture
def elsewhere(tmp_path):
    """A folder that nothing may write to, with a file in it."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "manifest.json").write_text("theirs")
    return folder


GATE = {"gate": {"loss": 0.0}}


@pytest.mark.parametrize("dangling", [False, True], ids=["a folder", "nothing"])
@pytest.mark.parametrize("in_memory", [False, True], ids=["flow", "in memory"])
def test_refused_papers_do_not_go_through_a_link(
    in_memory, dangling, survey, tmp_path, elsewhere, prefect_url
):
    plan, wave = survey(**GATE)
    out = tmp_path / "out"
    out.mkdir()
    (out / "refused").symlink_to(tmp_path / "nothing" if dangling else elsewhere)
    more = ["--in-memory"] if in_memory else ["--store", tmp_path / "store"]
    run("protect", plan, wave, "--out", out, *more, code=4)
    assert tree(elsewhere) == {"manifest.json"}
    assert (elsewhere / "manifest.json").read_text() == "theirs"
    assert not (tmp_path / "nothing").exists()
    assert not (out / "refused").is_symlink()
    assert {mode_of(path) for path in (out / "refused").iterdir()} == {0o600}
    assert mode_of(out / "refused") == 0o700


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_refused_paper_that_is_a_link_is_replaced(survey, tmp_path, elsewhere):
    plan, wave = survey(**GATE)
    (tmp_path / "out" / "refused").mkdir(parents=True, mode=0o700)
    (tmp_path / "out" / "refused" / "manifest.json").symlink_to(elsewhere / "manifest.json")
    run("protect", plan, wave, "--out", tmp_path / "out", "--in-memory", code=4)
    assert (elsewhere / "manifest.json").read_text() == "theirs"
    assert not (tmp_path / "out" / "refused" / "manifest.json").is_symlink()


@pytest.mark.parametrize("target", ["folder", "release", "nothing"])
def test_a_version_that_is_a_link_is_no_release_and_stays(target, survey, tmp_path, elsewhere, capsys):
    plan, wave = survey()
    out = tmp_path / "out"
    out.mkdir()
    run("protect", plan, wave, "--out", tmp_path / "other", "--in-memory")
    targets = {"folder": elsewhere, "release": tmp_path / "other" / "v1", "nothing": tmp_path / "none"}
    (out / "v1").symlink_to(targets[target])
    before = {each: tree(tmp_path / each) for each in ("elsewhere", "other")}
    run("protect", plan, wave, "--out", out, "--in-memory")
    assert {each: tree(tmp_path / each) for each in before} == before
    assert not (tmp_path / "none").exists()
    assert (out / "v1").is_symlink()
    assert (out / "v2" / "public" / "protected.parquet").is_file()
    assert not (out / "v2").is_symlink()
    assert "version 2 of this wave's release" in capsys.readouterr().out


def test_an_unfinished_release_that_is_a_link_stays(survey, tmp_path, elsewhere):
    """A name like that of a dead process's leftover, which would be removed."""
    plan, wave = survey()
    link = tmp_path / "out" / f".kohort-{os.uname().nodename.lower()}-999999999-{'0' * 32}"
    link.parent.mkdir()
    link.symlink_to(elsewhere)
    run("protect", plan, wave, "--out", tmp_path / "out", "--in-memory")
    assert link.is_symlink()
    assert tree(elsewhere) == {"manifest.json"}


def test_folders_of_the_user_may_be_links(survey, tmp_path, monkeypatch, prefect_url):
    """Output folder, store and KOHORT_HOME are the user's to place; what they lead to is closed."""
    plan, wave = survey()
    for name in ("out", "store", "home"):
        (tmp_path / f"real-{name}").mkdir(mode=0o700)
        (tmp_path / name).symlink_to(tmp_path / f"real-{name}")
    monkeypatch.setenv("KOHORT_HOME", str(tmp_path / "home"))
    run("protect", plan, wave, "--out", tmp_path / "out", "--store", tmp_path / "store")
    assert (tmp_path / "real-out" / "v1" / "public" / "protected.parquet").is_file()
    assert list((tmp_path / "real-store" / "objects").rglob("*.parquet"))
    (journal,) = (tmp_path / "real-home" / "runs").iterdir()
    assert mode_of(journal) == 0o600
    assert all((tmp_path / name).is_symlink() for name in ("out", "store", "home"))


def test_a_wave_may_be_a_link_and_is_not_written(survey, tmp_path):
    plan, wave = survey()
    before = wave.read_bytes()
    (tmp_path / "link.parquet").symlink_to(wave)
    run("protect", plan, tmp_path / "link.parquet", "--out", tmp_path / "out", "--in-memory")
    assert wave.read_bytes() == before


NOTED = pa.field("kind", pa.string(), metadata={"source": "SENTINEL-INNER"})
NESTED = {
    "struct": (pa.struct([NOTED]), {"kind": "a"}),
    "list": (pa.list_(NOTED), ["a"]),
    "large list": (pa.large_list(NOTED), ["a"]),
    "fixed list": (pa.list_(NOTED, 1), ["a"]),
    "list of structs": (pa.list_(pa.struct([NOTED])), [{"kind": "a"}]),
    "map": (pa.map_(pa.string(), pa.struct([NOTED])), [("k", {"kind": "a"})]),
}


@pytest.mark.parametrize(("kind", "cell"), NESTED.values(), ids=NESTED)
def test_no_note_of_the_file_goes_out(kind, cell, columns, plan_of, write_plan, write_wave, tmp_path):
    """Metadata of the file, of its columns and of fields within them stay behind."""
    table = pa.table({**columns, "nested": pa.array([cell] * 40, kind)})
    table = table.set_column(
        2, pa.field("age", pa.int64(), metadata={"note": "SENTINEL-COLUMN"}), table.column(2)
    ).replace_schema_metadata({"pandas": "SENTINEL-PANDAS", "who": "SENTINEL-FILE"})
    wave = write_wave(table)
    assert "SENTINEL-INNER" in shown(pq.read_schema(wave))
    plan = write_plan(plan_of(roles={"other": "keep"}, release={"order": "input"}))
    run("protect", plan, wave, "--out", tmp_path / "out", "--in-memory")
    released = tmp_path / "out" / "v1" / "public" / "protected.parquet"
    assert pq.read_table(released).column("nested").to_pylist() == [cell] * 40
    assert "SENTINEL" not in shown(pq.read_schema(released))
    metadata = pq.read_metadata(released).metadata
    assert set(metadata) == {b"ARROW:schema"}
    assert b"SENTINEL" not in base64.b64decode(metadata[b"ARROW:schema"]) + released.read_bytes()


def shown(schema):
    return schema.to_string(show_field_metadata=True, show_schema_metadata=True)
