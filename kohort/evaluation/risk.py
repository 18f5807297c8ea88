"""Disclosure risk: how often an intruder is right, in per cent of the records."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from kohort.errors import PlanError
from kohort.evaluation.anonymity import classes
from kohort.evaluation.moments import as_columns
from kohort.evaluation.outcome import NotApplicable
from kohort.evaluation.variation import Variant
from kohort.methods import Floats, check_choice
from kohort.normalization import Zscore

Rows = npt.NDArray[np.int64]
Ties = Literal["expected", "first"]
Direction = Literal["to_protected", "to_original"]
WIDTHS = range(1, 11)  # per cent of the records on either side of the released value


def dld(
    x: Floats,
    protected: Floats,
    *,
    ties: Ties = "expected",
    direction: Direction = "to_protected",
) -> float:
    """Per cent of the records that are linked to themselves by the smallest distance.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values of the attributes that the intruder knows, each file
        standardised by itself.
    ties : {"expected", "first"}
        Of several nearest records, "expected" takes each with the same chance, as an intruder who
        guesses; "first" takes the one that comes first in the file (M1D).
    direction : {"to_protected", "to_original"}
        The nearest protected record of every original one, or the other way round (SD).

    Examples
    --------
    >>> x = np.array([[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]])
    >>> dld(x, x)
    100.0
    >>> round(dld(x, np.array([[2.0], [2.0], [2.0], [11.0], [11.0], [11.0]])), 2)
    33.33
    """
    check_choice("ties", ties, get_args(Ties))
    check_choice("direction", direction, get_args(Direction))
    z, released = Zscore().normalize(x), Zscore().normalize(protected)
    if direction == "to_original":
        z, released = released, z
    tied, lowest = _ties_with_own(np.ascontiguousarray(z), released)
    if ties == "first":
        return 100.0 * np.count_nonzero((tied > 0) & (lowest == np.arange(len(z)))) / len(z)
    # Equal counts are added at once: 100 records of 1/3 each are 100/3, whatever their order.
    number, records = np.unique(tied[tied > 0], return_counts=True)
    return 100.0 * float(np.sum(records / number)) / len(z)


def _ties_with_own(z: Floats, released: Floats) -> tuple[Rows, Rows]:
    """Released records as near as the own one (0 if one is nearer), and the lowest row of them."""
    from kohort.kernels.nearest import own_is_nearest, plant
    from kohort.kernels.statistics import eigen
    from kohort.protect import available_cores

    n = len(z)
    own, sizes = classes(released)
    first = np.empty(sizes.size, np.int64)
    first[own[::-1]] = np.arange(n)[::-1]
    points = np.ascontiguousarray(released[first])
    # Principal axes, the widest first: they part the records best. They only guide the search.
    spread, axes = eigen(points.T @ points)
    axes = axes[:, np.argsort(-spread)]
    rotated = (z @ axes).astype(np.float32)
    tree = plant(points @ axes)
    filled = tree[0].ravel() >= 0
    place = np.empty(sizes.size, np.int64)
    place[tree[0].ravel()[filled]] = np.flatnonzero(filled)
    order = np.argsort(place[own], kind="stable")
    tied, lowest = np.empty(n, np.int64), np.empty(n, np.int64)

    def search(rows: Rows) -> None:
        own_is_nearest(z, rotated, points, own, sizes, first, tree, rows, tied, lowest)

    parts = np.array_split(order, max(1, n // 4096))
    with ThreadPoolExecutor(max_workers=min(len(parts), available_cores())) as pool:
        list(pool.map(search, parts))
    return tied, lowest


def id(x: Floats, protected: Floats) -> float:  # noqa: A001  # the papers' name
    """Per cent of the cells that lie close to their released value: interval disclosure.

    The interval goes from the value w ranks below to the value w ranks above the released one, w being
    1, 2, ..., 10 per cent of the records; the mean is over these ten and the columns.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values of the attributes that the intruder knows.

    Examples
    --------
    >>> x = np.array([[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]])
    >>> id(x, x)
    100.0
    >>> round(id(x, np.array([[2.0], [2.0], [2.0], [11.0], [11.0], [11.0]])), 2)
    33.33
    """
    from kohort.kernels.disclosure import interval_hits

    x, protected = as_columns(x), as_columns(protected)
    n, p = x.shape
    widths = np.array([share * n // 100 for share in WIDTHS], np.int64)
    hits = sum(interval_hits(x[:, j], protected[:, j], widths) for j in range(p))
    return float(100.0 * hits / (n * p * len(WIDTHS)))


def score(
    *,
    il: float | NotApplicable,
    dld: float | NotApplicable,
    id: float | NotApplicable,  # noqa: A002
    pld: float | NotApplicable | None = None,
    variant: Variant = "m1d",
) -> float | NotApplicable:
    """Half information loss, half disclosure risk, all in per cent.

    Parameters
    ----------
    il, dld, id, pld : float
        The measures of these names; `il` in the same variant.
    variant : {"m1d", "mp"}
        Disclosure risk is 0.5 dld + 0.5 id ("m1d", without pld) or 0.25 dld + 0.25 pld + 0.5 id ("mp").

    Examples
    --------
    >>> score(il=20.0, dld=10.0, id=50.0)
    25.0
    >>> score(il=20.0, dld=10.0, pld=2.0, id=50.0, variant="mp")
    24.0
    """
    check_choice("variant", variant, get_args(Variant))
    if (pld is not None) != (variant == "mp"):
        need = "needs pld" if variant == "mp" else "has no place for pld"
        raise PlanError(f"score in the variant {variant!r} {need}; choose the other variant")
    parts = {"il": il, "dld": dld, "pld": dld if pld is None else pld, "id": id}
    values = {}
    for name, part in parts.items():
        if isinstance(part, NotApplicable):
            return replace(part, reason=f"{name}: {part.reason}")
        values[name] = part
    risk = 0.25 * values["dld"] + 0.25 * values["pld"] + 0.5 * values["id"]
    return 0.5 * values["il"] + 0.5 * risk
