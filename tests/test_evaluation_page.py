"""docs/evaluation.md: every measure with its facts, and examples that print what the page says."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from kohort.evaluation import INTRUDERS, MEASURES
from kohort.flows.cli import main
from kohort.flows.evaluating import EvaluateSection
from kohort.flows.plan import Plan
from kohort.methods import method_name, parameters

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")


def rows(text):
    """Cells of the tables' rows, whose first is code."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def blocks_of(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def measures_listed():
    """(family, cells) of every row of the measures' tables."""
    section = PAGE.split("## The measures")[1].split("## What the intruder knows")[0]
    families = re.split(r"^### (\w+)$", section, flags=re.MULTILINE)[1:]
    for family, text in zip(families[::2], families[1::2], strict=True):
        yield from ((family, cells) for cells in rows(text))


def facts(measure):
    """The row of a measure, but for what it means."""
    takes = ["intruder"] if measure.by_scenario else []
    takes += [f"**{name}**" for name in measure.needs]
    takes += [*measure.uses, *measure.of]
    return [f"`{measure.name}`", measure.unit, measure.worse or "-", ", ".join(takes)]


def test_the_page_names_every_measure_with_its_facts():
    listed = [(family, [cells[0], *cells[2:]]) for family, cells in measures_listed()]
    assert listed == sorted(
        ((measure.family, facts(measure)) for measure in MEASURES),
        key=lambda row: [family for family, _ in listed].index(row[0]),
    )
    assert all(len(cells[1]) > 10 for _, cells in measures_listed())


def test_the_page_names_every_intruder_and_parameter():
    section = PAGE.split("## What the intruder knows")[1].split("## In the plan")[0]
    listed = {cells[0].strip("`"): cells[2] for cells in rows(section)}
    assert list(listed) == [method_name(intruder) for intruder in INTRUDERS]
    for intruder in INTRUDERS:
        names = ", ".join(f"`{field.name}`" for field in parameters(intruder))
        assert listed[method_name(intruder)] == names
    for name in set(EvaluateSection.model_fields) - {"measures", "intruder"}:
        assert name in PAGE.split("## In the plan")[1].split("## Any pair of files")[0]


def test_the_plan_of_the_page(plan_of):
    import tomllib

    (toml,) = blocks_of("toml")
    plan = Plan.model_validate(plan_of(**tomllib.loads(toml)))
    assert [measure.name for measure in plan.evaluate.asked] == ["dld", "id", "dominance", "d_y"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder where the page's paths lead to the sample survey."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)


def test_the_examples_of_the_page(folder, capsys):
    first, *others = blocks_of("python")
    names = {}
    exec(first, names)
    (console,) = blocks_of("console")
    command, said = console.split("\n", 1)
    assert command.startswith("$ kohort ")
    assert main([*shlex.split(command)[2:], "--in-memory"]) == 0
    assert capsys.readouterr().out == said
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in others:
            exec(block, names)
    (text,) = blocks_of("text")
    assert printed.getvalue() == text
