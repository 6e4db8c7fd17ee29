"""Candidates whose reward comes out the same when they are measured again, as in simulators and lookup tables.

No model fits a real table perfectly. Without noise, what models leave unexplained belongs to the candidate. If every
replay counted as new evidence, a mixture would become ever surer that its models fit, and stay with a bad candidate.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.estimation.checking import Rewards
from alexp.estimation.mixture.mixture import Mixture
from alexp.problem.candidates import Choices

_FIRST = 2  # rewards before anything is expected


class Replays:
    """Holds back rewards that their candidate, and no other, has given before.

    A held-back reward changes what is expected of its own candidate only. After k replays that all agreed, the
    candidate's mean is its reward and its variance v / ((k + 1) (k + 2)), v being the noise variance of the mixture:
    v / (k + 1) is the variance of a mean of k + 1 rewards with noise, and 1 / (k + 2) is the probability, by the rule
    of succession, that the candidate has noise at all. Candidates measured once stay as uncertain as models say.

    Two signs end it: a candidate gives two different rewards, so that there is noise; or a new candidate gives a reward
    that is held back for another one, so that rewards have few values and agree by chance. Then everything held back is
    learned, and the posterior is that of a run without this rule. For the second reason, a reward that several
    candidates have given (clicks, ratings, whole per cents) is not held back at all.

    No run is locked by holding back if argmax of mean + beta_t std decides and beta_t grows without bound, slower than
    t, as the default width does. Suppose that from some round on every reward is held back. Then nothing is learned any
    more: v, and the mean and variance of every candidate not yet replayed, stay fixed. At least one candidate gets its
    even share of the replays, infinitely often. Where it is played, beta_t std tends to zero and its bound to its
    reward, while the bound of every candidate that is no longer played grows with beta_t. So every candidate of
    positive variance is measured again and again, those that agreed by chance included. One with noise gives another
    reward in the end, and nothing is held back from there on. The argument says nothing about how soon: the default
    width grows as sqrt(log t), with or without this rule.

    Parameters
    ----------
    watched : whether replays are looked for; all rewards are learned otherwise.

    Attributes
    ----------
    held : candidates of the rewards held back, in the order of these.
    """

    def __init__(self, watched: bool) -> None:
        self.watched = watched
        self._first: dict[int, float] = {}
        self._givers: Counter[float] = Counter()
        self.held: list[int] = []

    def __len__(self) -> int:
        """Number of rewards held back."""
        return len(self.held)

    def hold(self, candidate: int | None, reward: float) -> bool:
        """Whether a reward is the one that its candidate alone gave before, so that it is not to be learned now."""
        if not self.watched or candidate is None:
            return False
        if candidate not in self._first:
            self._first[candidate] = reward
            self._givers[reward] += 1
            self.watched = all(self._first[other] != reward for other in set(self.held))
            return False
        self.watched = self._first[candidate] == reward
        same = self.watched and self._givers[reward] == 1
        if same:
            self.held.append(candidate)
        return same

    def release(self) -> list[tuple[int, float]]:
        """Candidates and rewards that were held back, once no replays are looked for any more; none before."""
        if self.watched:
            return []
        out = [(candidate, self._first[candidate]) for candidate in self.held]
        self._first, self.held = {}, []
        return out

    def settle(
        self, mean: FloatArray, variance: FloatArray, noise_variance: float, choices: Choices
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (n,) of the rewards of n choices, from those that models expect and from replays."""
        if not self.held or choices.indices is None:
            return mean, variance
        numbers, counts = np.unique(self.held, return_counts=True)
        rewards = np.array([self._first[candidate] for candidate in numbers.tolist()])
        place = np.minimum(np.searchsorted(numbers, choices.indices), numbers.size - 1)
        replayed, own = numbers[place] == choices.indices, noise_variance / ((counts + 1.0) * (counts + 2.0))
        return np.where(replayed, rewards[place], mean), np.where(replayed, own[place], variance)


def replayed(candidates: IntArray, rewards: FloatArray, watched: bool) -> tuple[Replays, BoolArray]:
    """What a run holds back, from its candidates and rewards in the order of tells, and (t,) which it has learned."""
    out, learned = Replays(watched), np.ones(candidates.size, dtype=bool)
    for t, (candidate, reward) in enumerate(zip(candidates.tolist(), rewards.tolist(), strict=True)):
        learned[t] = not out.hold(candidate, reward)
    if out.release():
        learned[:] = True
    return out, learned


@dataclass(frozen=True)
class Hindsight:
    """t rewards in the order in which they came, as the mixture and K of its models expected them.

    Attributes
    ----------
    mean, std : (t,) the mixture's prediction of a reward given those before it, noise included.
    model_mean, model_std : (t, K) the same by each of the models alone.
    log_odds : (t + 1, K) logarithm of each model's weight, relative to the first model's, after 0..t rewards.
    """

    mean: FloatArray
    std: FloatArray
    model_mean: FloatArray
    model_std: FloatArray
    log_odds: FloatArray


def look_back(mixture: Mixture, told: Rewards, models: IntArray, replays: Replays) -> Hindsight:
    """Feed an empty mixture with the rewards told, and note what it expected of each.

    ``models`` (K,) are those to be told apart, ``replays`` is empty and watched if the run still holds rewards back.
    Takes as long as learning did. Nothing is expected of the first two rewards, which may be of any size and level.
    """
    t, k = len(told), models.size
    mean, std = np.full((2, t), np.nan)
    model_mean, model_std = np.full((2, t, k), np.nan)
    log_odds = np.empty((t + 1, k))
    log_odds[0] = _log_odds(mixture, models)
    for step in range(t):
        point = Choices(told.indices[step : step + 1], np.ascontiguousarray(told.rows[step][:, None]))
        scores = mixture.log_weights()
        if step >= _FIRST:
            mean[step], std[step] = _prediction(mixture, _normalised(scores), point, replays)
        for place, model in enumerate(models if step >= _FIRST else ()):
            alone = np.full_like(scores, -np.inf)
            alone[:, model] = scores[:, model]  # all of them may be negligible, and then there is no prediction
            model_mean[step, place], model_std[step, place] = _prediction(mixture, _normalised(alone), point)
        index, reward = int(told.indices[step]), float(told.rewards[step])
        if not replays.hold(index, reward):
            mixture.update(told.rows[step], reward, index)
        log_odds[step + 1] = _log_odds(mixture, models)
    return Hindsight(mean, std, model_mean, model_std, log_odds)


def _log_odds(mixture: Mixture, models: IntArray) -> FloatArray:
    """Of each model against the first, (K,); of priors that differ before there are rewards."""
    weights = mixture.log_weights()[:, models]
    return np.asarray(np.logaddexp.reduce(weights, axis=0) - np.logaddexp.reduce(weights[:, 0]))


def _prediction(
    mixture: Mixture, weights: FloatArray, point: Choices, replays: Replays | None = None
) -> tuple[float, float]:
    if np.isnan(weights).any():
        return np.nan, np.nan
    noise, (mean, variance) = mixture.noise_variance(weights), mixture.moments(weights, point)
    if replays is not None:
        mean, variance = replays.settle(mean, variance, noise, point)
    return float(mean[0]), float(np.sqrt(variance[0] + noise))


def _normalised(scores: FloatArray) -> FloatArray:
    top = scores.max()
    weights = np.exp(scores - top) if np.isfinite(top) else np.full_like(scores, np.nan)
    return np.asarray(weights / weights.sum())
