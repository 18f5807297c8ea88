"""Partitioners: groups of at least k records, on an axis or in space."""

from __future__ import annotations

from kohort.partitioning.base import Partitioner
from kohort.partitioning.fixed import Fixed
from kohort.partitioning.mdav import Mdav, Vmdav
from kohort.partitioning.optimal import Optimal

PARTITIONERS: tuple[type[Partitioner], ...] = (Fixed, Optimal, Mdav, Vmdav)

__all__ = ["PARTITIONERS", "Fixed", "Mdav", "Optimal", "Partitioner", "Vmdav"]
