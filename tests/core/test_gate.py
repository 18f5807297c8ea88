"""Bounds on measures, and claims that methods can keep."""

import pytest

from kohort.blocking import Consecutive, Whole
from kohort.centroids import Mean
from kohort.claims import check_claim, claim_in_words
from kohort.errors import PlanError
from kohort.evaluation.measures import MEASURES
from kohort.evaluation.outcome import NotApplicable
from kohort.gate import BOUNDABLE, allowed, failures, refusal
from kohort.normalization import Zscore
from kohort.partitioning import Optimal
from kohort.stages import Stages
from kohort.whole_file import Mic1d


def stages(partition=None, blocks=None):
    return Stages(
        normalize=Zscore(),
        blocks=blocks or Whole(),
        project=None,
        partition=partition or Optimal(),
        centroid=Mean(),
    )


def test_only_measures_that_know_what_is_worse_have_bounds():
    assert {measure.name for measure in MEASURES} - set(BOUNDABLE) == {"sst", "fpc"}
    with pytest.raises(PlanError, match="'fpc' cannot be bounded"):
        failures({"fpc": 1.0}, {"fpc": 1.0})


@pytest.mark.parametrize("measure", BOUNDABLE.values(), ids=BOUNDABLE)
def test_a_bound_is_kept_up_to_itself_and_in_one_direction(measure):
    bounds = {measure.name: 2.0}
    worse, better = (2.5, 1.5) if measure.worse == "higher" else (1.5, 2.5)
    assert failures(bounds, {measure.name: 2.0}) == ()
    assert failures(bounds, {measure.name: better}) == ()
    (failed,) = failures(bounds, {measure.name: worse})
    side = "above" if measure.worse == "higher" else "below"
    assert str(failed) == f"{measure.name} = {worse}{measure.unit} is {side} 2"
    assert failed.remedy


@pytest.mark.parametrize("value", [NotApplicable("one block only"), float("nan")])
def test_what_is_no_number_keeps_no_bound(value):
    for name in ("dld", "min_anonymity"):
        assert len(failures({name: 0.0}, {name: value})) == 1


def test_a_refusal_is_one_sentence():
    found = failures(
        {"dld": 10.0, "l_min": 2.0, "loss": 0.5},
        {"dld": 12.5, "l_min": NotApplicable("nothing is confidential"), "loss": 0.1},
    )
    text = refusal(found)
    assert text.startswith("not released: dld = 12.5% is above 10; l_min is not applicable (nothing is ")
    assert "try: raise k" in text
    assert "\n" not in text
    assert allowed("dld", 10.0) == "dld at most 10"
    assert allowed("min_anonymity", 5.0) == "min_anonymity at least 5"


def test_several_blocks_have_to_claim_less():
    several = stages(blocks=Consecutive(size=2))
    with pytest.raises(PlanError, match=r'2 blocks .* claim = "per-block" or claim = "none"'):
        check_claim("k-anonymous", several, 2)
    for claim in ("per-block", "none"):
        check_claim(claim, several, 2)
    check_claim("k-anonymous", several, 1)


def test_a_file_protected_as_a_whole_claims_nothing():
    for claim in ("k-anonymous", "per-block"):
        with pytest.raises(PlanError, match=r'makes no groups .* set claim = "none"'):
            check_claim(claim, stages(Mic1d()), 1)
    check_claim("none", stages(Mic1d()), 1)


def test_claims_in_words():
    def words(claim, of=None, blocks=1, **more):
        return claim_in_words(claim, of or stages(), k=5, blocks=blocks, **more)

    assert (
        words("k-anonymous") == "every record is identical to at least 4 others on all quasi-identifiers"
    )
    assert words("k-anonymous", others=["region"], unit="house").endswith(
        "on all quasi-identifiers and region, counting distinct house"
    )
    assert "each of 3 blocks, but not on all of them together" in words("per-block", blocks=3)
    assert words("none") == "no number of identical records is claimed"
    assert "anonymity is measured, not promised" in words("none", stages(Mic1d()), 0)
