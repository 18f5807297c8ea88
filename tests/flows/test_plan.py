"""The plan: what it says, what it refuses, and that TOML and a flow's parameter say the same."""

import re
import tomllib

import pyarrow as pa
import pytest
from pydantic import ValidationError

from kohort.blocking import Consecutive, Explicit, Whole
from kohort.errors import PlanError, WaveError
from kohort.flows.drafting import draft_plan
from kohort.flows.plan import Plan, load_plan
from kohort.flows.precheck import what_would_be_done
from kohort.normalization import Zscore
from kohort.partitioning import Fixed, Optimal
from kohort.projection import Sugeno
from kohort.quantifiers import AtLeast, Power


def test_the_sample_plan_says_what_it_says(sample_plan):
    plan = load_plan(sample_plan)
    assert (plan.version, plan.title, plan.seed, plan.k) == (1, "Household survey", 0, 5)
    assert plan.stages.blocks == Consecutive(size=3)
    assert plan.stages.project == Sugeno()
    assert plan.stages.partition == Optimal(cost="axis")
    assert plan.roles.build().quasi_identifiers[:2] == ("age", "hours_worked")


def test_what_a_plan_leaves_out_has_the_defaults_of_protect(plan_of):
    stages = Plan.model_validate(plan_of()).stages
    assert stages.normalize == Zscore()
    assert stages.blocks == Whole()
    assert stages.project is None
    assert stages.centroid.method == "mean"


PLANS = {
    "least": {},
    "fixed": {"partition": {"method": "fixed", "order": "descending", "k": 4}},
    "block cost": {"partition": {"method": "optimal", "cost": "block", "k": 3}},
    "explicit": {"block": {"method": "explicit", "blocks": [["rent", "age"], ["income"]]}},
    "quantifier": {"project": {"method": "sugeno", "quantifier": {"method": "power", "alpha": 2}}},
    "at least": {
        "project": {"method": "sugeno", "quantifier": {"method": "at_least", "a": 0.3, "b": 0.8}}
    },
    "weighted": {"centroid": {"method": "weighted_mean"}},
    "release": {"release": {"order": "input", "round_integers": True}},
    "all roles": {"roles": {"release_weight": True, "other": "keep"}, "title": "A survey", "seed": 3},
}


@pytest.mark.parametrize("changes", PLANS.values(), ids=PLANS)
def test_toml_and_a_parameter_give_the_same_plan(changes, plan_of, write_plan):
    content = plan_of(**changes)
    from_file, from_parameter = load_plan(write_plan(content)), Plan.model_validate(content)
    assert from_file == from_parameter
    assert from_file.stages == from_parameter.stages
    assert from_file.roles.build() == from_parameter.roles.build()


@pytest.mark.parametrize("changes", PLANS.values(), ids=PLANS)
def test_a_plan_survives_json(changes, plan_of):
    plan = Plan.model_validate(plan_of(**changes))
    assert Plan.model_validate(plan.as_json()) == plan
    assert plan.as_json()["schema"] == 1


def test_nested_methods_are_built(plan_of):
    def quantifier(name):
        return Plan.model_validate(plan_of(**PLANS[name])).stages.project.quantifier

    assert quantifier("quantifier") == Power(alpha=2)
    assert quantifier("at least") == AtLeast(a=0.3, b=0.8)
    explicit = Plan.model_validate(plan_of(**PLANS["explicit"])).stages.blocks
    assert explicit == Explicit(blocks=(("rent", "age"), ("income",)))
    fixed = Plan.model_validate(plan_of(**PLANS["fixed"])).stages.partition
    assert fixed == Fixed(order="descending")


