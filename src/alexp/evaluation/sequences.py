"""Confidence sequences for the mean of payoffs that are bounded below only.

All methods see payoffs x_1, x_2, ... with x_t >= -low and E[x_t | past] = m for all t, and return a lower bound for
every t at once: P(exists t: L_t > m) <= delta. Nothing is asked of x_t from above, which is what importance weights
need. Upper bounds come from payoffs with mean 1 - m (`payoffs.py`).

"betting" (default)
    For each m a gambler starts with 1 and bets that the mean is larger: wealth prod_t (1 + l (x_t - m)), never negative
    for l <= 1/(m + low), a martingale if m is true, so that it ever reaches 1/delta with probability delta at most
    (Ville). The wealth is divided among constant stakes u, l = u/(m + low), and falls with m: what is rejected is an
    interval. (Waudby-Smith and Ramdas 2023; for weights Karampatziakis, Mineiro and Ramdas 2021, Waudby-Smith
    et al. 2022.)
"hedged"
    The same with one bet per round, l_t = min(sqrt(2 log(1/delta) / (v_{t-1} t log(t + 1))), 1/(2 (m + low))), the
    predictable plug-in; v_{t-1} is the variance of the payoffs so far.
"bernstein"
    Predictable plug-in empirical Bernstein: with c = 1 + low, z = x / c, psi(l) = -log(1 - l) - l,
    L_t = c (sum l_s z_s - log(1/delta) - sum psi(l_s) (z_s - zhat_{s-1})^2) / sum l_s.
"drifting"
    Means may change: bounds the average of E[x_s | past], s <= t, which is then what moves. A mixture of the same
    exponential supermartingales over constant l; wider, and later bounds need not be tighter than earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.evaluation._wealth import mixture_crossings, planned_crossings

METHODS = ("betting", "hedged", "bernstein", "drifting")
STAKES: FloatArray = 0.9 / np.array([1.0, 3.0, 9.0, 27.0, 81.0, 243.0, 729.0, 2187.0])
CONSTANT = 0.5 ** np.arange(1, 13)  # bets of "drifting"
CAP = 0.5  # of what may be bet, in predictable plug-ins
NEWTON = 4  # steps
COARSE, FINE = 128, 48  # means tried: everywhere, and between the last rejected and the first that is not


class Payoffs(NamedTuple):
    """What is bet on: columns with the same mean.

    values : (n, S).
    lows : (S,), values[:, s] >= -lows[s], known before the log began.
    least : the smallest mean there can be; the largest is 1.
    """

    values: FloatArray
    lows: FloatArray
    least: float


def lower_sequence(payoffs: Payoffs, delta: float, method: str) -> FloatArray:
    """Lower bounds of the mean after 1, ..., n rounds, (n,); never below `payoffs.least`."""
    if not len(payoffs.values):
        return np.zeros(0)
    if method == "betting":
        return _rejected(payoffs, lambda means: mixture_crossings(*_arrays(payoffs), STAKES, means, 1.0 / delta))
    single, low = np.ascontiguousarray(payoffs.values[:, -1]), float(payoffs.lows[-1])
    if method == "hedged":
        plan = _plan(single, delta)
        return _rejected(payoffs, lambda means: planned_crossings(single, low, plan, CAP, means, 1.0 / delta))
    found = _bernstein(single, low, delta) if method == "bernstein" else _drifting(single, low, delta)
    return np.maximum(found, payoffs.least)


def _arrays(payoffs: Payoffs) -> tuple[FloatArray, FloatArray]:
    return np.ascontiguousarray(payoffs.values), payoffs.lows


def _rejected(payoffs: Payoffs, crossings: Callable[[FloatArray], IntArray]) -> FloatArray:
    """Bounds from the rounds at which means are rejected; wealth falls with m, so all smaller means are, too."""
    n = len(payoffs.values)
    means = np.linspace(payoffs.least, 1.0, COARSE + 2)[1:-1]
    rounds = crossings(means)
    k = int(np.count_nonzero(rounds < n))  # the first k are rejected
    ends = np.concatenate(([payoffs.least], means, [1.0]))[k : k + 2]
    finer = np.linspace(ends[0], ends[1], FINE + 2)[1:-1]
    means, rounds = np.concatenate((means, finer)), np.concatenate((rounds, crossings(finer)))
    bounds = np.full(n, payoffs.least)
    np.maximum.at(bounds, rounds[rounds < n], means[rounds < n])
    return np.maximum.accumulate(bounds)


def _moments(payoffs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance before each round, (n,) each, as if there had been payoffs 1/2 with variance 1/4."""
    t = np.arange(1, payoffs.size + 1)
    mean = (0.5 + np.cumsum(payoffs)) / (t + 1)
    variance = (0.25 + np.cumsum((payoffs - mean) ** 2)) / (t + 1)
    return np.concatenate(([0.5], mean[:-1])), np.concatenate(([0.25], variance[:-1]))


def _plan(payoffs: FloatArray, delta: float) -> FloatArray:
    """Predictable plug-in bets, (n,)."""
    t = np.arange(1, payoffs.size + 1)
    _, variance = _moments(payoffs)
    bets: FloatArray = np.sqrt(2.0 * np.log(1.0 / delta) / (variance * t * np.log(t + 1)))
    return bets


def _scaled(payoffs: FloatArray, low: float) -> tuple[FloatArray, FloatArray, float]:
    """Payoffs over c and their squared distances from earlier means, which are at most 1: z - zhat >= -1."""
    scale = 1.0 + low
    guess = np.clip(_moments(payoffs)[0], -low, 1.0)
    return payoffs / scale, ((payoffs - guess) / scale) ** 2, scale


def _bernstein(payoffs: FloatArray, low: float, delta: float) -> FloatArray:
    z, squares, scale = _scaled(payoffs, low)
    bets = np.minimum(scale * _plan(payoffs, delta), CAP)
    lost = np.log(1.0 / delta) + np.cumsum((-np.log1p(-bets) - bets) * squares)
    bounds: FloatArray = scale * (np.cumsum(bets * z) - lost) / np.cumsum(bets)
    return np.maximum.accumulate(bounds)


def _drifting(payoffs: FloatArray, low: float, delta: float) -> FloatArray:
    """Where log mean_l exp(l (S_t - t mu) - psi(l) V_t) = log(1/delta), from below.

    The left side is convex in mu, and at least that of its largest term alone. Newton's steps from the solution of the
    latter stay below the one that is looked for, so that the bounds hold after any number of them.
    """
    z, squares, scale = _scaled(payoffs, low)
    t, goal = np.arange(1, z.size + 1), np.log(1.0 / delta)
    total, spent = np.cumsum(z)[:, None], np.cumsum(squares)[:, None] * (-np.log1p(-CONSTANT) - CONSTANT)
    alone = total - (goal + np.log(CONSTANT.size) + spent) / CONSTANT
    bounds: FloatArray = alone.max(axis=1) / t
    for _ in range(NEWTON):
        powers = (total - (t * bounds)[:, None]) * CONSTANT - spent
        top = powers.max(axis=1, keepdims=True)
        parts = np.exp(powers - top)
        sums = parts.sum(axis=1)
        excess = top[:, 0] + np.log(sums / CONSTANT.size) - goal
        bounds += excess / (t * (parts @ CONSTANT) / sums)
    return scale * bounds
