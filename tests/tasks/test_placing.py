"""Files get into the release folder whole, verified, or not at all."""

import json
import os
import subprocess
import sys

import pytest

from kohort.errors import GuaranteeBroken, PlanError
from kohort.tasks.placing import partial_beside, place, release_folder
from kohort.tasks.wave import digest_of

PAPERS = ["evaluation.json", "manifest.json"]
FILES = [*PAPERS, "protected.parquet"]


def put(out, content=b"data", *, force=False, note="first"):
    """Place a release of these bytes."""
    with release_folder(out), partial_beside(out) as partial:
        partial.path.write_bytes(content)
        sha256 = digest_of(partial.path)
        papers = {"evaluation": {"note": note}, "manifest": {"note": note}}
        return place(partial.hand_over(), out, sha256=sha256, **papers, force=force)


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def state(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_release_is_three_files(tmp_path):
    assert put(tmp_path / "deep" / "out")
    out = tmp_path / "deep" / "out"
    assert listing(out) == FILES
    assert (out / "protected.parquet").read_bytes() == b"data"
    assert json.loads((out / "manifest.json").read_text()) == {"note": "first"}


def test_the_same_bytes_are_not_rewritten(tmp_path):
    put(tmp_path)
    before = state(tmp_path)
    for force in (False, True):
        assert not put(tmp_path, note="second", force=force)
        assert state(tmp_path) == before


def test_other_bytes_are_refused(tmp_path):
    put(tmp_path)
    before = state(tmp_path)
    with pytest.raises(PlanError, match=r"already holds another release; .* use --force"):
        put(tmp_path, b"other", note="second")
    assert state(tmp_path) == before


def test_force_replaces_all_three(tmp_path):
    put(tmp_path)
    assert put(tmp_path, b"other", force=True, note="second")
    assert listing(tmp_path) == FILES
    assert (tmp_path / "protected.parquet").read_bytes() == b"other"
    assert json.loads((tmp_path / "evaluation.json").read_text()) == {"note": "second"}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_lost_paper_is_written_again(paper, tmp_path):
    put(tmp_path)
    (tmp_path / paper).unlink()
    assert put(tmp_path, note="second")
    assert listing(tmp_path) == FILES


@pytest.mark.parametrize("name", PAPERS)
def test_a_file_of_that_name_that_is_not_ours_is_kept(name, tmp_path):
    (tmp_path / name).write_text("somebody's")
    with pytest.raises(PlanError, match=f"{name} .* --force"):
        put(tmp_path)
    assert listing(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "somebody's"
    assert put(tmp_path, force=True)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_of_that_name_is_refused(name, tmp_path):
    (tmp_path / name).mkdir()
    for force in (False, True):
        with pytest.raises(PlanError, match=f"{name} is a folder"):
            put(tmp_path, force=force)
    assert listing(tmp_path) == [name]


def test_other_files_of_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    put(tmp_path)
    assert listing(tmp_path) == sorted([*FILES, "notes.txt"])


def test_a_failure_leaves_the_folder_as_it_was(tmp_path):
    out = tmp_path / "a" / "b"

    def fail():
        with release_folder(out), partial_beside(out) as partial:
            partial.path.write_bytes(b"half")
            assert listing(out) == [partial.path.name]
            assert partial.path.name.startswith(".")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert listing(tmp_path) == []


def test_a_failure_leaves_a_folder_that_was_there(tmp_path):
    with pytest.raises(RuntimeError), release_folder(tmp_path):
        raise RuntimeError
    assert tmp_path.is_dir()


def test_a_partial_file_that_was_handed_over_goes_with_a_later_failure(tmp_path):
    out = tmp_path / "out"

    def fail():
        with release_folder(out):
            with partial_beside(out) as partial:
                partial.path.write_bytes(b"whole")
                partial.hand_over()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert listing(tmp_path) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True)
    left = f".kohort-{int(gone.stdout)}-{'0' * 32}"
    alive = f".kohort-{os.getppid()}-{'0' * 32}"
    for name in (left, alive, ".kohort-notes"):
        (tmp_path / name).write_text("")
    put(tmp_path)
    assert listing(tmp_path) == sorted([*FILES, alive, ".kohort-notes"])


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "deep"):
        with pytest.raises(PlanError, match=r"output folder .* choose another"), release_folder(out):
            pytest.fail("the folder must not be used")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_that_is_not_writable_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PlanError, match="is not writable"), release_folder(tmp_path):
        pytest.fail("the folder must not be used")


def test_a_folder_that_cannot_be_used_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PlanError, match="is not writable"), release_folder(tmp_path):
        pytest.fail("the folder must not be used")


def test_a_copy_with_other_bytes_is_deleted(tmp_path):
    (tmp_path / "source").write_bytes(b"damaged")
    (tmp_path / "out").mkdir()
    with (
        pytest.raises(GuaranteeBroken, match="other bytes than were assembled"),
        partial_beside(tmp_path / "out") as partial,
    ):
        partial.copy(tmp_path / "source", expected="0" * 64)
    assert listing(tmp_path / "out") == []
