"""The flow `reproduce`: the papers' tables, each configuration cached by content."""

from __future__ import annotations

import functools
import hashlib
import inspect
from pathlib import Path

from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from kohort.flows.progress import Listener, Silent, StageRow
from kohort.flows.reproduction import configurations, needed_files
from kohort.flows.running import running_on
from kohort.protect import available_cores
from kohort.tasks.reference import Place
from kohort.tasks.reproduction import read_figures, reproduce
from kohort.tasks.store import Artifact
from kohort.tasks.wave import digest_of

LISTENER: Listener = Silent()
"""Who hears of finished configurations: the command line sets it, a worker leaves it."""


@flow(
    name="reproduce",
    task_runner=ThreadPoolTaskRunner(max_workers=available_cores()),  # type: ignore[arg-type]
    log_prints=False,
    persist_result=False,
)
def reproduce_papers(papers: list[str], store: Path | None = None) -> dict[Place, float]:
    """Compute every figure of the papers' tables from the reference files.

    Parameters
    ----------
    papers : list of str
        Names of `kohort.flows.reproduction.PAPERS`.
    store : Path, optional
        Where finished configurations are kept; by default under KOHORT_HOME.
    """
    listed = configurations(papers)
    paths = needed_files(papers)
    digests = {source: digest_of(path) for source, path in paths.items()}
    LISTENER.expect(len(listed))
    figures: dict[Place, float] = {}
    with running_on(store) as run:
        futures = [
            run.start(
                reproduce,
                wave=paths.get(each.source),
                configuration=each,
                digest=digests.get(each.source),
                code=source_digest(type(each)),
                block=each.label,
            )
            for each in listed
        ]
        for each, future in zip(listed, futures, strict=True):
            made = future.result()
            artifact = Artifact(made["sha256"], made["rows"])
            figures |= read_figures(run.store, artifact)
            cached = future.state.name == "Cached"
            LISTENER.finished(
                StageRow(each.label, None, artifact.sha256, artifact.rows, made["seconds"], cached)
            )
    return figures


@functools.cache
def source_digest(configuration: type) -> str:
    """SHA-256 of the module of a paper, which decides its figures as the mathematics does."""
    module = inspect.getmodule(configuration) or configuration
    return hashlib.sha256(inspect.getsource(module).encode()).hexdigest()
