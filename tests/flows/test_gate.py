"""The gate: what is not good enough is not released, and everything says what is claimed."""

import json
from pathlib import Path

import pytest

from kohort.errors import GateRefused, GuaranteeBroken, PlanError
from kohort.flows.cli import main
from kohort.flows.in_memory import protect_in_memory
from kohort.flows.plan import Plan
from kohort.flows.progress import Silent

SORTED_ALONE = {"claim": "k-anonymous"}
NO_UNIT = {"unit": None, "other": "drop"}


@pytest.fixture(params=["flow", "in memory"])
def protect(request, tmp_path):
    """Protect a wave, by the flow or in memory."""
    if request.param == "flow":
        request.getfixturevalue("prefect_url")

    def run(plan, wave, out=tmp_path / "out"):
        plan = Plan.model_validate(plan)
        if request.param == "in memory":
            return protect_in_memory(plan, wave, out, listener=Silent())
        from kohort.flows.protect import protect_wave

        return protect_wave(plan=plan, wave=wave, out=out, store=tmp_path / "store")

    return run


def public(result):
    return json.loads((Path(result["out"]) / "public" / "manifest.json").read_bytes())


def test_one_block_claims_anonymity_over_whole_records(protect, plan_of, columns, write_wave):
    result = protect(plan_of(roles=NO_UNIT, release=SORTED_ALONE), write_wave(columns))
    claim = (
        "every record is identical to at least 2 others on all quasi-identifiers; 0.0 % of the records"
    )
    assert result["claim_in_words"].startswith(claim)
    assert public(result)["claim_in_words"].startswith(claim)
    assert result["measures"]["min_anonymity"] >= 3


def test_a_column_released_as_it_is_breaks_the_claim(protect, plan_of, columns, write_wave, tmp_path):
    columns["region"] = [f"r{i % 13}" for i in range(40)]
    plan = plan_of(roles={**NO_UNIT, "other": "keep"}, release=SORTED_ALONE)
    plan["roles"]["identifiers"] = ["name", "house"]
    with pytest.raises(GateRefused, match=r"min_anonymity = 1 is below 3 .*drop or protect columns"):
        protect(plan, write_wave(columns))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["refused"]
    kept = json.loads((tmp_path / "out" / "refused" / "evaluation.json").read_bytes())
    assert kept["measures"]["min_anonymity"] == 1
    plan["release"] = {"claim": "none"}
    words = protect(plan, write_wave(columns))["claim_in_words"]
    assert words.startswith("no number of identical records is claimed; ")
    assert "% of the records are unique" in words


def test_households_are_counted_where_there_are_any(protect, plan_of, columns, write_wave, tmp_path):
    columns["house"] = ["one"] * 40
    with pytest.raises(GateRefused, match="min_anonymity = 1 is below 3"):
        protect(plan_of(release=SORTED_ALONE), write_wave(columns))


BOUNDS = {
    "dld": ({"dld": 0.5}, r"dld = [\d.]+% is above 0.5"),
    "loss": ({"loss": 0.001}, r"loss = 0\.\d+ is above 0.001"),
    "two": ({"loss": 0.001, "k_real": 50}, r"loss = .* above 0.001; k_real = .* below 50"),
    "l_min": ({"l_min": 30}, r"l_min = \d+ is below 30"),
    "not applicable": ({"delta_W": 1}, r"delta_W is not applicable \(.*\), so that its bound 1"),
}


@pytest.mark.parametrize(("bounds", "sentence"), BOUNDS.values(), ids=BOUNDS)
def test_a_bound_that_is_not_kept(bounds, sentence, protect, plan_of, columns, write_wave, tmp_path):
    quasi = ["income"] if "delta_W" in bounds else ["age", "income", "rent"]
    others = {"quasi_identifiers": quasi, "other": "drop"}
    with pytest.raises(GateRefused, match=sentence) as refused:
        protect(plan_of(roles=others, gate=bounds), write_wave(columns))
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["refused"]
    kept = json.loads((tmp_path / "out" / "refused" / "evaluation.json").read_bytes())
    assert set(bounds) <= set(kept["measures"])


def test_bounds_that_are_kept(protect, plan_of, columns, write_wave):
    gate = {"dld": 100, "loss": 1, "dominance": 1, "l_min": 1}
    result = protect(plan_of(gate=gate), write_wave(columns))
    assert set(gate) <= set(result["measures"])
    assert public(result)["methods"]["gate"] == {name: float(bound) for name, bound in gate.items()}


def test_a_bound_below_k_does_not_weaken_the_claim(plan_of):
    plan = Plan.model_validate(plan_of(gate={"min_anonymity": 2}, release=SORTED_ALONE))
    assert plan.bounds == {"min_anonymity": 3.0}
    plan = Plan.model_validate(plan_of(gate={"min_anonymity": 7}, release=SORTED_ALONE))
    assert plan.bounds == {"min_anonymity": 7.0}
    assert Plan.model_validate(plan_of(gate={"min_anonymity": 2})).bounds == {"min_anonymity": 2.0}
    assert Plan.model_validate(plan_of()).bounds == {}


