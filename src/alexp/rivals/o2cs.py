"""O2CS-EW: online-to-confidence-set conversion of an aggregate of all models (Abbasi-Yadkori, Pal, Szepesvari 2012)."""

from __future__ import annotations

from math import log, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    SQUARE,
    Certain,
    Certified,
    Decision,
    Domain,
    FloatArray,
    LinearPosteriors,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    anything,
    exponential_weights,
    first_best,
    floats,
    fraction,
    linear_posteriors,
    positive,
    record,
    same,
)

# Sequential forecasts of all models, and their aggregate by exponential weights on squared losses.


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
        self.losses = record("forecaster", state, {"losses": floats(self.losses.size, low=0.0, high=SQUARE)})["losses"]


def squared_distance(regret: float, noise_std: float, delta: float) -> float:
    """Bound on sum_s (forecast_s - r_s)^2 at all times at once, but for a share delta of the runs.

    Forecasts made before their rewards, at most `regret` B_t above the true model's squared loss, have Q_t <= B_t + 2
    sum_s noise_s (forecast_s - r_s). By Ville's inequality with a parameter fixed beforehand, l sigma^2 = 1/2, that
    sum stays below log(1/delta) / l + Q_t / 4, whence Q_t <= 2 B_t + 8 sigma^2 log(1/delta).
    """
    return 2.0 * regret + 8.0 * noise_std**2 * log(1.0 / delta)


class O2CSEW(Certified):
    """OFUL on all distinct features, whose confidence set is as small as the best forecaster is good.

    An aggregate of the M models forecasts every reward before it is told. With all rewards below
    Y_t = reward_bound + noise_std sqrt(2 log(4 t (t + 1) / delta)), its regret against the true model is at most

        B_t = 8 Y_t^2 log M + Y_t^2 max_j log det(V_j / ridge^2) + noise_std^2,

    and its squared distance to the true rewards at most D_t = 2 B_t + 8 noise_std^2 log(2/delta), at all times with
    probability 1 - delta: one half of delta is for a reward beyond Y_t, the other for the distance. Regressing on the
    forecasts gives the set; the action with the largest value in it is played. Models with an intercept are outside
    of this theory. Needs `noise_std`, `reward_bound` and, for the ridge, `norm_bound`.

    Parameters
    ----------
    delta : share of the runs in which the set may miss the truth.
    scale : multiplies the width. 1 is the theory, which explores for thousands of rounds; with 0.02 to 0.1 it becomes a
        method, and nothing is proved any more.

    The forecasts depend on the order of tells.
    """

    name: ClassVar[str] = "o2cs-ew"
    needs_columns: ClassVar[str] = "it plays a regression on all columns together"
    settings: ClassVar[tuple[str, ...]] = ("delta", "scale")
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        delta: float = 0.1,
        scale: float = 1.0,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.delta, self.scale = fraction("delta", delta), positive("scale", scale)
        self.ridge = self.noise_std / self.norm_bound
        self._forecaster = AggregatingForecaster(linear_posteriors(models, self.ridge), models.n_columns)
        self._set = linear_posteriors(models.pooled(self._distinct_columns()), self.ridge)

    def _decide(self, round_: Round) -> Decision:
        fits = self._set.with_fantasies(round_.pending.rows) if round_.pending else self._set
        return Decision(Certain(int(fits.argmax_ucb(round_.choices, self.width())[0])))

    def _bound(self) -> float:
        """Y_t, which all rewards up to the next one stay below with probability 1 - delta / 2."""
        t = self.n_told + 1
        return self.reward_bound + self.noise_std * sqrt(2.0 * log(4.0 * t * (t + 1) / self.delta))

    def width(self) -> float:
        """Radius of the confidence set for the coefficients, times `scale`."""
        spread = log(self.models.n_models) * 8.0 + float(self._forecaster.fits.log_determinants().max())
        regret = self._bound() ** 2 * spread + self.noise_std**2
        distance = squared_distance(regret, self.noise_std, self.delta / 2.0)
        norm = self.ridge * self.reward_bound / float(self.models.scales.min())
        return self.scale * sqrt(max(distance + norm**2 - float(self._set.residuals()[0]), 0.0))

    def _learn(self, seen: Observation) -> None:
        forecast = self._forecaster.absorb(seen.row, seen.reward, self._bound())
        self._forecaster.fits.update(seen.row, seen.reward)
        self._set.update(seen.row, forecast)

    @property
    def probabilities(self) -> FloatArray:
        """Weights of the models in the aggregate, shape (M,)."""
        return self._forecaster.weights(self._bound())

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        estimates = self._forecaster.estimate(round_.choices.table, self._bound())
        position = first_best(estimates)
        return position, float(estimates[position]), first_best(self.probabilities)

    def _state(self) -> State:
        fits = self._forecaster.fits.state()
        return {"bank": fits, "forecaster": self._forecaster.state(), "set": self._set.state()}

    def _restore(self, state: State) -> None:
        known = record("state", state, {"bank": anything, "forecaster": anything, "set": anything})
        self._forecaster.fits.restore(known["bank"])
        self._forecaster.restore(known["forecaster"])
        self._set.restore(known["set"])
        for n_seen in (self._forecaster.fits.n_observations, self._set.n_observations):
            same("n_observations of forecasters and set", n_seen, self.n_told, "the number of rewards")
