"""`kohort verify`: a release is what its papers say, and can be made again."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.flows.cli import main
from kohort.flows.in_memory import protect_in_memory
from kohort.flows.plan import Plan
from kohort.flows.progress import Silent


@pytest.fixture
def wave(columns, write_wave):
    return write_wave(columns)


@pytest.fixture
def release(plan_of, wave, tmp_path):
    """A folder with one release of the small survey."""
    plan = plan_of(
        block={"method": "consecutive", "size": 2}, gate={"loss": 1}, evaluate={"measures": ["il"]}
    )
    protect_in_memory(Plan.model_validate(plan), wave, tmp_path / "out", listener=Silent())
    return tmp_path / "out"


def verify(capsys, *arguments):
    code = main(["verify", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_a_release_verifies_with_and_without_its_original(release, wave, capsys):
    for folder in (release, release / "v1", release / "v1" / "public"):
        code, out, err = verify(capsys, folder)
        assert (code, err) == (0, "")
        assert all(line.startswith("ok ") for line in out.splitlines())
    code, out, _ = verify(capsys, release, "--original", wave)
    assert code == 0
    assert "protection repeated" in out
    assert out.splitlines()[-1].endswith("the same bytes")


def test_checks_as_json(release, capsys):
    code, out, _ = verify(capsys, release, "--json")
    assert code == 0
    checks = json.loads(out)
    assert all(check["holds"] for check in checks)
    assert {"digest of protected.parquet", "public manifest", "block 0"} <= {c["what"] for c in checks}


def test_one_that_claims_whole_records(plan_of, wave, tmp_path, capsys):
    plan = plan_of(roles={"unit": None, "other": "drop"}, release={"claim": "k-anonymous"})
    protect_in_memory(Plan.model_validate(plan), wave, tmp_path / "one", listener=Silent())
    code, out, _ = verify(capsys, tmp_path / "one")
    assert code == 0
    assert "whole records, claim k-anonymous" in out
    assert "min_anonymity 3, counted 3" in out


def change_a_cell(release):
    path = release / "v1" / "public" / "protected.parquet"
    table = pq.read_table(path)
    ages = table.column("age").to_pylist()
    ages[0] += 0.5
    pq.write_table(table.set_column(0, "age", pa.array(ages)), path)


def add_a_column(release):
    path = release / "v1" / "public" / "protected.parquet"
    pq.write_table(pq.read_table(path).append_column("key", pa.array(range(40))), path)


def edit(paper, *keys, value):
    def change(release):
        path = release / "v1" / paper
        content = json.loads(path.read_text())
        target = content
        for key in keys[:-1]:
            target = target[key]
        target[keys[-1]] = value
        path.write_text(json.dumps(content))

    return change


TAMPERED = {
    "a cell": (change_a_cell, "digest of protected.parquet: other bytes than were released"),
    "a column": (add_a_column, "columns and rows"),
    "the claim": (
        edit("public/manifest.json", "claim_in_words", value="all is well"),
        "public manifest: it says other things",
    ),
    "a measure": (
        edit("internal/evaluation.json", "measures", "loss", value=0.001),
        "public manifest: it says other things",
    ),
    "the claim, in every paper": (
        lambda release: [
            edit(paper, "claim_in_words", value="all is well")(release)
            for paper in ("public/manifest.json", "internal/manifest.json", "internal/evaluation.json")
        ],
        "claim in words: other words than the plan's",
    ),
    "a paper gone": (
        lambda release: (release / "v1" / "internal" / "evaluation.json").unlink(),
        "internal part: evaluation.json is missing",
    ),
    "a file too many": (
        lambda release: (release / "v1" / "public" / "notes.txt").write_text(""),
        "public part: manifest.json, notes.txt, protected.parquet",
    ),
    "open to others": (
        lambda release: (release / "v1" / "internal" / "evaluation.json").chmod(0o644),
        "internal part: evaluation.json can be read by others",
    ),
    "a digest": (
        edit("internal/manifest.json", "output", "sha256", value="0" * 64),
        "digest in the internal manifest",
    ),
}


@pytest.mark.parametrize(("tamper", "sentence"), TAMPERED.values(), ids=TAMPERED)
def test_a_release_that_was_tampered_with(tamper, sentence, release, capsys):
    tamper(release)
    code, out, err = verify(capsys, release)
    assert code == 3
    assert "WRONG" in out
    assert "does not verify: " in err
    assert sentence in err
    assert err.count("\n") == 1


def test_a_changed_cell_is_counted(release, capsys):
    change_a_cell(release)
    _, _, err = verify(capsys, release)
    assert "block 0: at least 1 identical, k = 3" in err


def test_another_original(release, columns, write_wave, capsys):
    columns["rent"][3] += 1
    other = write_wave(columns, "other.parquet")
    code, _, err = verify(capsys, release, "--original", other)
    assert code == 3
    assert "original: another file" in err


def test_another_result_is_described(release, wave, capsys):
    """Somebody released other bytes and corrected every paper."""
    edit("internal/manifest.json", "plan", "partition", "k", value=4)(release)
    code, _, err = verify(capsys, release, "--original", wave)
    assert code == 3
    assert "protection repeated: other groups, largest difference" in err


def test_what_cannot_be_verified(release, wave, tmp_path, capsys):
    assert "there is no folder" in verify(capsys, tmp_path / "none")[2]
    assert "holds no release" in verify(capsys, tmp_path)[2]
    code, _, err = verify(capsys, release / "v1" / "public", "--original", wave)
    assert (code, "needs the internal part" in err) == (2, True)
    (release / "v1" / "internal" / "manifest.json").write_text("{")
    assert "is damaged: it is not JSON" in verify(capsys, release)[2]
    (release / "v1" / "internal" / "manifest.json").write_text("{}")
    assert "are not those of a release" in verify(capsys, release)[2]
    edit("public/manifest.json", "schema", value=2)(release)
    assert "have another schema" in verify(capsys, release)[2]
    shutil.rmtree(release / "v1" / "internal")
    (release / "v1" / "public" / "manifest.json").unlink()
    assert "has no manifest.json" in verify(capsys, release)[2]
