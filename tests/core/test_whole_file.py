"""Mic1D-k against a plain version that follows the paper step by step, and what it does not promise."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort import PlanError, WaveError, protect
from kohort.blocking import Consecutive, Single
from kohort.centroids import Median
from kohort.methods import Floats
from kohort.normalization import Minmax
from kohort.projection import Pcp
from kohort.whole_file import WHOLE_FILE, Mic1d

Remainder = Literal["join", "own"]
Bounds = list[tuple[int, int]]


# The paper's steps, without the shortcuts of the kernels


def equal_chunks(values: Floats, k: int, remainder: str) -> Bounds:
    n = len(values)
    bounds = [(start, min(start + k, n)) for start in range(0, n, k)]
    if remainder == "join" and len(bounds) > 1 and bounds[-1][1] - bounds[-1][0] < k:
        del bounds[-1]
        bounds[-1] = (bounds[-1][0], n)
    return bounds


def best_chunks(values: Floats, k: int) -> Bounds:
    """Chunks of k or more with the least squared error, every start tried; ties: the earliest start.

    In fractions: floats would lose the error of small values beside that of large ones.
    """
    exact = [Fraction(value) for value in values.tolist()]
    sums = [Fraction(0), *accumulate(exact)]
    squares = [Fraction(0), *accumulate(value * value for value in exact)]

    def error(start: int, stop: int) -> Fraction:
        total = sums[stop] - sums[start]
        return squares[stop] - squares[start] - total * total / (stop - start)

    n = len(values)
    best: list[tuple[Fraction, int] | None] = [(Fraction(0), 0)] + [None] * n
    for stop in range(k, n + 1):
        reached = [
            (before[0] + error(start, stop), start)
            for start in range(stop - k + 1)
            if (before := best[start]) is not None
        ]
        best[stop] = min(reached)
    bounds: Bounds = []
    stop = n
    while stop > 0:
        _, start = best[stop] or (0, 0)
        bounds.append((start, stop))
        stop = start
    return bounds[::-1]


def minmax(values: Floats) -> Floats:
    low, high = values.min(), values.max()
    return np.full(len(values), 0.5) if low == high else (values - low) / (high - low)


def undo_minmax(scaled: Floats, original: Floats) -> Floats:
    low, high = original.min(), original.max()
    return np.asarray(low + scaled * (high - low))


def plain_mic1d(x: Floats, k: int, *, chunks: str = "equal", remainder: str = "join") -> Floats:
    def divide(values: Floats) -> Bounds:
        return best_chunks(values, k) if chunks == "optimal" else equal_chunks(values, k, remainder)

    vector = np.concatenate([x[:, j] for j in range(x.shape[1])])  # vectorization, by column
    order = np.argsort(vector, kind="stable")  # sorting
    first = vector[order]
    first_chunks = divide(first)  # partitioning
    normalized = np.concatenate([minmax(first[a:b]) for a, b in first_chunks])  # normalization
    again = np.argsort(normalized, kind="stable")  # re-sorting
    second = normalized[again]
    second_chunks = divide(second)
    renormalized = np.concatenate([minmax(second[a:b]) for a, b in second_chunks])
    means = np.concatenate(  # mean value computation
        [np.full(b - a, renormalized[a:b].mean()) for a, b in second_chunks]
    )
    undone = np.concatenate([undo_minmax(means[a:b], second[a:b]) for a, b in second_chunks])
    in_first_order = np.empty_like(undone)
    in_first_order[again] = undone
    undone = np.concatenate([undo_minmax(in_first_order[a:b], first[a:b]) for a, b in first_chunks])
    protected = np.empty_like(undone)
    protected[order] = undone
    return protected.reshape(x.shape, order="F")


RNG = np.random.default_rng(41)
DATA = {
    "random": RNG.normal(size=(41, 3)),
    "tied": RNG.integers(0, 4, size=(41, 3)).astype(np.float64),
    "constant": np.full((41, 3), 7.25),
    "one constant column": np.column_stack([np.full(41, 7.25), RNG.normal(size=(41, 2))]),
    "skewed": RNG.lognormal(0, 4, size=(41, 3)),
    "columns of other scales": RNG.normal(size=(41, 3)) * [1e-3, 1.0, 1e6] + [0.0, 1e3, 0.0],
    "mostly zeros": np.where(RNG.random((41, 3)) < 0.7, 0.0, RNG.lognormal(size=(41, 3))),
    "one column": RNG.normal(size=(41, 1)),
    "one record": RNG.normal(size=(1, 41)),
}


def close(ours: Floats, plain: Floats, x: Floats, *, within: float = 1e-12) -> None:
    np.testing.assert_allclose(ours, plain, rtol=within, atol=within * np.abs(x).max())


@pytest.mark.parametrize("remainder", ["join", "own"])
@pytest.mark.parametrize("k", [2, 3, 7, 20, 40, 41])  # 123 and 41 values: with and without remainder
@pytest.mark.parametrize("name", DATA)
def test_equal_chunks_are_the_papers(name: str, k: int, remainder: Remainder) -> None:
    x = DATA[name]
    ours = Mic1d(remainder=remainder).protect_values(x, k=k)
    close(ours, plain_mic1d(x, k, remainder=remainder), x)


@pytest.mark.parametrize("k", [3, 41, 100, 123])
def test_both_remainders_are_the_same_where_nothing_is_left_over(k: int) -> None:
    x = DATA["random"]
    joined = Mic1d().protect_values(x, k=k)
    own = Mic1d(remainder="own").protect_values(x, k=k)
    assert np.array_equal(joined, own) == (123 % k == 0)


@pytest.mark.parametrize("k", [2, 3, 7, 20])
@pytest.mark.parametrize(
    "name", ["random", "constant", "skewed", "columns of other scales", "one column"]
)
def test_optimal_chunks_are_the_best(name: str, k: int) -> None:
    x = DATA[name]
    ours = Mic1d(chunks="optimal").protect_values(x, k=k)
    # Chunks whose errors differ by less than a float of the whole error can show are equally good.
    close(ours, plain_mic1d(x, k, chunks="optimal"), x, within=1e-10)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 4)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 5e-324, -1e150, 1e150])
        | st.floats(min_value=-1e150, max_value=1e150),
    ),
    k=st.integers(2, 9),
    remainder=st.sampled_from(["join", "own"]),
)
def test_extreme_values_too(x: Floats, k: int, remainder: Remainder) -> None:
    if x.size < k:
        return
    ours = Mic1d(remainder=remainder).protect_values(x, k=k)
    close(ours, plain_mic1d(x, k, remainder=remainder), x)


def test_input_of_any_layout_is_read_by_column_and_left_alone() -> None:
    x = DATA["tied"].copy()
    expected = Mic1d().protect_values(np.asfortranarray(x), k=5)
    x.flags.writeable = False
    np.testing.assert_array_equal(Mic1d().protect_values(x, k=5), expected)
    wide = np.repeat(x, 2, axis=1)
    np.testing.assert_array_equal(Mic1d().protect_values(wide[:, ::2], k=5), expected)


# The paper's figures


def census() -> Floats:
    folder = Path(os.environ.get("KOHORT_REFERENCE", Path(__file__).parents[2] / "data/reference"))
    if not (folder / "census.csv").exists():
        pytest.skip("census.csv is not there: set KOHORT_REFERENCE to the folder of reference files")
    names = ["AGI", "STATETAX", "TAXINC", "EMCONTRB", "WSALVAL", "ERNVAL", "FEDTAX", "POTHVAL", "INTVAL"]
    return pd.read_csv(folder / "census.csv")[names].to_numpy(np.float64)


@pytest.mark.parametrize(("k", "printed"), [(3000, 32.27), (4000, 129.06), (5000, 738.12)])
def test_census_has_the_papers_squared_error(k: int, printed: float) -> None:
    """M1D, Table 4: each file scaled by its own range."""
    x = census()
    protected = protect(x, k=k, partition=Mic1d(remainder="own")).values
    sse_minmax = ((Minmax().normalize(x) - Minmax().normalize(protected)) ** 2).sum()
    assert round(sse_minmax, 2) == printed


# What it promises


def test_it_has_no_groups_and_no_blocks_and_promises_nothing() -> None:
    x = DATA["random"]
    protected = protect(x, k=10, partition="mic1d")
    assert protected.groups.shape == (41, 0)
    assert protected.groups.dtype == np.int32
    assert protected.blocks == ()
    assert "a mean of at least 10 scaled values" in protected.guarantee
    assert "no record is promised to be identical" in protected.guarantee
    assert "measured, not promised" in protected.guarantee
    assert "every record is identical" not in protected.guarantee


def test_a_frame_comes_back_as_one() -> None:
    frame = pd.DataFrame(DATA["random"], columns=list("abc"), index=[f"person {i}" for i in range(41)])
    protected = protect(frame, k=10, partition="mic1d").values
    pd.testing.assert_index_equal(protected.columns, frame.columns)
    pd.testing.assert_index_equal(protected.index, frame.index)
    np.testing.assert_array_equal(protected, Mic1d().protect_values(DATA["random"], k=10))


@pytest.mark.parametrize("k", [10, 11, 12])  # 12 chunks of 10, 11 of 11, 10 of 12
def test_with_k_chunks_their_least_values_are_released_and_the_guarantee_says_so(k: int) -> None:
    """k zeros of the first scaling fill a chunk of the second; 123 values are more than 11 times 11."""
    x = DATA["random"]
    released = int(np.isclose(Mic1d().protect_values(x, k=k), x, rtol=0, atol=1e-12).sum())
    assert (released >= k) == (k <= 11)
    assert f"from {k * k} values on" in Mic1d().guarantee(k)
    assert "can still be released as they are" in Mic1d().guarantee(k)


def test_the_papers_remainder_releases_the_maximum_and_is_unfit_for_release() -> None:
    x = DATA["random"]  # 123 values: with k = 61 the last chunk is the maximum alone
    own = Mic1d(remainder="own")
    highest = np.unravel_index(np.argmax(x), x.shape)
    released = own.protect_values(x, k=61)
    plain = Mic1d().protect_values(x, k=61)
    assert released[highest] == pytest.approx(x[highest], abs=1e-14)
    assert abs(plain[highest] - x[highest]) > 0.01
    assert own.unfit_for_release == (
        "remainder = 'own' can release the file's maximum as it is; use 'join'"
    )
    assert "or of the fewer that are left over" in own.guarantee(61)
    assert "left over" not in Mic1d().guarantee(61)


@pytest.mark.parametrize("method", [Mic1d(), Mic1d(chunks="optimal")], ids=repr)
def test_the_others_are_fit(method: Mic1d) -> None:
    assert method.unfit_for_release is None


# What is refused


@pytest.mark.parametrize(
    ("stage", "given"),
    [
        ("normalize", {"normalize": "minmax"}),
        ("block", {"blocks": "single"}),
        ("block", {"blocks": Single()}),
        ("block", {"blocks": Consecutive(size=2)}),
        ("project", {"project": "pcp"}),
        ("project", {"project": Pcp()}),
        ("centroid", {"centroid": Median()}),
        ("dependence", {"dependence": 0.5, "confidential": np.arange(41.0)[:, None]}),
        ("dependence", {"dependence": 0, "confidential": np.arange(41.0)[:, None]}),
        ("centroid", {"centroid": "weighted_mean", "weights": np.ones(41)}),
    ],
)
@pytest.mark.parametrize("method", ["mic1d", Mic1d(chunks="optimal")], ids=repr)
def test_a_stage_that_has_no_effect(method: Any, stage: str, given: dict[str, Any]) -> None:
    with pytest.raises(PlanError) as refusal:
        protect(DATA["random"], k=5, partition=method, **given)
    assert str(refusal.value) == (
        f"{stage} has no effect: 'mic1d' protects the file as a whole; leave it out"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": np.ones(41)}, "weights have no effect: 'mic1d' protects .*; leave them out"),
        ({"confidential": np.ones((41, 1))}, "confidential has no effect without dependence"),
        ({"seed": 1}, "seed = 1 has no effect"),
    ],
)
def test_other_arguments_that_have_no_effect(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        protect(DATA["random"], k=5, partition="mic1d", **given)


def test_what_its_own_parameters_refuse() -> None:
    with pytest.raises(PlanError, match="chunks must be one of 'equal', 'optimal', got 'best'"):
        Mic1d(chunks="best")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="remainder must be one of 'join', 'own', got 'drop'"):
        Mic1d(remainder="drop")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="remainder = 'own' has no effect on optimal chunks"):
        Mic1d(chunks="optimal", remainder="own")


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, True, "5", None])
def test_a_k_that_is_none(k: Any) -> None:
    with pytest.raises(PlanError, match="k must be a whole number of at least 2, got"):
        protect(DATA["random"], k=k, partition="mic1d")


@pytest.mark.parametrize("method", [Mic1d(), Mic1d(remainder="own"), Mic1d(chunks="optimal")], ids=repr)
def test_k_counts_values_and_not_records(method: Mic1d) -> None:
    x = DATA["random"]
    everything = protect(x, k=123, partition=method).values
    np.testing.assert_allclose(everything, np.full((41, 3), x.mean()), rtol=1e-12)
    with pytest.raises(WaveError, match="the wave has 123 values but k = 124; lower k or add records"):
        protect(x, k=124, partition=method)


@pytest.mark.parametrize("k", [np.int8(100), np.uint8(123), np.int64(60)])
@pytest.mark.parametrize("method", [Mic1d(), Mic1d(chunks="optimal")], ids=repr)
def test_whole_numbers_of_numpy(method: Mic1d, k: Any) -> None:
    ours = protect(DATA["skewed"], k=k, partition=method)
    plain = protect(DATA["skewed"], k=int(k), partition=method)
    np.testing.assert_array_equal(ours.values, plain.values)
    assert ours.guarantee == plain.guarantee


def test_missing_cells_are_refused_as_everywhere() -> None:
    x = DATA["random"].copy()
    x[3, 1] = np.nan
    with pytest.raises(WaveError, match=r"missing cells in 1 \(1\)"):
        protect(x, k=5, partition="mic1d")


@pytest.mark.parametrize("cls", WHOLE_FILE)
def test_a_whole_file_method_promises_and_runs(cls: Any) -> None:
    """What the flow relies on, for every method of the tuple."""
    method = cls()
    x = DATA["skewed"]
    once, twice = method.protect_values(x, k=7), method.protect_values(x, k=7)
    assert once.shape == x.shape
    assert once.tobytes() == twice.tobytes()
    assert once.min() >= x.min()
    assert once.max() <= x.max()
    assert method.guarantee(7)
    assert protect(x, k=7, partition=method.method).values.tobytes() == once.tobytes()
