"""Make the sample data: three quarterly waves of a synthetic household survey.

Nobody in it exists: every cell is drawn from the distributions below with a fixed seed. All adults (16+)
of a household are interviewed. Households rotate: a group stays for five waves, so that four fifths of
a wave's persons are in the next one. Run as `python data/generate.py [FOLDER]`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20260101
WAVES = ("2026q1", "2026q2", "2026q3")
GROUPS_PER_WAVE, HOUSEHOLDS_PER_GROUP = 5, 200

REGIONS = {  # name: adults in thousands, level of rents
    "Capital": (900, 1.45), "Capital Ring": (640, 1.25), "North Coast": (410, 1.00),
    "South Coast": (380, 1.10), "East Plain": (300, 0.80), "West Plain": (280, 0.82),
    "River Delta": (350, 0.95), "Upper Valley": (190, 0.78), "Lower Valley": (260, 0.88),
    "High Ridge": (120, 0.70), "Lake Shore": (230, 1.05), "Islands": (90, 0.92),
}  # fmt: skip
ADULTS, RENT_LEVEL = np.array(list(REGIONS.values())).T

ONSETS = ("Arb", "Belk", "Crov", "Drasn", "Eskl", "Falg", "Grizh", "Keld", "Lorv", "Osth", "Tulg")
CODAS = ("abek", "efal", "igrin", "oham", "ulund", "amost", "epek", "irin", "ustok", "ovall")

# What changes between waves. A shock is a standard normal deviate; each quarter a share of the units
# gets a new one, correlated with the old. So most people keep job and home, while bills and moods move.
HOUSEHOLD_SHOCKS = {  # name: share that changes, correlation of new with old
    "response": (0.0, 1.0), "dwelling": (0.03, 0.0), "price": (0.03, 0.0), "garage": (0.04, 0.5),
    "energy": (1.0, 0.9), "food": (0.8, 0.9),
}  # fmt: skip
PERSON_SHOCKS = {
    "job": (0.05, 0.2), "contract": (0.06, 0.3), "overtime": (0.2, 0.6), "way": (0.08, 0.3),
    "wage": (0.5, 0.97), "thrift": (0.7, 0.98), "health": (1.0, 0.8), "credit": (0.6, 0.97),
    "mood": (1.0, 0.7),
}  # fmt: skip

# The order of a file. Quasi-identifiers come in threes that belong together, so that
# `consecutive(size=3)` makes blocks with a meaning.
SCHEMA = pa.schema([
    ("person_id", pa.string()), ("name", pa.string()), ("household_id", pa.string()),
    ("region", pa.string()), ("weight", pa.float64()),
    ("age", pa.int64()), ("hours_worked", pa.float64()), ("commute_minutes", pa.int64()),  # working life
    ("years_of_education", pa.int64()), ("income", pa.int64()), ("savings", pa.int64()),  # means
    ("floor_area", pa.int64()), ("rent", pa.int64()), ("energy_use", pa.float64()),  # dwelling
    ("children", pa.int64()), ("vehicles", pa.int64()), ("food_spending", pa.float64()),  # household
    ("health_cost", pa.float64()), ("debt", pa.int64()), ("wellbeing", pa.float64()),  # confidential
])  # fmt: skip

Array = npt.NDArray[Any]
Columns = dict[str, Array]


def draw_ids(rng: np.random.Generator, letter: str, n: int) -> Array:
    """Distinct random ids, so that an id tells no order."""
    return np.array([f"{letter}{number:08d}" for number in rng.choice(10**8, n, replace=False)])


def draw_words(rng: np.random.Generator, n: int) -> Array:
    """Invented names of an onset and a coda each."""
    return np.strings.add(rng.choice(ONSETS, n), rng.choice(CODAS, n))


def draw_households(rng: np.random.Generator, n: int) -> Columns:
    """What stays with a household over the waves; `birth` is the quarter of its next child."""
    adults = rng.choice(np.arange(1, 7), n, p=[0.24, 0.46, 0.17, 0.09, 0.03, 0.01])
    head_age = 19 + 70 * rng.beta(1.7, 2.1, n)
    couple = (head_age > 22) & (head_age < 55) & (adults > 1)
    sampled = np.sqrt(ADULTS)  # small regions are oversampled, so weights differ
    return {
        "household_id": draw_ids(rng, "H", n),
        "group": np.arange(n) // HOUSEHOLDS_PER_GROUP,
        "region": rng.choice(len(REGIONS), n, p=sampled / sampled.sum()),
        "status": rng.normal(size=n),  # the latent standing that ties school, wages, home and spending
        "adults": adults, "head_age": head_age,
        "children": np.minimum(rng.poisson(np.where(couple, 1.3, 0.08)), 5),
        "birth": np.where(couple & (head_age < 43), rng.integers(1, 30, n), len(WAVES)),
        "family": draw_words(rng, n),
    }  # fmt: skip


def draw_persons(rng: np.random.Generator, homes: Columns) -> Columns:
    """What stays with a person over the waves, the household's traits included."""
    adults = homes["adults"]
    home = np.repeat(np.arange(len(adults)), adults)
    place = np.arange(len(home)) - np.repeat(np.cumsum(adults) - adults, adults)
    fixed = {name: values[home] for name, values in homes.items()}
    n, head = len(home), fixed["head_age"]
    partner = head + rng.normal(0, 4, n)
    grown = head - 28 + rng.normal(0, 4, n)  # a grown child; where too young, a flatmate instead
    age = np.select([place == 0, (place == 1) | (grown < 16)], [head, partner], grown).clip(16, 94)
    school = 12.3 + 1.9 * fixed["status"] - 0.035 * (age - 45) + rng.normal(0, 1.9, n)
    family = np.where(rng.random(n) < 0.15, draw_words(rng, n), fixed["family"])
    return fixed | {
        "person_id": draw_ids(rng, "P", n),
        "name": np.strings.add(np.strings.add(draw_words(rng, n), " "), family),
        "home": home, "age": age, "school": np.clip(school, 4, 21),
        "step": rng.choice([10, 50, 100], n, p=[0.4, 0.4, 0.2]),  # how a person rounds an income
    }  # fmt: skip


