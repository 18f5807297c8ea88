"""Measures of a protected table: what it loses, and what it still reveals.

Each is a function with the name of the papers' measure, on arrays; `MEASURES` is the tuple of all of
them, and `evaluate` runs the ones that are asked for.
"""

from __future__ import annotations

from kohort.evaluation.anonymity import classes, dominance, group_sizes, k_real, min_anonymity, unique
from kohort.evaluation.dependence import d_x, d_y
from kohort.evaluation.diversity import l_avg, l_min, l_one
from kohort.evaluation.evaluate import evaluate
from kohort.evaluation.intruder import INTRUDERS, Everything, Intruder, Named, SeveralBlocks, Subsets
from kohort.evaluation.linkage import Linkage, pld
from kohort.evaluation.loss import il1s, loss, sse, sse_minmax, sst, unchanged
from kohort.evaluation.measures import MEASURES, Measure, Release
from kohort.evaluation.outcome import NotApplicable, Noted
from kohort.evaluation.report import Evaluation, Result
from kohort.evaluation.risk import dld, id, score  # noqa: A004
from kohort.evaluation.structure import delta_R, delta_r, delta_W, fpc, s_delta_r, std_kept
from kohort.evaluation.variation import il, il1, il2, il3, il4, il5

__all__ = [
    "INTRUDERS",
    "MEASURES",
    "Evaluation",
    "Everything",
    "Intruder",
    "Linkage",
    "Measure",
    "Named",
    "NotApplicable",
    "Noted",
    "Release",
    "Result",
    "SeveralBlocks",
    "Subsets",
    "classes",
    "d_x",
    "d_y",
    "delta_R",
    "delta_W",
    "delta_r",
    "dld",
    "dominance",
    "evaluate",
    "fpc",
    "group_sizes",
    "id",
    "il",
    "il1",
    "il1s",
    "il2",
    "il3",
    "il4",
    "il5",
    "k_real",
    "l_avg",
    "l_min",
    "l_one",
    "loss",
    "min_anonymity",
    "pld",
    "s_delta_r",
    "score",
    "sse",
    "sse_minmax",
    "sst",
    "std_kept",
    "unchanged",
    "unique",
]
