"""The two rounds of Mic1D-k over one long vector of values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.compiled import compiled
from kohort.methods import Floats

Bounds = npt.NDArray[np.int64]
Order = npt.NDArray[np.uint32]


@compiled
def bounds_from_starts(starts: Bounds) -> Bounds:
    """Bounds of the chunks that the optimal programme's starts lead back to."""
    n = starts.size - 1
    count = 0
    stop = n
    while stop > 0:
        stop = starts[stop]
        count += 1
    bounds = np.empty(count + 1, np.int64)
    bounds[count] = n
    for chunk in range(count - 1, -1, -1):
        bounds[chunk] = starts[bounds[chunk + 1]]
    return bounds


@compiled
def scale_chunks(values: Floats, bounds: Bounds) -> Floats:
    """Sorted values scaled to [0, 1] chunk by chunk, 0.5 where a chunk is constant."""
    scaled = np.empty(values.size)
    for chunk in range(bounds.size - 1):
        start, stop = bounds[chunk], bounds[chunk + 1]
        low, high = values[start], values[stop - 1]
        for i in range(start, stop):
            scaled[i] = 0.5 if low == high else (values[i] - low) / (high - low)
    return scaled


@compiled
def unscaled_means(
    values: Floats, bounds: Bounds, order: Order, scaled: Floats, again_bounds: Bounds, again: Order
) -> Floats:
    """Replace each chunk of the second round by its mean, and undo both rounds.

    `values` and `bounds` are the first round's, in sorted order; `order` leads from there to the
    vector; `scaled`, `again_bounds` and `again` are the second round's. A mean does not change when a
    chunk is scaled and scaled back, so the second scaling need not be carried out.
    """
    n = values.size
    chunk_of = np.empty(n, np.int32)
    for chunk in range(bounds.size - 1):
        chunk_of[bounds[chunk] : bounds[chunk + 1]] = chunk
    out = np.empty(n)
    for chunk in range(again_bounds.size - 1):
        start, stop = again_bounds[chunk], again_bounds[chunk + 1]
        total = 0.0
        for i in range(start, stop):
            total += scaled[i] - scaled[start]
        mean = scaled[start] + total / (stop - start)
        for i in range(start, stop):
            own = chunk_of[again[i]]
            low, high = values[bounds[own]], values[bounds[own + 1] - 1]
            out[order[again[i]]] = low + mean * (high - low)
    return out