def renew(rng: np.random.Generator, shock: Array, share: float, keep: float) -> Array:
    """The shock one quarter later: again standard normal, and changed for `share` of the units only."""
    fresh = keep * shock + np.sqrt(1 - keep**2) * rng.normal(size=len(shock))
    return np.where(rng.random(len(shock)) < share, fresh, shock)


def to_step(values: Array, step: float | Array) -> Array:
    """Values as people report them: not negative, in multiples of a step."""
    return np.rint(np.maximum(values, 0) / step) * step


def answer_for_household(fixed: Columns, z: Columns, quarter: int) -> Columns:
    """The answers that all persons of a household share: ties within a household in every column."""
    status, adults = fixed["status"], fixed["adults"]
    people = adults + 0.8 * fixed["children"]
    # Dwelling: all three follow the size of the home.
    area = np.exp(3.75 + 0.17 * people + 0.14 * status + 0.2 * z["dwelling"])  # lognormal: right-skewed
    rent = 9.5 * RENT_LEVEL[fixed["region"]] * area**0.9 * np.exp(0.08 * status + 0.12 * z["price"])
    season = (1.25, 0.9, 0.75)[quarter]
    energy = (90 + 7.5 * area + 60 * people) * season * np.exp(0.16 * z["energy"])
    # Household: all three follow the number of persons.
    children = fixed["children"] + (fixed["birth"] <= quarter)
    cars = -0.35 + 0.52 * people + 0.25 * status + 0.4 * z["garage"]
    food = (22 + 38 * adults**0.85 + 27 * children) * np.exp(0.1 * status + 0.13 * z["food"])
    return {
        "floor_area": np.rint(area),  # square metres
        "rent": np.where(z["price"] < -1.6, 0, to_step(rent, 10)),  # a month; some 5 % live rent-free: 0
        "energy_use": energy,  # kWh a quarter from the meter: continuous, no ties between households
        "children": children,  # under 16; a count, more than half of it 0
        "vehicles": np.minimum(to_step(cars, 1), 5),  # a count with few values: heavy ties
        "food_spending": to_step(food, 0.5),  # a week, in half units
    }


