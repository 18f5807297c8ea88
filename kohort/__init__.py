"""kohort: publish survey microdata without exposing the people in it.

The mathematics of microaggregation: arrays in, arrays out. `protect` runs all stages in memory; each
stage is a tuple of methods in its own module. The pipeline over Parquet files is in `kohort.flows`.
"""

from __future__ import annotations

from kohort.errors import (
    GateRefused,
    GuaranteeBroken,
    KohortError,
    PlanError,
    StageFailed,
    WaveError,
)
from kohort.evaluation import Evaluation, NotApplicable, evaluate
from kohort.protect import Protected, protect

__version__ = "0.1.0"

__all__ = [
    "Evaluation",
    "GateRefused",
    "GuaranteeBroken",
    "KohortError",
    "NotApplicable",
    "PlanError",
    "Protected",
    "StageFailed",
    "WaveError",
    "__version__",
    "evaluate",
    "protect",
]
