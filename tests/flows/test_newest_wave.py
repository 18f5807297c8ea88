"""A folder in place of a wave: its last Parquet file by name, released to a folder of that name."""

import json
import shutil
from pathlib import Path

import pytest

from kohort.errors import WaveError
from kohort.flows.cli import main
from kohort.tasks.wave import newest_wave

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "deployments" / "plans" / "household.toml"
OUT = Path("out")


def folder_of(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def test_a_file_comes_back_as_it_is(tmp_path):
    for wave in (tmp_path / "wave.parquet", tmp_path / "missing"):
        assert newest_wave(wave, OUT) == (wave, OUT)


def test_the_last_by_name_is_taken_whatever_came_last(tmp_path):
    folder = folder_of(tmp_path / "data", "w-2026q3.parquet", "w-2026q1.parquet", "w-2025q4.parquet")
    assert newest_wave(folder, OUT) == (folder / "w-2026q3.parquet", OUT / "w-2026q3")


def test_only_the_last_ending_is_cut_off(tmp_path):
    folder = folder_of(tmp_path / "data", "w.2026.q1.parquet")
    assert newest_wave(folder, OUT)[1] == OUT / "w.2026.q1"


def test_other_and_hidden_files_are_no_waves(tmp_path):
    folder = folder_of(tmp_path / "data", "a.parquet", "b.parquet.part", "c.csv", ".d.parquet")
    assert newest_wave(folder, OUT)[0] == folder / "a.parquet"


def test_what_is_found_is_found_again(tmp_path):
    found = newest_wave(folder_of(tmp_path / "data", "a.parquet"), OUT)
    assert newest_wave(*found) == found


@pytest.mark.parametrize("names", [(), ("wave.csv", ".parquet", ".a.parquet")])
def test_a_folder_without_a_wave_is_refused(names, tmp_path):
    folder = folder_of(tmp_path / "data", *names)
    with pytest.raises(WaveError, match=r"the folder .*data has no Parquet file; put the wave there"):
        newest_wave(folder, OUT)


def test_a_folder_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    folder = folder_of(tmp_path / "data", "a.parquet")

    def refuse(self):  # root may read a folder whatever its mode
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(WaveError, match=r"data cannot be read \(Permission denied\)"):
        newest_wave(folder, OUT)


def protect(capsys, wave: Path, out: Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command."""
    code = main(["protect", str(PLAN), str(wave), "--out", str(out), "--in-memory", "--json"])
    return code, *capsys.readouterr()


def test_the_command_releases_the_newest_wave_once(tmp_path, capsys):
    data, out = tmp_path / "data", tmp_path / "releases"
    data.mkdir()
    for quarter in ("q1", "q2"):
        shutil.copy(ROOT / "data" / f"household-2026{quarter}.parquet", data)
    code, result, _ = protect(capsys, data, out)
    assert code == 0
    assert json.loads(result)["out"] == str(out / "household-2026q2" / "v1")
    assert [path.name for path in out.iterdir()] == ["household-2026q2"]

    alone = tmp_path / "alone"
    assert protect(capsys, data / "household-2026q2.parquet", alone)[0] == 0
    released = out / "household-2026q2" / "v1" / "public" / "protected.parquet"
    assert released.read_bytes() == (alone / "v1" / "public" / "protected.parquet").read_bytes()

    before = {path: path.stat().st_mtime_ns for path in released.parent.iterdir()}
    code, result, _ = protect(capsys, data, out)
    assert code == 0
    assert json.loads(result)["written"] is False
    assert {path: path.stat().st_mtime_ns for path in released.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("data", "has no Parquet file"),
        # The parts of one table, as other tools write it: the last part would pass for a wave.
        ("wave.parquet", "is a folder; name the wave's Parquet file"),
    ],
)
def test_the_command_refuses_in_one_sentence_and_writes_nothing(name, sentence, tmp_path, capsys):
    folder = folder_of(tmp_path / name)
    if name == "wave.parquet":
        shutil.copy(ROOT / "data" / "household-2026q1.parquet", folder / "part-0.parquet")
    code, result, complaint = protect(capsys, folder, tmp_path / "out")
    assert (code, result) == (3, "")
    assert sentence in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_newest_wave_that_is_a_folder_is_refused_rather_than_passed_over(tmp_path, capsys):
    data = folder_of(tmp_path / "data")
    shutil.copy(ROOT / "data" / "household-2026q1.parquet", data)
    (data / "household-2026q2.parquet").mkdir()
    code, _, complaint = protect(capsys, data, tmp_path / "out")
    assert code == 3
    assert "household-2026q2.parquet is a folder" in complaint
