"""Projections against numpy's eigenvectors and the textbook's integral."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from kohort import PlanError, WaveError
from kohort.kernels.statistics import correlation, eigen, mean_and_std
from kohort.methods import Floats
from kohort.projection import Attribute, Pcp, Sugeno, Zscores, first_component
from kohort.quantifiers import AtLeast, Identity, Power, Quantifier

RNG = np.random.default_rng(7)
START = RNG.bit_generator.state
NAMES = ["a", "b", "c", "d", "e", "f", "g"]


@pytest.fixture(autouse=True)
def same_draws_when_run_alone() -> None:
    RNG.bit_generator.state = START


def correlated(n: int, p: int) -> Floats:
    return RNG.normal(size=(n, p)) * RNG.lognormal(0, 2, p) + RNG.normal(size=(n, 1)) @ RNG.normal(
        size=(1, p)
    )


# The first principal component


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7])
def test_pcp_is_z_times_the_first_eigenvector(p: int) -> None:
    for _ in range(5):
        x = correlated(200, p)
        z = stats.zscore(x)
        vector = np.linalg.eigh(z.T @ z / 200)[1][:, -1]
        if p != 2:
            vector *= np.sign(vector.sum())
        else:  # loadings of 1, 1 or of 1, -1
            vector *= np.sign(vector[0])
        np.testing.assert_allclose(Pcp().project(x, names=NAMES[:p]), z @ vector, rtol=1e-8, atol=1e-10)


def test_loadings_that_sum_to_0_have_a_positive_first_one() -> None:
    x = RNG.normal(size=(100, 1)) * [1.0, -2.0] + 0.1 * RNG.normal(size=(100, 2))
    z = stats.zscore(x)
    axis = Pcp().project(x, names=["a", "b"])
    np.testing.assert_allclose(axis, (z[:, 0] - z[:, 1]) / np.sqrt(2), atol=1e-12)
    swapped = Pcp().project(x[:, ::-1], names=["b", "a"])
    np.testing.assert_allclose(swapped, (z[:, 1] - z[:, 0]) / np.sqrt(2), atol=1e-12)


@pytest.mark.parametrize(
    ("loadings", "expected"),
    [
        ([-0.6, -0.8], [0.6, 0.8]),
        ([-0.6, 0.8], [-0.6, 0.8]),
        ([0.6, -0.8], [-0.6, 0.8]),
        ([-1.0, 1.0], [1.0, -1.0]),
        ([1e-10, -1.0, 1.0], [-1e-10, 1.0, -1.0]),  # the first loading is rounding only
        ([-1.0, 1.0 + 1e-10], [1.0, -1.0 - 1e-10]),  # and here the sum is
        ([-1.0, 1.0 + 1e-8], [-1.0, 1.0 + 1e-8]),
    ],
)
def test_the_sign_of_loadings(loadings: list[float], expected: list[float]) -> None:
    p = len(loadings)
    vectors = np.zeros((p, p))
    vectors[:, 1] = loadings
    values = np.zeros(p)
    values[1] = 2.0
    assert first_component(values, vectors, names=NAMES[:p]).tolist() == expected


def test_a_repeated_largest_eigenvalue_is_refused() -> None:
    uncorrelated = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    with pytest.raises(WaveError, match="the block of a, b has no single first principal component"):
        Pcp().project(uncorrelated, names=["a", "b"])
    # Two pairs of equal columns: eigenvalues 2, 2, 0, 0.
    with pytest.raises(WaveError, match="two largest eigenvalues are equal"):
        Pcp().project(uncorrelated[:, [0, 0, 1, 1]], names=NAMES[:4])


def test_a_repeated_smaller_eigenvalue_is_not() -> None:
    x = np.repeat(RNG.normal(size=(50, 1)), 3, axis=1)  # eigenvalues 3, 0, 0
    np.testing.assert_allclose(
        Pcp().project(x, names=NAMES[:3]), stats.zscore(x[:, 0]) * np.sqrt(3), rtol=1e-10, atol=1e-12
    )


def test_a_constant_column_counts_for_nothing() -> None:
    x = correlated(80, 3)
    wide = np.column_stack([x[:, :1], np.full(80, 1e9 + 0.1), x[:, 1:]])
    for method in (Pcp(), Zscores()):
        np.testing.assert_allclose(
            method.project(wide, names=NAMES[:4]), method.project(x, names=NAMES[:3]), atol=1e-12
        )
    # Beside a constant one, the only other column is the component.
    pair = np.column_stack([np.full(80, 0.1), -x[:, 0]])
    np.testing.assert_allclose(Pcp().project(pair, names=["a", "b"]), -stats.zscore(x[:, 0]), atol=1e-12)


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_eigen_solves_symmetric_matrices(p: int) -> None:
    for _ in range(5):
        matrix = RNG.normal(size=(p, p))
        matrix = matrix + matrix.T
        values, vectors = eigen(matrix)
        np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(p), atol=1e-13)
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12 * p)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_statistics_are_those_of_numpy(n: int, offset: float) -> None:
    near = np.round(RNG.normal(size=(n, 3)) * 2.0**20) / 2.0**20
    x = np.asfortranarray(near + offset)
    mean, std = mean_and_std(x)
    np.testing.assert_allclose(mean - offset, near.mean(axis=0), rtol=1e-12, atol=2e-16 * (1 + offset))
    np.testing.assert_allclose(std, near.std(axis=0), rtol=1e-12)
    if n > 1:
        np.testing.assert_allclose(
            correlation(x, mean, std), np.corrcoef(near, rowvar=False), rtol=1e-11, atol=1e-12
        )


# Zscores and attribute


def test_zscores_is_the_sum_of_standardised_columns() -> None:
    x = correlated(100, 5)
    expected = stats.zscore(x).sum(axis=1)
    np.testing.assert_allclose(Zscores().project(x, names=NAMES[:5]), expected, rtol=1e-10, atol=1e-12)


def test_attribute_is_its_column() -> None:
    x = correlated(20, 3)
    np.testing.assert_array_equal(Attribute(name="b").project(x, names=NAMES[:3]), x[:, 1])
    with pytest.raises(PlanError, match="attribute 'z' is not in the block of 'a', 'b', 'c'"):
        Attribute(name="z").project(x, names=NAMES[:3])


# The Sugeno integral


def minmax(x: Floats) -> Floats:
    width = np.ptp(x, axis=0)
    return np.where(width == 0, 0.5, (x - x.min(axis=0)) / np.where(width == 0, 1.0, width))


def sugeno_over_sets(a: Floats, quantify: Callable[[float], float]) -> float:
    """The textbook's: the largest, over all sets of attributes, of min(Q(|A|/N), their least value)."""
    p = len(a)
    return max(
        min(quantify(size / p), min(chosen))
        for size in range(1, p + 1)
        for chosen in combinations(a, size)
    )


