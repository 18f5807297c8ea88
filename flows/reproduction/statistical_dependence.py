"""The figures of statistical dependence: distortions and diversity against k, lambda and blocks.

The paper draws them and prints no table. The copy at hand has lost its digits, so that the number of
Gaussian records is ours; the other settings follow from its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kohort.blocking import Consecutive
from kohort.evaluation import d_x, d_y, dld, l_avg
from kohort.methods import Floats
from kohort.protect import protect
from kohort.tasks.reference import Place

if TYPE_CHECKING:
    import pandas as pd

PAPER = "statistical-dependence"
RECORDS = 10_000  # of Gaussian data
SEED = 0
KNOWN = 6  # the first attributes are quasi-identifiers, the others confidential
LAMBDAS = tuple(step / 10 for step in range(11))
GAUSSIAN = {"gaussian-0.5": 0.5, "gaussian-0.9": 0.9}
TITLES = {
    "gaussian-0.5": "Gaussian, ρ = 0.5",
    "gaussian-0.9": "Gaussian, ρ = 0.9",
    "census": "Census",
    "tarragona": "Tarragona",
}
SIZES = {
    source: (50, 100, 200, 500) if source in GAUSSIAN else (5, 10, 20, 50, 100) for source in TITLES
}
BLOCKS = (2, 4, 6)
K_OF_BLOCKS = 10
DISTORTION_OF_BLOCKS = f"D_X in blocks of b, Census, k = {K_OF_BLOCKS}"
LINKAGE_OF_BLOCKS = f"DLD in blocks of b, Census, k = {K_OF_BLOCKS}"


def column(weight: float) -> str:
    """Column of a lambda."""
    return f"λ = {weight:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """Distortion of quasi-identifiers against distortion of confidential attributes, for one k."""

    source: str
    k: int

    @property
    def label(self) -> str:
        """What a progress line calls it."""
        return f"{PAPER}, {TITLES[self.source]}, k = {self.k}"

    def measure(self, x: pd.DataFrame | None) -> Iterator[tuple[Place, float]]:
        """D_X, D_Y and the diversity of confidential values for every lambda."""
        known, confidential = roles(self.source, x)
        title, row = TITLES[self.source], f"k = {self.k}"
        for weight in LAMBDAS:
            release = protect(
                known, k=self.k, partition="mdav", confidential=confidential, dependence=weight
            )
            groups = release.groups[:, 0]
            yield (
                Place(PAPER, f"D_X, {title}", row, column(weight)),
                float(d_x(known, release.values)),
            )
            yield Place(PAPER, f"D_Y, {title}", row, column(weight)), float(d_y(confidential, groups))
            if self.source not in GAUSSIAN:
                yield Place(PAPER, f"ℓ_avg, {title}", row, column(weight)), l_avg(confidential, groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Distortion and linkage where Census is protected in blocks of b quasi-identifiers."""

    source: ClassVar[str] = "census"
    b: int

    @property
    def label(self) -> str:
        """What a progress line calls it."""
        return f"{PAPER}, Census, blocks of {self.b}"

    def measure(self, x: pd.DataFrame) -> Iterator[tuple[Place, float]]:
        """D_X and DLD for every lambda; this paper's intruder starts from protected records."""
        known, confidential = roles(self.source, x)
        for weight in LAMBDAS:
            release = protect(
                known,
                k=K_OF_BLOCKS,
                blocks=Consecutive(size=self.b),
                partition="mdav",
                confidential=confidential,
                dependence=weight,
            )
            row = f"b = {self.b}"
            distortion = float(d_x(known, release.values))
            yield Place(PAPER, DISTORTION_OF_BLOCKS, row, column(weight)), distortion
            linked = float(dld(known, release.values, direction="to_original")) / 100
            yield Place(PAPER, LINKAGE_OF_BLOCKS, row, column(weight)), linked


def roles(source: str, x: pd.DataFrame | None) -> tuple[Floats, Floats]:
    """Quasi-identifiers and confidential attributes; without a file, drawn ones of unit variance."""
    if x is not None:
        table: Floats = x.to_numpy(float)
        return table[:, :KNOWN], table[:, KNOWN:]
    rho = GAUSSIAN[source]
    first, noise = np.random.default_rng(SEED).standard_normal((2, RECORDS, 1))
    return first, rho * first + np.sqrt(1 - rho**2) * noise


def configurations() -> list[Tradeoff | Blocked]:
    """Every curve of the figures."""
    curves = [Tradeoff(source=source, k=k) for source in TITLES for k in SIZES[source]]
    return [*curves, *(Blocked(b=b) for b in BLOCKS)]
