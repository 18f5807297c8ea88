"""Intruders: which scenarios there are, how they are averaged, and what a sample of them says."""

import itertools
import math

import numpy as np
import pytest

from kohort import PlanError, evaluate
from kohort import evaluation as ev
from kohort.evaluation import INTRUDERS, Everything, Named, NotApplicable, SeveralBlocks, Subsets
from kohort.evaluation.intruder import Stratum, estimate

NAMES = tuple("abcdef")
BLOCKS = ((0, 1), (2,), (3, 4, 5))


def scenarios(intruder, **arguments):
    return intruder.scenarios(names=NAMES, blocks=BLOCKS, **arguments)


def test_every_intruder_has_a_name_of_its_own():
    names = [intruder.__dataclass_fields__["method"].default for intruder in INTRUDERS]
    assert names == ["everything", "subsets", "several_blocks", "named"]


def test_everything_is_one_scenario():
    assert scenarios(Everything()) == (Stratum((tuple(range(6)),), 1),)


def test_subsets_are_all_non_empty_ones_by_size():
    strata = scenarios(Subsets())
    assert [stratum.population for stratum in strata] == [6, 15, 20, 15, 6, 1]
    assert not any(stratum.is_sample for stratum in strata)
    listed = [known for stratum in strata for known in stratum.known]
    assert len(set(listed)) == 63
    assert all(len(known) == size for size, part in enumerate(strata, start=1) for known in part.known)


def test_several_blocks_are_unions_of_two_or_more():
    strata = scenarios(SeveralBlocks())
    assert strata[0].known == ((0, 1, 2), (0, 1, 3, 4, 5), (2, 3, 4, 5))
    assert strata[1].known == (tuple(range(6)),)


def test_named_sets_are_one_stratum():
    assert scenarios(Named(sets=(("b", "a"), ("f",)))) == (Stratum(((1, 0), (5,)), 2),)


@pytest.mark.parametrize("intruder", [SeveralBlocks(), "several_blocks"])
def test_one_block_only_is_not_applicable(intruder):
    x = np.arange(12.0).reshape(6, 2) ** 2
    found = evaluate(x, x, measures=["dld", "k_real", "score"], intruder=intruder, blocks=[[0, 1]])
    for name in ("dld", "k_real", "score"):
        assert "one block only" in found[name].reason


@pytest.mark.parametrize("limit", [12, 13, 40, 62])
def test_past_the_limit_subsets_are_drawn_with_the_seed(limit):
    strata = scenarios(Subsets(limit=limit), seed=5)
    assert sum(len(stratum.known) for stratum in strata) <= limit
    assert [stratum.population for stratum in strata] == [6, 15, 20, 15, 6, 1]
    assert any(stratum.is_sample for stratum in strata)
    for stratum in strata:
        assert len(set(stratum.known)) == len(stratum.known) >= min(2, stratum.population)
    assert strata == scenarios(Subsets(limit=limit), seed=5)
    assert strata != scenarios(Subsets(limit=limit), seed=6)


def test_more_subsets_than_can_be_listed():
    strata = Subsets(limit=200).scenarios(names=[str(j) for j in range(60)], blocks=(), seed=1)
    assert len(strata) == 60
    assert strata[29].population == math.comb(60, 30)
    assert all(len(set(part.known)) == len(part.known) for part in strata)
    assert all(len(known) == 30 for known in strata[29].known)


def test_the_standard_error_is_the_one_of_the_definition():
    strata = [Stratum(((0,),) * 3, 9), Stratum(((0,),) * 2, 2), Stratum(((0,),) * 4, 40)]
    values = [[1.0, 4.0, 7.0], [3.0, 9.0], [1.0, 1.0, 2.0, 6.0]]
    found = estimate(strata, values)
    assert found.value == pytest.approx(np.mean([4.0, 6.0, 2.5]))
    spread = np.var(values[0], ddof=1) / 3 * (1 - 3 / 9) + np.var(values[2], ddof=1) / 4 * (1 - 4 / 40)
    assert found.standard_error == pytest.approx(math.sqrt(spread) / 3)


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(11)
    x = np.exp(rng.normal(size=(120, 6)) + rng.normal(size=(120, 1)))
    return x, x + 0.3 * rng.normal(size=x.shape)


@pytest.mark.parametrize("measure", ["dld", "id", "pld", "k_real"])
def test_measures_are_averaged_within_sizes_and_then_over_them(release, measure):
    x, protected = release
    alone = {
        "dld": ev.dld,
        "id": ev.id,
        "pld": lambda a, b: ev.pld(a, b).value,
        "k_real": lambda _, b: ev.k_real(b),
    }[measure]
    means = [
        np.mean([alone(x[:, s], protected[:, s]) for s in itertools.combinations(range(6), size)])
        for size in range(1, 7)
    ]
    found = evaluate(x, protected, measures=[measure], intruder="subsets")
    assert found[measure] == pytest.approx(np.mean(means))
    assert found.results[0].scenarios == 63
    assert found.results[0].standard_error is None


def test_estimates_of_samples_are_as_far_off_as_they_say(release):
    x, protected = release
    whole = evaluate(x, protected, measures=["dld"], intruder="subsets")["dld"]
    errors = []
    for seed in range(1, 41):
        found = evaluate(x, protected, measures=["dld"], intruder=Subsets(limit=24), seed=seed)
        errors.append((found["dld"] - whole) / found.results[0].standard_error)
    assert 0.7 < np.std(errors) < 1.5
    assert abs(np.mean(errors)) < 0.5


def test_a_sampled_evaluation_repeats_itself(release):
    arguments = {"measures": ["dld", "score"], "intruder": Subsets(limit=20), "seed": 3}
    assert evaluate(*release, **arguments) == evaluate(*release, **arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Subsets(limit=1), "limit must be a whole number of at least 2"),
        (lambda: SeveralBlocks(limit=2.5), "limit must be a whole number"),
        (lambda: Named(sets=()), "name one set"),
        (lambda: Named(sets=("ab",)), "set 0 must be a list"),
        (lambda: Named(sets=(("a", "a"),)), "each once"),
        (lambda: scenarios(Named(sets=(("a", "x"),))), "'x' is no quasi-identifier"),
        (lambda: scenarios(Subsets(limit=11)), "raise limit to 12"),
    ],
)
def test_wrong_intruders_are_refused(make, message):
    with pytest.raises(PlanError, match=message):
        make()


def test_a_measure_missing_in_some_scenario_is_not_applicable():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10, 21))
    sets = (tuple(map(str, range(21))), ("0", "1"))
    found = evaluate(x, x, measures=["pld"], intruder=Named(sets=sets))["pld"]
    assert isinstance(found, NotApplicable)
    assert "(in 1 of 2 scenarios)" in found.reason
