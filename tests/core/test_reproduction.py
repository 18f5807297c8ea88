"""The papers' tables: the data file, golden figures, and what the command prints of them.

The whole reproduction is `make reproduce`. Here are the comparative study in full, Mic1D-k itself on
Census, one line of modeling projections, and the claims of statistical dependence.
"""

import csv
import io
import os
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kohort.flows.cli import main
from kohort.flows.progress import Silent
from kohort.flows.reproduction import PAPERS, configurations, figures, output
from kohort.flows.reproduction.claims import CHECKS
from kohort.flows.reproduction.formats import COLUMNS
from kohort.flows.reproduction.in_memory import reproduce_in_memory
from kohort.flows.reproduction.mic1d import Protection
from kohort.flows.reproduction.modeling_projections import Projected
from kohort.flows.reproduction.published import Note, Table, read_printed, read_published
from kohort.flows.reproduction.report import compare, rank_correlations
from kohort.tasks.reference import SOURCES, Place, figures_of, reference_folder

ROOT = Path(__file__).parents[2]
PUBLISHED = read_published()
TABLES = {(table.paper, table.table): table for table in PUBLISHED.tables}


@pytest.fixture
def files(monkeypatch):
    """The reference files, wherever the tests run."""
    folder = Path(os.environ.get("KOHORT_REFERENCE") or ROOT / "data" / "reference")
    missing = [source.file for source in SOURCES.values() if not (folder / source.file).exists()]
    if missing:
        pytest.skip(f"{', '.join(missing)} neither in KOHORT_REFERENCE nor in data/reference")
    monkeypatch.setenv("KOHORT_REFERENCE", str(folder))
    return folder


@cache
def computed(paper):
    return reproduce_in_memory([paper], listener=Silent())


# The data file


def test_every_published_figure_has_paper_table_row_and_column():
    places = [place for table in PUBLISHED.tables for place in table.figures]
    assert len(places) == 246 + 270 + 288  # no two share a place, or there were fewer
    for place in places:
        assert place.paper in PAPERS
        assert place.table.startswith("Table ")
        assert place.row
        assert place.column


def test_the_file_says_the_same_twice_nowhere():
    source = ROOT / "flows" / "reproduction" / "published.toml"
    content = tomllib.loads(source.read_text(encoding="utf-8"))
    for table in content["tables"]:
        names = [row[0] for row in table["rows"]]
        assert len(set(names)) == len(names)
        assert all(len(row) == 1 + len(table["columns"]) for row in table["rows"])
    assert tuple(paper["name"] for paper in content["papers"]) == PAPERS


def test_every_note_covers_a_figure_and_every_claim_is_checked():
    for table in PUBLISHED.tables:
        for note in table.notes:
            assert any(note.covers(place.row, place.column) for place in table.figures)
    assert {claim.check for claim in PUBLISHED.claims} == set(CHECKS)


def test_configurations_are_told_apart_by_their_fields():
    listed = configurations(PAPERS)
    assert len(set(listed)) == len(listed)
    assert len({each.label for each in listed}) == len(listed)


def test_a_printed_figure_is_as_precise_as_its_digits():
    figure = read_printed(".83")
    assert (figure.low, figure.high, figure.decimals) == (0.83, 0.83, 2)
    assert figure.agrees(0.8349)
    assert figure.agrees(0.8251)
    assert not figure.agrees(0.836)
    assert figure.difference(0.9) == pytest.approx(0.07)
    assert read_printed("27.6").agrees(27.64)
    assert not read_printed("27.60").agrees(27.64)


def test_a_printed_range_agrees_inside():
    figure = read_printed("16.01 - 16.75", 0.02)
    assert figure.difference(16.5) == 0
    assert figure.difference(17) == pytest.approx(0.25)
    assert figure.agrees(15.995)
    assert not figure.agrees(15.98)


