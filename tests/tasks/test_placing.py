"""A release gets into its folder as a whole, or not at all, and stays as it is."""

import json
import os
import platform
import re
import subprocess
import sys
import threading

import pytest

from kohort.errors import GuaranteeBroken, PlanError
from kohort.tasks.placing import copy_candidate, keep_refused, last_version, place, release_folder
from kohort.tasks.store import file_digest

FILES = {
    "public/protected.parquet": 0o644,
    "public/manifest.json": 0o644,
    "internal/manifest.json": 0o600,
    "internal/evaluation.json": 0o600,
    "internal/log.jsonl": 0o600,
}


def papers(note="first", wave="wave.parquet"):
    return {
        "public_manifest": {"note": note},
        "manifest": {"note": note, "input": {"wave": wave}},
        "evaluation": {"note": note},
        "log": ["{}"],
    }


def put(out, content=b"data", **named):
    """Place a release of these bytes."""
    with release_folder(out) as staging:
        (staging / "public" / "protected.parquet").write_bytes(content)
        return place(staging, out, **papers(**named))


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def state(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*.*")}


def test_a_release_has_a_public_and_an_internal_part(tmp_path):
    out = tmp_path / "deep" / "out"
    placed = put(out)
    assert (placed.folder, placed.version, placed.written) == (out / "v1", 1, True)
    modes = {p.relative_to(out / "v1").as_posix(): p.stat().st_mode & 0o777 for p in out.glob("v1/*/*")}
    assert modes == FILES
    assert (out / "v1").stat().st_mode & 0o777 == 0o755
    assert (out / "v1" / "public").stat().st_mode & 0o777 == 0o755
    assert (out / "v1" / "internal").stat().st_mode & 0o777 == 0o700
    assert (out / "v1" / "public" / "protected.parquet").read_bytes() == b"data"
    assert listing(out) == ["v1"]


def test_permissions_do_not_depend_on_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        put(tmp_path / "out")
    finally:
        os.umask(before)
    out = tmp_path / "out"
    modes = {p.relative_to(out / "v1").as_posix(): p.stat().st_mode & 0o777 for p in out.glob("v1/*/*")}
    assert modes == FILES


def test_the_same_release_is_not_rewritten(tmp_path):
    put(tmp_path)
    before = state(tmp_path)
    placed = put(tmp_path)
    assert (placed.version, placed.written) == (1, False)
    assert state(tmp_path) == before


@pytest.mark.parametrize("change", [{"content": b"other"}, {"note": "second"}])
def test_another_release_is_a_new_version_beside_the_old_one(change, tmp_path):
    put(tmp_path)
    before = state(tmp_path / "v1")
    assert put(tmp_path, **change).folder == tmp_path / "v2"
    assert state(tmp_path / "v1") == before
    assert listing(tmp_path) == ["v1", "v2"]
    assert put(tmp_path).version == 3  # only the last one can be the same


def test_a_release_that_was_changed_is_not_the_same(tmp_path):
    put(tmp_path)
    (tmp_path / "v1" / "public" / "protected.parquet").write_bytes(b"tampered")
    assert put(tmp_path).version == 2


def test_releases_of_another_wave_are_not_mixed(tmp_path):
    put(tmp_path)
    with pytest.raises(PlanError, match=r"holds releases of wave\.parquet; choose another folder"):
        put(tmp_path, b"other", wave="next.parquet")
    assert listing(tmp_path) == ["v1"]


def test_what_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "v2").write_text("a file")
    (tmp_path / "v7").mkdir()
    assert last_version(tmp_path) == 7
    assert put(tmp_path).version == 8
    assert listing(tmp_path) == ["notes.txt", "v2", "v7", "v8"]


def test_two_at_once(tmp_path):
    """Every thread places its own release or finds the same one; none is lost or mixed."""
    contents = [b"one", b"one", b"two", b"two", b"three", b"three"]
    barrier = threading.Barrier(len(contents))
    placed = []

    def run(content):
        barrier.wait()
        placed.append((content, put(tmp_path, content, note=content.decode())))

    threads = [threading.Thread(target=run, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(placed) == len(contents)
    for content, where in placed:
        assert (where.folder / "public" / "protected.parquet").read_bytes() == content
        assert (
            json.loads((where.folder / "public" / "manifest.json").read_bytes())["note"]
            == content.decode()
        )
    folders = [where.folder for _, where in placed if where.written]
    assert len(folders) == len(set(folders))
    assert sorted(path.name for path in folders) == listing(tmp_path)


def fail_in(out):
    with release_folder(out) as staging:
        assert staging.name.startswith(".")
        assert staging.stat().st_mode & 0o777 == 0o700
        (staging / "public" / "protected.parquet").write_bytes(b"half")
        raise RuntimeError


def test_a_failure_leaves_the_folder_as_it_was(tmp_path):
    with pytest.raises(RuntimeError):
        fail_in(tmp_path / "a" / "b")
    assert listing(tmp_path) == []
    with pytest.raises(RuntimeError):
        fail_in(tmp_path)
    assert listing(tmp_path) == []


def test_a_failure_while_placing_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("pathlib.Path.rename", fail)
    with pytest.raises(OSError, match="Input/output"):
        put(tmp_path / "out")
    assert listing(tmp_path) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True)
    machine = re.sub("[^0-9a-z]", "", platform.node().lower())
    left = f".kohort-{machine}-{int(gone.stdout)}-{'0' * 32}"
    alive = f".kohort-{machine}-{os.getppid()}-{'0' * 32}"
    elsewhere = f".kohort-{machine}x-{int(gone.stdout)}-{'0' * 32}"
    forgotten = f".kohort-{machine}x-{int(gone.stdout)}-{'1' * 32}"
    for name in (left, alive, elsewhere, forgotten, ".kohort-notes"):
        (tmp_path / name / "public").mkdir(parents=True)
    os.utime(tmp_path / forgotten, (0, 0))
    put(tmp_path)
    assert listing(tmp_path) == sorted(["v1", alive, elsewhere, ".kohort-notes"])


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


def test_a_copy_with_other_bytes_is_refused(tmp_path):
    (tmp_path / "source").write_bytes(b"damaged")
    with release_folder(tmp_path / "out") as staging:
        with pytest.raises(GuaranteeBroken, match="other bytes than were assembled"):
            copy_candidate(tmp_path / "source", staging, expected="0" * 64)
        copied = copy_candidate(tmp_path / "source", staging, expected=file_digest(tmp_path / "source"))
        assert copied.read_bytes() == b"damaged"


def test_the_papers_of_a_refused_release_are_kept_for_their_owner(tmp_path):
    for note in ("first", "second"):
        keep_refused(tmp_path, manifest={"note": note}, evaluation={"note": note})
    folder = tmp_path / "refused"
    assert listing(folder) == ["evaluation.json", "manifest.json"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert json.loads((folder / "evaluation.json").read_bytes()) == {"note": "second"}
    assert put(tmp_path).version == 1
