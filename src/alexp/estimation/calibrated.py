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
1 + `EARLY` / t after t rewards: kernels with a few lengthscales are too sure of real rewards, early on most of all.
Bisection finds the smallest such epsilon.

Under the prior it is a statement about one moment, the one at which one stops. On real tables it is meant for all
moments of a run: `EARLY` is such that few runs have a false report at any look, every table with the same weight.
docs/certificates-results.md chooses it again for every table from the other tables, and counts how often the reports on
that one are then false.
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
EARLY = 45.0
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


class Tails(NamedTuple):
    """What a mixture of K components says of f(x) - f(b), for all n candidates x but the recommended one, b.

    Attributes
    ----------
    shares : (K,) of the components.
    means, scales : (K, n) of f(x) - f(b), which is t-distributed.
    freedom : degrees of freedom of the components.
    left_out : weight of the components that are left out, which count as wrong.
    n_rewards : t.
    """

    shares: FloatArray
    means: FloatArray
    scales: FloatArray
    freedom: float
    left_out: float
    n_rewards: int

    def chance(self, epsilon: float, early: float = EARLY) -> float:
        """At most how probable it is that some candidate is better than b by more than epsilon."""
        from scipy.special import stdtr  # slow to import, and needed here only

        wider = np.sqrt(1.0 + early / self.n_rewards)
        tails = stdtr(self.freedom, (self.means - epsilon) / (wider * self.scales))
        return self.left_out + (1.0 - self.left_out) * float((self.shares[:, None] * tails).sum())

    def gap(self, delta: float, early: float = EARLY) -> float:
        """The smallest epsilon of which the chance is at most delta."""
        if self.means.shape[1] == 0 or self.chance(0.0, early) <= delta:
            return 0.0
        low, high = 0.0, float(np.max(self.means, initial=0.0) + np.max(self.scales))  # positive, so that it can grow
        while self.chance(high, early) > delta:
            low, high = high, 2.0 * high
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.chance(middle, early) > delta else (low, middle)
        return high


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

    def tails(self, choices: Choices, position: int, delta: float) -> Tails | None:
        """What the mixture says of all other choices beside the one at `position`; None if too many components matter.

        Components that together weigh a small share of delta are left out. There are rewards beyond the first.
        """
        assert self._unit is not None
        weights = self._weights()
        ranked = np.sort(weights, axis=None)
        left_out = int(np.searchsorted(np.cumsum(ranked), _LEFT_OUT * delta))
        least = float(ranked[left_out - 1]) if left_out else 0.0
        if (ranked.size - left_out) * len(choices) > _MOST:
            return None
        others = np.arange(len(choices)) != position
        shares, means, scales = [], [], []
        for part in self._mixture.components(weights, choices, least=least):
            shares.append(part.share)
            means.append((part.mean - part.mean[position])[others])
            scales.append(np.sqrt(part.variance + part.variance[position])[others])
        return Tails(
            np.array(shares), np.array(means), np.maximum(np.array(scales), 1e-12 * np.sqrt(self._unit)),
            self._mixture.freedom, float(weights[weights <= least].sum()), self._mixture.n_observations,
        )  # fmt: skip

    def gap(self, choices: Choices, position: int, delta: float) -> PriorGap | None:
        """The smallest epsilon for the choice at `position`, once there are rewards beyond the first.

        None where too many components matter.
        """
        if (tails := self.tails(choices, position, delta)) is None:
            return None
        weights, prior = self._weights().sum(axis=0), self._models.log_prior
        kept = np.log(np.maximum(weights, 1e-300)) >= np.log(delta) + prior
        return PriorGap(tails.gap(delta), np.flatnonzero(kept))

    def _weights(self) -> FloatArray:
        """Posterior probability of every component, (ratios, M)."""
        logs = self._mixture.log_evidence() + self._models.log_prior
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())
