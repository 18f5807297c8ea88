"""Normalizers: bring attributes to one scale before distances are taken between records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from kohort.methods import Floats

VANISHING = 1e-100  # an interquartile range of so many standard deviations is 0: dividing overflows


class Normalizer(Protocol):
    """Turns original values into values of one scale; a constant column never divides by zero."""

    paper: ClassVar[str]
    """Where it is from."""

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    def normalize(self, x: Floats) -> Floats:
        """Normalised copy of `x` (n, p), Fortran-ordered."""
        ...

    def fit(self, x: Floats) -> Scale | None:
        """Shift and scale of every column of `x`, or None where normalising is more than that."""
        ...


@dataclass(frozen=True, slots=True)
class Scale:
    """(x - centre) / scale, and one value for all cells of a constant column."""

    centre: Floats
    scale: Floats
    constant: float = 0.0

    def apply(self, x: Floats) -> Floats:
        """Normalised copy of `x` (n, p), Fortran-ordered."""
        from kohort.kernels.statistics import scaled

        z = scaled(np.asfortranarray(x), self.centre, self.scale)
        if self.constant:
            z[:, self.scale == 0.0] = self.constant
        return z


@dataclass(frozen=True, slots=True, kw_only=True)
class Zscore:
    """Zero mean and unit variance; a constant column becomes 0."""

    paper: ClassVar[str] = "MP, CS"
    method: Literal["zscore"] = "zscore"

    def normalize(self, x: Floats) -> Floats:
        """(x - mean) / std, the standard deviation with ddof 0."""
        return self.fit(x).apply(x)

    def fit(self, x: Floats) -> Scale:
        """Mean and standard deviation."""
        from kohort.kernels.statistics import mean_and_std

        return Scale(*mean_and_std(np.asfortranarray(x)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Minmax:
    """The column's range to [0, 1]; a constant column becomes 0.5."""

    paper: ClassVar[str] = "MP"
    method: Literal["minmax"] = "minmax"

    def normalize(self, x: Floats) -> Floats:
        """(x - min) / (max - min)."""
        return self.fit(x).apply(x)

    def fit(self, x: Floats) -> Scale:
        """Minimum and range."""
        from kohort.kernels.statistics import least_and_greatest

        low, high = least_and_greatest(np.asfortranarray(x))
        return Scale(low, high - low, constant=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Average ranks divided by n: only the order of a column counts."""

    paper: ClassVar[str] = "beyond the papers"
    method: Literal["rank"] = "rank"

    def normalize(self, x: Floats) -> Floats:
        """Rank of every value in its column, ties sharing their mean rank, over n."""
        from scipy.stats import rankdata

        n = x.shape[0]
        return np.asfortranarray(rankdata(x, method="average", axis=0) / n)

    def fit(self, x: Floats) -> None:
        """Ranks are more than a shift and a scale."""
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """Median and interquartile range, the standard deviation where that range is 0."""

    paper: ClassVar[str] = "beyond the papers"
    method: Literal["robust"] = "robust"

    def normalize(self, x: Floats) -> Floats:
        """(x - median) / IQR, so that a few extreme values do not set the scale."""
        return self.fit(x).apply(x)

    def fit(self, x: Floats) -> Scale:
        """Median, and the interquartile range or the standard deviation."""
        from kohort.kernels.statistics import mean_and_std

        lower, median, upper = np.percentile(x, [25, 50, 75], axis=0)
        scale = upper - lower
        _, std = mean_and_std(np.asfortranarray(x))
        return Scale(median, np.where(scale <= VANISHING * std, std, scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """Values as they are: the attribute with the widest numbers decides."""

    paper: ClassVar[str] = "M1D"
    method: Literal["none"] = "none"

    def normalize(self, x: Floats) -> Floats:
        """A copy of `x`."""
        return np.array(x, dtype=np.float64, order="F")

    def fit(self, x: Floats) -> Scale:
        """No shift, and a scale of 1."""
        return Scale(np.zeros(x.shape[1]), np.ones(x.shape[1]))


NORMALIZERS: tuple[type[Normalizer], ...] = (Zscore, Minmax, Rank, Robust, Unchanged)
