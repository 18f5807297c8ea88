"""The decorator of every stage: foreign exceptions lose their text, ours pass."""

import errno
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from prefect import Task

from kohort.errors import GuaranteeBroken, PlanError, StageFailed, WaveError
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
from kohort.tasks.stage import guarded, stage, uncached_stage
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
        raise OSError(errno.ENOSPC, "No space left on device", "/data/SECRET")

    assert str(raised_by(guarded("assemble", full))) == "assemble: OSError (No space left on device)"


@pytest.mark.parametrize("ours", [PlanError, WaveError, GuaranteeBroken, StageFailed])
def test_our_own_errors_pass(ours):
    def refuse():
        raise ours("one sentence")

    with pytest.raises(ours, match="one sentence"):
        guarded("ingest", refuse)()


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
    assert made == {"sha256": "0" * 64, "rows": 3, "seconds": made["seconds"]}
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
            z=None,
            axis=x,
            names=["x"],
            method=Optimal(),
            k=5,
            confidential=[],
            dependence=None,
        )
    assert len(list((store.root / "objects").rglob("*.parquet"))) == 1
    assert list((store.root / "partial").iterdir()) == []
