"""The papers' figures, from the reference files."""

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from kohort import evaluate, protect
from kohort import evaluation as ev
from kohort.blocking import Consecutive
from kohort.evaluation import Named
from kohort.partitioning import Fixed
from kohort.projection import Attribute

REFERENCE = Path(os.environ.get("KOHORT_REFERENCE", "data/reference"))


def reference(name):
    path = REFERENCE / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"no {name}.csv in {REFERENCE}; set KOHORT_REFERENCE to the reference files")
    return pd.read_csv(path)


# The columns behind the mic1d paper's a1..a9, whose names are shifted.
CENSUS = ["AGI", "STATETAX", "TAXINC", "EMCONTRB", "WSALVAL", "ERNVAL", "FEDTAX", "POTHVAL", "INTVAL"]


def mic1d(x, k):
    """Mic1D-k with the paper's own remainder, a last smaller chunk."""

    def scale(values):
        order = np.argsort(values, kind="stable")
        chunks = [order[start : start + k] for start in range(0, values.size, k)]
        limits = [(values[chunk].min(), values[chunk].max()) for chunk in chunks]
        scaled = np.empty_like(values)
        for chunk, (low, high) in zip(chunks, limits, strict=True):
            scaled[chunk] = 0.5 if low == high else (values[chunk] - low) / (high - low)
        return scaled, chunks, limits

    once, chunks, limits = scale(x.T.ravel())
    twice, chunks_twice, limits_twice = scale(once)
    for chunk, (low, high) in zip(chunks_twice, limits_twice, strict=True):
        twice[chunk] = low + twice[chunk].mean() * (high - low)
    for chunk, (low, high) in zip(chunks, limits, strict=True):
        twice[chunk] = low + twice[chunk] * (high - low)
    return twice.reshape(x.shape[::-1]).T


@pytest.fixture(scope="module", params=[3000, 4000, 5000])
def mic1d_release(request):
    x = reference("census")[CENSUS].astype(float)
    protected = pd.DataFrame(mic1d(x.to_numpy(), request.param), columns=CENSUS)
    return request.param, x, protected


def test_mic1d_table_4_sse(mic1d_release):
    k, x, protected = mic1d_release
    published = {3000: 32.27, 4000: 129.06, 5000: 738.12}[k]
    assert ev.sse_minmax(x.to_numpy(), protected.to_numpy()) == pytest.approx(published, abs=0.005)


def test_mic1d_table_6_dld_over_all_subsets(mic1d_release):
    # The paper prints 16.91 for k = 4000; 16.93 is what its method gives.
    k, x, protected = mic1d_release
    found = evaluate(x, protected, measures=["dld"], intruder="subsets", ties="first")
    assert found.results[0].scenarios == 511
    assert found["dld"] == pytest.approx({3000: 35.95, 4000: 16.93, 5000: 4.94}[k], abs=0.005)


def test_mic1d_table_6_id(mic1d_release):
    k, x, protected = mic1d_release
    published = {3000: 54.16, 4000: 48.53, 5000: 32.22}[k]
    assert ev.id(x.to_numpy(), protected.to_numpy()) == pytest.approx(published, abs=0.8)


TABLE_3 = {
    ("correlated", "1G"): "123 456 789",
    ("correlated", "3G"): "147 158 169 247 258 269 347 358 369",
    ("non-correlated", "1G"): "147 258 369",
    ("non-correlated", "3G"): "123 156 189 234 456 489 237 567 789",
}
TABLE_4 = {
    ("correlated", "1G"): {3000: 8.37, 4000: 20.10, 5000: 72.83},
    ("correlated", "3G"): {3000: 5.77, 4000: 13.89, 5000: 55.02},
    ("non-correlated", "1G"): {3000: 5.63, 4000: 13.53, 5000: 59.77},
    ("non-correlated", "3G"): {3000: 8.04, 4000: 19.19, 5000: 67.25},
}


@pytest.mark.parametrize("situation", TABLE_3)
def test_mic1d_table_4_real_anonymity(mic1d_release, situation):
    k, x, protected = mic1d_release
    sets = tuple(tuple(CENSUS[int(a) - 1] for a in known) for known in TABLE_3[situation].split())
    found = evaluate(x, protected, measures=["k_real"], intruder=Named(sets=sets))["k_real"]
    published = TABLE_4[situation][k]
    assert found == pytest.approx(published, rel=0.02 if k == 4000 else 0, abs=0.01)


