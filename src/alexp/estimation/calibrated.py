"""Statements under the models' priors: for kernels and wide maps, of which `estimation.shape` says nothing.

A model that can follow any rewards, such as a kernel, has no finite supremum of its likelihood over noise levels. What
can be said is said of typical rewards. Suppose that the rewards of the candidates are a draw from the mixture of all
models, each with its prior, given the first t0 rewards, which fix units and level; and that noise is Gaussian. Then the
posterior probability of a statement is the probability that it is right, at whatever moment one stops, however actions
were chosen: if the run stops at time T with a statement of posterior probability 1 - delta, the statement is false with
probability E[P(false | rewards up to T)] = delta.

The statement here: no candidate x beats the recommended one, b, by more than epsilon. Its probability to be false is at
most the sum over candidates of P(f(x) - f(b) > epsilon), and f(x) - f(b) is, in each component of the mixture, a
t-distribution. Its squared scale is taken to be the sum of those of f(x) and f(b), as if they were uncorrelated, times
1 + `EARLY` / t after t rewards: kernels with a few lengthscales are too sure of real rewards early on. Bisection finds
the smallest such epsilon.

`EARLY` was chosen on the tables that the board keeps for tuning: with it 3 of 197 runs were false at some look from the
tenth reward on. Without it 24 were; with the sum of the scales in its place, never too small under the prior, 8 were.

It is a statement about one moment, the one at which one stops. What holds at all moments at once on average over the
prior, {v : p(v | data) >= delta p(v | first rewards)} for the reward v of every candidate (Savage and Dickey), is much
wider.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.checking import Following
from alexp.estimation.mixture.making import ratio_mixture
from alexp.estimation.mixture.mixture import StudentMixture, reward_unit
from alexp.problem.candidates import CandidateTable, Choices
from alexp.problem.models import ModelClass

RATIOS = (1e-4, 1e-3, 1e-2, 0.1, 0.5)  # of noise to prior variance
FIRST = 5  # t0; later where the first rewards are all the same
EARLY = 20.0
_LEFT_OUT = 0.02  # share of delta that components may weigh which are left out; they count as wrong
_MOST = 5e6  # components times choices
_HALVINGS = 20


class PriorGap(NamedTuple):
    """By how much another choice may beat the recommended one, and the models that the evidence does not speak against.

    A model is left out once the evidence of the mixture is 1/delta times its own: if the rewards are typical of it,
    that ever happens with probability delta.
    """

    epsilon: float
    plausible: IntArray


class PriorLedger(Following):
    """The mixture of all models in units that the first rewards fix."""

    def __init__(self, models: ModelClass, candidates: CandidateTable) -> None:
        self._models, self._candidates = models, candidates
        super().__init__()

    def restart(self) -> None:
        """Forget all rewards."""
        mixture = ratio_mixture(self._models, self._candidates, RATIOS, None, 1.0)
        assert isinstance(mixture, StudentMixture)
        self._mixture = mixture
        self._rewards: list[float] = []  # those that fix the unit
        self._unit: float | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there are rewards beyond those that fix the unit."""
        return self._unit is not None and self._mixture.n_observations > len(self._rewards)

    def _see(self, t: int, index: int, y: float, row: FloatArray) -> None:
        self._mixture.update(row, y, index)
        if self._unit is None:
            self._rewards.append(y)
            known = np.array(self._rewards)
            if t >= FIRST and np.ptp(known) > 0.0:
                squares = float(np.square(known - known.mean()).sum())
                self._unit = self._mixture.unit = reward_unit(squares, float(known.mean()), len(known))

    def gap(self, choices: Choices, position: int, delta: float) -> PriorGap | None:
        """The smallest epsilon for the choice at `position`, once there are rewards beyond the first.

        None where too many components matter.
        """
        from scipy.special import stdtr  # slow to import, and needed here only

        assert self._unit is not None
        logs = self._mixture.log_evidence() + self._models.log_prior
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        ranked = np.sort(weights, axis=None)
        left_out = int(np.searchsorted(np.cumsum(ranked), _LEFT_OUT * delta))
        least = float(ranked[left_out - 1]) if left_out else 0.0
        if (ranked.size - left_out) * len(choices) > _MOST:
            return None
        others = np.arange(len(choices)) != position
        shares, means, scales = [], [], []
        wider = 1.0 + EARLY / self._mixture.n_observations
        for part in self._mixture.components(weights, choices, least=least):
            shares.append(part.share)
            means.append((part.mean - part.mean[position])[others])
            scales.append(np.sqrt(wider * (part.variance + part.variance[position]))[others])
        rest = float(weights[weights <= least].sum())
        share, mean = (1.0 - rest) * np.array(shares)[:, None], np.array(means)
        scale = np.maximum(np.array(scales), 1e-12 * np.sqrt(self._unit))
        freedom = self._mixture.freedom

        def chance(epsilon: float) -> float:
            return rest + float((share * stdtr(freedom, (mean - epsilon) / scale)).sum())

        low, high = 0.0, float(np.max(mean, initial=0.0) + np.max(scale, initial=0.0))  # positive, so that it can grow
        if others.any() and chance(0.0) > delta:
            while chance(high) > delta:
                low, high = high, 2.0 * high
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if chance(middle) > delta else (low, middle)
        else:
            high = 0.0
        kept = np.log(np.maximum(weights.sum(axis=0), 1e-300)) >= np.log(delta) + self._models.log_prior
        return PriorGap(high, np.flatnonzero(kept))
