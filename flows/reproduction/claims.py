"""What the papers' texts claim, checked on computed figures: one function a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from kohort.flows.reproduction import mic1d, modeling_projections
from kohort.flows.reproduction.statistical_dependence import (
    BLOCKS,
    DISTORTION_OF_BLOCKS,
    GAUSSIAN,
    K_OF_BLOCKS,
    LAMBDAS,
    LINKAGE_OF_BLOCKS,
    PAPER,
    SIZES,
    TITLES,
    column,
)
from kohort.methods import Floats
from kohort.tasks.reference import Place

MOST = 0.9  # of all cases: a claim of what is "roughly" or "as expected" so
HARDLY = 0.1  # of a measure: a change that is "hardly any"
Figures = Mapping[Place, float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured for a claim."""

    measured: str
    holds: bool


def surface(figures: Figures, measure: str, source: str) -> Floats:
    """A measure of one file, (number of k, number of lambdas)."""
    title = f"{measure}, {TITLES[source]}"
    return np.array(
        [
            [figures[Place(PAPER, title, f"k = {k}", column(weight))] for weight in LAMBDAS]
            for k in SIZES[source]
        ]
    )


def curves(figures: Figures, table: str) -> Floats:
    """A measure in blocks, (number of block sizes, number of lambdas)."""
    return np.array(
        [
            [figures[Place(PAPER, table, f"b = {b}", column(weight))] for weight in LAMBDAS]
            for b in BLOCKS
        ]
    )


def distortions_grow_with_k(figures: Figures) -> Verdict:
    """Both, for every lambda."""
    steps = np.concatenate(
        [
            np.diff(surface(figures, measure, source), axis=0).ravel()
            for measure, source in product(("D_X", "D_Y"), TITLES)
        ]
    )
    return Verdict(
        f"in {(steps > 0).sum()} of {steps.size} steps from one k to the next", all(steps > 0)
    )


def objective_is_the_smaller(figures: Figures) -> Verdict:
    """D_X at lambda = 0, D_Y at lambda = 1."""
    gaps = np.concatenate(
        [surface(figures, "D_Y", source) - surface(figures, "D_X", source) for source in TITLES]
    )
    right = np.concatenate([gaps[:, 0] >= 0, gaps[:, -1] <= 0])
    return Verdict(f"in {right.sum()} of {right.size} cases", bool(right.all()))


def d_y_falls_as_d_x_rises(figures: Figures) -> Verdict:
    """Along lambda, for every k."""
    right = np.concatenate(
        [
            (np.diff(surface(figures, "D_X", source)) > 0)
            & (np.diff(surface(figures, "D_Y", source)) < 0)
            for source in TITLES
        ],
        axis=None,
    )
    return Verdict(
        f"in {right.sum()} of {right.size} steps of λ D_X rises and D_Y falls",
        bool(right.mean() >= MOST),
    )


def steep_at_the_smallest_k(figures: Figures) -> Verdict:
    """More is gained in D_Y than lost in D_X by the first step of lambda."""
    slopes = {}
    for source in TITLES:
        x, y = surface(figures, "D_X", source)[0], surface(figures, "D_Y", source)[0]
        slopes[TITLES[source]] = (y[1] - y[0]) / (x[1] - x[0])
    listed = "; ".join(f"{title}: {slope:.0f}" for title, slope in slopes.items())
    return Verdict(f"slope of D_Y over D_X from λ = 0 to 0.1: {listed}", bool(max(slopes.values()) < -1))


def sharper_for_smaller_k(figures: Figures) -> Verdict:
    """The share of D_Y that lambda can save falls from one k to the next."""
    shares = {
        title: 1 - surface(figures, "D_Y", source)[:, -1] / surface(figures, "D_Y", source)[:, 0]
        for source, title in TITLES.items()
    }
    listed = "; ".join(f"{title}: {share[0]:.2f} to {share[-1]:.2f}" for title, share in shares.items())
    return Verdict(
        f"share of D_Y saved at λ = 1, least to greatest k: {listed}",
        all((np.diff(share) < 0).all() for share in shares.values()),
    )


def diversity_hardly_falls(figures: Figures) -> Verdict:
    """By no more than a tenth up to lambda = 0.5."""
    falls = {}
    for source in TITLES:
        if source not in GAUSSIAN:
            diversity = surface(figures, "ℓ_avg", source)
            falls[TITLES[source]] = 1 - diversity[:, LAMBDAS.index(0.5)] / diversity[:, 0]
    listed = "; ".join(f"{title}: {fall.min():.0%} to {fall.max():.0%}" for title, fall in falls.items())
    return Verdict(
        f"fall of ℓ_avg at λ = 0.5 over k: {listed}",
        bool(max(fall.max() for fall in falls.values()) <= HARDLY),
    )


def smaller_blocks_distort_less(figures: Figures) -> Verdict:
    """For every lambda below 1, where the blocks are the same."""
    steps = np.diff(curves(figures, DISTORTION_OF_BLOCKS)[:, :-1], axis=0)
    return Verdict(f"in {(steps > 0).sum()} of {steps.size} steps of b, λ < 1", bool((steps > 0).all()))


