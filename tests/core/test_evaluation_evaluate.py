"""evaluate(): what it takes, what it refuses, and the forms of its results."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

from kohort import NotApplicable, PlanError, WaveError, evaluate, protect
from kohort import evaluation as ev
from kohort.blocking import Consecutive
from kohort.evaluation import MEASURES, Subsets


@pytest.fixture(scope="module")
def x():
    rng = np.random.default_rng(2)
    columns = np.exp(rng.normal(size=(90, 4)) + rng.normal(size=(90, 1)))
    return pd.DataFrame(columns, columns=["income", "tax", "rent", "food"])


@pytest.fixture(scope="module")
def protected(x):
    return protect(x, k=3, blocks=Consecutive(size=2))


def test_every_measure_is_there_once_and_has_a_function():
    names = [measure.name for measure in MEASURES]
    assert len(set(names)) == len(names)
    for measure in MEASURES:
        assert callable(getattr(ev, measure.name.removesuffix("_mp")))
        assert (measure.compute is None) == bool(measure.of)
        assert set(measure.of) <= set(names)


def test_every_argument_that_a_measure_uses_is_one_of_evaluate():
    arguments = set(inspect.signature(evaluate).parameters)
    for measure in MEASURES:
        assert {*measure.needs, *measure.uses} <= arguments


@pytest.mark.parametrize("name", [measure.name for measure in MEASURES])
def test_each_measure_alone_is_what_it_is_among_all(name, x, protected):
    y = x[["food"]] ** 2
    together = evaluate(x, protected.values, confidential=y)
    needs_y = "confidential" in {m.name: m.needs for m in MEASURES}[name]
    alone = evaluate(x, protected.values, measures=[name], confidential=y if needs_y else None)
    assert alone[name] == together[name]
    assert isinstance(alone[name], float)


def test_results_are_those_of_the_functions(x, protected):
    a, b = x.to_numpy(), protected.values.to_numpy()
    found = evaluate(x, protected.values, ties="first", direction="to_original", tau=0.3)
    assert found["dld"] == ev.dld(a, b, ties="first", direction="to_original")
    assert found["pld"] == ev.pld(a, b, tau=0.3).value
    assert found["il"] == ev.il(a, b)
    assert found["il_mp"] == ev.il(a, b, variant="mp")
    assert found["score"] == ev.score(il=found["il"], dld=found["dld"], id=found["id"])
    parts = {name: found[name] for name in ("dld", "pld", "id")}
    assert found["score_mp"] == ev.score(il=found["il_mp"], variant="mp", **parts)


def test_groups_of_several_blocks(x, protected):
    y = x[["food"]]
    a = x.to_numpy()
    arguments = {"blocks": protected.blocks, "groups": protected.groups}
    found = evaluate(x, protected.values, confidential=y, **arguments)
    parts = [ev.dominance(a[:, b], protected.groups[:, i]) for i, b in enumerate(protected.blocks)]
    sizes = [protected.groups[:, i].max() + 1 for i in range(2)]
    assert found["dominance"] == pytest.approx(np.average(parts, weights=sizes))
    assert found["group_sizes"] == min(np.bincount(protected.groups[:, i]).min() for i in range(2))
    joint = np.unique(protected.groups, axis=0, return_inverse=True)[1].ravel()
    assert found["d_y"] == pytest.approx(ev.d_y(y.to_numpy(), joint.astype(np.int32)))
    assert found["l_avg"] == pytest.approx(ev.l_avg(y.to_numpy(), joint.astype(np.int32)))


def test_groups_are_read_off_the_release_where_none_are_given(x, protected):
    y = x[["food"]]
    given = evaluate(
        x, protected.values, confidential=y, blocks=protected.blocks, groups=protected.groups
    )
    derived = evaluate(x, protected.values, confidential=y, blocks=protected.blocks)
    for name in ("group_sizes", "dominance", "d_y", "l_avg", "l_min", "l_one"):
        assert derived[name] == pytest.approx(given[name]), name


def test_units_and_other_released_columns_lower_anonymity(x):
    whole = protect(x, k=6).values
    region = np.where(np.arange(90) % 2, "north", "south")
    asked = {"measures": ["min_anonymity", "unique"]}
    plain = evaluate(x, whole, **asked)["min_anonymity"]
    assert evaluate(x, whole, units=np.repeat(list("abc"), 30), **asked)["min_anonymity"] < plain
    others = pd.DataFrame({"region": region})
    assert evaluate(x, whole, others=others, **asked)["min_anonymity"] < plain


def test_weights_change_dominance(x):
    weights = np.ones(90)
    weights[0] = 1e9
    plain = evaluate(x, protect(x, k=3).values, measures=["dominance"])["dominance"]
    heavy = evaluate(x, protect(x, k=3).values, measures=["dominance"], weights=weights)["dominance"]
    assert heavy > plain


def test_it_prints_as_a_table(x, protected):
    lines = str(evaluate(x, protected.values, intruder="subsets")).splitlines()
    assert lines[0] == "90 records, 4 attributes, intruder: subsets"
    (dld,) = (line for line in lines if line.startswith("  dld"))
    assert "%" in dld
    assert dld.endswith("mean of 15 scenarios")
    (missing,) = (line for line in lines if line.startswith("  d_y"))
    assert missing.endswith("-  not applicable: it needs confidential, and none is given")


def test_it_becomes_a_frame_and_json(x, protected):
    found = evaluate(x, protected.values, intruder=Subsets(limit=9), seed=4)
    frame = found.to_frame().set_index("measure")
    assert list(frame.index) == [measure.name for measure in MEASURES]
    assert frame.loc["dld", "value"] == found["dld"]
    assert frame.loc["dld", "standard_error"] > 0
    content = json.loads(found.to_json())
    by_name = {result["measure"]: result for result in content["results"]}
    assert by_name["loss"]["value"] == found["loss"]
    assert by_name["l_avg"]["value"] is None
    assert "confidential" in by_name["l_avg"]["not_applicable"]
    assert by_name["k_real"]["worse"] == "lower"


def test_reasons_name_the_columns(x, protected):
    flat = protected.values.assign(rent=1.0)
    found = evaluate(x, flat, measures=["il5", "delta_r", "fpc"])
    for name in ("il5", "delta_r", "fpc"):
        assert found[name].reason.endswith("(rent)")


@pytest.mark.parametrize(
    "arguments",
    [
        {"measures": ["sse"], "ties": "first"},
        {"measures": ["dld"], "tau": 0.2},
        {"measures": ["score"], "tau": 0.2},
        {"measures": ["loss"], "intruder": "subsets"},
        {"measures": ["loss"], "weights": np.ones(90)},
        {"measures": ["dld"], "units": np.arange(90)},
        {"measures": ["dld"], "confidential": np.ones((90, 1))},
        {"measures": ["dld", "d_x"], "blocks": [[0, 1], [2, 3]]},
        {"measures": ["k_real"], "groups": np.zeros(90, int)},
        {"measures": ["pld"], "direction": "to_original"},
        {"measures": ["group_sizes"], "percent": 5.0},
        {"measures": ["dominance"], "others": np.ones((90, 1))},
        {"measures": ["dld"], "seed": 1},
        {"measures": ["dld"], "seed": 1, "intruder": "subsets"},
        {"measures": ["loss"], "seed": 1},
    ],
)
def test_an_argument_without_effect_is_refused(arguments, x, protected):
    with pytest.raises(PlanError, match="has no effect"):
        evaluate(x, protected.values, **arguments)


def test_arguments_with_effect_on_a_part_of_a_measure_are_taken(x, protected):
    plain = evaluate(x, protected.values, measures=["score", "score_mp"])
    first = evaluate(x, protected.values, measures=["score", "score_mp"], ties="first", tau=2.0)
    assert first["score_mp"] != plain["score_mp"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"measures": "dld"}, PlanError, "'all' or a list"),
        ({"measures": ["dlb"]}, PlanError, "measures must be one of"),
        ({"measures": []}, PlanError, "one name or more"),
        ({"measures": ["dld", "dld"]}, PlanError, "each once"),
        ({"measures": ["d_y"]}, PlanError, "'d_y' needs confidential"),
        ({"intruder": "spy"}, PlanError, "intruder must be one of"),
        ({"ties": "last"}, PlanError, "ties must be one of"),
        ({"direction": "back"}, PlanError, "direction must be one of"),
        ({"tau": -1.0}, PlanError, "tau must be"),
        ({"percent": 0.0}, PlanError, "percent must be"),
        ({"blocks": [[0, 1], [1, 2, 3]]}, PlanError, "blocks must name each"),
        ({"groups": np.zeros((90, 2), int)}, WaveError, "90 records and 1 blocks"),
        ({"groups": np.zeros(90)}, WaveError, "whole numbers"),
        ({"groups": np.full(90, 2)}, WaveError, "without gaps"),
        ({"groups": np.full(90, -1)}, WaveError, "without gaps"),
        ({"weights": np.zeros(90)}, WaveError, "weights"),
        ({"units": np.zeros(3)}, WaveError, "units must be one a record"),
        ({"units": np.array([None, 1] * 45)}, WaveError, "mixes kinds"),
        ({"confidential": np.ones((3, 1))}, WaveError, "confidential has 3 records"),
        ({"confidential": np.full((90, 1), np.nan)}, WaveError, "missing cells"),
    ],
)
def test_wrong_requests_are_refused(arguments, error, message, x, protected):
    with pytest.raises(error, match=message):
        evaluate(x, protected.values, **arguments)


def test_tables_that_do_not_belong_together_are_refused(x, protected):
    with pytest.raises(WaveError, match="shape"):
        evaluate(x, protected.values.iloc[1:])
    with pytest.raises(WaveError, match="are not the original ones"):
        evaluate(x, protected.values[["tax", "income", "rent", "food"]])


def test_a_measure_that_was_not_asked_for_is_not_there(x, protected):
    with pytest.raises(PlanError, match="not asked for"):
        evaluate(x, protected.values, measures=["loss"])["dld"]


def test_not_applicable_is_never_a_number():
    with pytest.raises(TypeError):
        float(NotApplicable("why"))
