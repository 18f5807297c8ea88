"""Methods that protect a file as a whole, without groups of records.

They make no record identical to another: what an intruder meets has to be measured on the release, and
every message says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from kohort.errors import PlanError, WaveError
from kohort.methods import Floats, check_choice, check_whole


class WholeFile(Protocol):
    """Protects all values of a file at once."""

    paper: ClassVar[str]
    """Where it is from."""

    @property
    def method(self) -> str:
        """The name under which a plan asks for it."""
        ...

    @property
    def unfit_for_release(self) -> str | None:
        """Why its result must not be published, if so."""
        ...

    def guarantee(self, k: int) -> str:
        """What it promises, and what it does not, in words."""
        ...

    def protect_values(self, x: Floats, *, k: int) -> Floats:
        """Protected values (n, p) of `x` (n, p)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mic1d:
    """Mic1D-k: all values in one vector, sorted and scaled twice, chunks of k replaced by their mean.

    `k` counts values, not records. `chunks="optimal"`, the authors' future work, chooses chunks of k to
    2k-1 values with the least squared error. `remainder="own"` is the paper's: the last, smaller chunk
    can then release the file's maximum as it is; by default it joins the last full chunk.
    """

    paper: ClassVar[str] = "M1D"
    chunks: Literal["equal", "optimal"] = "equal"
    remainder: Literal["join", "own"] = "join"
    method: Literal["mic1d"] = "mic1d"

    def __post_init__(self) -> None:
        check_choice("chunks", self.chunks, ("equal", "optimal"))
        check_choice("remainder", self.remainder, ("join", "own"))
        if self.chunks == "optimal" and self.remainder == "own":
            raise PlanError("remainder = 'own' has no effect on optimal chunks; leave it out")

    @property
    def unfit_for_release(self) -> str | None:
        """The paper's remainder is."""
        if self.remainder == "own":
            return "remainder = 'own' can release the file's maximum as it is; use 'join'"
        return None

    def guarantee(self, k: int) -> str:
        """What it promises, and what it does not, in words."""
        smaller = "" if self.remainder == "join" else ", or of the fewer that are left over at the end"
        # The least and the greatest value of a chunk are scaled to 0 and 1. Once there are k chunks,
        # k zeros make a chunk of the second round, whose mean leads each back to its own value.
        return (
            f"every released value comes from a mean of at least {k} scaled values of the whole file"
            f"{smaller}; from {int(k) ** 2} values on (k times k) the least and the greatest value of a "
            "chunk can still be released as they are; no record is promised to be identical to any "
            "other, so anonymity is measured, not promised"
        )

    def protect_values(self, x: Floats, *, k: int) -> Floats:
        """Vectorize by column, sort, chunk and scale twice, take means, and go the way back."""
        from kohort.kernels.mic1d import scale_chunks, unscaled_means
        from kohort.kernels.sorting import stable_order

        check_whole("k", k, minimum=2)
        if x.size < k:
            raise WaveError(f"the wave has {x.size} values but k = {k}; lower k or add records")
        order, values = stable_order(np.asfortranarray(x).ravel(order="F"))
        bounds = self._bounds(values, k)
        again, scaled = stable_order(scale_chunks(values, bounds))
        again_bounds = self._bounds(scaled, k)
        protected = unscaled_means(values, bounds, order, scaled, again_bounds, again)
        return protected.reshape(x.shape, order="F")

    def _bounds(self, values: Floats, k: int) -> npt.NDArray[np.int64]:
        """Where the chunks of sorted values begin, and the end."""
        from kohort.kernels.mic1d import bounds_from_starts
        from kohort.kernels.optimal import axis_starts

        if self.chunks == "optimal":
            return bounds_from_starts(axis_starts(values, k))
        bounds = np.arange(0, values.size + 1, k, dtype=np.int64)
        if self.remainder == "own" and bounds[-1] < values.size:
            return np.append(bounds, values.size)
        bounds[-1] = values.size
        return bounds


WHOLE_FILE: tuple[type[WholeFile], ...] = (Mic1d,)
