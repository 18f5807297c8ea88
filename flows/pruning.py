"""Which artifacts only one run used, from the journals of all runs."""

from __future__ import annotations

from pathlib import Path

from kohort.flows.runs import find_run, past_runs


def only_of(name: str) -> tuple[Path, frozenset[str]]:
    """A run's store, and the digests of the artifacts that its journal names and no other run's does.

    Parameters
    ----------
    name : str
        The run's id, or the beginning of exactly one.
    """
    runs = past_runs()
    run = find_run(runs, name)
    others = [each.digests for each in runs if each.id != run.id]
    return Path(run.started["store"]), run.digests.difference(*others)
