"""Noise that differs between candidates: how much less sure a mixture is of a candidate whose own noise is unknown.

A mixture learns one noise variance v. Where one candidate is quiet and has most of the rewards, v is small, and two bad
first rewards of a noisy candidate would look certain: no rule would ever return to it. What is known of a candidate's
own noise comes from its own rewards. So its noise variance is v, or else as large as the rewards allow, D^2 = d v, with

    D^2 = max((1 + 4 / (k - 1)) x variance of the k candidates' means, mean variance of a candidate's own rewards).

With n rewards of mean y, whose squares about it sum to S, where the mixture expects m with variance s^2, the own
rewards have the share l = min(n s^2 / v, c / N) in m: models have c coefficients for N candidates. They leave n - l
degrees of freedom for the noise, whose squares sum to Q = S + n (y - m)^2, and

    log odds of D^2 against v = ((1 - 1 / d) Q / v - (n - l) log d) / 2 + log(p / (1 - p)).

p is the probability that a candidate has a noise of its own before its rewards are looked at. With K candidates whose
noise can be judged (one with less than one degree of freedom counts in part), G of which have their own, the odds of p
are (G + 1.2) to (K - G - 1), at least 0.2: of candidates that agree, one has made v what it is. p is 6/7 while one
candidate alone says how large the noise is, and falls with every other one that agrees.

Rules look about two deviations above the mean. The variance returned is the one of which two deviations leave the same
probability outside as two deviations of a normal variable do: with probability P of D^2, that of the larger part alone,

    own noise variance / v = max(1, d (z / 2)^2),   Phi(-z) = min(Phi(-2) / P, 1/2).

It enters s^2 as far as rewards are the candidate's own: s^2 grows by (own noise variance - v) l^2 / n. No variance
becomes smaller, and all stay as they are, to the last bit, before a candidate has been measured twice. Only ratios are
computed, so that units of rewards drop out. The constants were chosen on simulated bandits of three and ten arms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import ieee
from alexp.problem.candidates import Choices

_OWN, _COMMON = 1.2, 0.2  # candidates with a noise of their own, and with the common one, that p begins with
_FEW = 4.0  # by so much over k - 1 the variance of k means is raised, since it may have come out small
_OUTSIDE = 0.022750131948179195  # Phi(-2)
_MOST = 700.0  # log odds whose exponentials are finite


class Scatter:
    """Number, mean and squares about the mean of the rewards of every candidate or arm that has any.

    >>> own = Scatter([(7, 1.0), (3, 5.0), (7, 2.0)])
    >>> own.numbers.tolist(), own.counts.tolist(), own.means.tolist(), own.squares.tolist()
    ([7, 3], [2.0, 1.0], [1.5, 5.0], [0.5, 0.0])
    """

    def __init__(self, told: Iterable[tuple[int, float]] = ()) -> None:
        self._place: dict[int, int] = {}
        self._numbers, self._table = np.empty(0, dtype=np.int64), np.empty((3, 0))
        self.repeats = False  # whether some candidate has two rewards
        for candidate, reward in told:
            self.add(candidate, reward)

    def add(self, candidate: int, reward: float) -> None:
        """Take in a reward."""
        place = self._place.setdefault(candidate, len(self._place))
        if place >= self._numbers.size:
            more = max(16, place)
            self._numbers = np.append(self._numbers, np.zeros(more, dtype=np.int64))
            self._table = np.concatenate([self._table, np.zeros((3, more))], axis=1)
        self._numbers[place] = candidate
        n, mean, squares = self._table[:, place].tolist()
        self.repeats |= n > 0.0
        above = reward - mean
        mean += above / (n + 1.0)
        self._table[:, place] = n + 1.0, mean, squares + above * (reward - mean)

    def __len__(self) -> int:
        return len(self._place)

    @property
    def numbers(self) -> IntArray:
        """(k,) candidates, in the order of their first rewards."""
        return self._numbers[: len(self)]

    @property
    def counts(self) -> FloatArray:
        """(k,) numbers of rewards."""
        return self._table[0, : len(self)]

    @property
    def means(self) -> FloatArray:
        """(k,) means of rewards."""
        return self._table[1, : len(self)]

    @property
    def squares(self) -> FloatArray:
        """(k,) sums of squares about the means."""
        return self._table[2, : len(self)]

    def spread(self) -> float:
        """D^2: how large a candidate's own noise variance may be."""
        k = len(self)
        if k < 2:
            return 0.0
        apart = self.means - self.means.mean()
        between = (1.0 + _FEW / (k - 1.0)) * float(apart @ apart) / (k - 1.0)
        return max(between, float((self.squares / self.counts).sum()) / k)


@ieee.leaf
def upper_point(outside: float) -> float:
    """z with Phi(-z) = outside, for a probability of at most 1/2; within 4.5e-4 (Abramowitz and Stegun, 26.2.23)."""
    if outside >= 0.5:
        return 0.0
    t = math.sqrt(-2.0 * math.log(outside))
    top = 2.515517 + t * (0.802853 + t * 0.010328)
    return max(t - top / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))), 0.0)


