"""Measures of a protected table: what it loses, and what it still reveals."""

from __future__ import annotations

from kohort.evaluation.anonymity import classes, group_sizes, k_real, min_anonymity, unique
from kohort.evaluation.loss import loss, sse, sst

__all__ = ["classes", "group_sizes", "k_real", "loss", "min_anonymity", "sse", "sst", "unique"]
