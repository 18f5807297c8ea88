"""The plan's `[evaluate]`: each measure and scenario is a stage of its own, and none is done twice."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import kohort
from kohort.blocking import Consecutive
from kohort.errors import PlanError
from kohort.evaluation import MEASURES
from kohort.flows.plan import Plan, load_plan
from kohort.flows.precheck import what_would_be_done

NAMES = ["age", "income", "rent"]
BLOCKS = {"block": {"method": "consecutive", "size": 2}}
SUBSETS = {"method": "subsets"}


@pytest.fixture
def wave(columns, write_wave):
    return write_wave(columns)


@pytest.fixture
def run(prefect_url, plan_of, wave, tmp_path):
    """Run the flow with this `[evaluate]`, each run into a folder of its own."""
    from kohort.flows.protect import protect_wave

    numbers = iter(range(100))

    def run(evaluate, **changes):
        plan = Plan.model_validate(plan_of(**BLOCKS, evaluate=evaluate, **changes))
        out = tmp_path / f"out-{next(numbers)}"
        return protect_wave(plan=plan, wave=wave, out=out, store=tmp_path / "store")

    return run


def measured(result, *, cached):
    """The measures whose stages were found in the cache, or not."""
    return {
        row["stage"].removeprefix("measure ")
        for row in result["stages"]
        if row["stage"].startswith("measure ") and row["cached"] is cached
    }


def scenarios(result, measure):
    (row,) = (row for row in result["stages"] if row["stage"] == f"measure {measure}")
    return row["rows"]


def records(tmp_path):
    """The records of finished stages; one that is written again is another file."""
    return {path.name: path.stat().st_ino for path in (tmp_path / "store" / "records").iterdir()}


def details(result):
    """The list of results, as evaluation.json has it."""
    (file,) = Path(result["out"]).rglob("evaluation.json")
    return json.loads(file.read_text())["details"]


SECTIONS = {
    "all": {"measures": "all"},
    "subsets": {"measures": "all", "intruder": SUBSETS, "ties": "first", "tau": 0.3},
    "blocks": {"measures": "all", "intruder": {"method": "several_blocks"}},
    "named": {
        "measures": ["dld", "pld", "dominance"],
        "intruder": {"method": "named", "sets": [["age"], ["rent", "age"]]},
        "direction": "to_original",
        "percent": 30.0,
    },
}


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_values_are_those_of_the_in_memory_path(section, run, protect_alone, plan_of, wave, tmp_path):
    flow = run(section)
    alone = protect_alone(plan_of(**BLOCKS, evaluate=section), wave, tmp_path / "memory")
    asked = [m.name for m in MEASURES] if section["measures"] == "all" else section["measures"]
    assert flow["measures"] == alone["measures"]
    assert set(asked) <= set(flow["measures"])
    assert details(flow) == details(alone)
    assert [each["measure"] for each in details(flow)] == asked


def test_values_are_those_of_kohort_evaluate(run, columns):
    flow = run({"measures": "all", "intruder": SUBSETS, "tau": 0.3})
    x = pd.DataFrame({name: columns[name] for name in NAMES})
    protected = kohort.protect(x, k=3, blocks=Consecutive(size=2))
    expected = kohort.evaluate(
        x,
        protected.values,
        confidential=pd.DataFrame({"cost": columns["cost"]}),
        blocks=protected.blocks,
        groups=protected.groups,
        weights=columns["weight"],
        units=columns["house"],
        intruder="subsets",
        tau=0.3,
    )
    assert details(flow) == [result.to_dict() for result in expected.results]


def test_a_second_run_measures_nothing(run):
    section = {"measures": "all", "intruder": SUBSETS}
    first, second = run(section), run(section)
    assert measured(first, cached=True) == measured(second, cached=False) == set()
    assert measured(second, cached=True) == measured(first, cached=False)
    assert first["measures"] == second["measures"]


def test_every_scenario_is_kept_on_its_own(run, tmp_path):
    some = {"method": "named", "sets": [["age"], ["age", "rent"], ["age", "income", "rent"]]}
    first = run({"measures": ["dld"], "intruder": some})
    assert scenarios(first, "dld") == 3
    before = records(tmp_path)
    second = run({"measures": ["dld"], "intruder": SUBSETS})
    after = records(tmp_path)
    assert scenarios(second, "dld") == 7
    assert len(after.keys() - before.keys()) == 4  # the subsets that were not among the named sets
    assert {name: after[name] for name in before} == before


def test_a_lost_scenario_alone_is_done_again(run, tmp_path):
    section = {"measures": ["k_real"], "intruder": SUBSETS}
    run({"measures": ["unchanged"]})
    before = records(tmp_path)
    first = run(section)
    made = sorted(records(tmp_path).keys() - before.keys())
    assert len(made) == 7
    (tmp_path / "store" / "records" / made[0]).unlink()
    kept = records(tmp_path)
    second = run(section)
    again = records(tmp_path)
    assert {name for name in again if again[name] != kept.get(name)} == {made[0]}
    assert second["measures"] == first["measures"]


def test_an_added_measure_costs_only_itself(run):
    run({"measures": ["dld", "il", "dominance"], "intruder": SUBSETS})
    more = run({"measures": ["dld", "il", "dominance", "id"], "intruder": SUBSETS})
    assert measured(more, cached=False) == {"id"}
    assert measured(more, cached=True) == {"dld", "il1", "il2", "il3", "il4", "il5", "dominance"}
    uncached = {row["stage"] for row in more["stages"] if not row["cached"]}
    assert {"ingest", "partition", "replace", "assemble", "evaluate"}.isdisjoint(uncached)
    score = run({"measures": ["score"], "intruder": SUBSETS})  # made of what is there
    assert measured(score, cached=False) == set()


COMPUTED = {measure.name for measure in MEASURES if measure.compute is not None}
PARAMETERS = {
    "tau": ({"tau": 0.5}, {"pld"}),
    "ties": ({"ties": "first"}, {"dld"}),
    "direction": ({"direction": "to_original"}, {"dld"}),
    "percent": ({"percent": 25.0}, {"dominance"}),
    "intruder": ({"intruder": {"method": "named", "sets": [["age"]]}}, {"dld", "id", "pld", "k_real"}),
}


@pytest.mark.parametrize(("change", "recomputed"), PARAMETERS.values(), ids=PARAMETERS)
def test_a_changed_parameter_recomputes_what_uses_it(change, recomputed, run):
    run({"measures": "all"})
    changed = run({"measures": "all", **change})
    assert measured(changed, cached=False) == recomputed
    assert measured(changed, cached=True) == COMPUTED - recomputed


def test_a_changed_k_measures_anew(run):
    run({"measures": "all"})
    changed = run({"measures": "all"}, partition={"method": "optimal", "k": 4})
    assert measured(changed, cached=True) == set()


def test_a_sample_of_scenarios_depends_on_the_seed_and_says_how_sure_it_is(
    run, protect_alone, plan_of, wave, tmp_path
):
    section = {"measures": ["dld"], "intruder": {"method": "subsets", "limit": 6}}
    first, second = run(section, seed=1), run(section, seed=2)
    for result in (first, second):
        (dld,) = details(result)
        assert dld["scenarios"] == 6  # of the seven sets, all but one pair or one single attribute
        assert dld["standard_error"] > 0
    alone = protect_alone(plan_of(**BLOCKS, evaluate=section, seed=1), wave, tmp_path / "memory")
    assert details(alone) == details(first)


REFUSED = {
    "ties": ({"measures": ["loss"], "ties": "first"}, "ties has no effect"),
    "tau": ({"measures": ["dld"], "tau": 0.5}, "tau has no effect"),
    "percent": ({"measures": ["dld"], "percent": 5.0}, "percent has no effect"),
    "intruder": ({"measures": ["loss"], "intruder": SUBSETS}, "intruder has no effect"),
    "unknown": ({"measures": ["lost"]}, "measures must be one of"),
    "none": ({"measures": []}, "one name or more"),
    "twice": ({"measures": ["loss", "loss"]}, "each once"),
    "field": ({"measures": ["loss"], "seed": 3}, "evaluate.seed is not a field"),
    "foreign set": (
        {"measures": ["dld"], "intruder": {"method": "named", "sets": [["shoe_size"]]}},
        "'shoe_size' is no quasi-identifier",
    ),
    "small limit": (
        {"measures": ["dld"], "intruder": {"method": "subsets", "limit": 3}},
        "raise limit to 6 or more",
    ),
}


@pytest.mark.parametrize(("section", "message"), REFUSED.values(), ids=REFUSED)
def test_arguments_without_effect_are_refused_before_anything_is_run(
    section, message, plan_of, write_plan
):
    with pytest.raises(PlanError, match=message):
        load_plan(write_plan(plan_of(evaluate=section)))


def test_plan_check_says_what_will_be_measured(plan_of, wave):
    def said(**changes):
        lines = what_would_be_done(Plan.model_validate(plan_of(**changes)), wave).splitlines()
        return [line.strip() for line in lines if "measured" in line or "seed" in line]

    assert said() == []
    named = {"measures": ["dld", "il"], "intruder": SUBSETS}
    assert said(evaluate=named, seed=4) == ["measured: dld, il (intruder: subsets)"]
    (line, seed) = said(evaluate={"measures": "all"}, seed=4)
    assert line == f"measured: all {len(MEASURES)} measures (intruder: everything)"
    assert "nothing in this plan draws at random" in seed


def test_a_measure_that_cannot_be_is_reported_with_the_reason(
    columns, run, protect_alone, plan_of, write_wave, tmp_path
):
    flow = run({"measures": ["d_y", "delta_r", "loss"]}, roles={"confidential": None, "other": "drop"})
    found = {each["measure"]: each for each in details(flow)}
    assert found["d_y"]["value"] is None
    assert found["d_y"]["not_applicable"] == "it needs confidential, and none is given"
    assert found["loss"]["value"] > 0
    constant = write_wave(pa.table({**columns, "rent": [5.0] * 40}), "constant.parquet")
    plan = plan_of(**BLOCKS, evaluate={"measures": ["delta_r"]})
    (delta,) = details(protect_alone(plan, constant, tmp_path / "constant"))
    assert delta["value"] is None
    assert "rent" in delta["not_applicable"]
