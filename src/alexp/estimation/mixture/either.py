"""Rewards that may all be 0 or 1: a Gaussian and a Bernoulli mixture side by side, and which of the two is believed.

Both learn every reward, as long as all of them are 0 or 1. The Gaussian one is believed for the first `ENOUGH` rewards,
the Bernoulli one from then on. The first other reward drops the Bernoulli one for good. What is believed is therefore a
function of the rewards in their order: a run that is told the same log believes the same.

Why not at once? A few zeros and ones may be ratings or grams. And with a few rewards per arm logistic regressions know
so little that they explore much more than pays (docs/clicks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable
from alexp.common.schema import anything, record, same
from alexp.estimation.mixture.bernoulli import SCALES
from alexp.estimation.mixture.calibrating import Scaling
from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.posteriors import Component, ComponentValues
from alexp.problem.candidates import NOTHING, Choices, Pending

ENOUGH = 200  # rewards, all of them 0 or 1, after which the Bernoulli mixture is believed

ANY_SCALES = (*SCALES, 10.0)  # the last for classes that features nearly separate


class EitherMixture(Mixture):
    """The `Mixture` that is believed of two: it learns in both, and hands every question on to one.

    Weights have the shape (cells, M) of the one that is believed.

    Parameters
    ----------
    gaussian : for any rewards; empty.
    bernoulli : makes the one for rewards that are 0 or 1, over the same models; empty.
    """

    def __init__(self, gaussian: Mixture, bernoulli: Callable[[], Mixture]) -> None:
        self.gaussian, self._make, self.bernoulli = gaussian, bernoulli, bernoulli()
        self._is_binary = True  # every reward so far
        self.power, self.log_prior, self.forget = gaussian.power, gaussian.log_prior, gaussian.forget
        self.n_columns, self._columns, self._sizes = gaussian.n_columns, gaussian._columns, gaussian._sizes
        self._choose()

    def _choose(self) -> None:
        self.likelihood: Literal["gaussian", "bernoulli"] = "gaussian"
        if self._is_binary and self.gaussian.n_observations >= ENOUGH:
            self.likelihood = "bernoulli"
        self._believed = self.bernoulli if self.likelihood == "bernoulli" else self.gaussian
        self.grid = self._believed.grid

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one observation into both, or into the Gaussian one alone from the first reward that is not 0 or 1."""
        self._is_binary = self._is_binary and y in (0.0, 1.0)
        self.gaussian.update(row, y, index)
        if self._is_binary:
            self.bernoulli.update(row, y, index)
        self._choose()

    @property
    def n_observations(self) -> int:
        return self.gaussian.n_observations

    @property
    def scaling(self) -> Scaling:
        return self._believed.scaling

    def log_evidence(self) -> FloatArray:
        return self._believed.log_evidence()

    def log_weights(self) -> FloatArray:
        return self._believed.log_weights()

    def weights(self) -> FloatArray:
        return self._believed.weights()

    @property
    def noise_variances(self) -> FloatArray:
        """Variance of the noise in every component, shape (cells, M)."""
        return self._believed.noise_variances

    def noise_variance(self, weights: FloatArray) -> float:
        return self._believed.noise_variance(weights)

    def estimated_noise(self, weights: FloatArray, rows: FloatArray, rewards: FloatArray) -> float:
        return self._believed.estimated_noise(weights, rows, rewards)

    def moments(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        return self._believed.moments(weights, choices, pending)

    def components(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING, least: float = 1e-12
    ) -> Iterator[Component]:
        return self._believed.components(weights, choices, pending, least)

    def values(self, weights: FloatArray, choices: Choices, pending: Pending, least: float) -> ComponentValues:
        return self._believed.values(weights, choices, pending, least)

    def largest_means(self, weights: FloatArray, choices: Choices, least: float) -> FloatArray:
        return self._believed.largest_means(weights, choices, least)

    def interval(self, weights: FloatArray, choices: Choices, level: float) -> tuple[FloatArray, FloatArray]:
        return self._believed.interval(weights, choices, level)

    @property
    def freedom(self) -> float:
        return self._believed.freedom

    def draw(self, cell: int, model: int, rng: np.random.Generator, choices: Choices) -> FloatArray:
        return self._believed.draw(cell, model, rng, choices)

    def chances(
        self, weights: FloatArray, choices: Choices, rng: np.random.Generator, price: FloatArray | None = None
    ) -> FloatArray:
        return self._believed.chances(weights, choices, rng, price)

    def state(self) -> Packable:
        """Both, or the Gaussian one where rewards were not all 0 or 1."""
        out = {"gaussian": self.gaussian.state()}
        return out | {"bernoulli": self.bernoulli.state()} if self._is_binary else out

    def restore(self, state: Packable) -> None:
        known = record("mixture", state, {"gaussian": anything, "bernoulli": anything}, optional=["bernoulli"])
        self.gaussian.restore(known["gaussian"])
        self._is_binary, self.bernoulli = "bernoulli" in known, self._make()
        if self._is_binary:
            self.bernoulli.restore(known["bernoulli"])
            learned = self.bernoulli.n_observations
            same("n_observations of mixture['bernoulli']", learned, self.n_observations, "those of the Gaussian one")
        self._choose()
