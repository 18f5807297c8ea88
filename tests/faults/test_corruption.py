"""A store whose files were damaged, replaced or forged: noticed, made again, and said."""

import json
import os
import pickle
import shutil
from base64 import encodebytes
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.errors import KohortError
from kohort.flows import running
from kohort.flows.plan import load_plan
from kohort.tasks.inventory import problems
from kohort.tasks.records import read_note
from kohort.tasks.store import Store

pytestmark = pytest.mark.usefixtures("prefect_url")
VICTIMS = 4  # at once
MARK = "a record ran code"


@pytest.fixture
def run(survey, tmp_path):
    """Run the flow on the site's store, each time to a folder of its own."""
    from kohort.flows.protect import protect_wave

    numbers = iter(range(100))

    def run():
        out = tmp_path / f"out-{next(numbers)}"
        return protect_wave(
            plan=load_plan(survey.plan), wave=survey.wave, out=out, store=tmp_path / "store"
        )

    return run


@pytest.fixture(scope="module")
def finished(survey, prefect_url, tmp_path_factory):
    """The store of an undisturbed run."""
    from kohort.flows.protect import protect_wave

    folder = tmp_path_factory.mktemp("finished")
    plan = load_plan(survey.plan)
    protect_wave(plan=plan, wave=survey.wave, out=folder / "out", store=folder / "store")
    return folder / "store"


@pytest.fixture
def kept(finished, tmp_path):
    """A copy of it, for one test to damage."""
    shutil.copytree(finished, tmp_path / "store")
    return Store(tmp_path / "store")


def flip(path, rng):
    content = bytearray(path.read_bytes())
    bit = rng.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def link(path, rng):
    elsewhere = path.parents[3] / f"away-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def foreign(path, rng):
    """Another valid Parquet file of the same form: every value is there, but not where it was."""
    table = pq.read_table(path)
    reversed_rows = table.take(pa.array(range(table.num_rows))[::-1])
    changed = reversed_rows if reversed_rows != table else table.slice(0, 0)
    path.unlink()
    pq.write_table(changed, path, compression="none")


OBJECTS = {
    "truncated": lambda path, rng: path.write_bytes(
        path.read_bytes()[: rng.randrange(path.stat().st_size)]
    ),
    "bit flipped": flip,
    "deleted": lambda path, rng: path.unlink(),
    "replaced by another valid Parquet": foreign,
    "replaced by a link": link,
}


