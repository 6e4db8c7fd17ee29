"""An alarm that is valid at every moment: the rewards against everything that was stated at once.

Universal inference. The null of model j: y = phi_j(x)'theta + noise with ||theta|| <= S_j and noise of sub-Gaussian
parameter sigma. With L_j(t) the largest Gaussian likelihood under it and A_t any predictable density of the same
rewards, E_j(t) = A_t / L_j(t) is at most A_t over the likelihood of the truth, a non-negative supermartingale that
starts at one. If the null of model j is true, E_j ever exceeds 1/delta with probability at most delta (Ville). So

* what was stated is contradicted once every E_j has exceeded 1/delta at some time: the true model's has then, too;
* model j alone is rejected once E_j has exceeded M/delta.

The constrained likelihood need not be computed: with F_j(ridge) = min RSS + ridge^2 ||theta||^2,

    min over ||theta|| <= S_j of RSS >= F_j(ridge) - ridge^2 S_j^2        for any ridge,

and the largest of these over all ridges is the minimum itself. ridge_j = sigma / S_j costs at most half a nat where the
bound does not matter; a few larger ones find out where it is broken. With an intercept the constant is free, and the
first reward is conditioned on: both terms speak of the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.checking.alternative import Alternative
from alexp.estimation.checking.ledger import Following, Rewards
from alexp.estimation.factory import posteriors
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference

_EVERY_TIME = 1000  # up to here all times are looked at, later ones in a geometric sequence
_RATIO = 1.02
_LAST_MADE = 64  # rewards after which the units of the alternative stay
_RIDGES = (1.0, 5.0, 25.0)  # multiples of sigma / S_j
_MOST_RIDGES = 100_000  # models beyond which the first has to do
_NOISES, _BOUNDS = (2.0, 4.0, 10.0), (10.0, 100.0)  # multiples of what was stated that might explain a contradiction


class Null:
    """The largest likelihoods of the rewards under each model, with noise and bounds as stated."""

    def __init__(self, models: ModelClass, noise_std: float, norms: FloatArray) -> None:
        self._ridges = _RIDGES if models.n_models <= _MOST_RIDGES else _RIDGES[:1]
        self._fits = [posteriors(models, ridge * noise_std / norms) for ridge in self._ridges]
        self.noise_std = noise_std
        self.largest = np.full(models.n_models, -np.inf)  # max over times of log E_j

    def update(self, row: FloatArray, y: float) -> None:
        """Absorb a reward of an action with features (P,)."""
        for fits in self._fits:
            fits.update(row, y)

    def residuals(self) -> FloatArray:
        """Lower bounds on the residual sums of squares in units of 2 sigma^2, over all theta with ||theta|| <= S_j."""
        parts = [
            fits.residuals() / (2.0 * self.noise_std**2) - 0.5 * ridge**2
            for fits, ridge in zip(self._fits, self._ridges, strict=True)
        ]
        return np.asarray(np.max(parts, axis=0))

    def compare(self, log_density: float) -> float:
        """Hold a density of the rewards so far against the null; smallest of the largest log E_j."""
        n = self._fits[0].n_observations
        with np.errstate(over="ignore", invalid="ignore"):
            now = log_density + 0.5 * n * np.log(2.0 * np.pi * self.noise_std**2) + self.residuals()
        # Not a number: residuals beyond 1e150 times the noise, in both terms.
        self.largest = np.maximum(self.largest, np.where(np.isnan(now), np.inf, now))
        return float(self.largest.min())


class Monitor(Following):
    """The e-processes of all models, caught up with the rewards when asked.

    Parameters
    ----------
    models : M models.
    columns : (P, N) the dictionary on all candidates, or on typical ones; None where they are not known: the rows
        so far then stand in for them, anew after 1, 2, 4, ..., 64 rewards.
    noise_std : sigma as stated.
    norms : (M,) bounds S_j on the norms of the coefficients.
    size : gives a typical size of rewards' differences, for the alternative, from the rows so far if it is given any.
    """

    def __init__(
        self,
        models: ModelClass,
        columns: FloatArray | None,
        noise_std: float,
        norms: FloatArray,
        size: Callable[[Reference | None], float],
    ) -> None:
        self._models, self._columns, self._norms = models, columns, norms
        self._noise_std, self._size = noise_std, size
        super().__init__()

    def restart(self) -> None:
        """Forget all rewards."""
        self._skipped = int(self._models.intercept)
        self._null = Null(self._models, self._noise_std, self._norms)
        self._rival: Alternative | None = None
        self._early: list[tuple[FloatArray, int, float]] = []  # what an alternative that is made anew is to learn
        if self._columns is not None:
            self._rival = self._alternative(self._columns, None)
        self._origin = 0.0
        self._history: list[tuple[int, float]] = []  # times looked at, log of A_t
        self._smallest: list[float] = []  # min_j max_s<=t log E_j(s) at these times
        self._next = 1

    def _see(self, t: int, index: int, y: float, row: FloatArray) -> None:
        counted = t > self._skipped
        if t == 1 and self._skipped:
            self._origin = y  # rewards are taken relative to it: predictable from the second on
        log_density = self._against(t, row, index).absorb(row, index, y - self._origin, counted)
        if self._columns is None and t < _LAST_MADE:
            self._early.append((row, index, y - self._origin))
        if counted:
            self._null.update(row, y)
        if t < self._next:
            return
        self._next = t + 1 if t < _EVERY_TIME else int(np.ceil(_RATIO * t))
        if counted:
            self._history.append((t, log_density))
            self._smallest.append(self._null.compare(log_density))

    def _alternative(self, columns: FloatArray, known: Reference | None) -> Alternative:
        return Alternative(columns, self._size(known), self._noise_std, self._models.intercept)

    def _against(self, t: int, row: FloatArray, index: int) -> Alternative:
        """What predicts reward t; it may know the features of action t, but no rewards that are to come.

        Where candidates are not known, units come from the rows so far: an alternative in new units has learned all
        earlier rewards, and its predictions go on where those of the one before ended. Each is made before its reward
        is seen, so that they remain the density of the whole sequence.
        """
        if self._rival is not None and (self._columns is not None or t > _LAST_MADE or t & (t - 1)):
            return self._rival
        rows = np.array([*(seen for seen, _, _ in self._early), row])
        rival = self._alternative(rows.T, Reference(rows))
        for seen, number, value in self._early:
            rival.absorb(seen, number, value, counted=False)
        if self._rival is not None:
            rival.follow(self._rival)
        self._rival = rival
        return rival

    def contradicted_at(self, delta: float) -> int | None:
        """Number of rewards after which what was stated was first contradicted at level delta; None if it is not."""
        passed = np.flatnonzero(np.array(self._smallest) > np.log(1.0 / delta))
        return self._history[int(passed[0])][0] if passed.size else None

    @property
    def log_e_value(self) -> float:
        """Log of the smallest of the models' largest e-values; zero before there is anything to compare."""
        return self._smallest[-1] if self._smallest else 0.0

    def rejected(self, delta: float) -> IntArray:
        """Positions of the models that are rejected each by itself."""
        return np.flatnonzero(self._null.largest > np.log(self._models.n_models / delta))

    def speaks_against(self, delta: float, told: Rewards) -> tuple[str, ...]:
        """What would have to be otherwise for the rewards, already caught up with, not to be contradicted.

        "noise" if noise 2 to 10 times as large would do, "bound" if bounds 10 or 100 times as large would, and
        "models" if neither does.
        """
        found = []
        if any(self._survives(delta, told, factor, 1.0) for factor in _NOISES):
            found.append("noise")
        if any(self._survives(delta, told, 1.0, factor) for factor in _BOUNDS):
            found.append("bound")
        return tuple(found) or ("models",)

    def _survives(self, delta: float, told: Rewards, noise: float, bound: float) -> bool:
        """Whether the null with other numbers is not rejected by the same rewards."""
        null, times = Null(self._models, noise * self._noise_std, bound * self._norms), dict(self._history)
        for t, (y, row) in enumerate(zip(told.rewards.tolist(), told.rows, strict=True), 1):
            if t > self._skipped:
                null.update(row, y)
                if t in times and null.compare(times[t]) > np.log(1.0 / delta):
                    return False
        return True
