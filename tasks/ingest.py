"""Ingest: the columns of a wave that later stages need, checked and as floats."""

from __future__ import annotations

from pathlib import Path

from kohort.errors import WaveError
from kohort.tasks.roles import Roles
from kohort.tasks.stage import stage
from kohort.tasks.store import Artifact, Store
from kohort.tasks.wave import (
    check_keys,
    digest_of,
    inspect_wave,
    read_confidential,
    read_units,
    read_values,
    read_weights,
)


@stage("ingest")
def ingest(
    store: Path, wave: Path, *, digest: str, roles: Roles, weighted: bool, extended: bool
) -> Artifact:
    """Quasi-identifiers as floats, and what else takes part: weights, confidential values, units."""
    if digest_of(wave) != digest:
        raise WaveError(f"{wave} changed while it was read; run it again")
    columns = inspect_wave(wave, roles)
    if roles.key is not None:
        check_keys(wave, roles.key)
    x = read_values(wave, columns.quasi_identifiers)
    table = {name: x[:, j] for j, name in enumerate(columns.quasi_identifiers)}
    if roles.weight is not None:
        weights = read_weights(wave, roles.weight)  # checked even where nothing is weighted
        if weighted:
            table[roles.weight] = weights
    if extended:
        y = read_confidential(wave, roles.confidential)
        table.update({name: y[:, j] for j, name in enumerate(roles.confidential)})
    if roles.unit is not None:
        table[roles.unit] = read_units(wave, roles.unit)
    return Store(store).write(table)
