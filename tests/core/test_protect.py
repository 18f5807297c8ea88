"""`protect`: all stages in memory, and everything that it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort import KohortError, PlanError, WaveError, protect
from kohort.blocking import Consecutive, Explicit, Single, Whole
from kohort.centroids import CENTROIDS, Mean, WeightedMean
from kohort.evaluation import loss, min_anonymity
from kohort.methods import Floats, method_name
from kohort.normalization import Minmax, Zscore
from kohort.partitioning import Fixed, Optimal
from kohort.projection import Attribute, Pcp, Sugeno, Zscores
from kohort.protect import Stages
from kohort.quantifiers import Power

RNG = np.random.default_rng(17)
START = RNG.bit_generator.state
SENTINEL = 31415926.5


@pytest.fixture(autouse=True)
def same_draws_when_run_alone() -> None:
    RNG.bit_generator.state = START


def table(n: int = 60, p: int = 5) -> Floats:
    return RNG.normal(size=(n, p)) + RNG.normal(size=(n, 1))


# What comes out


def test_stages_are_put_together_as_the_definitions_say() -> None:
    x = table()
    names = ["0", "1", "2", "3", "4"]
    protected = protect(
        x,
        k=4,
        normalize="minmax",
        blocks=Consecutive(size=3),
        project="zscores",
        partition=Optimal(cost="block"),
    )
    assert protected.blocks == ((0, 1, 2), (3, 4))
    z = Minmax().normalize(x)
    for number, block in enumerate(protected.blocks):
        axis = Zscores().project(x[:, block], names=[names[j] for j in block])
        groups = Optimal(cost="block").partition(z[:, block], k=4, axis=axis)
        np.testing.assert_array_equal(protected.groups[:, number], groups)
        np.testing.assert_array_equal(protected.values[:, block], Mean().replace(x[:, block], groups))
    assert protected.groups.dtype == np.int32


def test_without_a_projection_it_is_pcp_or_the_only_attribute() -> None:
    x = table()
    whole = protect(x, k=3)
    named = protect(x, k=3, project="pcp")
    np.testing.assert_array_equal(whole.groups, named.groups)
    single = protect(x, k=3, blocks="single")
    for j in range(5):
        alone = protect(x[:, [j]], k=3, project=Attribute(name="0"))
        np.testing.assert_array_equal(single.groups[:, j], alone.groups[:, 0])
        np.testing.assert_array_equal(single.values[:, j], alone.values[:, 0])


def test_names_and_objects_are_the_same() -> None:
    x = table()
    by_name = protect(
        x, k=3, normalize="zscore", blocks="single", project="pcp", partition="fixed", centroid="mean"
    )
    by_object = protect(
        x, k=3, normalize=Zscore(), blocks=Single(), project=Pcp(), partition=Fixed(), centroid=Mean()
    )
    np.testing.assert_array_equal(by_name.values, by_object.values)
    np.testing.assert_array_equal(by_name.groups, by_object.groups)


def test_values_keep_means_and_lose_something() -> None:
    x = table(200)
    protected = protect(x, k=5, project=Sugeno(quantifier=Power(alpha=2)))
    np.testing.assert_allclose(protected.values.mean(axis=0), x.mean(axis=0), rtol=1e-12)
    assert 0.0 < (loss(x, protected.values) or 0.0) < 1.0
    assert min_anonymity(protected.values) >= 5


def test_blocks_go_back_to_their_own_columns() -> None:
    x = table()
    names = list("abcde")
    frame = pd.DataFrame(x, columns=names)
    blocks = Explicit(blocks=(("e", "a"), ("c", "b", "d")))
    protected = protect(frame, k=3, blocks=blocks, project="zscores", partition="fixed")
    assert protected.blocks == ((4, 0), (2, 1, 3))
    for number, block in enumerate(protected.blocks):
        np.testing.assert_array_equal(
            protected.values.to_numpy()[:, block],
            Mean().replace(x[:, block], protected.groups[:, number]),
        )


def test_weights_move_centroids_and_not_groups() -> None:
    x = table()
    weights = RNG.lognormal(size=60)
    plain = protect(x, k=4, blocks="single")
    weighted = protect(x, k=4, blocks="single", centroid="weighted_mean", weights=weights)
    np.testing.assert_array_equal(plain.groups, weighted.groups)
    assert (plain.values != weighted.values).any()
    for j in range(5):
        expected = WeightedMean().replace(x[:, [j]], plain.groups[:, j].copy(), weights=weights)
        np.testing.assert_array_equal(weighted.values[:, [j]], expected)


# A DataFrame in, a DataFrame out


def test_a_frame_comes_back_with_its_columns_and_index() -> None:
    frame = pd.DataFrame(
        {"age": np.arange(10), "income": RNG.normal(size=10), "small": np.arange(10, dtype=np.float32)},
        index=pd.Index([f"person {i}" for i in range(10)], name="who"),
    )
    before = frame.copy()
    protected = protect(frame, k=3)
    assert isinstance(protected.values, pd.DataFrame)
    pd.testing.assert_index_equal(protected.values.columns, frame.columns)
    pd.testing.assert_index_equal(protected.values.index, frame.index)
    assert (protected.values.dtypes == np.float64).all()
    np.testing.assert_array_equal(protected.values, protect(frame.to_numpy(np.float64), k=3).values)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int64[pyarrow]", "int8", "bool"])
def test_frames_of_any_numbers(dtype: str) -> None:
    whole = pd.Series([0, 1, 1, 0, 1, 0], dtype="int64")
    frame = pd.DataFrame({"a": whole.astype(dtype), "b": np.arange(6.0)})
    expected = protect(np.column_stack([whole, np.arange(6.0)]), k=3).values
    np.testing.assert_array_equal(protect(frame, k=3).values, expected)


def test_columns_need_not_be_named_by_text() -> None:
    frame = pd.DataFrame(table(9, 2), columns=[2026, ("a", 1)])
    assert list(protect(frame, k=3).values.columns) == [2026, ("a", 1)]


def test_any_order_of_memory_and_lists_of_lists() -> None:
    x = table(30, 3)
    expected = protect(x, k=3).values
    for same in (np.asfortranarray(x), x[::1], np.repeat(x, 2, axis=1)[:, ::2], x.tolist()):
        np.testing.assert_array_equal(protect(same, k=3).values, expected)


def test_the_input_is_left_alone() -> None:
    x = np.asfortranarray(table())
    weights = RNG.lognormal(size=60)
    x.flags.writeable = weights.flags.writeable = False
    before = x.copy()
    protected = protect(x, k=3, centroid="weighted_mean", weights=weights)
    np.testing.assert_array_equal(x, before)
    assert not np.shares_memory(protected.values, x)


def test_k_may_be_an_integer_of_numpy() -> None:
    x = table(450, 2)
    expected = protect(x, k=200, partition=Optimal(cost="block")).groups
    small = protect(x, k=np.uint8(200), partition=Optimal(cost="block")).groups  # type: ignore[arg-type]
    np.testing.assert_array_equal(small, expected)


# What is refused: arguments that have no effect


def no_effect(x: Any = None, **arguments: Any) -> str:
    with pytest.raises(PlanError) as refusal:
        protect(table() if x is None else x, **{"k": 3, **arguments})
    return str(refusal.value)


@pytest.mark.parametrize("centroid", [m for m in map(method_name, CENTROIDS) if m != "weighted_mean"])
def test_weights_without_a_weighted_centroid(centroid: str) -> None:
    message = no_effect(centroid=centroid, weights=np.ones(60))
    assert message == f"weights have no effect on centroid '{centroid}'; use 'weighted_mean'"


def test_a_weighted_centroid_without_weights() -> None:
    assert no_effect(centroid="weighted_mean") == "centroid 'weighted_mean' needs weights; pass weights="


@pytest.mark.parametrize("normalize", ["minmax", "rank", "robust", "none"])
@pytest.mark.parametrize("partition", [Fixed(), Optimal()], ids=repr)
def test_a_normalizer_that_nothing_uses(normalize: str, partition: Any) -> None:
    message = no_effect(normalize=normalize, partition=partition)
    assert f"normalize '{normalize}' has no effect" in message
    changed = protect(table(), k=3, normalize=normalize, partition=Optimal(cost="block"))
    assert changed.groups.shape == (60, 1)


class InSpace:
    """A partitioner that needs no axis."""

    needs_axis = False
    uses_normalized = True
    method = "in_space"


def test_a_projection_for_a_partitioner_in_space() -> None:
    in_space: Any = InSpace()
    with pytest.raises(
        PlanError, match="project 'pcp' has no effect: partition 'in_space' works in space"
    ):
        Stages(normalize=Zscore(), blocks=Whole(), project=Pcp(), partition=in_space, centroid=Mean())


@pytest.mark.parametrize("seed", [1, -1, 12345])
def test_a_seed_that_nothing_draws_from(seed: int) -> None:
    assert no_effect(seed=seed).startswith(f"seed = {seed} has no effect")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 1}, "k must be a whole number of at least 2, got 1"),
        ({"k": 2.5}, "k must be a whole number of at least 2, got 2.5"),
        ({"k": True}, "k must be a whole number of at least 2, got True"),
        ({"partition": "kmeans"}, "partition must be one of 'fixed', 'optimal'.*, got 'kmeans'"),
        ({"normalize": "z"}, "normalize must be one of 'zscore', .*, got 'z'"),
        ({"blocks": [[0, 1]]}, "blocks must be one of 'whole', .*, got list"),
        ({"blocks": "consecutive"}, r"blocks='consecutive' needs size; pass Consecutive\(size=...\)"),
        ({"blocks": "explicit"}, r"blocks='explicit' needs blocks; pass Explicit\(blocks=...\)"),
        ({"project": "attribute"}, r"project='attribute' needs name; pass Attribute\(name=...\)"),
        ({"project": Attribute(name="income")}, "attribute 'income' is not in the block of '0', '1'"),
        ({"blocks": Consecutive(size=6)}, "size = 6 but there are 5 quasi-identifiers"),
        ({"centroid": Fixed()}, "centroid must be one of 'mean', .*, got Fixed"),
        ({"project": Sugeno}, "project must be one of 'pcp', .*, got"),
    ],
)
def test_requests_that_are_wrong(arguments: dict[str, Any], message: str) -> None:
    assert re.search(message, no_effect(**arguments))


# What is refused: data


def planted(value: float, *, column: int = 1) -> Floats:
    x = table()
    x[0, 0] = SENTINEL
    x[[3, 7], column] = value
    return x


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (np.nan, "missing cells"),
        (np.inf, "infinite cells"),
        (-np.inf, "infinite cells"),
        (1.1e150, "beyond"),
    ],
)
def test_cells_that_cannot_be_protected_are_counted_by_column(value: float, rule: str) -> None:
    frame = pd.DataFrame(planted(value), columns=list("abcde"))
    frame.loc[5, "d"] = value
    with pytest.raises(WaveError, match=rule) as refusal:
        protect(frame, k=3)
    assert "b (2), d (1)" in str(refusal.value)


def test_missing_cells_of_nullable_columns_are_missing_cells() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], "Int64"), "b": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(WaveError, match=r"missing cells in a \(1\)"):
        protect(frame, k=3)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["31415926", "2", "3", "4"]),
        pd.Series(["31415926", "2", "3", "4"], dtype=object),
        pd.Series(pd.date_range("2026-01-01", periods=4)),
        pd.Series(pd.Categorical([31415926, 2, 3, 4])),
        pd.Series([1j, 2, 3, 4]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_what_only_looks_like_numbers_is_refused_by_name(column: pd.Series) -> None:
    frame = pd.DataFrame({"income": [1.0, 2.0, 3.0, 4.0], "code": column})
    with pytest.raises(WaveError, match="not numeric: code; leave those attributes out"):
        protect(frame, k=3)


@pytest.mark.parametrize("dtype", [str, object, complex, "datetime64[s]"])
def test_arrays_of_what_only_looks_like_numbers_are_refused(dtype: Any) -> None:
    with pytest.raises(WaveError, match="every attribute must be numeric"):
        protect(np.arange(8).reshape(4, 2).astype(dtype), k=3)


def test_two_columns_of_one_name_are_refused() -> None:
    """By name only one of them could be put in a block: the other would be released as it is."""
    blocks = Explicit(blocks=(("a",), ("b",)))
    for names in (["a", "a", "b"], ["b", "a", "b"]):
        with pytest.raises(
            WaveError, match=r"more than one column is named [ab]; give each its own name"
        ):
            protect(pd.DataFrame(table(9, 3), columns=names), k=3, blocks=blocks)
    with pytest.raises(WaveError, match="more than one column is named 1;"):
        protect(pd.DataFrame(table(9, 2), columns=[1, "1"]), k=3)


@pytest.mark.parametrize(
    "x",
    [np.zeros(5), np.zeros((5, 0)), np.zeros((5, 2, 2)), np.float64(1), pd.DataFrame(index=range(5))],
    ids=lambda x: str(np.shape(x)),
)
def test_what_is_no_table_is_refused(x: Any) -> None:
    with pytest.raises(WaveError, match="x must have two dimensions"):
        protect(x, k=3)


def test_records_of_unequal_length_are_refused() -> None:
    with pytest.raises(WaveError, match="every record needs the same attributes"):
        protect([[1.0, 2.0], [SENTINEL]], k=3)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_fewer_than_k_records_are_refused(n: int) -> None:
    with pytest.raises(WaveError, match=f"the wave has {n} records but k = 5"):
        protect(np.zeros((n, 2)), k=5)


@pytest.mark.parametrize("wrong", [0.0, -0.0, -1.0, np.nan, np.inf, 1e151, 1e-151])
def test_weights_that_are_none_are_counted(wrong: float) -> None:
    weights = np.ones(60)
    weights[[2, 9]] = wrong
    with pytest.raises(WaveError, match=r"^2 of 60 weights are missing, infinite, not above 0"):
        protect(table(), k=3, centroid="weighted_mean", weights=weights)


@pytest.mark.parametrize("weights", [np.ones(59), np.ones((60, 1)), 1.0, ["heavy"] * 60])
def test_weights_that_are_not_one_a_record_are_refused(weights: Any) -> None:
    with pytest.raises(WaveError, match="weights must be"):
        protect(table(), k=3, centroid="weighted_mean", weights=weights)


@pytest.mark.parametrize(
    ("x", "arguments"),
    [
        (planted(np.nan), {}),
        (planted(np.inf), {}),
        (planted(1e151), {}),
        (np.array([[SENTINEL, 1.0], [2.0, 3.0]]), {}),
        (np.array([[str(SENTINEL)], ["a"], ["b"]]), {}),
        (np.array([[SENTINEL], [None], [2.0]], object), {}),
        (SENTINEL * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), {}),
        (table(), {"centroid": "weighted_mean", "weights": [*[1.0] * 58, SENTINEL, -SENTINEL]}),
        (table(), {"centroid": "weighted_mean", "weights": [str(SENTINEL)] * 59 + ["x"]}),
    ],
)
def test_refusals_carry_no_cell(x: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(KohortError) as refusal:
        protect(x, k=3, **arguments)
    assert "3141592" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


# Anything finite


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(3, 30), st.integers(1, 3)),
        elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, 1e-160, -1e150, 1e150, 1e9])
        | st.floats(min_value=-1e150, max_value=1e150),
    ),
    project=st.sampled_from(["pcp", "zscores", "sugeno"]),
    partition=st.sampled_from([Fixed(), Optimal(), Optimal(cost="block")]),
    centroid=st.sampled_from(["mean", "median"]),
)
def test_any_finite_table_is_protected(x: Floats, project: str, partition: Any, centroid: str) -> None:
    try:
        protected = protect(x, k=3, project=project, partition=partition, centroid=centroid)
    except WaveError as refusal:
        assert project == "pcp"
        assert "two largest eigenvalues are equal" in str(refusal)  # noqa: PT017
        return
    assert np.isfinite(protected.values).all()
    assert min_anonymity(protected.values) >= 3
