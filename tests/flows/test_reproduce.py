"""The flow `reproduce`: the figures of the in-memory way, kept for the next run."""

import pytest

from kohort.flows.progress import Silent
from kohort.flows.reproduction.in_memory import reproduce_in_memory
from kohort.tasks.reference import SOURCES


class Heard(Silent):
    """Remembers what it hears."""

    def __init__(self):
        self.rows = []

    def finished(self, row):
        self.rows.append(row)


@pytest.fixture
def tarragona(reference, monkeypatch):
    if not (reference / SOURCES["tarragona"].file).exists():
        pytest.skip("tarragona.csv is neither in KOHORT_REFERENCE nor in data/reference")
    monkeypatch.setenv("KOHORT_REFERENCE", str(reference))


def test_the_flow_gives_the_same_figures_and_keeps_them(prefect_url, tarragona, tmp_path, monkeypatch):
    from kohort.flows import reproduce

    paper = ["comparative-study"]
    runs = []
    for _ in range(2):
        heard = Heard()
        monkeypatch.setattr(reproduce, "LISTENER", heard)
        runs.append((reproduce.reproduce_papers(paper, store=tmp_path / "store"), heard.rows))
    (first, done), (second, found) = runs
    assert first == second == reproduce_in_memory(paper, listener=Silent())
    assert len(done) == len(found) == 33
    assert not any(row.cached for row in done)
    assert all(row.cached for row in found)
    assert found[0].label == "comparative-study, UFS_PV, k = 3"


def test_a_lost_configuration_alone_is_done_again(prefect_url, tarragona, tmp_path, monkeypatch):
    from kohort.flows import reproduce

    paper = ["comparative-study"]
    reproduce.reproduce_papers(paper, store=tmp_path)
    lost = next((tmp_path / "objects").rglob("*.parquet"))
    lost.unlink()
    heard = Heard()
    monkeypatch.setattr(reproduce, "LISTENER", heard)
    reproduce.reproduce_papers(paper, store=tmp_path)
    assert [row.sha256 for row in heard.rows if not row.cached] == [lost.stem]
