"""What every method of every stage promises. Partitioners have a file of their own.

A method that is added to a stage's tuple is tested here by a line in its examples.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from kohort import PlanError
from kohort.blocking import (
    BLOCKERS,
    Blocker,
    Consecutive,
    Correlated,
    Decorrelated,
    Explicit,
    Single,
    Whole,
)
from kohort.centroids import CENTROIDS, Centroid, Mean, Median, WeightedMean
from kohort.methods import Floats, method_name, parameters, resolve
from kohort.normalization import NORMALIZERS, Minmax, Normalizer, Rank, Robust, Unchanged, Zscore
from kohort.partitioning import PARTITIONERS
from kohort.projection import PROJECTIONS, Attribute, Choquet, Owa, Pcp, Projection, Sugeno, Zscores
from kohort.quantifiers import QUANTIFIERS, AtLeast, Identity, Power

NAMES = ("a", "b", "c", "d", "e")

NORMALIZER_EXAMPLES = (Zscore(), Minmax(), Rank(), Robust(), Unchanged())
BLOCKER_EXAMPLES = (
    Whole(),
    Single(),
    Consecutive(size=2),
    Explicit(blocks=(("c", "a"), ("e", "b", "d"))),
    Correlated(size=2),
    Decorrelated(size=2),
)
PROJECTION_EXAMPLES = (
    Pcp(),
    Zscores(),
    Sugeno(),
    Sugeno(quantifier=Power(alpha=2)),
    Owa(),
    Owa(quantifier=AtLeast(a=0.3, b=0.8)),
    Choquet(quantifier=Power(alpha=2), importance={"a": 2.0}),
    Attribute(name="b"),
)
CENTROID_EXAMPLES = (Mean(), Median(), WeightedMean())
QUANTIFIER_EXAMPLES = (Identity(), Power(alpha=0.5), Power(alpha=3), AtLeast(a=0.3, b=0.8))

STAGES: dict[str, tuple[type, ...]] = {
    "normalize": NORMALIZERS,
    "blocks": BLOCKERS,
    "project": PROJECTIONS,
    "partition": PARTITIONERS,
    "centroid": CENTROIDS,
    "quantifier": QUANTIFIERS,
}
EVERY_CLASS = [cls for stage in STAGES.values() for cls in stage]


def frozen(x: Floats) -> Floats:
    """A read-only copy, by column as the core keeps its tables."""
    x = np.array(x, order="F")
    x.flags.writeable = False
    return x


def records(n: int = 50, p: int = 5) -> Floats:
    """Correlated records in steps of 2^-20: an offset of 1e9 can be added exactly."""
    rng = np.random.default_rng([n, p])
    x = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return frozen(np.round(x * 2.0**20) / 2.0**20)


@pytest.mark.parametrize(
    ("stage", "examples"),
    [
        (NORMALIZERS, NORMALIZER_EXAMPLES),
        (BLOCKERS, BLOCKER_EXAMPLES),
        (PROJECTIONS, PROJECTION_EXAMPLES),
        (CENTROIDS, CENTROID_EXAMPLES),
        (QUANTIFIERS, QUANTIFIER_EXAMPLES),
    ],
)
def test_every_method_has_an_example(stage: tuple[type, ...], examples: tuple[Any, ...]) -> None:
    without = {method_name(cls) for cls in stage} - {example.method for example in examples}
    assert not without, "add an example of these"


@pytest.mark.parametrize("stage", STAGES)
def test_names_are_distinct(stage: str) -> None:
    names = [method_name(cls) for cls in STAGES[stage]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("cls", EVERY_CLASS, ids=method_name)
def test_a_method_is_a_frozen_dataclass_with_a_docstring(cls: type) -> None:
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert all(field.kw_only for field in dataclasses.fields(cls))
    assert "__dict__" not in dir(cls), "slots: a misspelt attribute cannot be set"
    assert (cls.__doc__ or "").splitlines()[0].endswith("."), "the line that `kohort methods` prints"


@pytest.mark.parametrize("stage", STAGES)
def test_a_name_becomes_its_method(stage: str) -> None:
    for cls in STAGES[stage]:
        if any(
            field.default is dataclasses.MISSING is field.default_factory for field in parameters(cls)
        ):
            with pytest.raises(
                PlanError, match=rf"{stage}='{method_name(cls)}' needs .*{cls.__name__}\("
            ):
                resolve(STAGES[stage], method_name(cls), stage)
        else:
            assert resolve(STAGES[stage], method_name(cls), stage) == cls()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("given", ["kmeans", "", "Zscore", 3, None, Mean, object()])
def test_what_is_no_method_is_refused(stage: str, given: object) -> None:
    with pytest.raises(PlanError, match=f"{stage} must be one of '{method_name(STAGES[stage][0])}'"):
        resolve(STAGES[stage], given, stage)


# Normalizers


@pytest.mark.parametrize("method", NORMALIZER_EXAMPLES, ids=repr)
def test_normalizers_keep_shape_order_and_input(method: Normalizer) -> None:
    x = records()
    z = method.normalize(x)
    assert z.shape == x.shape
    assert z.dtype == np.float64
    assert z.flags.f_contiguous
    assert not np.shares_memory(z, x)
    np.testing.assert_array_equal(np.argsort(z, axis=0), np.argsort(x, axis=0))
    np.testing.assert_array_equal(method.normalize(x), z)
    np.testing.assert_array_equal(method.normalize(np.ascontiguousarray(x)), z)


@pytest.mark.parametrize("method", NORMALIZER_EXAMPLES, ids=repr)
def test_normalizers_work_column_by_column_and_in_any_order_of_rows(method: Normalizer) -> None:
    x = records()
    z = method.normalize(x)
    rows = np.random.default_rng(1).permutation(len(x))
    np.testing.assert_allclose(method.normalize(frozen(x[rows])), z[rows], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(method.normalize(frozen(x[:, [3]]))[:, 0], z[:, 3])


@pytest.mark.parametrize("method", NORMALIZER_EXAMPLES, ids=repr)
def test_normalizers_see_through_an_offset(method: Normalizer) -> None:
    x = records()
    shift = 1e9 if isinstance(method, Unchanged) else 0.0
    z = method.normalize(frozen(x + 1e9)) - shift
    # The mean itself is known to half a step of 1.2e-7 only; it moves all records alike.
    np.testing.assert_allclose(z - z[0], method.normalize(x) - method.normalize(x)[0], atol=1e-12)


@pytest.mark.parametrize("method", NORMALIZER_EXAMPLES, ids=repr)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e9 - 0.1, 1e150, 5e-324])
def test_a_constant_column_stays_constant(method: Normalizer, value: float) -> None:
    z = method.normalize(frozen(np.full((7, 2), value)))
    assert np.isfinite(z).all()
    assert (z == z[0]).all()


@pytest.mark.parametrize("method", NORMALIZER_EXAMPLES, ids=repr)
def test_one_record_can_be_normalized(method: Normalizer) -> None:
    assert np.isfinite(method.normalize(frozen(np.array([[3.0, -1.0]])))).all()


# Blockers


@pytest.mark.parametrize("method", BLOCKER_EXAMPLES, ids=repr)
def test_blocks_are_a_partition_of_the_columns(method: Blocker) -> None:
    x = records()
    blocks = method.assign_blocks(x, names=NAMES)
    assert isinstance(blocks, tuple)
    assert all(isinstance(block, tuple) and block for block in blocks)
    assert sorted(j for block in blocks for j in block) == list(range(5))
    assert method.assign_blocks(x, names=NAMES) == blocks


# Projections


@pytest.mark.parametrize("method", PROJECTION_EXAMPLES, ids=repr)
def test_projections_give_one_number_a_record(method: Projection) -> None:
    x = records()
    axis = method.project(x, names=NAMES)
    assert axis.shape == (len(x),)
    assert axis.dtype == np.float64
    assert axis.flags.c_contiguous
    assert not np.shares_memory(axis, x)
    assert np.isfinite(axis).all()
    np.testing.assert_array_equal(method.project(x, names=NAMES), axis)
    np.testing.assert_array_equal(method.project(np.ascontiguousarray(x), names=NAMES), axis)


@pytest.mark.parametrize("method", PROJECTION_EXAMPLES, ids=repr)
def test_projections_take_rows_in_any_order_and_see_through_offsets(method: Projection) -> None:
    x = records()
    axis = method.project(x, names=NAMES)
    rows = np.random.default_rng(1).permutation(len(x))
    permuted = method.project(frozen(x[rows]), names=NAMES)
    np.testing.assert_allclose(permuted, axis[rows], rtol=1e-11, atol=1e-12)
    moved = method.project(frozen(x + 1e9), names=NAMES)
    np.testing.assert_array_equal(np.argsort(moved, kind="stable"), np.argsort(axis, kind="stable"))


@pytest.mark.parametrize("method", PROJECTION_EXAMPLES, ids=repr)
def test_projections_of_one_column_keep_its_order(method: Projection) -> None:
    x = records(40, 1)
    axis = method.project(x, names=["b"])
    if isinstance(method, Sugeno):  # min(Q(1), a) = a: the scaled column itself
        np.testing.assert_array_equal(axis, Minmax().normalize(x)[:, 0])
    np.testing.assert_array_equal(np.argsort(axis), np.argsort(x[:, 0]))


@pytest.mark.parametrize("method", PROJECTION_EXAMPLES, ids=repr)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e150])
def test_projections_of_constant_columns_are_constant(method: Projection, value: float) -> None:
    axis = method.project(frozen(np.full((6, 5), value)), names=NAMES)
    assert np.isfinite(axis).all()
    assert (axis == axis[0]).all()


# Centroids


def replace(method: Centroid, x: Floats, groups: list[int] | np.ndarray) -> Floats:
    weights = np.linspace(0.5, 2.0, len(x)) if method.takes_weights else None
    return method.replace(x, np.asarray(groups, np.int32), weights=weights)


@pytest.mark.parametrize("method", CENTROID_EXAMPLES, ids=repr)
def test_centroids_are_one_record_a_group_within_its_range(method: Centroid) -> None:
    x = records(53)
    groups = np.random.default_rng(5).permutation(np.arange(53) // 5 % 10)
    values = replace(method, x, groups)
    assert values.shape == x.shape
    assert values.flags.f_contiguous
    assert not np.shares_memory(values, x)
    for g in range(10):
        members = x[groups == g]
        assert (values[groups == g] == values[groups == g][0]).all()
        assert (members.min(axis=0) <= values[groups == g]).all()
        assert (values[groups == g] <= members.max(axis=0)).all()
    np.testing.assert_array_equal(replace(method, np.ascontiguousarray(x), groups), values)


@pytest.mark.parametrize("method", CENTROID_EXAMPLES, ids=repr)
@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, -1e150, 5e-324])
def test_a_group_of_equal_values_keeps_exactly_that_value(method: Centroid, value: float) -> None:
    x = frozen(np.full((7, 2), value))
    assert (replace(method, x, [0, 1, 0, 1, 0, 1, 0]) == value).all()


@pytest.mark.parametrize("method", CENTROID_EXAMPLES, ids=repr)
def test_zeros_of_either_sign_are_released_as_one_value(method: Centroid) -> None:
    x = frozen(np.array([[-0.0], [-0.0], [0.0], [-0.0]]))
    assert not np.signbit(replace(method, x, [0, 0, 1, 1])).any()


@pytest.mark.parametrize("method", CENTROID_EXAMPLES, ids=repr)
def test_weights_are_taken_or_refused(method: Centroid) -> None:
    x = records(6)
    groups = np.zeros(6, np.int32)
    with pytest.raises(PlanError, match="weights"):
        method.replace(x, groups, weights=None if method.takes_weights else np.ones(6))


# Quantifiers


@pytest.mark.parametrize("quantifier", QUANTIFIER_EXAMPLES, ids=repr)
def test_quantifiers_rise_from_0_to_1(quantifier: Identity | Power | AtLeast) -> None:
    values = quantifier.quantify(np.linspace(0.0, 1.0, 101))
    assert values[0] == 0.0
    assert values[-1] == 1.0
    assert (np.diff(values) >= 0.0).all()
