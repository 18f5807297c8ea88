"""The same figures without Prefect and without a store."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from kohort.flows.progress import Listener, StageRow
from kohort.flows.reproduction import configurations, needed_files
from kohort.protect import available_cores
from kohort.tasks.reference import Configuration, Place, figures_of


def reproduce_in_memory(papers: Iterable[str], *, listener: Listener) -> dict[Place, float]:
    """Compute every figure of the papers' tables in this process.

    Parameters
    ----------
    papers : iterable of str
        Names of `PAPERS`.
    listener : Listener
        Who hears of finished configurations.
    """
    listed = configurations(papers)
    paths = needed_files(papers)
    listener.expect(len(listed))

    def measure(each: Configuration) -> tuple[dict[Place, float], float]:
        started = time.perf_counter()
        return figures_of(each, paths.get(each.source)), time.perf_counter() - started

    figures: dict[Place, float] = {}
    with ThreadPoolExecutor(max_workers=available_cores()) as pool:
        for each, (found, seconds) in zip(listed, pool.map(measure, listed), strict=True):
            figures |= found
            listener.finished(StageRow(each.label, None, None, len(found), seconds, cached=False))
    return figures