@pytest.mark.parametrize("text", ["", "n/a", "1 - 2 - 3", "12", "1.5 or 1.6"])
def test_what_is_no_figure_is_refused(text):
    with pytest.raises(ValueError, match="is no figure"):
        read_printed(text)


def test_the_first_note_that_matches_counts():
    notes = (Note(("A*",), ("x",), "first"), Note(("*",), ("*",), "second"))
    table = Table("mic1d", "Table 4", "", ("x", "y"), (("A1", "1.0", "2.0"),), notes=notes)
    assert table.note_on(Place("mic1d", "Table 4", "A1", "x")).sentence == "first"
    assert table.note_on(Place("mic1d", "Table 4", "A1", "y")).sentence == "second"


def test_rank_correlations_with_and_without_rows():
    rows = (("a", "1.0"), ("b", "2.0"), ("c", "3.0"), ("PCP", "4.0"))
    table = Table("mic1d", "T", "", ("x",), rows, ordered=True, ordered_without="*PCP*")
    values = dict(zip(table.figures, (1.0, 5.0, 7.0, 0.0), strict=True))
    ((column, whole, part),) = rank_correlations(table, values)
    assert (column, part) == ("x", pytest.approx(1.0))
    assert whole == pytest.approx(-0.2)


# Golden figures

DISAGREE = {
    ("Table 1", "UDO_PV worst", "k = 3"),
    ("Table 3", "MDO_MD", "k = 3, ΔR"),
    ("Table 3", "MDO_MD", "k = 3, %FPC"),
    ("Table 3", "MDO_MD", "k = 5, ΔR"),
    ("Table 3", "MDO_MD", "k = 5, ΔW"),
    ("Table 3", "MDO_MD", "k = 5, %FPC"),
    ("Table 4", "UDO_SZ", "k = 4, Δr"),  # the misprint
    ("Table 4", "MDO_MD", "k = 5, Δr"),
}


def test_comparative_study_agrees_but_for_eight_figures(files):
    (section,) = compare(["comparative-study"], computed("comparative-study"))
    cells = [cell for table in section.tables for cell in table.cells]
    differing = {
        (cell.place.table, cell.place.row, cell.place.column) for cell in cells if not cell.agrees
    }
    assert len(cells) == 246
    assert differing == DISAGREE


def test_comparative_study_is_kohorts_own_to_a_thousandth(files):
    own = {
        ("Table 1", "MDO_MD", "k = 4"): 21.131,
        ("Table 1", "UFS_FPC ascending", "k = 3"): 23.889,
        ("Table 3", "MDO_MD", "k = 5, %FPC"): 75.967,
        ("Table 4", "UDO_SZ", "k = 4, Δr"): 0.289,
        ("Table 4", "MFS_MD", "k = 4, s"): 0.055,
    }
    found = computed("comparative-study")
    for place, value in own.items():
        assert found[Place("comparative-study", *place)] == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize(
    ("k", "differing"),
    [
        (3000, {"IL", "ID", "Score", "2G", "3G, correlated"}),
        (4000, {"IL", "ID", "Score", "2G", "3G", "1G, correlated", "DLD"}),
        (5000, {"IL", "ID", "Score", "2G"}),
    ],
)
def test_mic1d_on_census_agrees_in_sse_dld_1g_and_3g(files, k, differing):
    both = ("correlated", "non-correlated")
    protection = Protection(source="census", method="Mic1D", k=k, situations=both)
    found = figures_of(protection, files / "census.csv")
    assert len(found) == 16
    for place, value in found.items():
        situation = place.row.partition(", ")[2]
        printed = TABLES["mic1d", place.table].figures[place]
        expected = not {place.column, f"{place.column}, {situation}"} & differing
        assert printed.agrees(value) == expected, place
        if k == 4000 and place.column in ("1G", "3G"):
            assert value == pytest.approx(printed.low, rel=0.02)
        if place.column == "ID":
            assert value == pytest.approx(printed.low, abs=0.8)
    dld = Place("mic1d", "Table 6", f"Mic1D-{k}, correlated", "DLD")
    assert found[dld] == pytest.approx({3000: 35.95, 4000: 16.93, 5000: 4.94}[k], abs=0.005)


