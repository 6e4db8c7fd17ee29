"""Sequential forecasts of all models, and their aggregate by exponential weights on squared losses."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.schema import SQUARE, floats, record
from alexp.decision.weights import exponential_weights
from alexp.estimation.posteriors import LinearPosteriors


class AggregatingForecaster:
    """Exponential weights over the clipped forecasts of M Vovk-Azoury-Warmuth regressions.

    Model j forecasts mu_j(x) / (1 + ||phi_j(x)||^2_{V_j^-1}), clipped to [-bound, bound], before the reward is known;
    weights are proportional to exp(-L_j / (8 bound^2)), L_j its cumulative squared loss. The bound may grow with
    time. The losses depend on the order of the observations.
    """

    def __init__(self, fits: LinearPosteriors, n_columns: int) -> None:
        self.fits, self._n_columns = fits, n_columns
        self.losses = np.zeros(fits.n_models)

    def weights(self, bound: float) -> FloatArray:
        """Weights of the models, shape (M,)."""
        return exponential_weights(-self.losses, 1.0 / (8.0 * bound**2))

    def forecasts(self, row: FloatArray, bound: float) -> FloatArray:
        """Clipped forecasts of all models at dictionary row (P,), shape (M,)."""
        mean, squared_width = self.fits.at(row)
        return np.asarray(np.clip(mean / (1.0 + squared_width), -bound, bound))

    def estimate(self, table: FloatArray, bound: float) -> FloatArray:
        """Weighted mean of the models' ridge fits at n candidates, feature-major (P, n); not clipped."""
        mean = np.zeros(self._n_columns + int(self.fits.intercept))
        self.fits.add_coefficients(np.arange(self.fits.n_models), self.weights(bound), mean)
        return np.asarray(mean[: self._n_columns] @ table + (mean[-1] if self.fits.intercept else 0.0))

    def absorb(self, row: FloatArray, y: float, bound: float) -> float:
        """Forecast, then charge the losses (the fits are updated by their owner); returns the aggregate forecast."""
        forecasts = self.forecasts(row, bound)
        aggregate = float(self.weights(bound) @ forecasts)
        self.losses = self.losses + (y - forecasts) ** 2
        return aggregate

    def state(self) -> State:
        """What observations have changed, apart from the fits."""
        return {"losses": self.losses}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.losses = record("forecaster", state, {"losses": floats(self.losses.size, low=0.0, high=SQUARE)})["losses"]