REFUSED = {
    "no schema": ({"schema": None}, "schema is missing"),
    "newer schema": ({"schema": 2}, "schema = 2 is not known .* reads schema 1; install the kohort"),
    "older schema": ({"schema": 0}, "schema = 0 is not known .* write schema = 1"),
    "schema as text": ({"schema": "1"}, "schema must be a whole number"),
    "extra section": ({"protect": {}}, "protect is not a field"),
    "extra field": ({"roles": {"strata": "name"}}, "roles.strata is not a field"),
    "no roles": ({"roles": {"quasi_identifiers": None}}, "roles.quasi_identifiers is missing"),
    "no quasi-identifier": ({"roles": {"quasi_identifiers": []}}, "must name at least one column"),
    "named twice": (
        {"roles": {"identifiers": ["name", "name"]}},
        "'name' is named twice in identifiers",
    ),
    "two roles": ({"roles": {"confidential": ["age"]}}, "'age' has two roles"),
    "key is also unit": ({"roles": {"unit": "id"}}, "'id' has two roles, key and unit"),
    "role is no list": ({"roles": {"identifiers": "name"}}, "roles.identifiers must be a list"),
    "other": ({"roles": {"other": "mask"}}, "roles.other must be 'drop' or 'keep', got 'mask'"),
    "released without weight": (
        {"roles": {"weight": None, "release_weight": True}},
        "release_weight = true but no weight",
    ),
    "no k": ({"partition": {"method": "optimal"}}, "partition.k is missing"),
    "k = 1": ({"partition": {"method": "optimal", "k": 1}}, "partition.k must be at least 2, got 1"),
    "k = -3": ({"partition": {"method": "optimal", "k": -3}}, "partition.k must be at least 2, got -3"),
    "k = 5.0": ({"partition": {"method": "optimal", "k": 5.0}}, "partition.k must be a whole number"),
    "k = true": ({"partition": {"method": "optimal", "k": True}}, "partition.k must be a whole number"),
    "k = '5'": ({"partition": {"method": "optimal", "k": "5"}}, "partition.k must be a whole number"),
    "pairs": ({"partition": {"method": "optimal", "k": 2}}, r"k = 2 .*2c - x.* allow_pairs = true"),
    "unknown method": (
        {"partition": {"method": "magic", "k": 3}},
        "partition.method must be one of 'fixed', 'optimal', .*, got 'magic'",
    ),
    "no method": ({"partition": {"k": 3}}, "partition.method is missing"),
    "unknown parameter": (
        {"partition": {"method": "fixed", "cost": "axis", "k": 3}},
        "partition.cost is not a field",
    ),
    "unknown choice": (
        {"partition": {"method": "optimal", "cost": "cell", "k": 3}},
        "partition.cost must be 'axis' or 'block', got 'cell'",
    ),
    "unknown normalizer": ({"normalize": {"method": "log"}}, "normalize.method must be one of"),
    "unknown blocker": ({"block": {"method": "random"}}, "block.method must be one of"),
    "unknown projection": ({"project": {"method": "tsne"}}, "project.method must be one of"),
    "unknown centroid": ({"centroid": {"method": "mode"}}, "centroid.method must be one of"),
    "size 0": ({"block": {"method": "consecutive", "size": 0}}, "size must be .* at least 1, got 0"),
    "size too large": ({"block": {"method": "consecutive", "size": 4}}, "size = 4 but there are 3"),
    "blocks leave one out": (
        {"block": {"method": "explicit", "blocks": [["age", "income"]]}},
        "'rent' is in no block",
    ),
    "blocks name one twice": (
        {"block": {"method": "explicit", "blocks": [["age", "income"], ["rent", "age"]]}},
        "'age' is named twice",
    ),
    "blocks name another": (
        {"block": {"method": "explicit", "blocks": [["age", "income", "rent", "cost"]]}},
        "'cost' is no quasi-identifier",
    ),
    "empty block": (
        {"block": {"method": "explicit", "blocks": [["age", "income", "rent"], []]}},
        "block 1 must be a list of one attribute or more",
    ),
    "attribute elsewhere": (
        {"project": {"method": "attribute", "name": "age"}, "block": {"method": "single"}},
        "'age' is not in the block of 'income'",
    ),
    "weights wanted": (
        {"centroid": {"method": "weighted_mean"}, "roles": {"weight": None}},
        "'weighted_mean' needs roles.weight",
    ),
    "normalizer without effect": ({"normalize": {"method": "rank"}}, "'rank' has no effect"),
    "alpha": (
        {"project": {"method": "sugeno", "quantifier": {"method": "power", "alpha": 0}}},
        "alpha must be a number above 0, got 0",
    ),
    "negative seed": ({"seed": -1}, "seed must be at least 0, got -1"),
    "order": ({"release": {"order": "random"}}, "release.order must be 'sorted' or 'input'"),
}


