"""Statistical dependence: partitions on (x, beta·y), against the verbs called by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from kohort import PlanError, WaveError, protect
from kohort.blocking import Blocker, Consecutive, Correlated, Decorrelated, Explicit, Whole
from kohort.centroids import Mean
from kohort.dependence import extend
from kohort.evaluation import loss
from kohort.methods import Floats, method_name, parameters
from kohort.normalization import Minmax, Zscore
from kohort.partitioning import PARTITIONERS, Fixed, Optimal, Partitioner
from kohort.projection import PROJECTIONS, Attribute, Choquet, Owa, Pcp, Sugeno, Zscores

NEEDED: dict[str, Any] = {"gamma": 0.2}  # values of parameters that have no default


def example(cls: Any) -> Any:
    """A method of the class; a parameter without default that NEEDED does not know is a KeyError."""
    missing = dataclasses.MISSING
    without = [f for f in parameters(cls) if f.default is missing and f.default_factory is missing]
    return cls(**{f.name: NEEDED[f.name] for f in without})


EVERY: list[Partitioner] = [
    *map(example, PARTITIONERS),
    Fixed(order="descending"),
    Optimal(cost="block"),
]
every_partitioner = pytest.mark.parametrize("method", EVERY, ids=repr)


def table(n: int = 80, p: int = 5, *, m: int = 2, seed: int = 0) -> tuple[Floats, Floats]:
    """Quasi-identifiers (n, p) and confidential attributes (n, m) that depend on them; read-only."""
    rng = np.random.default_rng([n, p, m, seed])
    x = (rng.normal(size=(n, p)) + rng.normal(size=(n, 1))) * rng.lognormal(0, 2, p)
    y = rng.lognormal(size=(n, m)) * 1e3 + stats.zscore(x)[:, :1] * 500
    x.flags.writeable = False
    y.flags.writeable = False
    return x, y


# The extended points


@pytest.mark.parametrize("weight", [0.01, 0.5, 0.9])
@pytest.mark.parametrize(("m_x", "m_y"), [(1, 1), (4, 1), (1, 3), (3, 2)])
def test_beta_is_that_of_the_definition(m_x: int, m_y: int, weight: float) -> None:
    x, y = table(p=m_x, m=m_y)
    points = extend(x, y, weight)
    beta = (weight / (1 - weight) * m_x / m_y) ** 0.5
    np.testing.assert_array_equal(points[:, :m_x], x)
    np.testing.assert_allclose(points[:, m_x:], beta * y, rtol=1e-14)
    assert points.flags.f_contiguous


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.8])
def test_squared_distances_of_points_are_the_papers_weighted_distortion(weight: float) -> None:
    """SD, section IV: proportional to (1 - lambda)·|x|²/m_x + lambda·|y|²/m_y."""
    x, y = table(p=3, m=2)
    squared = (extend(x, y, weight) ** 2).sum(axis=1)
    lagrangian = (1 - weight) * (x**2).sum(axis=1) / 3 + weight * (y**2).sum(axis=1) / 2
    np.testing.assert_allclose(squared * (1 - weight) / 3, lagrangian, rtol=1e-12)


def test_the_ends_use_one_side_alone() -> None:
    x, y = table()
    np.testing.assert_array_equal(extend(x, y, 0), x)
    np.testing.assert_array_equal(extend(x, y, 1), y)
    with pytest.raises(PlanError, match="dependence needs confidential attributes"):
        extend(x, y[:, :0], 0.5)


def test_pcp_takes_the_covariance_of_points() -> None:
    x, y = table(p=3, m=2)
    points = extend(Zscore().normalize(x), Zscore().normalize(y), 0.8)
    centred = points - points.mean(axis=0)
    vector = np.linalg.eigh(centred.T @ centred / len(x))[1][:, -1]
    expected = centred @ (vector * np.sign(vector.sum()))
    axis = Pcp().project_points(points)
    np.testing.assert_allclose(axis, expected, rtol=1e-9, atol=1e-11)
    # Standardising again would undo beta, and give another axis.
    assert abs(np.corrcoef(axis, Pcp().project(points, names=list("abcde")))[0, 1]) < 0.999


def test_zscores_is_the_sum_of_points() -> None:
    x, y = table(p=3, m=2)
    points = extend(Zscore().normalize(x), Zscore().normalize(y), 0.8)
    beta = (0.8 / (1 - 0.8) * 3 / 2) ** 0.5
    expected = stats.zscore(x).sum(axis=1) + beta * stats.zscore(y).sum(axis=1)
    np.testing.assert_allclose(Zscores().project_points(points), expected, rtol=1e-10, atol=1e-11)


# In protect


def by_hand(x: Floats, y: Floats, block: tuple[int, ...], method: Any, weight: float, k: int) -> Any:
    """Groups of a block by the verbs of its stages."""
    points = extend(Zscore().normalize(x)[:, block], Zscore().normalize(y), weight)
    axis = Pcp().project_points(points) if method.needs_axis else None
    return method.partition(points, k=k, axis=axis)


@every_partitioner
@pytest.mark.parametrize(
    "blocks", [Whole(), Consecutive(size=2), Correlated(size=3), Decorrelated(size=2)], ids=repr
)
@pytest.mark.parametrize("weight", [0.5, 1])
def test_protect_is_what_the_verbs_give(method: Partitioner, blocks: Blocker, weight: float) -> None:
    x, y = table()
    before = y.copy()
    protected = protect(x, k=4, partition=method, blocks=blocks, confidential=y, dependence=weight)
    assert protected.blocks == blocks.assign_blocks(x, names=list("01234"))
    for number, block in enumerate(protected.blocks):
        groups = by_hand(x, y, block, method, weight, 4)
        assert np.bincount(groups).min() >= 4
        np.testing.assert_array_equal(protected.groups[:, number], groups)
        np.testing.assert_array_equal(protected.values[:, block], Mean().replace(x[:, block], groups))
    np.testing.assert_array_equal(y, before)


@every_partitioner
@pytest.mark.parametrize("blocks", [Whole(), Consecutive(size=2)], ids=repr)
@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_lambda_0_is_not_asking(method: Partitioner, blocks: Blocker, zero: float) -> None:
    x, y = table()
    asked = protect(x, k=4, partition=method, blocks=blocks, confidential=y, dependence=zero)
    plain = protect(x, k=4, partition=method, blocks=blocks)
    assert asked.values.tobytes() == plain.values.tobytes()
    assert asked.groups.tobytes() == plain.groups.tobytes()
    assert asked.guarantee == plain.guarantee


def test_lambda_0_allows_what_needs_no_extension() -> None:
    x, y = table()
    for given in ({"project": "sugeno"}, {"normalize": "minmax", "partition": Optimal(cost="block")}):
        asked = protect(x, k=4, confidential=y, dependence=0, **given)
        np.testing.assert_array_equal(asked.values, protect(x, k=4, **given).values)


@every_partitioner
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("blocks", [Whole(), Consecutive(size=2)], ids=repr)
def test_lambda_1_is_the_partition_of_y(method: Partitioner, m: int, blocks: Blocker) -> None:
    x, y = table(m=m)
    protected = protect(x, k=4, partition=method, blocks=blocks, confidential=y, dependence=1)
    own = protect(y, k=4, partition=method)
    for number in range(len(protected.blocks)):
        np.testing.assert_array_equal(protected.groups[:, number], own.groups[:, 0])


@pytest.mark.parametrize("weight", [0.5, 1])
@pytest.mark.parametrize("project", [None, "pcp", "zscores"])
def test_a_block_of_one_attribute(project: str | None, weight: float) -> None:
    x, y = table(p=3)
    protected = protect(
        x, k=4, blocks="single", project=project, confidential=y, dependence=weight, partition="fixed"
    )
    projection = Zscores() if project == "zscores" else Pcp()
    for j in range(3):
        points = extend(stats.zscore(x[:, [j]]), stats.zscore(y), weight)
        groups = Fixed().partition(points, k=4, axis=projection.project_points(points))
        np.testing.assert_array_equal(protected.groups[:, j], groups)


def test_the_plan_of_zscores_uses_the_sum() -> None:
    x, y = table()
    protected = protect(x, k=4, project="zscores", partition="fixed", confidential=y, dependence=0.3)
    points = extend(stats.zscore(x), stats.zscore(y), 0.3)
    groups = Fixed().partition(points, k=4, axis=points.sum(axis=1))
    np.testing.assert_array_equal(protected.groups[:, 0], groups)


def test_units_of_confidential_attributes_do_not_matter_and_constants_count_for_nothing() -> None:
    x, y = table()
    expected = protect(x, k=4, confidential=y, dependence=0.5).groups
    moved = protect(x, k=4, confidential=y * [2.0, 1024.0] + 4096.0, dependence=0.5)
    np.testing.assert_array_equal(moved.groups, expected)
    constant = protect(x, k=4, confidential=np.full((80, 1), 0.1), dependence=0.5, project="zscores")
    np.testing.assert_array_equal(constant.groups, protect(x, k=4, project="zscores").groups)


def test_a_frame_of_confidential_attributes() -> None:
    x, y = table()
    frame = pd.DataFrame(y, columns=["income", "debt"])
    before = frame.copy()
    protected = protect(pd.DataFrame(x, columns=list("abcde")), k=4, confidential=frame, dependence=0.5)
    expected = protect(x, k=4, confidential=y, dependence=0.5)
    np.testing.assert_array_equal(protected.values, expected.values)
    assert list(protected.values.columns) == list("abcde")
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("weight", [np.float32(0.5), np.float64(0.5), np.int64(1), 1])
def test_lambda_may_be_any_number(weight: Any) -> None:
    x, y = table()
    ours = protect(x, k=4, confidential=y, dependence=weight)
    plain = protect(x, k=4, confidential=y, dependence=float(weight))
    np.testing.assert_array_equal(ours.groups, plain.groups)


# What the paper claims: two Gaussian attributes, x and y, correlated by rho (SD, section V)


def distortions(rho: float, k: int, weights: list[float], method: Any) -> list[tuple[float, float]]:
    """d_x and d_y for every lambda."""
    rng = np.random.default_rng(99)
    x = rng.normal(size=(1000, 1))
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=(1000, 1))
    found = []
    for weight in weights:
        protected = protect(x, k=k, partition=method, confidential=y, dependence=weight)
        own_means = Mean().replace(y, protected.groups[:, 0].copy())
        found.append((loss(x, protected.values) or 0.0, loss(y, own_means) or 0.0))
    return found


@every_partitioner
@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_preserving_dependence_costs_quasi_identifiers(method: Partitioner, rho: float) -> None:
    """d_x <= d_y for lambda = 0 and conversely for 1; in between, one falls as the other grows.

    Roughly so, as the paper has it: a heuristic may fall back by a hundredth.
    """
    d_x, d_y = np.array(distortions(rho, 20, [0, 0.25, 0.5, 0.75, 1], method)).T
    assert d_x[0] < d_y[0]
    assert d_y[-1] < d_x[-1]
    assert d_x[0] == d_x.min()
    assert d_y[-1] == d_y.min()
    assert (np.diff(d_x) > -0.01).all()
    assert (np.diff(d_y) < 0.01).all()


def test_distortions_grow_with_k() -> None:
    weights = [0.0, 0.5, 1.0]
    small, large = (np.array(distortions(0.5, k, weights, Optimal())) for k in (10, 100))
    assert (small < large).all()


# What is refused


def refused(**arguments: Any) -> str:
    x, y = table()
    with pytest.raises((PlanError, WaveError)) as refusal:
        protect(x, **{"k": 3, "confidential": y, "dependence": 0.5, **arguments})
    kind = type(refusal.value).__name__
    return f"{kind}: {refusal.value}"


@pytest.mark.parametrize(
    "weight", [-0.1, 1.0001, 2, np.nan, np.inf, -np.inf, "0.5", True, False, [0.5], np.float32(1.5)]
)
def test_a_lambda_outside_0_to_1(weight: Any) -> None:
    message = refused(dependence=weight)
    assert message == f"PlanError: dependence must be a number from 0 to 1, got {weight!r}"


@pytest.mark.parametrize(
    "project", [Sugeno(), Owa(), Choquet(), Attribute(name="1"), Attribute(name="nowhere")], ids=repr
)
@pytest.mark.parametrize("blocks", ["whole", "single"])
@pytest.mark.parametrize("weight", [1e-9, 1])
def test_projections_without_extension(project: Any, blocks: str, weight: float) -> None:
    message = refused(project=project, blocks=blocks, dependence=weight)
    assert message == (
        f"PlanError: project {project.method!r} is not defined with dependence; use 'pcp' or 'zscores'"
    )


def test_those_with_an_extension_are_the_definitions() -> None:
    extended = {method_name(cls) for cls in PROJECTIONS if cls.has_extension}
    assert extended == {"pcp", "zscores"}
    assert all(hasattr(cls, "project_points") == cls.has_extension for cls in PROJECTIONS)


@pytest.mark.parametrize("normalize", ["minmax", "rank", "robust", "none", Minmax()])
def test_normalizers_other_than_zscore(normalize: Any) -> None:
    message = refused(normalize=normalize, partition=Optimal(cost="block"))
    assert message.startswith("PlanError: dependence needs normalize 'zscore', got ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidential": None}, "PlanError: dependence needs the confidential attributes; pass conf"),
        ({"confidential": None, "dependence": 0}, "PlanError: dependence needs the confidential"),
        ({"dependence": None}, "PlanError: confidential has no effect without dependence; pass dep"),
    ],
)
def test_one_without_the_other(arguments: dict[str, Any], message: str) -> None:
    assert refused(**arguments).startswith(message)


@pytest.mark.parametrize("weight", [0, 0.5])
@pytest.mark.parametrize(
    ("confidential", "message"),
    [
        (np.zeros((79, 1)), "confidential has 79 records but x has 80; pass the same records"),
        (np.zeros((0, 1)), "confidential has 0 records but x has 80; pass the same records"),
        (np.zeros(80), "confidential: .* must have two dimensions"),
        (np.zeros((80, 0)), "confidential: .* must have two dimensions"),
        (np.full((80, 1), "31415926"), "confidential: every attribute must be numeric"),
        (np.where(np.arange(80) < 3, np.nan, 1.0)[:, None], r"confidential: missing cells in 0 \(3\)"),
        (np.full((80, 1), np.inf), r"confidential: infinite cells in 0 \(80\)"),
        (pd.DataFrame({"job": ["31415926"] * 80}), "confidential: not numeric: job; leave"),
    ],
)
def test_confidential_attributes_that_cannot_be_used(
    confidential: Any, message: str, weight: float
) -> None:
    with pytest.raises(WaveError, match=f"^{message}") as refusal:
        protect(table()[0], k=3, confidential=confidential, dependence=weight)
    assert "31415926" not in str(refusal.value)


def test_the_only_block_written_in_another_order_and_extended() -> None:
    x, y = table(p=3)
    asked: dict[str, Any] = {"k": 4, "confidential": y, "dependence": 0.5, "project": "zscores"}
    other = protect(x, **asked, blocks=Explicit(blocks=(("1", "2", "0"),)))
    np.testing.assert_array_equal(other.values, protect(x, **asked).values)
