"""Cache keys change with content alone, and no record is opened that kohort did not write."""

import json
import os
import pickle
from base64 import encodebytes
from pathlib import Path

import numpy as np
import pytest
from prefect.serializers import JSONSerializer, PickleSerializer

from kohort.partitioning import Fixed, Optimal
from kohort.projection import Sugeno
from kohort.quantifiers import Power
from kohort.tasks import caching, records
from kohort.tasks.caching import cache_key, discard_untrusted_record, stage_key
from kohort.tasks.records import Note, note_of, trusted
from kohort.tasks.roles import Roles
from kohort.tasks.store import Artifact

INPUTS = {
    "store": Path("/here"),
    "wave": Path("/wave.parquet"),
    "block": 0,
    "axis": Artifact("a" * 64, 10),
    "z": None,
    "names": ["age", "income"],
    "method": Optimal(),
    "k": 3,
}


def key(**changes):
    return stage_key("partition", {**INPUTS, **changes})


def test_a_key_is_the_same_twice():
    assert key() == key()
    assert len(key()) == 64


@pytest.mark.parametrize(
    "elsewhere", [{"store": Path("/there")}, {"wave": Path("/moved.parquet")}, {"block": 7}]
)
def test_places_and_block_numbers_are_not_in_a_key(elsewhere):
    assert key(**elsewhere) == key()


CONTENT = [
    {"axis": Artifact("b" * 64, 10)},
    {"axis": None},
    {"z": Artifact("a" * 64, 10)},
    {"names": ["income", "age"]},
    {"names": ["age"]},
    {"method": Optimal(cost="block")},
    {"method": Fixed()},
    {"method": Sugeno(quantifier=Power(alpha=0.5))},
    {"method": Sugeno(quantifier=Power(alpha=0.50000001))},
    {"method": Roles(quasi_identifiers=("age",))},
    {"k": 4},
    {"another": None},
]


def test_every_input_is_in_a_key():
    keys = [key(), *(key(**change) for change in CONTENT)]
    assert len(set(keys)) == len(keys)


def test_the_stage_is_in_a_key():
    assert stage_key("replace", INPUTS) != key()


@pytest.mark.parametrize("name", ["code_digest", "versions", "cpu"])
def test_code_versions_and_cpu_are_in_a_key(name, monkeypatch):
    before = key()
    monkeypatch.setattr(caching, name, lambda *_: "another")
    assert key() != before


def test_versions_are_those_that_decide_a_result():
    assert set(caching.versions()) == {"numpy", "scipy", "numba", "pyarrow"}


def test_a_value_of_unknown_form_is_no_part_of_a_key():
    with pytest.raises(TypeError, match="a ndarray cannot be part of a cache key"):
        key(names=np.zeros(2))


