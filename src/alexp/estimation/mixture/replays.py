"""Candidates whose reward comes out the same when they are measured again, as in simulators and lookup tables.

No model fits a real table perfectly. Without noise, what models leave unexplained belongs to the candidate. If every
replay counted as new evidence, a mixture would become ever surer that its models fit, and stay with a bad candidate.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Self

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.common.progress import steps
from alexp.estimation.checking import Rewards
from alexp.estimation.mixture.mixture import Mixture
from alexp.problem.candidates import NOTHING, Choices

_FIRST = 2  # rewards before anything is expected
_NEGLIGIBLE = 1e-12  # weights of components that predictions leave out


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
        if (replaced := getattr(mean, "replaced", None)) is not None:  # values in parts
            own = noise_variance / ((counts + 1.0) * (counts + 2.0))
            return replaced(numbers, rewards), variance.replaced(numbers, own)  # type: ignore[attr-defined]
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
    model_mean : (t, K) the same by each of the models alone.
    log_odds : (t + 1, K) logarithm of each model's weight, relative to the first model's, after 0..t rewards.
    """

    mean: FloatArray
    std: FloatArray
    model_mean: FloatArray
    log_odds: FloatArray


class LookBack:
    """What a mixture expected of every reward before it came. It grows with the run: only new rewards take time.

    Parameters
    ----------
    mixture : an empty one.
    models : (F,) those to be told apart later; every reward takes 16 F bytes.
    replays : empty, and watched if the run still holds rewards back.
    """

    def __init__(self, mixture: Mixture, models: IntArray, replays: Replays) -> None:
        self._mixture, self._models, self._replays, self._watched = mixture, models, replays, replays.watched
        # By reward: mean and std of the mixture, means of the models, and the logarithms of their weights before it.
        self._rows = np.empty((0, 2 + 2 * models.size))

    def covers(self, models: IntArray, watched: bool) -> bool:
        """Whether it can say something about these models of a run that watches for replays or does not."""
        return watched == self._watched and bool(np.isin(models, self._models).all())

    def continued(self, told: Rewards) -> Self:
        """Feed the mixture with the rewards that it lacks of all those told, and note what it expected of each.

        Takes as long as learning did. Nothing is expected of the first two rewards, which may be of any size and level.
        """
        start, f = len(self._rows), self._models.size
        self._rows = np.concatenate([self._rows, np.full((len(told) - start, 2 + 2 * f), np.nan)])
        for step, row in enumerate(steps("looking back", self._rows[start:], len(told) - start), start):
            scores = self._mixture.log_weights()
            row[2 + f :] = np.logaddexp.reduce(scores[:, self._models], axis=0)
            if step >= _FIRST:
                features = np.ascontiguousarray(told.rows[step][:, None])
                self._expect(scores, Choices(told.indices[step : step + 1], features), row[: 2 + f])
            index, reward = int(told.indices[step]), float(told.rewards[step])
            if not self._replays.hold(index, reward):
                self._mixture.update(told.rows[step], reward, index)
        return self

    def _expect(self, scores: FloatArray, point: Choices, out: FloatArray) -> None:
        """Write the predictions of one reward, where scores (cells, M) are those of the components."""
        mixture, weights = self._mixture, _normalised(scores)
        alone = _normalised(scores[:, self._models], axis=0)  # all may be negligible, and then there is no prediction
        wanted = np.where(weights > _NEGLIGIBLE, weights, 0.0)
        wanted[:, self._models] += np.nan_to_num(alone)
        if not wanted.any():
            return
        _, mean, variance, numbers = mixture.values(wanted / wanted.sum(), point, NOTHING, 0.0)
        means, variances = np.zeros((2, scores.size))
        means[numbers], variances[numbers] = mean[:, 0], variance[:, 0]
        means, variances = means.reshape(scores.shape), variances.reshape(scores.shape)
        out[2:] = (alone * means[:, self._models]).sum(axis=0)
        if np.isnan(weights).any():
            return
        shares, noise = np.where(weights > _NEGLIGIBLE, weights, 0.0), mixture.noise_variance(weights)
        shares /= shares.sum()
        centre = float((shares * means).sum())
        spread = float((shares * (variances + (means - centre) ** 2)).sum())
        settled, own = self._replays.settle(np.array([centre]), np.array([spread]), noise, point)
        out[0], out[1] = settled[0], np.sqrt(own[0] + noise)

    def about(self, models: IntArray) -> Hindsight:
        """What was noted, with some of the models followed; log odds after the last reward, too."""
        f, own = self._models.size, np.searchsorted(self._models, models)
        now = np.logaddexp.reduce(self._mixture.log_weights()[:, models], axis=0)
        weights = np.concatenate([self._rows[:, 2 + f + own], now[None]])
        return Hindsight(self._rows[:, 0], self._rows[:, 1], self._rows[:, 2 + own], weights - weights[:, :1])


def _normalised(scores: FloatArray, axis: int | None = None) -> FloatArray:
    """Weights from their logarithms, along an axis or all together; NaN where all are negligible."""
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))