def distortion_in_blocks_grows_with_lambda(figures: Figures) -> Verdict:
    """For every size of blocks."""
    steps = np.diff(curves(figures, DISTORTION_OF_BLOCKS))
    return Verdict(f"in {(steps > 0).sum()} of {steps.size} steps of λ", bool((steps > 0).all()))


def distortion_halves_with_the_blocks(figures: Figures) -> Verdict:
    """At lambda = 0, with the sizes that the paper draws."""
    two, four, six = curves(figures, DISTORTION_OF_BLOCKS)[:, 0]
    measured = (
        f"D_X falls to {four / six:.2f} of itself from b = 6 to 4, to {two / four:.2f} from 4 to 2"
    )
    return Verdict(measured, bool(max(four / six, two / four) <= 0.5))


def blocks_agree_at_lambda_one(figures: Figures) -> Verdict:
    """The confidential attributes alone decide."""
    at_one = curves(figures, DISTORTION_OF_BLOCKS)[:, -1]
    return Verdict(f"D_X = {', '.join(f'{each:.4f}' for each in at_one)}", bool(np.ptp(at_one) < 1e-12))


def small_blocks_disclose_nearly_all(figures: Figures) -> Verdict:
    """Blocks of two at lambda = 0."""
    linked = curves(figures, LINKAGE_OF_BLOCKS)[0, 0]
    return Verdict(f"DLD = {linked:.4f}", bool(linked >= MOST))


def linkage_is_at_most_one_over_k(figures: Figures) -> Verdict:
    """Without blocks, for every lambda."""
    greatest = curves(figures, LINKAGE_OF_BLOCKS)[-1].max()
    return Verdict(
        f"DLD is at most {greatest:.4f}; 1/k = {1 / K_OF_BLOCKS}", bool(greatest <= 1 / K_OF_BLOCKS)
    )


def linkage_falls_with_lambda(figures: Figures) -> Verdict:
    """Without blocks, from about 1/k."""
    linked = curves(figures, LINKAGE_OF_BLOCKS)[-1]
    falls = np.diff(linked) < 0
    steps = f"falls in {falls.sum()} of {falls.size} steps"
    return Verdict(
        f"DLD = {linked[0]:.4f} at λ = 0, {steps} to {linked[-1]:.4f} at λ = 1",
        bool(falls.mean() >= MOST and abs(linked[0] * K_OF_BLOCKS - 1) <= HARDLY),
    )


def _of_census(figures: Figures, row: str, measure: str) -> float:
    """A figure of modeling projections; DR has no column of its own."""
    place = Place(modeling_projections.PAPER, "Table 1", row, f"Census, {measure}")
    if measure != "DR":
        return figures[place]
    dld, pld, interval = (_of_census(figures, row, each) for each in ("DLD", "PLD", "ID"))
    return 0.25 * dld + 0.25 * pld + 0.5 * interval


def _sugeno_is_least(figures: Figures, measure: str, sizes: tuple[int, ...]) -> Verdict:
    listed, least = [], True
    for k in sizes:
        pcp, zscores, sugeno = (
            _of_census(figures, f"Mic4{each}{k:02}", measure) for each in ("PCP", "Zscores", "Sugeno")
        )
        listed.append(f"k = {k}: {sugeno:.2f} against {pcp:.2f} and {zscores:.2f}")
        least = least and sugeno < min(pcp, zscores)
    return Verdict("; ".join(listed), least)


def sugeno_has_the_lowest_risk(figures: Figures) -> Verdict:
    """On Census with v = 4."""
    return _sugeno_is_least(figures, "DR", (5, 15, 25))


def sugeno_has_the_best_score(figures: Figures) -> Verdict:
    """On Census with v = 4, from k = 15 on."""
    return _sugeno_is_least(figures, "Score", (15, 25))


def mic1d_has_the_lowest_score(figures: Figures) -> Verdict:
    """Of all lines of Table 6."""
    scores = {
        place.row.partition(",")[0]: value
        for place, value in sorted(figures.items(), key=lambda item: -item[1])
        if (place.paper, place.table, place.column) == (mic1d.PAPER, "Table 6", "Score")
    }
    (second, other), (first, score) = list(scores.items())[-2:]
    return Verdict(f"{first} has {score:.2f}, the next, {second}, {other:.2f}", first == "Mic1D-3000")


CHECKS: dict[str, Callable[[Figures], Verdict]] = {
    check.__name__: check
    for check in (
        sugeno_has_the_lowest_risk,
        sugeno_has_the_best_score,
        mic1d_has_the_lowest_score,
        distortions_grow_with_k,
        objective_is_the_smaller,
        d_y_falls_as_d_x_rises,
        steep_at_the_smallest_k,
        sharper_for_smaller_k,
        diversity_hardly_falls,
        smaller_blocks_distort_less,
        distortion_in_blocks_grows_with_lambda,
        distortion_halves_with_the_blocks,
        blocks_agree_at_lambda_one,
        small_blocks_disclose_nearly_all,
        linkage_is_at_most_one_over_k,
        linkage_falls_with_lambda,
    )
}
