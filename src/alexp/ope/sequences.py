"""Confidence sequences for the value of a policy: bounds that hold at all rounds at once.

**Payoffs.** With rewards r in [0, 1], a new policy pi, weights w = pi(a)/p(a) of the played action and any g(a) in
[0, 1] that is known before the draw,

    x = w (r - g(a)) + sum_b pi(b) g(b)

has mean v, the value of pi. g = 0 is IPS and has x >= 0 for any weights. g = q, a prediction of rewards, is DR, and is
bounded below only where p is: so g = min(q, k l / pi), where l <= p is a known bound of the logger's probabilities, and
x >= -k. Upper bounds come from 1 - r and 1 - q, which have the mean 1 - v since weights have mean 1.

A difference v_b - v_a has signed weights d = (pi_b - pi_a)/p; with h(a) = 1 where d < 0,

    x = d (r - h(a)) + sum_b (pi_b - pi_a)(b) h(b)  >=  -1.

There, too, g moves from h towards q as far as k allows, and x >= -1 - k. Actions that both policies play alike drop
out.

**Methods.** All see payoffs x_1, x_2, ... with x_t >= -low and E[x_t | past] = m for all t, and return a lower bound
for every t at once: P(exists t: L_t > m) <= delta. Payoffs need no upper bound, as importance weights have none.

"betting" (default)
    For each m a gambler starts with 1 and bets that the mean is larger: wealth prod_t (1 + l (x_t - m)), never negative
    for l <= 1/(m + low), a martingale if m is true, so that it ever reaches 1/delta with probability delta at most
    (Ville). The wealth is divided among constant stakes u, l = u/(m + low), and falls with m: the rejected means are an
    interval. (Waudby-Smith and Ramdas 2023; for weights Karampatziakis, Mineiro and Ramdas 2021, Waudby-Smith
    et al. 2022.)
"hedged"
    The same with one bet per round, l_t = min(sqrt(2 log(1/delta) / (v_{t-1} t log(t + 1))), 1/(2 (m + low))), the
    predictable plug-in; v_{t-1} is the variance of the payoffs so far.
"bernstein"
    Predictable plug-in empirical Bernstein: with c = 1 + low, z = x / c, psi(l) = -log(1 - l) - l,
    L_t = c (sum l_s z_s - log(1/delta) - sum psi(l_s) (z_s - zhat_{s-1})^2) / sum l_s.
"drifting"
    Means may change: bounds the average of E[x_s | past], s <= t. A mixture of the same exponential supermartingales
    over constant l; wider, and later bounds need not be tighter than earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.ope._kernels import mixture_crossings, planned_crossings
from alexp.ope.log import Ragged

Method = Literal["betting", "hedged", "bernstein", "drifting"]
METHODS: tuple[Method, ...] = get_args(Method)
STAKES: FloatArray = 0.9 / np.array([1.0, 3.0, 9.0, 27.0, 81.0, 243.0, 729.0, 2187.0])
CONSTANT = 0.5 ** np.arange(1, 13)  # bets of "drifting"
CAP = 0.5  # of what may be bet, in predictable plug-ins
NEWTON = 4  # steps
ALLOWANCES = (0.0, 8.0, 64.0)  # k; "betting" divides its wealth among them
ONE_ALLOWANCE = (8.0,)  # k of the other methods, which use one column
COARSE, FINE = 128, 48  # means tried: in all, and between the last rejected and the first accepted one


class Payoffs(NamedTuple):
    """Columns of payoffs with the same mean.

    values : (n, S).
    lows : (S,), values[:, s] >= -lows[s], known before the log began.
    least : the smallest mean there can be; the largest is 1.
    """

    values: FloatArray
    lows: FloatArray
    least: float


def lower_sequence(payoffs: Payoffs, delta: float, method: Method) -> FloatArray:
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
    """Bounds from the rounds at which means are rejected; wealth falls with m, so smaller means are rejected, too."""
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
    """Mean and variance before each round, (n,) each, starting from one payoff 1/2 with variance 1/4."""
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


@dataclass(frozen=True)
class Bets:
    """The usable rounds, as far as lower and upper bounds need them.

    Attributes
    ----------
    change : probabilities of the new policy, or differences pi_b - pi_a, of all candidates.
    index, propensities : (n,), of the played actions.
    rewards : (n,), in [0, 1].
    predicted : rewards of all candidates as they were predicted before each round, in [0, 1]; None for no prediction.
    least : (N,), lower bounds of the logger's probabilities; None if there are none.
    most : the largest k that is of use, 1 / floor if there is a floor.
    difference : whether `change` is a difference of policies.
    clip : upper bound of the weights; for policies, not for differences.
    offset : 1 where all candidates must have the same offset, which the upper bound turns into 0; None elsewhere.
    """

    change: Ragged
    index: IntArray
    propensities: FloatArray
    rewards: FloatArray
    predicted: Ragged | None = None
    least: FloatArray | None = None
    most: float = np.inf
    difference: bool = False
    clip: float = np.inf
    offset: float | None = None

    def sequences(self, delta: float, method: Method) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds after every round, (n,) each, which hold for all rounds with probability 1 - delta."""
        lower = lower_sequence(self.payoffs(method), delta / 2.0, method)
        upper = lower_sequence(self._reflected().payoffs(method), delta / 2.0, method)
        return lower, (-upper if self.difference else 1.0 - upper)

    def payoffs(self, method: Method = "betting") -> Payoffs:
        """The payoffs for the lower bound, one column for each allowance."""
        base = 1.0 if self.difference else 0.0
        allowed: tuple[float, ...] = (0.0,)
        if self.predicted is not None and self.least is not None:
            asked = ALLOWANCES if method == "betting" else ONE_ALLOWANCE
            allowed = tuple(dict.fromkeys(min(k, self.most) for k in asked))
        columns = [self._payoff(k) for k in allowed]
        return Payoffs(np.stack(columns, axis=1), base + np.array(allowed), -base)

    def _payoff(self, allowance: float) -> FloatArray:
        change = self.change.values
        weights = np.minimum(self.change.at(self.index) / self.propensities, self.clip)
        offsets = np.where(change < 0.0, 1.0, 0.0) if self.offset is None else np.full(change.size, self.offset)
        if allowance > 0.0 and self.predicted is not None and self.least is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(change == 0.0, np.inf, allowance * self.least / np.abs(change))
            q = self.predicted.values
            offsets = np.where(change < 0.0, 1.0 - np.minimum(1.0 - q, reach), np.minimum(q, reach))
        elif not self.difference:  # the common case, and faster
            return weights * self.rewards
        known = self.change.like(change * offsets).sums()
        return weights * (self.rewards - self.change.like(offsets).at(self.index)) + known

    def _reflected(self) -> Bets:
        """Rounds whose payoffs have the mean 1 - v, or v_a - v_b."""
        if self.difference:
            turned = None if self.offset is None else 1.0 - self.offset
            return replace(self, change=self.change.like(-self.change.values), offset=turned)
        q = self.predicted
        flipped = None if q is None else q.like(1.0 - q.values)
        return replace(self, rewards=1.0 - self.rewards, predicted=flipped)


def running_level(change: Ragged, index: IntArray, propensities: FloatArray, rewards: FloatArray) -> Ragged:
    """The self-normalised value of the rounds before, as the prediction for every candidate of a round.

    It begins at 1/2, with the weight of one round.
    """
    weights = change.at(index) / propensities
    level = (0.5 + np.cumsum(weights * rewards)) / (1.0 + np.cumsum(weights))
    before = np.concatenate(([0.5], level[:-1])) if level.size else level
    return change.like(np.repeat(before, change.lengths))