QUANTIFIERS: list[tuple[Quantifier, Callable[[float], float]]] = [
    (Identity(), lambda s: s),
    (Power(alpha=0.5), lambda s: s**0.5),
    (Power(alpha=3), lambda s: s**3),
    (AtLeast(a=0.0, b=0.5), lambda s: min(1.0, s / 0.5)),
    (AtLeast(a=0.3, b=0.8), lambda s: min(1.0, max(0.0, (s - 0.3) / 0.5))),
    (AtLeast(a=0.99, b=1.0), lambda s: min(1.0, max(0.0, (s - 0.99) / 0.01))),
]


@pytest.mark.parametrize(("quantifier", "quantify"), QUANTIFIERS, ids=lambda q: repr(q)[:40])
@pytest.mark.parametrize("p", [1, 2, 3, 5, 7])
def test_sugeno_is_the_textbooks(
    quantifier: Quantifier, quantify: Callable[[float], float], p: int
) -> None:
    x = np.round(correlated(40, p), 1)
    if p > 2:
        x[:, 1] = 7.0  # a constant attribute is 0.5 for everyone
    expected = [sugeno_over_sets(row, quantify) for row in minmax(x)]
    axis = Sugeno(quantifier=quantifier).project(x, names=NAMES[:p])
    np.testing.assert_allclose(axis, expected, rtol=1e-14, atol=1e-15)


def test_sugeno_over_more_than_one_chunk_of_records() -> None:
    x = RNG.normal(size=(1300, 4))
    descending = -np.sort(-minmax(x), axis=1)
    expected = np.minimum(descending, np.arange(1, 5) / 4).max(axis=1)
    np.testing.assert_array_equal(Sugeno().project(x, names=NAMES[:4]), expected)


@pytest.mark.parametrize("alpha", [0, -1, np.inf, np.nan, "1", None, True])
def test_powers_that_are_none_are_refused(alpha: object) -> None:
    with pytest.raises(PlanError, match="alpha must be a number above 0, got"):
        Power(alpha=alpha)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("a", "b", "wrong"),
    [
        (-0.1, 0.5, "a"),
        (1.0, 1.0, "a"),
        (np.nan, 1.0, "a"),
        (0.5, 0.5, "b"),
        (0.5, 0.4, "b"),
        (0, 1.1, "b"),
    ],
)
def test_bounds_of_at_least_that_are_none_are_refused(a: float, b: float, wrong: str) -> None:
    with pytest.raises(PlanError, match=f"^{wrong} must be a number"):
        AtLeast(a=a, b=b)


def test_numbers_of_numpy_are_numbers() -> None:
    assert Power(alpha=np.float32(0.5)).quantify(np.array([0.25])).tolist() == [0.5]  # type: ignore[arg-type]
    assert AtLeast(a=np.int64(0), b=np.float32(0.5)).quantify(np.array([0.25])).tolist() == [0.5]  # type: ignore[arg-type]


@pytest.mark.parametrize("quantifier", ["power", None, Power])
def test_a_quantifier_that_is_none_is_refused(quantifier: object) -> None:
    with pytest.raises(PlanError, match="quantifier must be an Identity, a Power or an AtLeast"):
        Sugeno(quantifier=quantifier)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [Pcp(), Zscores(), Sugeno()], ids=repr)
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(1, 9), st.integers(1, 3)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e-160, -1e150, 1e150])
        | st.floats(min_value=-1e150, max_value=1e150),
    )
)
def test_an_axis_is_finite(method: Pcp | Zscores | Sugeno, x: Floats) -> None:
    try:
        axis = method.project(x, names=NAMES[: x.shape[1]])
    except WaveError:
        assert isinstance(method, Pcp)  # two equal eigenvalues
    else:
        assert np.isfinite(axis).all()
