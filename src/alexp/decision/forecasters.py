"""Sequential forecasts of all models, and their aggregate by exponential weights on squared losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.decision.weights import exponential_weights
from alexp.estimation.ridge._moments import add_mean_coefficients, point_posteriors
from alexp.estimation.ridge.bank import RidgeBank


class AggregatingForecaster:
    """Exponential weights over the clipped forecasts of M Vovk-Azoury-Warmuth regressions.

    Model j forecasts mu_j(x) / (1 + ||phi_j(x)||^2_{V_j^-1}), clipped to [-bound, bound], before the reward is known;
    weights are proportional to exp(-L_j / (8 bound^2)), L_j its cumulative squared loss. The bound may grow with
    time. The losses depend on the order of the observations.
    """

    def __init__(self, bank: RidgeBank, n_columns: int) -> None:
        self.bank, self._n_columns = bank, n_columns
        self.losses = np.zeros(bank.n_models)

    def weights(self, bound: float) -> FloatArray:
        """Weights of the models, shape (M,)."""
        return exponential_weights(-self.losses, 1.0 / (8.0 * bound**2))

    def forecasts(self, row: FloatArray, bound: float) -> FloatArray:
        """Clipped forecasts of all models at dictionary row (P,), shape (M,)."""
        bank = self.bank
        mean, quadratic = np.empty(bank.n_models), np.empty(bank.n_models)
        layout = (bank._factor, bank._starts, bank._columns, bank._offsets, bank._lead)
        point_posteriors(*layout, *bank.coefficients(), row, mean, quadratic)
        return np.asarray(np.clip(mean / (1.0 + quadratic), -bound, bound))

    def estimate(self, table: FloatArray, bound: float) -> FloatArray:
        """Weighted mean of the models' ridge fits at n candidates, feature-major (P, n); not clipped."""
        bank, lead = self.bank, int(self.bank.intercept)
        mean = np.zeros(self._n_columns + lead)
        everyone = np.arange(bank.n_models)
        add_mean_coefficients(
            bank._columns, bank._offsets, lead, *bank.coefficients(), everyone, self.weights(bound), mean
        )
        return np.asarray(mean[: self._n_columns] @ table + (mean[-1] if lead else 0.0))

    def absorb(self, row: FloatArray, y: float, bound: float) -> float:
        """Forecast, then charge the losses (the bank is updated by its owner); returns the aggregate forecast."""
        forecasts = self.forecasts(row, bound)
        aggregate = float(self.weights(bound) @ forecasts)
        self.losses = self.losses + (y - forecasts) ** 2
        return aggregate

    def state(self) -> dict[str, Any]:
        """What observations have changed, apart from the bank."""
        return {"losses": self.losses}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.losses = np.array(state["losses"], dtype=np.float64)
