"""Partitioners: groups of at least k records, on an axis or in space."""

from __future__ import annotations

from kohort.partitioning.base import Partitioner
from kohort.partitioning.fixed import Fixed
from kohort.partitioning.kward import Kward
from kohort.partitioning.maximum_distance import Md
from kohort.partitioning.mdav import Mdav, Vmdav
from kohort.partitioning.optimal import Optimal

PARTITIONERS: tuple[type[Partitioner], ...] = (Fixed, Optimal, Mdav, Vmdav, Md, Kward)

__all__ = ["PARTITIONERS", "Fixed", "Kward", "Md", "Mdav", "Optimal", "Partitioner", "Vmdav"]