class Trap:
    """Unpickled, it leaves a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def forge(record, rng):
    """What Prefect would unpickle, and so run, if it were let."""
    from prefect.serializers import PickleSerializer

    content = json.loads(record.read_text())
    content["metadata"]["serializer"] = PickleSerializer().model_dump(mode="json")
    content["result"] = encodebytes(pickle.dumps(Trap(record.parents[2] / MARK))).decode()
    record.write_text(json.dumps(content))


def say_other(record, rng):
    """A well-formed record that names another artifact, without the digest of what it says."""
    content = json.loads(record.read_text())
    result = json.loads(content["result"])
    content["result"] = json.dumps({**result, "sha256": rng.randbytes(32).hex()})
    record.write_text(json.dumps(content))


RECORDS = {
    "record truncated": lambda record, rng: record.write_bytes(
        record.read_bytes()[: rng.randrange(record.stat().st_size)]
    ),
    "record foreign": lambda record, rng: record.write_text('{"metadata": {}, "result": 1}'),
    "record says another artifact": say_other,
    "record forged as pickle": forge,
}


def judge(result, damaged, kept):
    """What a run made again although nothing damaged it, and what is wrong after it."""
    rows = [row for row in result["stages"] if row["stage"] not in ("verify", "gate", "publish")]
    of_many = [row for row in rows if row["sha256"] is None]  # the measures: many artifacts a row
    plain = [row for row in rows if row["sha256"] is not None]
    single = {row["sha256"] for row in plain}
    lost = [row for row in plain if not row["cached"] and row["sha256"] not in damaged]
    if damaged <= single:
        lost += [row for row in of_many if not row["cached"]]
    wrong = [f"{each.kind}: {each.path.name}" for each in problems(kept)]
    wrong += [
        f"{row['stage']} says no repair" for row in rows if not row["cached"] and not row["repaired"]
    ]
    wrong += [f"{row['stage']} believed" for row in plain if row["cached"] and row["sha256"] in damaged]
    if damaged - single and all(row["cached"] for row in of_many):
        wrong.append("measures believed")
    if (kept.root.parent / MARK).exists():
        wrong.append(MARK)
    return lost, wrong


def protected(result):
    return (Path(result["out"]) / "public" / "protected.parquet").read_bytes()


def records_by_digest(kept):
    notes = {record: read_note(record) for record in sorted(kept.records.iterdir())}
    return {record: note.artifact.sha256 for record, note in notes.items()}


@pytest.mark.parametrize("fault", OBJECTS)
def test_damaged_artifacts(fault, kept, survey, run, rng, tally):
    victims = rng.sample(sorted((kept.root / "objects").glob("*/*.parquet")), VICTIMS)
    for path in victims:
        OBJECTS[fault](path, rng)
    result = run()
    lost, wrong = judge(result, {path.stem for path in victims}, kept)
    right = protected(result) == survey.expected
    tally(f"artifact {fault}", tried=VICTIMS, lost=lost, wrong=wrong, recovered=right)


@pytest.mark.parametrize("fault", RECORDS)
def test_damaged_records(fault, kept, survey, run, rng, tally):
    digests = records_by_digest(kept)
    victims = rng.sample(list(digests), VICTIMS)
    for record in victims:
        RECORDS[fault](record, rng)
    result = run()
    lost, wrong = judge(result, {digests[record] for record in victims}, kept)
    right = protected(result) == survey.expected
    tally(fault, tried=VICTIMS, lost=lost, wrong=wrong, recovered=right)


def test_swapped_records(kept, survey, run, rng, tally):
    digests = records_by_digest(kept)
    victims = rng.sample(list(digests), VICTIMS)
    contents = [record.read_bytes() for record in victims]
    for record, content in zip(victims, contents[1:] + contents[:1], strict=True):
        record.write_bytes(content)
    result = run()
    lost, wrong = judge(result, {digests[record] for record in victims}, kept)
    right = protected(result) == survey.expected
    tally("records swapped", tried=VICTIMS, lost=lost, wrong=wrong, recovered=right)


class Vandal:
    """Damages one of the artifacts made so far when a certain stage is done."""

    def __init__(self, store, moment, damage, rng):
        self.store, self.left, self.damage, self.rng = store, moment, damage, rng
        self.seen = []

    def expect(self, stages):
        pass

    def finished(self, row):
        self.seen += [row.sha256] if row.sha256 else []
        self.left -= 1
        if self.left == 0:
            digest = self.rng.choice(self.seen)
            self.damage(self.store / "objects" / digest[:2] / f"{digest}.parquet", self.rng)


@pytest.fixture
def impatient(monkeypatch):
    """No waiting before a stage is tried again."""
    from kohort.flows import evaluation, protect

    tasks = [each for each in vars(protect).values() if hasattr(each, "retry_delay_seconds")]
    tasks += [each for each in vars(evaluation).values() if hasattr(each, "retry_delay_seconds")]
    for task in tasks:
        if task.retries:
            monkeypatch.setattr(task, "retry_delay_seconds", [0, 0, 0])


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", OBJECTS)
def test_damage_while_a_run_goes_on(fault, survey, run, rng, tally, tmp_path, monkeypatch):
    """A stage that would read it says so in a sentence, or reads the file that it has open."""
    store = Store(tmp_path / "store")
    vandal = Vandal(store.root, rng.randint(1, 18), OBJECTS[fault], rng)
    monkeypatch.setattr(running, "LISTENER", vandal)
    wrong = []
    try:
        wrong += ["other bytes"] if protected(run()) != survey.expected else []
    except KohortError as error:
        wrong += [] if "run it again" in str(error) else [str(error)]
    assert vandal.left <= 0
    monkeypatch.setattr(running, "LISTENER", running.Silent())
    right = protected(run()) == survey.expected
    wrong += [f"{each.kind}: {each.path.name}" for each in problems(store)]
    tally(f"artifact {fault} while a run goes on", wrong=wrong, recovered=right)
