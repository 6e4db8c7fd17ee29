"""Ridge posteriors that may sleep: rows they miss are kept, and absorbed one after the other when they wake.

Penalised residuals and log determinants never fall as observations come in, so what a sleeping model has of them are
lower bounds, and its evidence is an upper bound: whoever is negligible by it needs no update at all. Waking repeats
the very operations that were left out, so that nothing but time depends on who slept when.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.ridge import _kernels as kernels
from alexp.estimation.ridge._sleeping_kernels import absorb_members, member_determinants, member_means
from alexp.estimation.ridge.bank import RidgeBank
from alexp.estimation.ridge.factors import FactorState


class SleepingBank(RidgeBank):
    """A `RidgeBank` that updates only its awake models.

    ``coefficients`` are meaningful for awake models only; ``residuals`` and ``log_determinants`` of the others are
    lower bounds. ``wake_all`` makes it an ordinary bank again, and so does asking for its state.
    """

    def __init__(self, columns: IntArray, offsets: IntArray, ridge: FloatArray, intercept: bool = False) -> None:
        super().__init__(columns, offsets, ridge, intercept)
        self.is_awake = np.ones(self.n_models, dtype=bool)
        self.awake: IntArray = np.arange(self.n_models)
        self._since = np.zeros(self.n_models, dtype=np.int64)  # how many rows a sleeping model has seen
        self._rows = np.empty((0, self._n_columns))
        self._rewards = np.empty(0)

    @property
    def all_awake(self) -> bool:
        """Whether nobody sleeps."""
        return self.awake.size == self.n_models

    def update(self, row: npt.ArrayLike, y: float) -> None:
        """Absorb one observation into the awake models and keep it for the others."""
        if self.all_awake:
            super().update(row, y)
            return
        features = np.ascontiguousarray(row, dtype=np.float64)[: self._n_columns]
        if not (math.isfinite(float(y)) and kernels.all_finite(features)):
            raise ValueError("row and y must be finite")
        self._keep(features, float(y))
        self._absorb(self.awake, np.full(self.awake.size, self.n_observations))
        self.n_observations += 1

    def _keep(self, features: FloatArray, y: float) -> None:
        """Rows are numbered like observations; those before the first sleep are not needed and left empty."""
        needed = self.n_observations + 1
        if needed > self._rewards.size:
            rows, rewards = self._rows, self._rewards
            self._rows = np.empty((2 * needed, self._n_columns))
            self._rewards = np.empty(2 * needed)
            self._rows[: len(rows)], self._rewards[: rewards.size] = rows, rewards
        self._rows[needed - 1], self._rewards[needed - 1] = features, y

    def _absorb(self, members: IntArray, seen: IntArray) -> None:
        """Bring members up to and including the row kept last, each from the row after those it has seen."""
        layout = (self._factor, self._starts, self._columns, self._offsets, self._lead)
        last = self.n_observations + 1
        absorb_members(*layout, self._rows, self._rewards, members, seen, last)

    def sleep(self, members: IntArray) -> None:
        """Leave these awake models out of updates from now on."""
        self._since[members] = self.n_observations
        self._mark(members, False)

    def wake(self, members: IntArray) -> None:
        """Absorb what these sleeping models have missed."""
        layout = (self._factor, self._starts, self._columns, self._offsets, self._lead)
        absorb_members(*layout, self._rows, self._rewards, members, self._since[members], self.n_observations)
        self._mark(members, True)

    def wake_all(self) -> None:
        """Wake every model."""
        self.wake(np.flatnonzero(~self.is_awake))

    def _mark(self, members: IntArray, awake: bool) -> None:
        if members.size:
            self.is_awake[members] = awake
            self.awake = np.flatnonzero(self.is_awake)

    def member_determinants(self, members: IntArray) -> FloatArray:
        """log det(V_j / ridge_j^2) of some models, as far as they have seen, shape (K,)."""
        out = np.empty(members.size)
        member_determinants(self._factor, self._starts, self._offsets, self._lead, self._ridge, members, out)
        return out

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Posterior means as in `RidgeBank`, of the awake models only; zeros for the others."""
        if self.all_awake:
            return super().coefficients()
        theta, constants = np.zeros(len(self._columns)), np.zeros(self.n_models)
        member_means(self._factor, self._starts, self._offsets, self._lead, self.awake, theta, constants)
        return theta, constants

    def state(self) -> FactorState:
        """The state of an ordinary bank; wakes every model."""
        self.wake_all()
        return super().state()

    def restore(self, state: FactorState) -> None:
        """Take over the state of a bank with the same groups."""
        super().restore(state)
        self._mark(np.arange(self.n_models), True)