def test_modeling_projections_pcp_is_zscores_in_blocks_of_two(files):
    # By definition, for two positively correlated attributes: two rows of the paper that differ.
    pcp, zscores = (
        figures_of(Projected(source="eia", v=2, projection=each, k=25), files / "eia.csv")
        for each in ("pcp", "zscores")
    )
    assert list(pcp.values()) == pytest.approx(list(zscores.values()), rel=1e-9)
    assert [place.row for place in pcp][:1] == ["Mic2PCP25"]
    printed = TABLES["modeling-projections", "Table 1"].figures
    assert all(
        printed[place].low != printed[other].low for place, other in zip(pcp, zscores, strict=True)
    )


def test_modeling_projections_order_is_the_one_of_the_page():
    # The 54 configurations take longest; the page has their outcome, `make reproduce` renews it.
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "EIA, DLD 0.599 (0.983 without PCP)" in page
    assert "Census, DLD 0.851 (0.943 without PCP)" in page


def test_claims_of_statistical_dependence_hold_but_for_diversity(files):
    (section,) = compare(["statistical-dependence"], computed("statistical-dependence"))
    refuted = {checked.claim.check for checked in section.claims if not checked.verdict.holds}
    assert len(section.claims) == 13
    assert refuted == {"diversity_hardly_falls"}


def test_every_claim_is_refuted_by_figures_in_disorder(files):
    found = computed("statistical-dependence")
    refuted = set()
    for seed in range(5):  # a claim may hold by chance in one of them
        values = np.random.default_rng(seed).permutation(list(found.values()))
        (section,) = compare(["statistical-dependence"], dict(zip(found, values, strict=True)))
        refuted |= {checked.claim.check for checked in section.claims if not checked.verdict.holds}
    assert len(refuted) == 13


def test_diversity_that_hardly_falls_is_recognised(files):
    level = dict.fromkeys(computed("statistical-dependence"), 3.0)
    assert CHECKS["diversity_hardly_falls"](level).holds


# The command


def run(capsys, *arguments):
    code = main(["reproduce", *arguments])
    return code, capsys.readouterr()


def test_text(files, capsys):
    code, printed = run(capsys, "comparative-study", "--in-memory")
    assert code == 0
    lines = printed.out.splitlines()
    headline = "Table 2: Average standard deviation of the protected variables on Tarragona"
    assert f"{headline} (33 of 33 figures agree)" in lines
    (misprint,) = (line for line in lines if line.startswith("  UDO_SZ   k = 4, Δr"))
    assert misprint.split()[5:] == [".19", "0.289", "+0.099", "differs"]
    assert any(line.startswith("  UDO_SZ (k = 4, Δr): The printed .19 is a misprint") for line in lines)
    assert lines[-1] == "comparative-study: 238 of 246 figures agree"


