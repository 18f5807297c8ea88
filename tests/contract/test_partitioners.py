"""What every partitioner promises, whatever it groups by.

A method that is added to `PARTITIONERS` is tested here by a line in EXAMPLES, one for each way of
working that its parameters choose.
"""

from __future__ import annotations

import numpy as np
import pytest

from kohort import PlanError, WaveError, protect
from kohort.blocking import Blocker, Consecutive
from kohort.centroids import Mean
from kohort.evaluation import min_anonymity
from kohort.methods import Floats, Labels, method_name
from kohort.partitioning import PARTITIONERS, Fixed, Kward, Md, Mdav, Optimal, Partitioner, Vmdav

EXAMPLES: tuple[Partitioner, ...] = (
    Fixed(),
    Fixed(order="descending"),
    Optimal(),
    Optimal(cost="block"),
    Mdav(),
    Vmdav(),
    Vmdav(gamma=1.0),
    Md(),
    Kward(),
    Kward(cost="block"),
    Kward(cost="block", start="md"),
)

every_partitioner = pytest.mark.parametrize("method", EXAMPLES, ids=repr)
every_k = pytest.mark.parametrize("k", [2, 3, 5])


def records(n: int, v: int, *, seed: int = 0) -> Floats:
    """Records without ties, in steps of 2^-20, so that an offset of 1e9 can be added exactly."""
    rng = np.random.default_rng([n, v, seed])
    return np.round(rng.normal(size=(n, v)) * 2.0**20) / 2.0**20


def divide(method: Partitioner, x: Floats, k: int) -> Labels:
    """Groups of `x`, ordered by its first column where an axis is needed; the input is read-only."""
    x = np.array(x, order="F")
    axis = x[:, 0].copy() if method.needs_axis else None
    x.flags.writeable = False
    if axis is not None:
        axis.flags.writeable = False
    return method.partition(x, k=k, axis=axis)


def canonical(groups: Labels) -> list[int]:
    """Labels renamed by first appearance: equal for equal partitions."""
    names: dict[int, int] = {}
    return [names.setdefault(int(g), len(names)) for g in groups]


def check(groups: Labels, *, n: int, k: int) -> None:
    """Every row labelled once, labels 0..g-1, no group below k."""
    assert isinstance(groups, np.ndarray)
    assert groups.dtype == np.int32
    assert groups.shape == (n,)
    assert groups.min() == 0
    assert np.bincount(groups).min() >= k


def test_every_method_has_an_example() -> None:
    without = {method_name(cls) for cls in PARTITIONERS} - {method.method for method in EXAMPLES}
    assert not without, "add an example of these to EXAMPLES"


@every_partitioner
@every_k
@pytest.mark.parametrize("v", [1, 4])
def test_groups_hold_every_record_and_at_least_k(method: Partitioner, k: int, v: int) -> None:
    for n in (k, k + 1, 2 * k - 1, 2 * k, 2 * k + 1, 3 * k - 1, 3 * k, 4 * k + 1, 101):
        check(divide(method, records(n, v), k), n=n, k=k)


@every_partitioner
@every_k
def test_fewer_than_2k_records_are_one_group(method: Partitioner, k: int) -> None:
    for n in (k, 2 * k - 1):
        assert divide(method, records(n, 3), k).tolist() == [0] * n


@every_partitioner
def test_two_far_clusters_of_k_are_two_groups(method: Partitioner) -> None:
    x = np.array([[0.0, 0.5], [9.0, 9.5], [1.0, 0.25], [8.0, 9.75], [0.75, 1.0], [8.5, 8.0]])
    assert canonical(divide(method, x, 3)) == [0, 1, 0, 1, 0, 1]


@every_partitioner
@pytest.mark.parametrize("n", [0, 1, 4])
def test_fewer_than_k_records_are_refused(method: Partitioner, n: int) -> None:
    with pytest.raises(WaveError, match=f"the wave has {n} records but k = 5; lower k or add records"):
        divide(method, records(n, 2), 5)


@every_partitioner
@pytest.mark.parametrize("k", [1, 0, -3, 2.0, "3", True, None])
def test_a_k_that_is_no_group_size_is_refused(method: Partitioner, k: object) -> None:
    with pytest.raises(PlanError, match="k must be a whole number of at least 2"):
        divide(method, records(10, 2), k)  # type: ignore[arg-type]


@every_partitioner
def test_an_axis_that_is_needed_is_asked_for(method: Partitioner) -> None:
    if method.needs_axis:
        with pytest.raises(PlanError, match="needs an axis"):
            method.partition(records(10, 2), k=3)
    else:
        check(method.partition(records(10, 2), k=3), n=10, k=3)


