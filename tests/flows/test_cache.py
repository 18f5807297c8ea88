"""`kohort cache`: what a store holds, whether it is whole, and what is removed."""

import json
import os
import re
import shutil

import pytest

from kohort.flows.cli import main
from kohort.flows.runs import past_runs
from kohort.tasks.housekeeping import in_use
from kohort.tasks.inventory import stored
from kohort.tasks.store import Artifact, Store

pytestmark = pytest.mark.usefixtures("prefect_url")
BLOCKS = {"block": {"method": "consecutive", "size": 2}}
ALWAYS = {("verify", None), ("gate", None), ("publish", None)}


def row_of(result, stage, block=None):
    return next(row for row in result["stages"] if (row["stage"], row["block"]) == (stage, block))


def computed(result):
    return {(row["stage"], row["block"]) for row in result["stages"] if not row["cached"]}


def object_of(kept, row):
    return kept.path(Artifact(row["sha256"], row["rows"]))


def files_in(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def cache(tmp_path, capsys):
    """Run `kohort cache` on the store; gives exit code, output and error."""

    def cache(*arguments):
        code = main(["cache", *arguments, "--store", str(tmp_path / "store")])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return cache


def test_list_and_size(done, cache):
    code, out, _ = cache("list", "--json")
    artifacts = {row["sha256"]: row for row in json.loads(out)["artifacts"]}
    assert code == 0
    assert set(artifacts) == {row["sha256"] for row in done["stages"]} - {None}
    ingested = artifacts[row_of(done, "ingest")["sha256"]]
    assert (ingested["stages"], ingested["rows"]) == (["ingest"], 40)
    code, out, _ = cache("list")
    assert len(out.splitlines()) == len(artifacts)
    assert all(
        re.match(r"[0-9a-f]{12}  +\d+ (s|min|h|d)  +[\d.]+ k?B  +\d+ rows  \w", line)
        for line in out.splitlines()
    )
    total = json.loads(cache("size", "--json")[1])
    assert total["artifacts"] == len(artifacts)
    assert total["bytes"] == sum(row["bytes"] for row in artifacts.values())
    assert total["bytes"] == sum(each["bytes"] for each in total["stages"].values())
    assert total["stages"]["partition"]["artifacts"] == 2
    assert re.search(rf"^in all +{len(artifacts)} ", cache("size")[1], re.MULTILINE)


def test_verify_removes_only_when_told(done, cache, plan_of, wave, run, tmp_path):
    kept = Store(tmp_path / "store")
    assert cache("verify")[:2] == (0, f"{len(stored(kept))} artifacts are whole\n")
    object_of(kept, row_of(done, "ingest")).write_bytes(b"damaged")
    (kept.partial / "half").write_text("")
    before = files_in(kept.root)
    code, out, _ = cache("verify", "--json")
    assert code == 1
    assert {each["kind"] for each in json.loads(out)["problems"]} == {"damaged", "left over"}
    assert files_in(kept.root) == before
    assert cache("verify", "--repair")[0] == 0
    assert cache("verify")[0] == 0
    assert len(before - files_in(kept.root)) == 3  # the file, its record, the leftover
    assert computed(run(plan_of(**BLOCKS), wave)) == ALWAYS | {("ingest", None)}


def test_verify_never_removes_what_lies_beside(done, cache, tmp_path):
    (tmp_path / "store" / "thesis.txt").write_text("")
    code, out, _ = cache("verify", "--repair")
    assert (code, (tmp_path / "store" / "thesis.txt").exists()) == (1, True)
    assert "thesis.txt" in out


def test_prune_by_age_and_all(done, cache, tmp_path):
    kept = Store(tmp_path / "store")
    os.utime(object_of(kept, row_of(done, "ingest")), (1, 1))
    removed = json.loads(cache("prune", "--older-than", "7d", "--json")[1])
    assert (removed["artifacts"], removed["records"]) == (1, 1)
    assert cache("verify")[0] == 0
    assert re.match(r"removed \d+ artifacts \([\d.]+ kB\) and \d+ records\n", cache("prune", "--all")[1])
    assert files_in(kept.root) == {kept.root / "lock"}


def journal(home, name, kept, rows):
    (home / "runs").mkdir(exist_ok=True, mode=0o700)
    named = dict.fromkeys(("flow", "plan", "plan_title", "wave", "wave_sha256", "out"))
    at = "2026-11-18T15:00:00+00:00"
    lines = [{"event": "started", "schema": 1, **named, "store": str(kept), "at": at}]
    lines += [{"event": "stage", **row} for row in rows]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (home / "runs" / f"{name}.jsonl").write_text(text + '{"event": "sta')


def test_prune_of_a_run_keeps_what_others_use(done, cache, plan_of, wave, run, tmp_path, monkeypatch):
    other = run(plan_of(**BLOCKS, partition={"method": "optimal", "k": 4}), wave)
    monkeypatch.setenv("KOHORT_HOME", str(tmp_path / "home"))  # of journals that the test writes
    (tmp_path / "home").mkdir()
    kept = Store(tmp_path / "store")
    journal(tmp_path / "home", "calm-owl", kept.root, done["stages"])
    journal(tmp_path / "home", "keen-fox", kept.root, other["stages"])
    assert cache("prune", "--run", "keen")[0] == 0
    assert {each.sha256 for each in stored(kept)} == {row["sha256"] for row in done["stages"]} - {None}
    assert cache("verify")[0] == 0
    journal(tmp_path / "home", "far-hen", "/elsewhere", [])
    assert cache("prune", "--run", "far-hen") == (
        2,
        "",
        "kohort: the run far-hen used the store /elsewhere; name it by --store\n",
    )
    assert "there is no run ../calm-owl" in cache("prune", "--run", "../calm-owl")[2]


def test_a_living_run_is_not_pruned(done, cache, tmp_path):
    kept = Store(tmp_path / "store")
    before = files_in(kept.root)
    with in_use(kept):
        for action in (["prune", "--all"], ["prune", "--older-than", "1m"], ["verify", "--repair"]):
            code, out, err = cache(*action)
            assert (code, out) == (1, "")
            assert err == f"kohort: a run is using the store {kept.root}; wait until it ends\n"
        assert cache("verify")[0] == 0
        assert cache("list")[0] == 0
    assert files_in(kept.root) == before


def test_refusals_are_one_sentence(cache, tmp_path, store):
    assert "a duration is written as" in cache("prune", "--older-than", "7")[2]
    store.root.chmod(0o755)
    for action in (["list"], ["size"], ["verify"], ["prune", "--all"]):
        code, _, err = cache(*action)
        assert code == 1
        assert "is open to others (mode 0755)" in err
    shutil.rmtree(store.root)
    code, _, err = cache("list")
    assert (code, err) == (2, f"kohort: there is no store {store.root}; name one with --store\n")
    with pytest.raises(SystemExit):
        cache("prune")


def test_the_journal_names_every_artifact(cache, plan_of, wave, run, tmp_path, monkeypatch):
    """Of the stages that come in hundreds too, so that pruning by run leaves nothing."""
    monkeypatch.setenv("KOHORT_HOME", str(tmp_path / "home"))
    run(plan_of(**BLOCKS, evaluate={"measures": ["dld", "il"], "intruder": {"method": "subsets"}}), wave)
    (journaled,) = past_runs()
    assert journaled.digests == {each.sha256 for each in stored(Store(tmp_path / "store"))}
    assert journaled.kept == sum(bool(row["sha256"] or row.get("artifacts")) for row in journaled.stages)
    assert cache("prune", "--run", journaled.id)[0] == 0
    assert stored(Store(tmp_path / "store")) == []