def test_csv(files, capsys):
    code, printed = run(capsys, "comparative-study", "--in-memory", "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert len(rows) == 246
    assert tuple(rows[0]) == COLUMNS
    for row in rows:
        assert (row["agrees"] == "no") == bool(row["sentence"])
        if " - " not in row["published"]:
            difference = float(row["computed"]) - float(row["published"])
            assert float(row["difference"]) == pytest.approx(difference, abs=1e-9)


def test_markdown_is_the_committed_page(files, capsys, tmp_path):
    code, printed = run(
        capsys, "comparative-study", "--in-memory", "--format", "markdown", "--out", str(tmp_path)
    )
    assert code == 0
    page = tmp_path / "reproduction.md"
    assert printed.err.endswith(f"kohort: wrote {page}\n")
    assert printed.out == ""
    title = "## A Comparative Study"
    section = page.read_text(encoding="utf-8").partition(title)[2]
    committed = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert section
    assert committed.partition(title)[2].startswith(section)


def test_the_page_has_a_sentence_on_every_disagreement():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "nobody has said why" not in page
    for table in PUBLISHED.tables:
        for note in table.notes:
            assert note.sentence in page  # and none that is of no use
    for claim in PUBLISHED.claims:
        assert claim.text in page
        assert not claim.sentence or claim.sentence in page


def test_figures_are_drawn_the_same_each_time(files, capsys, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra 'plots'")
    out = [tmp_path / "first", tmp_path / "second"]
    for folder in out:
        code, _ = run(
            capsys, "statistical-dependence", "--in-memory", "--format", "markdown", "--out", str(folder)
        )
        assert code == 0
    drawn = sorted(path.name for path in out[0].glob("*.svg"))
    assert len(drawn) == 5
    for name in drawn:
        assert (out[0] / name).read_bytes() == (out[1] / name).read_bytes()
        assert f"]({name})" in (out[0] / "reproduction.md").read_text(encoding="utf-8")
        assert (ROOT / "docs" / name).exists()


def test_without_matplotlib_the_extra_is_named(files, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    code, printed = run(
        capsys, "statistical-dependence", "--in-memory", "--format", "markdown", "--out", str(tmp_path)
    )
    assert code == 0
    assert (
        "kohort: the figures are not drawn: they need matplotlib; install kohort[plots]\n" in printed.err
    )
    assert [path.name for path in tmp_path.iterdir()] == ["reproduction.md"]
    assert ".svg" not in (tmp_path / "reproduction.md").read_text(encoding="utf-8")


def test_missing_files_are_named_with_their_publisher(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("KOHORT_REFERENCE", str(tmp_path))
    (tmp_path / "census.csv").touch()
    code, printed = run(capsys, "mic1d")
    assert code == 3
    assert printed.out == ""
    assert (
        "reference files are missing: water_treatment.csv (Water Treatment Plant of the UCI"
        in printed.err
    )
    assert "census.csv" not in printed.err
    assert "data/reference" in printed.err
    assert "KOHORT_REFERENCE" in printed.err
    code, printed = run(capsys, "modeling-projections")
    assert code == 3
    assert "eia.csv (EIA of the R package sdcMicro);" in printed.err


def test_the_folder_is_the_named_one_or_data_reference(monkeypatch, tmp_path):
    monkeypatch.setenv("KOHORT_REFERENCE", str(tmp_path))
    assert reference_folder() == tmp_path
    monkeypatch.delenv("KOHORT_REFERENCE")
    monkeypatch.chdir(tmp_path)
    assert reference_folder() == tmp_path / "data" / "reference"


def test_another_file_of_that_name_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("KOHORT_REFERENCE", str(tmp_path))
    pd.DataFrame({"secret": [12345.5, 2.0]}).to_csv(tmp_path / "tarragona.csv")
    code, printed = run(capsys, "comparative-study", "--in-memory")
    assert code == 3
    assert "tarragona.csv has 2 records and 2 columns, but the papers' has 834 and 13" in printed.err
    assert "12345" not in printed.err


def test_a_store_has_no_effect_in_memory(capsys):
    code, printed = run(capsys, "mic1d", "--in-memory", "--store", "anywhere")
    assert code == 2
    assert "--store has no effect with --in-memory" in printed.err


def test_a_folder_that_cannot_be_written_is_refused(files, capsys, tmp_path):
    (tmp_path / "file").touch()
    code, printed = run(capsys, "comparative-study", "--in-memory", "--out", str(tmp_path / "file"))
    assert code == 2
    assert "cannot be written" in printed.err


def test_output_has_a_form_for_every_choice_of_the_command():
    assert set(output.FORMATS) == {"text", "csv", "markdown"}