@pytest.mark.parametrize(("changes", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_plan_is_refused_in_one_sentence(changes, sentence, plan_of, write_plan):
    path = write_plan(plan_of(**changes))
    with pytest.raises(PlanError, match=sentence) as refusal:
        load_plan(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)
    with pytest.raises(ValidationError):
        Plan.model_validate(plan_of(**changes))


def test_pairs_are_allowed_when_asked_for(plan_of):
    partition = {"method": "optimal", "k": 2, "allow_pairs": True}
    assert Plan.model_validate(plan_of(partition=partition)).k == 2


def test_several_mistakes_are_counted(plan_of, write_plan):
    with pytest.raises(PlanError, match=r"schema = 9 .*\(and 1 more\)$"):
        load_plan(write_plan(plan_of(schema=9, protect={"x": 1})))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("schema = ", "is not valid TOML"), ("schema = 1\nschema = 1\n", "is not valid TOML")],
)
def test_what_is_not_toml_is_refused(text, sentence, write_plan):
    with pytest.raises(PlanError, match=sentence):
        load_plan(write_plan(text))


def test_a_plan_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(PlanError, match=r"there is no plan .* `kohort plan init WAVE` drafts one"):
        load_plan(tmp_path / "none.toml")
    with pytest.raises(PlanError, match="cannot be read"):
        load_plan(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="is not valid TOML"):
        load_plan(tmp_path / "binary.toml")


def test_the_draft_of_the_sample_wave_fits_it(sample_wave, write_plan):
    plan = load_plan(write_plan(draft_plan(sample_wave)))
    roles = plan.roles.build()
    assert (roles.key, roles.unit, roles.weight) == ("person_id", None, "weight")
    assert set(roles.identifiers) == {"name", "household_id"}  # the unit is for a person to decide
    assert roles.other == "drop"
    assert "the plan fits the wave: 2199 records" in what_would_be_done(plan, sample_wave)


@pytest.mark.parametrize(
    "name",
    ['quo"te', "back\\slash", "été", "smile \U0001f600", "new\nline", "tab\t", "a.b", "del\x7f", "# x"],
)
def test_the_draft_copes_with_any_column_name(name, write_wave, write_plan):
    numbers, words = [1.0, 2.0, 3.0], ["x", "y", "z"]
    wave = write_wave({name: numbers, f"{name} text": words})
    text = draft_plan(wave)
    assert tomllib.loads(text)["roles"]["quasi_identifiers"] == [name]
    assert load_plan(write_plan(text)).roles.other == "drop"


def test_a_draft_explains_itself(write_wave):
    text = draft_plan(write_wave(pa.table({"x": [1.0]})))
    assert text.startswith('# A draft for "wave.parquet": the roles are guesses')
    settings = [line for line in text.splitlines() if re.match(r"\w+ = (?!\[$)", line)]
    assert sum("#" in line for line in settings) > 8


def test_a_check_says_what_would_be_done(columns, plan_of, write_wave):
    columns["rent"] = [3.0] * 40
    columns["note"] = ["x"] * 40
    plan = Plan.model_validate(
        plan_of(roles={"other": "keep"}, block={"method": "consecutive", "size": 2}, seed=4)
    )
    assert what_would_be_done(plan, write_wave(columns)).splitlines() == [
        "the plan fits the wave: 40 records, 3 quasi-identifiers",
        "  block 0: age, income: projected by pcp, partitioned by optimal (k = 3), replaced by the mean",
        "  block 1: rent: projected by attribute, partitioned by optimal (k = 3), replaced by the mean",
        "  claim: every record is identical to at least 2 others on the attributes of each of 2 "
        "blocks, but not on all of them together",
        "  released as they are: cost, note",
        "  dropped: id, name, weight, house",
        "  rows: sorted",
        "  memory: about 0.7 GB",
        "  whole-number columns are released as floats: age",
        "  constant: rent",
        "  the weight weight does not move the centroids (mean)",
        "  the seed is recorded; nothing in this plan draws at random",
    ]


def test_weights_are_checked_even_where_nothing_is_weighted(columns, plan_of, write_wave):
    columns["weight"][5] = 0.0
    with pytest.raises(WaveError, match="1 of 40 weights are missing, infinite, not above 0 or beyond"):
        what_would_be_done(Plan.model_validate(plan_of()), write_wave(columns))


def test_a_check_makes_the_checks_of_a_run(columns, plan_of, write_wave):
    columns["income"][3] = float("nan")
    with pytest.raises(WaveError, match=r"missing cells in income \(1\)"):
        what_would_be_done(Plan.model_validate(plan_of()), write_wave(columns))