@ieee.leaf
def multiple(d: float, chance: float) -> float:
    """Own noise variance in units of the common one, if it is d of these units with a probability and else one."""
    z = upper_point(min(_OUTSIDE / chance, 0.5))
    return max(1.0, 0.25 * d * z * z)


@ieee.entry
def judge(d: float, freedom: FloatArray, squares: FloatArray, n_exact: int, out: FloatArray) -> None:
    """Own noise variances of k candidates in units of the common one, written to `out` (k,).

    d > 1 is how large they may be, `freedom` (k,) has the degrees of freedom and `squares` (k,) is Q / v. Nothing is
    judged by them where `n_exact` candidates are known to have no noise.
    """
    if n_exact > 0:
        out[:] = multiple(d, 1.0 / (n_exact + 2.0))
        return
    agree, own, fall, slope = -1.0, _OWN, math.log(d), 1.0 - 1.0 / d
    for a in range(out.shape[0]):
        out[a] = 0.5 * (slope * squares[a] - freedom[a] * fall)
        share = 1.0 / (1.0 + math.exp(min(-out[a], _MOST)))
        part = min(freedom[a], 1.0)
        own += part * share
        agree += part * (1.0 - share)
    agree = max(agree, _COMMON)
    for a in range(out.shape[0]):
        chance = 1.0 / (1.0 + math.exp(min(-out[a], _MOST)) * (agree / own))
        out[a] = multiple(d, chance)


class OwnNoise:
    """Candidates whose noise may exceed the common one.

    Parameters
    ----------
    numbers, multiples : (k,) candidates, and their noise variances in units of the common one, all above one.
    precisions : (k,) n / v of each; None where models share nothing between candidates, so that all is their own.
    most : share of a candidate's mean that its own rewards have at most.
    """

    def __init__(
        self, numbers: IntArray, multiples: FloatArray, precisions: FloatArray | None, most: float = 1.0
    ) -> None:
        order = np.argsort(numbers)
        self._numbers, self._more = numbers[order], multiples[order] - 1.0
        self._precisions, self._most = None if precisions is None else precisions[order], most

    def widened(self, variance: FloatArray, choices: Choices) -> FloatArray:
        """The variances (n,) of choices with own noise in place of the common one, as far as rewards are their own."""
        if choices.indices is None:
            return variance
        rank = np.minimum(np.searchsorted(self._numbers, choices.indices), self._numbers.size - 1)
        some = np.flatnonzero(self._numbers[rank] == choices.indices)
        out = np.array(variance)  # of a device, in the memory of the CPU
        out[some] = self._widened(variance[some], rank[some])
        return out

    def _widened(self, variance: FloatArray, which: IntArray) -> FloatArray:
        more = self._more[which]
        if self._precisions is None:
            return variance + variance * more
        precisions: FloatArray = self._precisions[which]
        return np.asarray(variance + more * np.minimum(precisions * variance, self._most) ** 2 / precisions)


def own_noise(
    own: Scatter, common: float, expected: Callable[[], tuple[FloatArray, FloatArray]], most: float, n_exact: int = 0
) -> OwnNoise | None:
    """Which of the candidates that have rewards may have more noise than the `common` variance; None if none may.

    `expected` gives means and variances (k,) of these candidates by the models, in which at `most` this share may be of
    their own rewards. Of `n_exact` candidates it is known that they give the same reward again: they have no noise, and
    by the rule of succession another one has some with probability 1 / (n_exact + 2).
    """
    if (d := own.spread() / common) <= 1.0:
        return None
    mean, variance = expected()
    precisions, multiples = own.counts / common, np.empty(len(own))
    squares = (own.squares + own.counts * (own.means - mean) ** 2) / common
    judge(d, own.counts - np.minimum(precisions * variance, most), squares, n_exact, multiples)
    return _those_above(own, multiples, precisions, most)


def noise_of_arms(own: Scatter, common: float, squares: FloatArray, freedom: FloatArray) -> OwnNoise | None:
    """The same for arms that share nothing: squares (K,) that fits leave of their rewards, and coefficients in them."""
    if (d := own.spread() / common) <= 1.0:
        return None
    multiples, arms = np.empty(len(own)), own.numbers
    judge(d, np.maximum(own.counts - freedom[arms], 0.0), squares[arms] / common, 0, multiples)
    return _those_above(own, multiples, None, 1.0)


def _those_above(own: Scatter, multiples: FloatArray, precisions: FloatArray | None, most: float) -> OwnNoise | None:
    some = np.flatnonzero(multiples > 1.0)
    if not some.size:
        return None
    return OwnNoise(own.numbers[some], multiples[some], None if precisions is None else precisions[some], most)