def test_bounds_are_measured_as_the_plan_measures(plan_of):
    assert Plan.model_validate(plan_of(gate={"loss": 1})).measured is None
    assert Plan.model_validate(plan_of(gate={"dld": 1})).measured.measures == ["dld"]
    asked = plan_of(gate={"dld": 1, "k_real": 1, "loss": 1}, evaluate={"measures": ["il"]})
    assert Plan.model_validate(asked).measured.measures == ["il", "dld", "k_real"]


REFUSED_PLANS = {
    "unknown measure": ({"gate": {"dlb": 1}}, "gate.dlb is not a field"),
    "no direction": ({"gate": {"fpc": 1}}, "gate.fpc is not a field"),
    "nothing bounded": ({"gate": {}}, "bounds no measure"),
    "text": ({"gate": {"dld": "10"}}, "gate.dld must be a number"),
    "blocks": (
        {"block": {"method": "single"}, "release": {"claim": "k-anonymous"}},
        'set claim = "per-block" or claim = "none"',
    ),
    "mic1d": (
        {"partition": {"method": "mic1d", "k": 30}, "release": {"claim": "per-block"}},
        'set claim = "none"',
    ),
    "claim": ({"release": {"claim": "all"}}, "release.claim must be"),
    "dependence": ({"dependence": {"weight": 0.5}}, "bound l_min or l_one in"),
    "dependence, other bound": (
        {"dependence": {"weight": 0.5}, "gate": {"l_avg": 2}},
        "bound l_min or l_one in",
    ),
}


@pytest.mark.parametrize(("changes", "sentence"), REFUSED_PLANS.values(), ids=REFUSED_PLANS)
def test_plans_that_are_refused(changes, sentence, plan_of, write_plan, write_wave, columns, capsys):
    plan = write_plan(plan_of(**changes))
    assert main(["plan", "check", str(plan), str(write_wave(columns))]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("bound", ["inf", "-inf", "nan"])
def test_a_bound_is_a_number(bound, plan_of, toml_of, write_plan, write_wave, columns, capsys):
    plan = write_plan(toml_of(plan_of()) + f"[gate]\ndld = {bound}\n")
    assert main(["plan", "check", str(plan), str(write_wave(columns))]) == 2
    assert "gate.dld: Input should be a finite number" in capsys.readouterr().err


def test_blocks_found_in_the_data_are_held_to_the_claim(protect, plan_of, columns, write_wave, tmp_path):
    plan = plan_of(block={"method": "correlated", "size": 2}, release=SORTED_ALONE)
    with pytest.raises(PlanError, match="2 blocks make records identical within each block"):
        protect(plan, write_wave(columns))
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_failed_and_exits_with_4(
    plan_of, write_plan, write_wave, columns, tmp_path, capsys
):
    plan, wave = write_plan(plan_of(gate={"loss": 0.001})), write_wave(columns)
    assert main(["plan", "check", str(plan), str(wave)]) == 0
    assert "released only if: loss at most 0.001" in capsys.readouterr().out
    out = tmp_path / "out"
    assert main(["protect", str(plan), str(wave), "--out", str(out), "--in-memory"]) == 4
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("kohort: not released: loss = ")
    assert last.endswith(f"what was measured is in {out / 'refused'}")


def test_an_evaluation_that_says_more_than_the_file_is_a_bug(tmp_path):
    from kohort.tasks.bounds import check_bounds

    report = {"measures": {"min_anonymity": 5}}
    with pytest.raises(GuaranteeBroken, match="a class of 4 identical records, but 5 were evaluated"):
        check_bounds(tmp_path, bounds={}, evaluation=report, manifest={}, counted=4)
    check_bounds(tmp_path, bounds={}, evaluation=report, manifest={}, counted=5)


SECRETS = ("input", "seed", "stages", "code", "cpu", "versions", "wave", "dropped", "reasons")


def test_the_public_part_tells_nothing_that_helps_to_undo_it(
    protect, plan_of, columns, write_wave, tmp_path
):
    wave = write_wave(columns, "spring.parquet")
    result = protect(plan_of(seed=77, block={"method": "correlated", "size": 2}), wave)
    folder = Path(result["out"]) / "public"
    text = (folder / "manifest.json").read_text()
    internal = json.loads((folder.parent / "internal" / "manifest.json").read_text())
    assert not set(SECRETS) & set(json.loads(text))
    digests = [internal["input"]["sha256"], *(row["sha256"] for row in internal["stages"])]
    for secret in (*filter(None, digests), "spring", str(tmp_path), "77", "person", "reason"):
        if secret != result["sha256"]:
            assert secret not in text, secret
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "protected.parquet"]
    for value in public(result)["measures"].values():
        assert value is None or float(f"{value:.3g}") == value
