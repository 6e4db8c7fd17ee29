"""FS-SCB: SquareCB on an aggregate of all models' forecasts (after Moradipari et al. 2022)."""

from __future__ import annotations

from typing import ClassVar, Unpack

from alexp.extend import (
    Domain,
    FloatArray,
    ModelClass,
    Observation,
    Round,
    State,
    anything,
    first_best,
    linear_posteriors,
    record,
    same,
)
from alexp.rivals.o2cs import AggregatingForecaster
from alexp.rivals.squarecb import SquareCB, SquareCBSettings


class FSSCB(SquareCB):
    """Feature selection by exponential weights on squared forecasting losses, actions by inverse gap weighting.

    Weights are proportional to exp(-L_j / (8 Y^2)), Y = reward_bound + 3 noise_std and L_j the cumulative squared loss
    of model j's clipped forecasts. The losses depend on the order of tells; a reward is forecast when it is told.

    Needs `noise_std` and `reward_bound` (Y, gamma_t) and `norm_bound` (the forecasters' ridge, the agents' widths).
    """

    name: ClassVar[str] = "fs-scb"
    weights_mean: ClassVar[str] = "aggregate"
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})

    def __init__(self, models: ModelClass, domain: Domain, **settings: Unpack[SquareCBSettings]) -> None:
        super().__init__(models, domain, **settings)
        fits = linear_posteriors(models, self.noise_std / self.norm_bound)
        self._forecaster = AggregatingForecaster(fits, models.n_columns)
        self._bound = self.reward_bound + 3.0 * self.noise_std

    def _estimate(self, table: FloatArray) -> FloatArray:
        return self._forecaster.estimate(table, self._bound)

    def _learn(self, seen: Observation) -> None:
        self._forecaster.absorb(seen.row, seen.reward, self._bound)
        self._forecaster.fits.update(seen.row, seen.reward)
        self._pool.update(seen.row, seen.reward)

    @property
    def probabilities(self) -> FloatArray:
        """Weights of the models in the aggregate, shape (M,)."""
        return self._forecaster.weights(self._bound)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        position, value, _ = super()._recommend(round_)
        return position, value, first_best(self.probabilities)

    def _state(self) -> State:
        fits = {"bank": self._forecaster.fits.state(), "forecaster": self._forecaster.state()}
        return super()._state() | fits

    def _restore(self, state: State) -> None:
        super()._restore(state)
        known = record("state", state, {"bank": anything, "forecaster": anything})
        self._forecaster.fits.restore(known["bank"])
        self._forecaster.restore(known["forecaster"])
        n_seen = self._forecaster.fits.n_observations
        same("n_observations of the forecasters", n_seen, self.n_told, "the number of rewards")
