"""OWA and the Choquet integral as projections, against the textbook in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kohort import PlanError, protect
from kohort.blocking import Consecutive
from kohort.methods import Floats
from kohort.projection import Choquet, Owa
from kohort.quantifiers import AtLeast, Identity, Power, Quantifier

NAMES = ["a", "b", "c", "d", "e", "f", "g"]
QUANTIFIERS: list[tuple[Quantifier, Callable[[float], float]]] = [
    (Identity(), lambda s: s),
    (Power(alpha=0.5), lambda s: s**0.5),
    (Power(alpha=3), lambda s: s**3),
    (AtLeast(a=0.0, b=0.5), lambda s: min(1.0, s / 0.5)),
    (AtLeast(a=0.3, b=0.8), lambda s: min(1.0, max(0.0, (s - 0.3) / 0.5))),
]
every_quantifier = pytest.mark.parametrize(
    ("quantifier", "quantify"), QUANTIFIERS, ids=[repr(q)[:32] for q, _ in QUANTIFIERS]
)


def random(p: int, n: int = 40) -> Floats:
    rng = np.random.default_rng(p)
    return rng.normal(size=(n, p)) * rng.lognormal(0, 2, p)


def tied(p: int) -> Floats:
    """Few distinct values, a constant attribute, and records whose attributes are all equal."""
    x = np.random.default_rng(p).integers(0, 3, size=(40, p)).astype(np.float64)
    x[:2] = [[0.0], [2.0]]
    if p > 2:
        x[:, 1] = 7.0
    return x


every_data = pytest.mark.parametrize("data", [random, tied])
every_p = pytest.mark.parametrize("p", [1, 2, 3, 5, 7])


def minmax(x: Floats) -> list[list[float]]:
    columns = []
    for column in x.T.tolist():
        low, high = min(column), max(column)
        columns.append([0.5 if low == high else (value - low) / (high - low) for value in column])
    return [list(row) for row in zip(*columns, strict=True)]


def textbook_owa(a: list[float], quantify: Callable[[float], float]) -> float:
    """sum_i w_i a_(i), a in descending order, w_i = Q(i/N) - Q((i-1)/N)."""
    n = len(a)
    descending = sorted(a, reverse=True)
    return sum((quantify(i / n) - quantify((i - 1) / n)) * descending[i - 1] for i in range(1, n + 1))


def textbook_choquet(a: list[float], quantify: Callable[[float], float], w: list[float]) -> float:
    """sum over ascending levels t of (t - the level below) · mu(attributes of at least t)."""
    total, below = 0.0, 0.0
    for level in sorted(set(a)):
        share = sum(weight for value, weight in zip(a, w, strict=True) if value >= level) / sum(w)
        total += (level - below) * quantify(share)
        below = level
    return total


@every_quantifier
@every_data
@every_p
def test_owa_is_the_textbooks(
    quantifier: Quantifier, quantify: Callable[[float], float], data: Any, p: int
) -> None:
    x = data(p)
    expected = [textbook_owa(row, quantify) for row in minmax(x)]
    axis = Owa(quantifier=quantifier).project(x, names=NAMES[:p])
    np.testing.assert_allclose(axis, expected, rtol=1e-12, atol=1e-14)


@every_quantifier
@every_data
@every_p
def test_choquet_without_importance_is_owa(
    quantifier: Quantifier, quantify: Callable[[float], float], data: Any, p: int
) -> None:
    x = data(p)
    owa = Owa(quantifier=quantifier).project(x, names=NAMES[:p])
    choquet = Choquet(quantifier=quantifier).project(x, names=NAMES[:p])
    np.testing.assert_allclose(choquet, owa, rtol=1e-12, atol=1e-12)
    equal = dict.fromkeys(NAMES[:p], 4.0)  # the same importance for all is no importance
    choquet = Choquet(quantifier=quantifier, importance=equal).project(x, names=NAMES[:p])
    np.testing.assert_allclose(choquet, owa, rtol=1e-12, atol=1e-12)


@every_quantifier
@every_data
@every_p
@pytest.mark.parametrize("importance", [{"a": 3.0}, {"a": 0.25, "c": 10}, {"b": 1e-9, "g": 1e9}])
def test_choquet_with_importance_is_the_textbooks(
    quantifier: Quantifier,
    quantify: Callable[[float], float],
    data: Any,
    p: int,
    importance: dict[str, float],
) -> None:
    x = data(p)
    weights = [importance.get(name, 1.0) for name in NAMES[:p]]
    expected = [textbook_choquet(row, quantify, weights) for row in minmax(x)]
    method = Choquet(quantifier=quantifier, importance=importance)
    np.testing.assert_allclose(method.project(x, names=NAMES[:p]), expected, rtol=1e-12, atol=1e-12)


# What the quantifiers mean


@every_data
@every_p
def test_the_identity_is_the_mean(data: Any, p: int) -> None:
    x = data(p)
    expected = np.mean(minmax(x), axis=1)
    np.testing.assert_allclose(Owa().project(x, names=NAMES[:p]), expected, rtol=1e-12)
    np.testing.assert_allclose(Choquet().project(x, names=NAMES[:p]), expected, rtol=1e-12)


@every_data
@every_p
def test_at_least_one_is_the_largest_and_all_is_the_least(data: Any, p: int) -> None:
    x = data(p)
    scaled = np.array(minmax(x))
    for method in (Owa, Choquet):
        one = method(quantifier=AtLeast(a=0.0, b=1 / p)).project(x, names=NAMES[:p])
        np.testing.assert_allclose(one, scaled.max(axis=1), rtol=1e-12, atol=1e-14)
        every = method(quantifier=AtLeast(a=1 - 1 / p, b=1.0)).project(x, names=NAMES[:p])
        np.testing.assert_allclose(every, scaled.min(axis=1), rtol=1e-12, atol=1e-14)


def test_the_identity_with_importance_is_the_weighted_mean() -> None:
    x = random(3)
    axis = Choquet(importance={"a": 2.0, "c": 5.0}).project(x, names=NAMES[:3])
    np.testing.assert_allclose(axis, np.average(minmax(x), axis=1, weights=[2, 1, 5]), rtol=1e-12)


def test_an_attribute_of_overwhelming_importance_decides_the_order() -> None:
    x = random(4)
    axis = Choquet(quantifier=Power(alpha=2), importance={"c": 1e12}).project(x, names=NAMES[:4])
    np.testing.assert_array_equal(np.argsort(axis), np.argsort(x[:, 2]))


def test_owa_over_more_than_one_chunk_of_records() -> None:
    x = random(4, 1300)
    expected = [textbook_owa(row, lambda s: s**2) for row in minmax(x)]
    axis = Owa(quantifier=Power(alpha=2)).project(x, names=NAMES[:4])
    np.testing.assert_allclose(axis, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("method", [Owa(), Choquet(importance={"a": 2.0})], ids=repr)
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(1, 9), st.integers(1, 3)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e-160, -1e150, 1e150])
        | st.floats(min_value=-1e150, max_value=1e150),
    )
)
def test_an_axis_stays_between_0_and_1(method: Owa | Choquet, x: Floats) -> None:
    axis = method.project(x, names=NAMES[: x.shape[1]])
    assert (axis >= -1e-15).all()
    assert (axis <= 1 + 1e-15).all()


# In protect, and what is refused


@pytest.mark.parametrize(
    "method", [Owa(quantifier=Power(alpha=2)), Choquet(importance={"1": 3.0})], ids=repr
)
def test_protect_orders_by_it(method: Any) -> None:
    x = random(4)
    protected = protect(x, k=5, project=method, partition="fixed")
    axis = method.project(x, names=["0", "1", "2", "3"])
    expected = np.minimum(np.argsort(np.argsort(axis, kind="stable")) // 5, len(x) // 5 - 1)
    np.testing.assert_array_equal(protected.groups[:, 0], expected)


def test_importance_may_name_attributes_of_other_blocks() -> None:
    x = random(4)
    asked: dict[str, Any] = {"k": 4, "blocks": Consecutive(size=2)}
    protected = protect(x, **asked, project=Choquet(importance={"0": 5.0, "3": 0.2}))
    for number, importance in enumerate(({"0": 5.0}, {"1": 0.2})):
        part = protect(x[:, 2 * number : 2 * number + 2], k=4, project=Choquet(importance=importance))
        np.testing.assert_array_equal(protected.groups[:, number], part.groups[:, 0])


def test_importance_of_what_is_no_attribute_is_refused() -> None:
    method = Choquet(importance={"0": 2.0, "income": 1.0, "tax": 3.0})
    with pytest.raises(PlanError) as refusal:
        protect(random(3), k=3, project=method)
    assert str(refusal.value) == "importance: 'income', 'tax' is no quasi-identifier; remove it"


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "2", None, True])
def test_an_importance_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(PlanError, match="importance of 'a' must be a number above 0, got"):
        Choquet(importance={"a": value})


@pytest.mark.parametrize("value", [np.int64(3), np.float32(3), 3])
def test_an_importance_may_be_any_number(value: Any) -> None:
    x = random(3)
    expected = Choquet(importance={"b": 3.0}).project(x, names=NAMES[:3])
    axis = Choquet(importance={"b": value}).project(x, names=NAMES[:3])
    np.testing.assert_array_equal(axis, expected)


@pytest.mark.parametrize("importance", [None, [("a", 2.0)], 2.0, "a"])
def test_importance_that_is_no_mapping_is_refused(importance: Any) -> None:
    with pytest.raises(PlanError, match="importance must be a number for each name, got"):
        Choquet(importance=importance)


@pytest.mark.parametrize("method", [Owa, Choquet])
@pytest.mark.parametrize("quantifier", ["power", None, Power])
def test_a_quantifier_that_is_none_is_refused(method: Any, quantifier: object) -> None:
    with pytest.raises(PlanError, match="quantifier must be an Identity, a Power or an AtLeast"):
        method(quantifier=quantifier)