@every_partitioner
@every_k
def test_the_same_records_give_the_same_groups(method: Partitioner, k: int) -> None:
    x = np.round(records(60, 3), 1)  # with ties
    assert divide(method, x, k).tolist() == divide(method, x.copy(), k).tolist()


def goes_by_rows(method: Partitioner) -> bool:
    """MD lets the lower row of the most distant pair begin, so rows count even without ties."""
    return "md" in (method.method, getattr(method, "start", None))


@pytest.mark.parametrize("method", [m for m in EXAMPLES if not goes_by_rows(m)], ids=repr)
@every_k
def test_the_order_of_rows_does_not_matter(method: Partitioner, k: int) -> None:
    for seed in range(3):
        x = records(67, 3, seed=seed)
        rows = np.random.default_rng(seed).permutation(len(x))
        assert canonical(divide(method, x[rows], k)) == canonical(divide(method, x, k)[rows])


@every_partitioner
@every_k
@pytest.mark.parametrize("offset", [1e9, -1e9])
def test_an_offset_does_not_matter(method: Partitioner, k: int, offset: float) -> None:
    for seed in range(3):
        x = records(64, 3, seed=seed)
        assert canonical(divide(method, x + offset, k)) == canonical(divide(method, x, k))


@every_partitioner
@every_k
def test_a_constant_column_does_not_matter(method: Partitioner, k: int) -> None:
    x = records(50, 2)
    widened = np.column_stack([x, np.full(50, 1e6)])
    assert canonical(divide(method, widened, k)) == canonical(divide(method, x, k))


@every_partitioner
@every_k
def test_constant_records_can_be_divided(method: Partitioner, k: int) -> None:
    for n in (k, 2 * k, 7 * k + 1):
        check(divide(method, np.full((n, 3), 0.1), k), n=n, k=k)


@every_partitioner
@every_k
def test_duplicates_can_be_divided(method: Partitioner, k: int) -> None:
    x = np.repeat(records(9, 3), [1, 2, 30, 1, 7, 1, 1, 5, 2], axis=0)
    check(divide(method, x, k), n=50, k=k)


@pytest.mark.parametrize("method", [m for m in EXAMPLES if not isinstance(m, Fixed)], ids=repr)
def test_k_identical_records_far_from_the_rest_are_a_group(method: Partitioner) -> None:
    """All but `fixed`, which counts from one end and does not look."""
    x = np.vstack([records(13, 2), np.full((4, 2), 1e6)])
    groups = divide(method, x, 4)
    assert np.flatnonzero(groups == groups[-1]).tolist() == [13, 14, 15, 16]


@every_partitioner
@pytest.mark.parametrize("blocks", ["whole", "single", Consecutive(size=2)], ids=repr)
def test_a_protected_table_has_k_identical_records_in_every_block(
    method: Partitioner, blocks: str | Blocker
) -> None:
    x = records(83, 5)
    protected = protect(x, k=4, blocks=blocks, partition=method)
    assert protected.groups.shape == (83, len(protected.blocks))
    for number, block in enumerate(protected.blocks):
        groups = protected.groups[:, number]
        check(groups, n=83, k=4)
        assert min_anonymity(protected.values[:, block]) >= 4
        np.testing.assert_array_equal(protected.values[:, block], Mean().replace(x[:, block], groups))


@every_partitioner
def test_a_projection_is_used_or_refused(method: Partitioner) -> None:
    x = records(30, 3)
    if method.needs_axis:
        check(protect(x, k=3, project="zscores", partition=method).groups[:, 0], n=30, k=3)
    else:
        with pytest.raises(PlanError, match="project 'zscores' has no effect"):
            protect(x, k=3, project="zscores", partition=method)


@every_partitioner
def test_a_normalizer_is_used_or_refused(method: Partitioner) -> None:
    x = records(30, 3)
    if method.uses_normalized:
        check(protect(x, k=3, normalize="rank", partition=method).groups[:, 0], n=30, k=3)
    else:
        with pytest.raises(PlanError, match="normalize 'rank' has no effect"):
            protect(x, k=3, normalize="rank", partition=method)


@every_partitioner
def test_rows_may_lie_in_any_memory_order(method: Partitioner) -> None:
    x = records(40, 3)
    axis = x[:, 0].copy() if method.needs_axis else None
    by_row = method.partition(np.ascontiguousarray(x), k=3, axis=axis)
    assert by_row.tolist() == divide(method, x, 3).tolist()
