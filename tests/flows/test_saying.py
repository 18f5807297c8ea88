"""Names from outside drive no terminal, and a refusal stays one line."""

import pytest

from kohort.flows.cli import main
from kohort.flows.saying import say
from kohort.tasks.placing import keep_refused

CLEAR = "\x1b[2J\x1b]0;pwned\x07"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain äß€ 漢字", "plain äß€ 漢字"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m\x7f\r\t", "\\x9b31m\\x7f\\r\\t"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
    ],
)
def test_what_is_printed_is_printable(text, shown, capsys):
    say(text)
    assert capsys.readouterr().out == f"{shown}\n"


def test_column_names_with_escapes(columns, plan_of, write_plan, write_wave, tmp_path, capsys):
    evil = f"rent{CLEAR}"
    wave = write_wave({evil if name == "rent" else name: values for name, values in columns.items()})
    plan = write_plan(plan_of(roles={"quasi_identifiers": ["age", "income", evil]}))
    out = tmp_path / "out"
    for arguments in (
        ["plan", "check", plan, wave],
        ["plan", "init", wave],
        ["protect", plan, wave, "--out", out, "--in-memory"],
        ["verify", out],
        ["evaluate", wave, wave, "--in-memory"],
    ):
        assert main([str(each) for each in arguments]) == 0
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert "\x07" not in said.out + said.err


def test_a_refusal_is_one_line_whatever_the_file_is_called(write_plan, plan_of, tmp_path, capsys):
    plan = write_plan(plan_of())
    missing = tmp_path / f"new\nline{CLEAR}.parquet"
    assert main(["plan", "check", str(plan), str(missing)]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.isascii()
    assert "\x1b" not in said


def test_links_in_the_output_folder_are_not_written_through(
    columns, plan_of, write_plan, write_wave, tmp_path, capsys
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out").mkdir()
    for name in ("v1", "refused"):
        (tmp_path / "out" / name).symlink_to(elsewhere)
    keep_refused(tmp_path / "out", manifest={}, evaluation={})
    assert not (tmp_path / "out" / "refused").is_symlink()
    plan, wave = write_plan(plan_of()), write_wave(columns)
    assert main(["protect", str(plan), str(wave), "--out", str(tmp_path / "out"), "--in-memory"]) == 0
    assert (tmp_path / "out" / "v2" / "public" / "protected.parquet").is_file()
    assert list(elsewhere.iterdir()) == []
