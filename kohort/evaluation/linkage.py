"""Probabilistic record linkage: Fellegi and Sunter's weights, estimated by Jaro's EM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohort.evaluation.outcome import NotApplicable
from kohort.methods import Floats, check_number
from kohort.normalization import Zscore

TAU = 0.1  # a tenth of a standard deviation
MOST_ATTRIBUTES = 20  # 2^20 patterns are as many as the EM should carry
LEAST = 1e-5  # probabilities stay this far from 0 and 1
CHANGE = 1e-7
ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Linkage:
    """Probabilistic linkage disclosure, and how its estimate ended.

    Attributes
    ----------
    value : float
        Per cent of the records that are linked to themselves.
    converged : bool
        Whether the probabilities settled within 200 rounds.
    rounds : int
        Rounds of the EM.
    """

    value: float
    converged: bool
    rounds: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Probabilities of agreement on every attribute (p,): `m` for matches, `u` for other pairs."""

    m: Floats
    u: Floats
    converged: bool
    rounds: int


def pld(x: Floats, protected: Floats, *, tau: float = TAU) -> Linkage | NotApplicable:
    """Per cent of the records that probabilistic record linkage links to themselves.

    Parameters
    ----------
    x, protected : (n, p) arrays
        Original and protected values of the attributes that the intruder knows, each file
        standardised by itself.
    tau : float
        Two values agree if they differ by at most `tau` standard deviations. The papers do not say how
        continuous values agree: compare figures of one `tau` only.

    Returns
    -------
    Linkage or NotApplicable
        A record is linked to one of the released records with the largest weight, each with the same
        chance. Not applicable with more than 20 attributes.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    >>> pld(x, x).value
    100.0
    """
    from kohort.kernels.agreement import (
        agreeing_ranks,
        count_patterns,
        expected_links,
        prefix_sets,
    )
    from kohort.kernels.sorting import stable_order

    check_number("tau", tau, rule="a number of at least 0", holds=tau >= 0)
    n, p = x.shape
    if p > MOST_ATTRIBUTES:
        return NotApplicable(
            f"{p} attributes have too many agreement patterns; at most {MOST_ATTRIBUTES}"
        )
    z, released = Zscore().normalize(x), Zscore().normalize(protected)
    step = max(64, n // 256)
    orders = np.empty((p, n), np.uint32)
    prefixes = np.empty((p, n // step + 1, (n + 63) // 64), np.uint64)
    begins = np.empty((p, n), np.int64)
    ends = np.empty((p, n), np.int64)
    for a in range(p):
        orders[a], ascending = stable_order(released[:, a])
        prefixes[a] = prefix_sets(orders[a], step)
        begins[a], ends[a] = agreeing_ranks(z[:, a], ascending, tau)
    sets = (orders, prefixes, step, begins, ends)
    counts = count_patterns(*sets)
    agreement = estimate_agreement(counts, n)
    own = (np.abs(z - released) <= tau) @ (1 << np.arange(p))
    chance = expected_links(*sets, own, rank_patterns(agreement))
    return Linkage(100.0 * float(chance.sum()) / n, agreement.converged, agreement.rounds)


def estimate_agreement(counts: npt.NDArray[np.int64], n: int) -> Agreement:
    """Jaro's EM over agreement patterns.

    Parameters
    ----------
    counts : (2^p,) array
        Pairs with each pattern, bit a of which says that attribute a agrees.
    n : int
        Records in each file: one pair in n is a match.

    Examples
    --------
    >>> counts = np.array([870, 0, 0, 30])  # two attributes of 30 records, always both or none
    >>> estimate_agreement(counts, 30).u.round(2)
    array([0., 0.])
    """
    p = int(counts.size).bit_length() - 1
    seen = np.flatnonzero(counts)
    agrees = (seen[:, None] >> np.arange(p)) & 1 == 1
    pairs = counts[seen].astype(np.float64)
    m = np.full(p, 0.9)
    u = np.clip(pairs @ agrees / pairs.sum(), LEAST, 1.0 - LEAST)
    prior = min(1.0 / n, 1.0 - LEAST)
    for number in range(1, ROUNDS + 1):
        match = prior * np.where(agrees, m, 1.0 - m).prod(axis=1)
        other = (1.0 - prior) * np.where(agrees, u, 1.0 - u).prod(axis=1)
        matches = pairs * match / (match + other)
        others = pairs - matches
        before = m
        m = np.clip(matches @ agrees / matches.sum(), LEAST, 1.0 - LEAST)
        u = np.clip(others @ agrees / others.sum(), LEAST, 1.0 - LEAST)
        # Some pair is a match and some pair is none, or there would be nothing to divide by.
        prior = float(np.clip(matches.sum() / pairs.sum(), 1.0 / pairs.sum(), 1.0 - LEAST))
        if np.abs(m - before).max() < CHANGE:
            return Agreement(m, u, converged=True, rounds=number)
    return Agreement(m, u, converged=False, rounds=ROUNDS)


def rank_patterns(agreement: Agreement) -> npt.NDArray[np.int64]:
    """Rank of every pattern (2^p,) by its weight, 0 for the largest; equal weights share a rank."""
    m, u = agreement.m, agreement.u
    p = m.size
    agrees = (np.arange(1 << p)[:, None] >> np.arange(p)) & 1 == 1
    weights = np.where(agrees, np.log(m / u), np.log((1.0 - m) / (1.0 - u))).sum(axis=1)
    # Rounded, so that the order of additions does not break ties.
    _, ranks = np.unique(-np.round(weights, 9), return_inverse=True)
    return np.asarray(ranks, np.int64)