def answer_for_person(fixed: Columns, z: Columns, shared: Columns, quarter: int) -> Columns:
    """A person's own answers, the confidential ones last."""
    age, status = fixed["age"] + quarter / 4, fixed["status"]  # reported in whole years: ties
    # Working life: hours and the way to work are 0 together, for most of the old and many of the young.
    works = z["job"] < np.interp(
        age, [16, 20, 26, 55, 60, 66, 72], [-0.9, 0.2, 1.4, 1.2, 0.6, -1.3, -2.4]
    )
    full_time, overtime = z["contract"] > -0.6, z["overtime"]
    hours = np.where(full_time, 39 + np.maximum(5 * overtime, 0), np.maximum(22 + 6 * overtime, 4))
    hours = np.where(works, to_step(hours, 0.5), 0)  # a week, in halves, with a spike at 39
    way = to_step(np.exp(2.55 + 0.018 * hours + 0.4 * z["way"]), 5)  # heaps at multiples of 5
    way = np.where(works & (z["way"] > -1.2), way, 0)  # a tenth work at home
    # Means: school raises wages, wages raise savings; income and savings are right-skewed, with zeros.
    school = np.floor(np.minimum(fixed["school"], age - 6))  # whole years, fewer in older cohorts
    wage = np.exp(1.35 + 0.085 * school + 0.16 * status + 0.008 * (age - 45) + 0.2 * z["wage"])
    pension = np.where(age >= 66, 108 * wage, 0)
    support = np.where(~works & (age >= 22) & (age < 66), 380 + 12 * school, 0)
    # A month's income in tens, with heaps at 50 and 100.
    income = to_step(4.33 * hours * wage * 1.005**quarter + pension + support, fixed["step"])
    kept = np.exp(0.35 * z["thrift"]) - 0.7  # negative for a sixth, who save nothing
    savings = to_step(2.5 * wage**1.9 * (age - 13) * kept, 100)
    # Confidential: each leans on several of the above, a dependence that a protection can lose. A
    # quarter's health cost in half units, debt in hundreds, a score from 0 to 100 in half points.
    children = shared["children"]
    health = 5.2 * age + 0.02 * income - 90 + (35 + 0.9 * age) * z["health"]
    debt = 1.3 * income + 4.5 * shared["rent"] + 900 * children - 40 * age + 1500 * z["credit"]
    wellbeing = 50 + 6.5 * np.log1p(income / 1000) + 2.4 * np.log1p(savings / 1000) - 0.16 * way
    return {
        "age": np.floor(age), "hours_worked": hours, "commute_minutes": way,
        "years_of_education": school, "income": income, "savings": savings,
        "health_cost": to_step(health, 0.5), "debt": to_step(debt, 100),
        "wellbeing": np.minimum(to_step(wellbeing + 1.5 * children + 5 * z["mood"], 0.5), 100),
    }  # fmt: skip


def draw_waves(rng: np.random.Generator) -> list[pa.Table]:
    """All rotation groups live through all quarters; the wave of quarter t interviews t to t + 4."""
    homes = draw_households(rng, HOUSEHOLDS_PER_GROUP * (GROUPS_PER_WAVE + len(WAVES) - 1))
    fixed = draw_persons(rng, homes)
    rules = HOUSEHOLD_SHOCKS | PERSON_SHOCKS
    sizes = {name: len(homes["group"] if name in HOUSEHOLD_SHOCKS else fixed["home"]) for name in rules}
    shocks = {name: rng.normal(size=sizes[name]) for name in rules}
    waves = []
    for quarter in range(len(WAVES)):
        if quarter:
            shocks = {name: renew(rng, shocks[name], *rules[name]) for name in rules}
        z = {name: s[fixed["home"]] if name in HOUSEHOLD_SHOCKS else s for name, s in shocks.items()}
        shared = answer_for_household(fixed, z, quarter)
        columns = fixed | shared | answer_for_person(fixed, z, shared, quarter)
        last = quarter + GROUPS_PER_WAVE - 1
        rows = rng.permutation(np.flatnonzero((fixed["group"] >= quarter) & (fixed["group"] <= last)))
        wave = {name: values[rows] for name, values in columns.items()}
        # A region's persons stand for all its adults, the reluctant for more of them.
        region, raw = wave["region"], np.exp(0.35 * z["response"][rows])
        wave["weight"] = raw * (1000 * ADULTS / np.bincount(region, raw))[region]
        wave["region"] = np.array(list(REGIONS))[region]
        # The cast to integers is a safe one: it refuses a value that is not whole.
        cells = [pa.array(wave[field.name]).cast(field.type) for field in SCHEMA]
        waves.append(pa.Table.from_arrays(cells, schema=SCHEMA))
    return waves


def main() -> None:
    """Write the waves; a file appears whole or not at all."""
    parser = argparse.ArgumentParser(description="Make the three waves of the sample survey.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for wave, table in zip(WAVES, draw_waves(np.random.default_rng(SEED)), strict=True):
        path = folder / f"household-{wave}.parquet"
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            pq.write_table(table, unfinished)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
        print(f"{path}: {table.num_rows} persons")


if __name__ == "__main__":
    main()
