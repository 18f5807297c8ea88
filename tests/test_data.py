"""The sample survey: its generator makes the committed files, which have the structure it declares."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).parents[1] / "data"
WAVES = ("2026q1", "2026q2", "2026q3")
GROUPS = {
    "working life": ("age", "hours_worked", "commute_minutes"),
    "means": ("years_of_education", "income", "savings"),
    "dwelling": ("floor_area", "rent", "energy_use"),
    "household": ("children", "vehicles", "food_spending"),
}
QUASI_IDENTIFIERS = tuple(name for group in GROUPS.values() for name in group)
CONFIDENTIAL = ("health_cost", "debt", "wellbeing")
OTHERS = ("person_id", "name", "household_id", "region", "weight")
OF_THE_HOUSEHOLD = ("region", "weight", *GROUPS["dwelling"], *GROUPS["household"])


def read(wave: str, folder: Path = DATA) -> pa.Table:
    return pq.read_table(folder / f"household-{wave}.parquet")


def numbers(table: pa.Table, *names: str) -> np.ndarray:
    return np.column_stack([table[name].to_numpy() for name in names]).astype(float)


def generate(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, str(DATA / "generate.py"), str(folder)], check=True, capture_output=True
    )
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return generate(tmp_path_factory.mktemp("made"))


@pytest.fixture(params=WAVES)
def wave(request) -> pa.Table:
    return read(request.param)


@pytest.mark.parametrize("name", WAVES)
def test_the_generator_makes_the_committed_tables(name, made):
    committed, again = read(name), read(name, made)
    assert again.schema.equals(committed.schema)
    assert again.num_rows == committed.num_rows
    for field in committed.schema:
        if pa.types.is_floating(field.type):  # exp and pow differ in the last digit from CPU to CPU
            np.testing.assert_allclose(again[field.name], committed[field.name], rtol=1e-9, atol=1e-9)
        else:
            assert again[field.name].equals(committed[field.name]), field.name


def test_a_second_run_makes_the_same_bytes_and_leaves_nothing_else(made, tmp_path):
    second = generate(tmp_path / "a" / "new folder")
    assert sorted(p.name for p in second.iterdir()) == [f"household-{name}.parquet" for name in WAVES]
    for path in second.iterdir():
        assert path.read_bytes() == (made / path.name).read_bytes()


def test_columns_come_in_the_declared_order_without_pandas_metadata(wave):
    assert wave.column_names == [*OTHERS, *QUASI_IDENTIFIERS, *CONFIDENTIAL]
    assert not wave.schema.metadata


@pytest.mark.parametrize("name", WAVES)
def test_files_are_small(name):
    assert (DATA / f"household-{name}.parquet").stat().st_size < 400_000


def test_persons_are_many_and_unique_and_no_cell_is_missing(wave):
    assert wave.num_rows >= 2000
    assert len(pc.unique(wave["person_id"])) == wave.num_rows
    assert sum(column.null_count for column in wave.columns) == 0
    x = numbers(wave, "weight", *QUASI_IDENTIFIERS, *CONFIDENTIAL)
    assert np.isfinite(x).all()
    assert (x >= 0).all()


def test_rows_and_ids_tell_no_order(wave):
    row = np.arange(wave.num_rows)
    person = np.array([int(i[1:]) for i in wave["person_id"].to_pylist()])
    household = np.array([int(i[1:]) for i in wave["household_id"].to_pylist()])
    for a, b in ((row, person), (row, household), (person, household)):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.1  # five standard errors are 0.106


def test_households_have_one_to_six_adults_who_share_a_home(wave):
    sizes = wave.group_by("household_id").aggregate([("person_id", "count")])["person_id_count"]
    assert set(sizes.to_pylist()) == {1, 2, 3, 4, 5, 6}
    shared = wave.group_by("household_id").aggregate(
        [(name, "count_distinct") for name in OF_THE_HOUSEHOLD]
    )
    for name in OF_THE_HOUSEHOLD:
        assert pc.max(shared[f"{name}_count_distinct"]).as_py() == 1, name


def test_weights_are_positive_and_varied_and_give_the_population(wave):
    weight = wave["weight"].to_numpy()
    assert (weight > 0).all()
    assert weight.std() > 0.3 * weight.mean()
    assert weight.sum() == pytest.approx(4_150_000)
    assert len(pc.unique(wave["region"])) == 12


@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise(WAVES)))
def test_four_fifths_stay_and_change_plausibly(first, second):
    before, after = read(first), read(second)
    both = before.join(after, "person_id", join_type="inner", right_suffix="_after")
    for table in (before, after):
        assert 0.75 <= both.num_rows / table.num_rows <= 0.85
    for name in ("name", "household_id", "region"):
        assert both[name].equals(both[f"{name}_after"]), name
    change = {
        name: numbers(both, f"{name}_after")[:, 0] - numbers(both, name)[:, 0]
        for name in QUASI_IDENTIFIERS
    }
    assert set(change["age"]) == {0, 1}
    assert 0.2 < change["age"].mean() < 0.3
    assert set(change["children"]) == {0, 1}
    assert set(change["years_of_education"]) == {0, 1}
    for name in ("hours_worked", "commute_minutes", "floor_area", "rent", "vehicles"):
        assert 0.005 < (change[name] != 0).mean() < 0.2, name
    for name in QUASI_IDENTIFIERS:
        assert np.corrcoef(numbers(both, name, f"{name}_after").T)[0, 1] > 0.9, name


@pytest.mark.parametrize("group", GROUPS)
def test_quasi_identifiers_are_correlated_within_their_group(wave, group):
    r = np.abs(np.corrcoef(numbers(wave, *GROUPS[group]).T))[np.triu_indices(3, 1)]
    assert r.min() > 0.2
    assert r.mean() > 0.35


def test_groups_are_tighter_than_what_lies_between_them(wave):
    r = np.abs(np.corrcoef(numbers(wave, *QUASI_IDENTIFIERS).T))
    group = np.repeat(np.arange(4), 3)
    inside = (group[:, None] == group) & ~np.eye(12, dtype=bool)
    assert r[inside].mean() > 2 * r[group[:, None] != group].mean()


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("hours_worked", 0.2, 0.4),
        ("commute_minutes", 0.3, 0.5),
        ("income", 0.01, 0.06),
        ("savings", 0.1, 0.25),
        ("rent", 0.02, 0.1),
        ("children", 0.5, 0.65),
        ("vehicles", 0.1, 0.25),
        ("debt", 0.05, 0.25),
    ],
)
def test_share_of_zeros(wave, name, low, high):
    assert low < (numbers(wave, name) == 0).mean() < high


@pytest.mark.parametrize(
    ("name", "least"),
    [("savings", 3), ("income", 0.8), ("floor_area", 0.8), ("energy_use", 0.6), ("children", 1)],
)
def test_skewness(wave, name, least):
    x = numbers(wave, name)[:, 0]
    assert (((x - x.mean()) / x.std()) ** 3).mean() > least


def test_integers_halves_heaps_and_continuous_values(wave):
    floats = {"hours_worked", "energy_use", "food_spending", "health_cost", "wellbeing"}
    for name in (*QUASI_IDENTIFIERS, *CONFIDENTIAL):
        assert wave.schema.field(name).type == (pa.float64() if name in floats else pa.int64()), name
    steps = {"commute_minutes": 5, "income": 10, "savings": 100, "rent": 10, "debt": 100}
    steps |= dict.fromkeys(floats - {"energy_use"}, 0.5)
    for name, step in steps.items():
        assert (numbers(wave, name) % step == 0).all(), name
    for name in floats - {"energy_use"}:
        assert (numbers(wave, name) % 1 != 0).any(), name
    distinct = {name: len(pc.unique(wave[name])) for name in QUASI_IDENTIFIERS}
    assert distinct["vehicles"] <= 6
    assert distinct["age"] < 80
    assert 0.2 < (numbers(wave, "hours_worked") == 39).mean() < 0.4
    assert distinct["energy_use"] == len(pc.unique(wave["household_id"]))


@pytest.mark.parametrize(("name", "least"), [("health_cost", 0.45), ("debt", 0.6), ("wellbeing", 0.25)])
def test_confidential_attributes_depend_on_quasi_identifiers(wave, name, least):
    x, y = numbers(wave, *QUASI_IDENTIFIERS), numbers(wave, name)[:, 0]
    x = np.column_stack([np.ones(len(x)), x])
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert 1 - residual.var() / y.var() > least
