"""The decorator of every stage: foreign exceptions lose their text, ours pass."""

import errno
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from prefect import Task
from prefect.states import Failed

from kohort.errors import (
    GateRefused,
    GuaranteeBroken,
    KohortError,
    PlanError,
    StageFailed,
    WaveError,
)
from kohort.partitioning import Optimal
from kohort.tasks import (
    assemble,
    blocking,
    centroids,
    evaluation,
    ingest,
    normalization,
    partitioning,
    projection,
    publish,
    verify,
)
from kohort.tasks.records import note_of
from kohort.tasks.stage import guarded, may_pass, stage, uncached_stage
from kohort.tasks.store import Artifact

STAGES = {
    ingest.ingest: "ingest",
    normalization.normalize: "normalize",
    blocking.assign_blocks: "assign_blocks",
    projection.project: "project",
    partitioning.partition: "partition",
    centroids.replace: "replace",
    assemble.assemble: "assemble",
    evaluation.evaluate: "evaluate",
}
ALWAYS = {verify.verify: "verify", publish.publish: "publish"}


def quoting_a_cell(**_):
    return pa.array(["SECRET"]).cast(pa.float64())


def raised_by(function, **arguments):
    with pytest.raises(StageFailed) as failure:
        function(**arguments)
    return failure.value


def test_a_foreign_exception_loses_its_text():
    with pytest.raises(pa.ArrowInvalid, match="SECRET"):
        quoting_a_cell()
    failure = raised_by(guarded("partition", quoting_a_cell), block=2)
    assert str(failure) == "partition, block 2: ArrowInvalid"
    assert failure.__cause__ is None
    assert failure.__suppress_context__
    assert str(raised_by(guarded("ingest", quoting_a_cell))) == "ingest: ArrowInvalid"


def test_an_error_of_the_system_keeps_its_standard_text():
    def full():
        raise OSError(errno.ENAMETOOLONG, "Arrow's words on SECRET", "/data/SECRET")

    assert str(raised_by(guarded("assemble", full))) == "assemble: OSError (File name too long)"


@pytest.mark.parametrize("ours", [PlanError, WaveError, GuaranteeBroken, StageFailed])
def test_our_own_errors_pass(ours):
    def refuse():
        raise ours("one sentence")

    with pytest.raises(ours, match="one sentence") as failure:
        guarded("ingest", refuse)()
    assert not getattr(failure.value, "can_pass", False)


PASS = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ENOENT, errno.ENOTCONN)
STAY = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
CAUSES = {
    **{errno.errorcode[code]: (OSError(code, "SECRET"), True) for code in PASS},
    **{errno.errorcode[code]: (OSError(code, "SECRET"), False) for code in STAY},
    "pyarrow on content": (OSError("SECRET"), False),
    "bug": (TypeError("SECRET"), False),
    "memory": (MemoryError("SECRET"), False),
    "arrow": (pa.ArrowInvalid("SECRET"), False),
    "plan": (PlanError("ours"), False),
    "wave": (WaveError("ours"), False),
    "gate": (GateRefused("ours"), False),
    "guarantee": (GuaranteeBroken("ours"), False),
    "says that it can": (StageFailed("ours", can_pass=True), True),
    "says that it cannot": (StageFailed("ours"), False),
}


@pytest.mark.parametrize(("cause", "passes"), CAUSES.values(), ids=CAUSES)
def test_only_what_can_pass_is_tried_again(cause, passes, store):
    def fail(store):
        raise cause

    with pytest.raises(KohortError) as failure:
        guarded("partition", fail)(store=store.root)
    assert may_pass(None, None, Failed(data=failure.value)) is passes
    assert "SECRET" not in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_failure_is_the_same_after_pickling():
    failure = pickle.loads(pickle.dumps(StageFailed("one sentence", can_pass=True)))
    assert (str(failure), failure.can_pass) == ("one sentence", True)


