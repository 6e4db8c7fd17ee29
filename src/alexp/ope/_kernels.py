"""Compiled wealth processes of the betting confidence sequences."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import ieee

RUIN = 1e-200  # smaller wealth is set to 0, which is a valid bet; denormal numbers are slow
LOOK = 128  # rounds between two searches for ruined bets


@ieee.entry
def mixture_crossings(
    payoffs: FloatArray, lows: FloatArray, stakes: FloatArray, means: FloatArray, goal: float
) -> IntArray:
    """First round, (G,), at which a mixture of constant bets against mean m has reached `goal`; n if none.

    payoffs (n, S) with payoffs[:, s] >= -lows[s], stakes (J,) in (0, 1), means (G,) increasing with m + lows > 0. The
    wealth is the average over s and j of prod_t (1 + l (payoffs[t, s] - m)), l = stakes[j] / (m + lows[s]). It falls
    with m, so that means are rejected one after another.
    """
    n, kinds = payoffs.shape
    found = np.full(means.size, n)
    wealth = np.full((kinds, stakes.size, means.size), 1.0 / (kinds * stakes.size))
    gains = np.empty(means.size)
    first, last = 0, means.size  # means before the first are rejected, and those from the last on never will be
    for t in range(n):
        for s in range(kinds):
            _play(wealth[s], gains, means, stakes, payoffs[t, s], lows[s], first, last)
        while first < last and _total(wealth, first) >= goal:
            found[first] = t
            first += 1
        if t % LOOK == LOOK - 1:
            last = _drop_ruined(wealth, first, last)
        if first == last:
            break
    return found


@ieee.leaf
def _play(
    wealth: FloatArray,
    gains: FloatArray,
    means: FloatArray,
    stakes: FloatArray,
    payoff: float,
    low: float,
    first: int,
    last: int,
) -> None:
    for g in range(first, last):
        gains[g] = (payoff - means[g]) / (means[g] + low)
    for j in range(stakes.size):
        stake = stakes[j]
        for g in range(first, last):
            wealth[j, g] *= 1.0 + stake * gains[g]


@ieee.leaf
def _total(wealth: FloatArray, g: int) -> float:
    total = 0.0
    for s in range(wealth.shape[0]):
        for j in range(wealth.shape[1]):
            total += wealth[s, j, g]
    return total


@ieee.leaf
def _drop_ruined(wealth: FloatArray, first: int, last: int) -> int:
    """Set wealth below RUIN to 0; returns the first mean from which on nothing is left."""
    alive = first
    for s in range(wealth.shape[0]):
        for j in range(wealth.shape[1]):
            for g in range(first, last):
                if wealth[s, j, g] < RUIN:
                    wealth[s, j, g] = 0.0
                elif g >= alive:
                    alive = g + 1
    return alive


@ieee.entry
def planned_crossings(
    payoffs: FloatArray, low: float, plan: FloatArray, cap: float, means: FloatArray, goal: float
) -> IntArray:
    """First round, (G,), at which bets min(plan[t], cap / (m + low)) against mean m have reached `goal`; n if none.

    payoffs (n,) >= -low; plan (n,), where plan[t] must not depend on payoffs[t:].
    """
    found = np.full(means.size, payoffs.size)
    for g in range(means.size):
        most = cap / (means[g] + low)
        wealth = 1.0
        for t in range(payoffs.size):
            wealth *= 1.0 + min(plan[t], most) * (payoffs[t] - means[g])
            if wealth >= goal:
                found[g] = t
                break
            if wealth < RUIN:
                break
    return found