class Trap:
    """Unpickled, it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def artifact(store):
    return store.write({"x": np.arange(3.0)})


@pytest.fixture
def record(artifact):
    """A record as Prefect writes ours."""
    return {
        "metadata": {
            "storage_key": "k",
            "expiration": None,
            "serializer": JSONSerializer().model_dump(mode="json"),
            "prefect_version": "3",
            "storage_block_id": None,
        },
        "result": json.dumps(note_of(artifact, stage="partition", seconds=0.25)),
    }


def put(store, record, name="k"):
    text = record if isinstance(record, (bytes, str)) else json.dumps(record)
    (store.records / name).write_bytes(text.encode() if isinstance(text, str) else text)


def is_kept(store):
    return discard(store) is None


def discard(store):
    """Why the record is removed, if it is."""
    reason = discard_untrusted_record(store, "k")
    assert (store.records / "k").exists() == (reason is None)
    return reason


def test_our_own_record_is_trusted(store, artifact, record):
    put(store, record)
    assert trusted(store.records / "k") == Note(artifact, "partition")
    assert is_kept(store)


def result_of(artifact, **changes):
    """A result with fields changed, as one would write it who knows how the check is made."""
    note = {**note_of(artifact, stage="partition", seconds=0.25), **changes}
    note.pop("check")
    return json.dumps({**note, "check": records._check(note)})


def forged(record, artifact, tmp_path):
    """Records that are not ours, by what is wrong with them."""
    trap = tmp_path / "trap"
    sane = record["metadata"]
    pickled = encodebytes(pickle.dumps(Trap(trap))).decode()
    decoder = {**sane["serializer"], "object_decoder": "os.system"}
    library = {**sane["serializer"], "jsonlib": "pickle"}
    kwargs = {**sane["serializer"], "loads_kwargs": {"parse_float": "os.mkdir"}}
    planted = {"__class__": "planted.Thing", "data": {}}
    as_pickle = PickleSerializer().model_dump(mode="json")
    return {
        "pickle": {"metadata": {**sane, "serializer": as_pickle}, "result": pickled},
        "pickle by default": {"result": pickled},
        "pickle in the old form": {"serializer": as_pickle, "data": pickled, "metadata": {}},
        "another decoder": {**record, "metadata": {**sane, "serializer": decoder}},
        "another library": {**record, "metadata": {**sane, "serializer": library}},
        "other arguments": {**record, "metadata": {**sane, "serializer": kwargs}},
        "a field more": {**record, "data": pickled},
        "a class in seconds": {**record, "result": result_of(artifact, seconds=planted)},
        "a class in rows": {**record, "result": result_of(artifact, rows=planted)},
        "a class in a list": {**record, "result": result_of(artifact, seconds=[planted])},
        "a class behind a number": {
            **record,
            "result": f'{{"seconds": {json.dumps(planted)}, {result_of(artifact)[1:]}',
        },
        "a class in the metadata": {**record, "metadata": {**sane, "expiration": planted}},
        "a class in more metadata": {**record, "metadata": {**sane, "expiration": "x", "more": planted}},
        "metadata twice": f'{{"metadata": {json.dumps(planted)}, {json.dumps(record)[1:]}',
        "seconds as text": {**record, "result": result_of(artifact, seconds="1")},
        "rows as text": {**record, "result": result_of(artifact, rows="3")},
        "attempts as text": {**record, "result": result_of(artifact, attempts="2")},
        "a class in attempts": {**record, "result": result_of(artifact, attempts=planted)},
        "a class in repaired": {**record, "result": result_of(artifact, repaired=planted)},
        "an unknown repair": {**record, "result": result_of(artifact, repaired="by magic")},
        "a cell for a stage": {**record, "result": result_of(artifact, stage="SECRET 1")},
        "of another name": {**record, "metadata": {**sane, "storage_key": "/store/records/other"}},
        "no rows": {**record, "result": result_of(artifact, rows=None)},
        "a path for a digest": {**record, "result": result_of(artifact, sha256="../../x")},
        "a field more in the result": {**record, "result": result_of(artifact, more=1)},
        "a list for a result": {**record, "result": "[1]"},
        "garbage in the result": {**record, "result": "{"},
        "a list": "[]",
        "garbage": b"\xff\x00\x01",
        "half": json.dumps(record)[:100],
        "empty": b"",
        "deeply nested": "[" * 100_000,
        "another artifact": {**record, "result": result_of(artifact, sha256="0" * 64)},
    }


KINDS = list(forged({"metadata": {"serializer": {}}}, Artifact("0" * 64, 1), Path()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_record_is_removed_unopened(kind, store, artifact, record, tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(
        f"import os; os.mkdir({str(tmp_path / 'trap')!r})\nThing = int\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    put(store, forged(record, artifact, tmp_path)[kind])
    assert not is_kept(store)
    assert not (tmp_path / "trap").exists()


def test_the_class_in_a_record_would_have_run(artifact, record, tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(
        f"import os; os.mkdir({str(tmp_path / 'trap')!r})\nThing = dict\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    JSONSerializer().loads(
        forged(record, artifact, tmp_path)["a class behind a number"]["result"].encode()
    )
    assert (tmp_path / "trap").exists()


@pytest.mark.parametrize("position", range(0, 684, 4))
def test_a_flipped_bit_changes_nothing_that_counts(position, store, artifact, record):
    """Noticed, or in a version number, a place or a time that nobody relies on."""
    content = bytearray(json.dumps(record).encode())
    position %= len(content)
    content[position] ^= 1
    put(store, bytes(content))
    found = trusted(store.records / "k")
    assert isinstance(found, str) or found == Note(artifact, "partition")


def test_what_is_wrong_is_said(store, artifact, record, tmp_path):
    result = json.loads(record["result"])
    wrong = {
        "damaged record": [json.dumps(record)[:-9], b"", {**record, "result": "{"}],
        "foreign record": ["[]", {"result": "x"}, forged(record, artifact, tmp_path)["pickle"]],
    }
    more_rows = {**record, "result": json.dumps({**result, "rows": 4})}
    wrong["damaged record"].append(more_rows)
    for reason, contents in wrong.items():
        for content in contents:
            put(store, content)
            assert discard(store) == reason


def test_a_folder_for_a_record_is_removed(store):
    (store.records / "k" / "inner").mkdir(parents=True)
    assert discard(store) == "foreign record"


def test_a_trusted_record_is_used_now(store, artifact, record):
    put(store, record)
    for path in (store.path(artifact), store.records / "k"):
        os.utime(path, (1, 1))
    assert is_kept(store)
    assert store.path(artifact).stat().st_mtime > 1
    assert (store.records / "k").stat().st_mtime > 1


def test_a_record_that_is_a_symlink_is_removed(store, record, tmp_path):
    put(store, record, "real")
    (store.records / "real").rename(tmp_path / "real")
    (store.records / "k").symlink_to(tmp_path / "real")
    assert not is_kept(store)
    assert not (store.records / "k").is_symlink()
    assert (tmp_path / "real").exists()
    (store.records / "k").symlink_to(tmp_path / "nowhere")
    assert not is_kept(store)
    assert not (store.records / "k").is_symlink()


def test_a_record_without_its_file_is_removed(store, artifact, record):
    put(store, record)
    store.path(artifact).unlink()
    assert discard(store) == "deleted"


def test_a_record_whose_file_is_damaged_is_removed(store, artifact, record):
    put(store, record)
    with store.path(artifact).open("r+b") as file:
        file.write(b"X")
    assert discard(store) == "damaged"


def test_a_record_whose_file_is_a_link_is_removed(store, artifact, record, tmp_path):
    put(store, record)
    folder = store.path(artifact).parent
    folder.rename(tmp_path / "away")
    folder.symlink_to(tmp_path / "away")
    assert discard(store) == "linked"


def test_prefect_asks_for_the_key_and_the_record_is_gone(store):
    put(store, "garbage", stage_key("partition", {"store": store.root, "k": 3}))
    found = cache_key("partition")(None, {"store": store.root, "k": 3})
    assert found == stage_key("partition", {"store": store.root, "k": 3})
    assert list(store.records.iterdir()) == []


def test_no_record_is_no_trouble(store):
    discard_untrusted_record(store, "k")
    assert list(store.records.iterdir()) == []


def test_code_is_digested_with_names_and_content():
    root = Path(caching.inspect.getfile(caching.kohort)).parent
    assert (root / "protect.py").exists()
    tasks = Path(caching.inspect.getfile(caching.kohort.tasks)).parent
    assert (tasks / "release.py").exists()
    assert len(caching.code_digest()) == 64