FOLDERS = {
    "full": (errno.ENOSPC, "the disk of the {} is full; free some room or choose another with {}"),
    "quota": (errno.EDQUOT, "the disk quota for the {} is used up; free some room or choose"),
    "read-only": (errno.EROFS, "the {} is on a read-only file system; make it writable or choose"),
    "closed": (errno.EACCES, "the {} may not be written to; change its permissions or choose"),
}


@pytest.mark.parametrize(("code", "sentence"), FOLDERS.values(), ids=FOLDERS)
def test_trouble_with_a_folder_names_it(code, sentence, tmp_path):
    def to_store(store, *, block):
        raise OSError(code, "SECRET")

    def to_output(store, out):
        raise OSError(code, "SECRET", str(store / "copied"), None, str(out / "copy"))

    said = str(raised_by(guarded("partition", to_store), store=tmp_path, block=1))
    assert said.startswith(f"partition, block 1: {sentence.format(f'store {tmp_path}', '--store')}")
    assert said.endswith("; finished stages are kept, run it again to continue")
    out = tmp_path / "out"
    said = str(raised_by(guarded("verify", to_output), store=tmp_path, out=out))
    assert said.startswith(f"verify: {sentence.format(f'output folder {out}', '--out')}")


def test_a_folder_that_went_away_is_named(tmp_path):
    def read(store, out):
        raise FileNotFoundError(errno.ENOENT, "SECRET")

    arguments = {"store": tmp_path / "gone", "out": tmp_path}
    failure = raised_by(guarded("verify", read), **arguments)
    assert str(failure).startswith(f"verify: the store {tmp_path / 'gone'} is gone; mount it again or")
    assert failure.can_pass
    assert str(raised_by(guarded("verify", read), store=tmp_path, out=tmp_path)) == (
        "verify: FileNotFoundError (No such file or directory)"
    )


@pytest.mark.parametrize("task", [*STAGES, *ALWAYS], ids=[*STAGES.values(), *ALWAYS.values()])
def test_every_stage_is_tried_again_ever_later(task):
    assert task.retries == 3
    assert task.retry_delay_seconds == [1, 2, 4]
    assert task.retry_jitter_factor == 0.5
    assert task.retry_condition_fn is may_pass


def test_an_interrupt_passes():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded("ingest", interrupt)()


@pytest.mark.parametrize("make", [stage, uncached_stage])
def test_a_task_is_guarded(make):
    task = make("partition")(quoting_a_cell)
    assert isinstance(task, Task)
    assert str(raised_by(task.fn, block=2)) == "partition, block 2: ArrowInvalid"


def test_a_stage_returns_a_small_record():
    def keep(store: Path) -> Artifact:
        return Artifact("0" * 64, 3)

    made = stage("keep")(keep).fn(Path())
    artifact = Artifact("0" * 64, 3)
    assert made == note_of(artifact, stage="keep", seconds=made["seconds"], attempts=1, repaired=None)
    assert isinstance(made["seconds"], float)


@pytest.mark.parametrize("task", STAGES, ids=STAGES.values())
def test_every_stage_is_cached_as_json(task):
    assert task.name == STAGES[task]
    assert task.persist_result
    assert task.result_serializer == "json"
    assert task.cache_key_fn is not None
    assert not task.log_prints


@pytest.mark.parametrize("task", ALWAYS, ids=ALWAYS.values())
def test_what_looks_at_the_world_is_never_cached(task):
    assert task.name == ALWAYS[task]
    assert task.persist_result is False
    assert task.cache_key_fn is None
    assert not task.log_prints


def test_a_stage_that_fails_leaves_nothing(store):
    x = store.write({"x": np.arange(3.0)})
    with pytest.raises(WaveError, match="3 records but k = 5"):
        partitioning.partition.fn(
            store.root,
            block=0,
            x=None,
            axis=x,
            names=["x"],
            method=Optimal(),
            k=5,
            points=None,
        )
    assert len(list((store.root / "objects").rglob("*.parquet"))) == 1
    assert list((store.root / "partial").iterdir()) == []