# CS, Tables 2 to 4: sorted on the sum of z-scores (SZ) and on the first component (FPC). The tables have
# one figure a method; Table 1 shows that the order with less loss is the descending one.
UFS = {
    ("zscores", 3): (0.84, 18.8, 14.5, 84.3, 0.24, 0.10),
    ("zscores", 4): (0.82, 21.3, 15.0, 88.0, 0.28, 0.11),
    ("zscores", 5): (0.81, 22.6, 16.3, 89.4, 0.29, 0.12),
    ("pcp", 3): (0.87, 16.3, 13.1, 81.3, 0.20, 0.09),
    ("pcp", 4): (0.86, 17.1, 13.4, 82.9, 0.22, 0.10),
    ("pcp", 5): (0.83, 21.7, 16.1, 88.3, 0.28, 0.11),
}


@pytest.mark.parametrize(("project", "k"), UFS)
def test_comparative_study_tables_2_to_4(project, k):
    x = reference("tarragona")
    protected = protect(x, k=k, project=project, partition=Fixed(order="descending")).values
    found = evaluate(
        x,
        protected,
        measures=["std_kept", "delta_R", "delta_W", "fpc", "delta_r", "s_delta_r"],
    )
    figures = [result.value for result in found.results]
    figures[1], figures[2] = 100 * figures[1], 100 * figures[2]  # printed in per cent
    for figure, published, unit in zip(
        figures, UFS[project, k], (0.01, 0.1, 0.1, 0.1, 0.01, 0.01), strict=True
    ):
        assert figure == pytest.approx(published, abs=0.51 * unit)


def test_comparative_study_first_component_of_the_original_file():
    assert ev.fpc(reference("tarragona").to_numpy(float)) == pytest.approx(63.4, abs=0.05)


def test_comparative_study_table_2_for_the_best_variable():
    # PV is a range over the sorting variables; the tables have the figures of the best one.
    x = reference("tarragona")
    table = x.to_numpy(float)
    for k, kept in ((3, 0.83), (4, 0.80), (5, 0.78)):
        releases = [
            protect(x, k=k, project=Attribute(name=name), partition=Fixed(order=order)).values.to_numpy()
            for name, order in itertools.product(x.columns, ("ascending", "descending"))
        ]
        best = min(releases, key=lambda release: ev.loss(table, release))
        assert ev.std_kept(table, best) == pytest.approx(kept, abs=0.0051)


def mdav(x, k):
    """Groups by maximum distance to the average vector, as definitions have it."""
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    groups = np.empty(len(x), np.int32)
    left = np.arange(len(x))
    number = 0

    def take(around):
        nonlocal left, number
        distance = ((z[left] - z[around]) ** 2).sum(axis=1)
        distance[left == around] = -1.0
        nearest = np.argsort(distance, kind="stable")[:k]
        groups[left[nearest]] = number
        left = np.delete(left, nearest)
        number += 1

    def farthest(point):
        return left[((z[left] - point) ** 2).sum(axis=1).argmax()]

    while left.size >= 3 * k:
        first = farthest(z[left].mean(axis=0))
        second = farthest(z[first])
        take(first)
        take(second if second in left else farthest(z[first]))
    if left.size >= 2 * k:
        take(farthest(z[left].mean(axis=0)))
    groups[left] = number
    return groups


def test_dominance_of_mdav_on_tarragona():
    x = reference("tarragona").to_numpy(float)
    assert ev.dominance(x, mdav(x, 3)) == pytest.approx(0.14, abs=0.005)


# MP, appendix: DLD on EIA and Census for blocks of 2, 3, 4 (rows) and k = 5, 15, 25. Without PCP, which
# equals zscores at two positively correlated attributes, so that the paper's rows cannot both be right.
MP_DLD = {
    ("eia", "zscores"): ((25.36, 21.92, 21.05), (6.40, 3.79, 3.21), (5.21, 2.71, 2.35)),
    ("eia", "sugeno"): ((17.79, 14.14, 12.81), (3.78, 1.74, 1.47), (2.20, 0.71, 0.42)),
    ("census", "zscores"): ((16.78, 12.96, 12.85), (14.44, 9.38, 7.47), (11.71, 5.60, 4.40)),
    ("census", "sugeno"): ((9.63, 4.85, 3.72), (7.47, 3.55, 3.30), (3.15, 0.83, 0.60)),
}


@pytest.mark.parametrize(("name", "recorded"), [("eia", 0.983), ("census", 0.943)])
def test_modeling_projections_order_of_dld(name, recorded):
    x = reference(name)
    x = x.loc[:, "RESREVENUE":"TOTSALES"] if name == "eia" else x
    published, computed = [], []
    for project, v, k in itertools.product(("zscores", "sugeno"), (2, 3, 4), (5, 15, 25)):
        release = protect(x, k=k, project=project, blocks=Consecutive(size=v))
        found = evaluate(
            x,
            release.values,
            blocks=release.blocks,
            measures=["dld"],
            intruder="several_blocks",
        )
        computed.append(found["dld"])
        published.append(MP_DLD[name, project][v - 2][k // 10])
    assert spearmanr(published, computed).statistic == pytest.approx(recorded, abs=1e-3)
