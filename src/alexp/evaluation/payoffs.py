"""Payoffs that are bounded below and have the value of a policy, its complement, or a difference of values as mean.

With rewards r in [0, 1], a new policy pi, weights w = pi(a)/p(a) of what was played and any g(a) in [0, 1] that is
known before the draw,

    x = w (r - g(a)) + sum_b pi(b) g(b)

has mean v, the value of pi. g = 0 is IPS and has x >= 0 however large weights become. g = q, a prediction of rewards,
is DR, and is bounded below only where p is: so g = min(q, k l / pi), where l <= p is what is known of the logger's
probabilities, and x >= -k. Upper bounds come from 1 - r and 1 - q, which have the mean 1 - v since weights have mean 1.

A difference v_b - v_a has signed weights d = (pi_b - pi_a)/p; with h(a) = 1 where d < 0,

    x = d (r - h(a)) + sum_b (pi_b - pi_a)(b) h(b)  >=  -1,

because what is subtracted from, in actions that b plays less often, is 1 - r. There, too, g moves from h towards q as
far as k allows, and x >= -1 - k. Actions that both play alike drop out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.evaluation.ragged import Ragged
from alexp.evaluation.sequences import Payoffs, lower_sequence

ALLOWANCES = (0.0, 8.0, 64.0)  # k; "betting" divides its wealth among all of them
ONE_ALLOWANCE = (8.0,)  # for methods that look at one column


@dataclass(frozen=True)
class Bets:
    """What lower and upper bounds need to know of the rounds that can be used.

    Attributes
    ----------
    change : probabilities of the new policy, or differences pi_b - pi_a, of all candidates.
    index, propensities : (n,), of what was played.
    rewards : (n,), in [0, 1].
    predicted : rewards of all candidates as they were predicted before each round, in [0, 1]; None for no prediction.
    least : (N,), lower bounds of the logger's probabilities; None if there are none.
    most : the largest k that is of use, 1 / floor if there is a floor.
    difference : whether this is one.
    clip : weights are not larger; for policies, not for differences.
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

    def sequences(self, delta: float, method: str) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds after every round, (n,) each, which hold for all rounds with probability 1 - delta."""
        lower = lower_sequence(self.payoffs(method), delta / 2.0, method)
        upper = lower_sequence(self._reflected().payoffs(method), delta / 2.0, method)
        return lower, (-upper if self.difference else 1.0 - upper)

    def payoffs(self, method: str = "betting") -> Payoffs:
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
        offsets = np.where(change < 0.0, 1.0, 0.0)
        if allowance > 0.0 and self.predicted is not None and self.least is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(change == 0.0, np.inf, allowance * self.least / np.abs(change))
            q = self.predicted.values
            offsets = np.where(change < 0.0, 1.0 - np.minimum(1.0 - q, reach), np.minimum(q, reach))
        elif not self.difference:  # the plain case, and the quick one
            return weights * self.rewards
        known = self.change.like(change * offsets).sums()
        return weights * (self.rewards - self.change.like(offsets).at(self.index)) + known

    def _reflected(self) -> Bets:
        """The rounds in which the mean is the complement: 1 - v, or v_a - v_b."""
        if self.difference:
            return replace(self, change=self.change.like(-self.change.values))
        q = self.predicted
        turned = None if q is None else q.like(1.0 - q.values)
        return replace(self, rewards=1.0 - self.rewards, predicted=turned)


def running_level(change: Ragged, index: IntArray, propensities: FloatArray, rewards: FloatArray) -> Ragged:
    """The self-normalised value of the rounds before, as the prediction for every candidate of a round.

    It begins at 1/2, as if one round had been seen.
    """
    weights = change.at(index) / propensities
    level = (0.5 + np.cumsum(weights * rewards)) / (1.0 + np.cumsum(weights))
    before = np.concatenate(([0.5], level[:-1])) if level.size else level
    return change.like(np.repeat(before, change.lengths))
