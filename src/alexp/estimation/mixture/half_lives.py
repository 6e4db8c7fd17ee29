"""Several half-lives at once: one mixture for each weight that old rewards keep, weighed by how well it predicted.

Evidence of power likelihoods with other weights is about other amounts of data and cannot be compared. Predictions can:
mixture k expects reward t from the rewards before it with the density p_k(y_t), and a half-life is right as long as
p_k is large. Which one is right may change, with probability a = 0.001 after every reward (a hidden Markov chain;
Herbster and Warmuth's fixed share):

    v_k <- (1 - a) v_k p_k(y_t) / sum_i v_i p_i(y_t) + a / K.

The log loss of the whole is therefore at most that of the best single half-life plus log K + t log(1 / (1 - a)), and,
with m changes of the best one, plus (m + 1) log(K / a) instead of log K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, isfinite, lgamma, log, pi

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable
from alexp.common.schema import anything, floats, record, sequence
from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.posteriors import CandidateMoments, Component, ComponentValues
from alexp.problem.candidates import NOTHING, Choices, Pending

_SWITCH = 0.001  # a; of 0.02, 0.005 and 0.001 the best on streams that stand still, jump and drift
_NEGLIGIBLE = 1e-9  # share of components that predictions leave out
_FIRST = 2  # rewards that may be of any size and level: nothing is expected of them


class HalfLives(Mixture):
    """K mixtures over the same models. Cell g of mixture k is cell k C + g, so that weights have the shape (K C, M).

    Parameters
    ----------
    parts : empty mixtures, alike but for `forget`.
    """

    def __init__(self, parts: Sequence[Mixture]) -> None:
        first = parts[0]
        self.parts, self.power, self.log_prior, self.forget = list(parts), first.power, first.log_prior, first.forget
        self.n_columns, self._columns, self._sizes = first.n_columns, first._columns, first._sizes
        self.shares = np.full(len(parts), 1.0 / len(parts))
        self._known: list[FloatArray] | None = None  # weights of the parts since the last reward

    @property
    def n_observations(self) -> int:
        return self.parts[0].n_observations

    def _weights(self) -> list[FloatArray]:
        if self._known is None:
            self._known = [part.weights() for part in self.parts]
        return self._known

    def weights(self) -> FloatArray:
        """Probability of every component, shape (K C, M)."""
        return np.concatenate([share * own for share, own in zip(self.shares, self._weights(), strict=True)])

    def log_weights(self) -> FloatArray:
        """Logarithms of the weights, (K C, M)."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights())

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one observation: first the shares, by what was expected of it, then the parts."""
        if self.n_observations >= _FIRST:
            point = Choices(None, np.ascontiguousarray(row[:, None]))
            pairs = zip(self.parts, self._weights(), strict=True)
            logs = np.array([log_density(part, weights, point, y) for part, weights in pairs])
            if np.isfinite(logs).all():
                shares = self.shares * np.exp(logs - logs.max())
                self.shares = (1.0 - _SWITCH) * shares / shares.sum() + _SWITCH / len(self.parts)
        self._known = None
        for part in self.parts:
            part.update(row, y, index)

    def _split(self, weights: FloatArray) -> Iterator[tuple[int, Mixture, float, FloatArray]]:
        """First cell, mixture, share and own weights (C, M) of the parts that weights (K C, M) give a share."""
        size = len(self.parts[0].ridges)
        for k, part in enumerate(self.parts):
            own = weights[k * size : (k + 1) * size]
            if (share := float(own.sum())) > 0.0:
                yield k * size, part, share, own / share

    def moments(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        found = [(share, *part.moments(own, choices, pending)) for _, part, share, own in self._split(weights)]
        merged = CandidateMoments.empty(len(choices))
        merged.merge_many(*(np.array(values) for values in zip(*found, strict=True)))
        return merged.mean, merged.within + merged.between

    def components(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING, least: float = 1e-12
    ) -> Iterator[Component]:
        for start, part, share, own in self._split(weights):
            for one in part.components(own, choices, pending, least):
                yield one._replace(share=share * one.share, cell=start + one.cell)

    def values(self, weights: FloatArray, choices: Choices, pending: Pending, least: float) -> ComponentValues:
        found = []
        for start, part, share, own in self._split(weights):
            one = part.values(own, choices, pending, least)
            found.append((share * one.shares, one.mean, one.variance, one.numbers + start * weights.shape[1]))
        return ComponentValues(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def prefers_few(self, weights: FloatArray, n: int) -> bool:
        return all(part.prefers_few(own, n) for _, part, _, own in self._split(weights))

    @property
    def noise_variances(self) -> FloatArray:
        """Variance of the noise in every component, shape (K C, M)."""
        return np.concatenate([part.noise_variances for part in self.parts])

    def noise_variance(self, weights: FloatArray) -> float:
        return float(np.sum(weights * self.noise_variances))

    @property
    def freedom(self) -> float:
        """The fewest degrees of freedom of a part: those of the shortest half-life."""
        return min(part.freedom for part in self.parts)

    def draw(self, cell: int, model: int, rng: np.random.Generator, choices: Choices) -> FloatArray:
        k, own = divmod(cell, len(self.parts[0].ridges))
        return self.parts[k].draw(own, model, rng, choices)

    def chances(
        self, weights: FloatArray, choices: Choices, rng: np.random.Generator, price: FloatArray | None = None
    ) -> FloatArray:
        """Probability that each choice is the best, shape (n,): those of the parts, by their shares."""
        own = [share * part.chances(one, choices, rng, price) for _, part, share, one in self._split(weights)]
        return np.asarray(np.sum(own, axis=0))

    def state(self) -> Packable:
        return {"parts": [part.state() for part in self.parts], "shares": self.shares}

    def restore(self, state: Packable) -> None:
        k = len(self.parts)
        known = record("mixture", state, {"parts": anything, "shares": floats(k, low=0.0, high=1.0)})
        stored = sequence("mixture['parts']", known["parts"], k)
        for part, own in zip(self.parts, stored, strict=True):
            part.restore(own)
        self.shares, self._known = known["shares"], None


def log_density(mixture: Mixture, weights: FloatArray, point: Choices, y: float) -> float:
    """Logarithm of the density that a mixture expects a reward with, noise included, at one point (P, 1)."""
    shares, mean, variance, numbers = mixture.values(weights, point, NOTHING, _NEGLIGIBLE * float(weights.max()))
    scale = variance[:, 0] + mixture.noise_variances.ravel()[numbers]
    square = (y - mean[:, 0]) ** 2 / scale
    if (freedom := mixture.freedom) == inf:
        logs = -0.5 * (square + np.log(2.0 * pi * scale))
    else:
        logs = -0.5 * (freedom + 1.0) * np.log1p(square / freedom) - 0.5 * np.log(freedom * pi * scale)
        logs += lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom)
    top = float(logs.max())
    return top + log(float(shares @ np.exp(logs - top))) if isfinite(top) else -inf
