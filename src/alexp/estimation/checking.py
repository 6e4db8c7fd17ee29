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

The alternative A_t needs no model to be true: a mixture of Gaussian processes. Component c says that rewards have
covariance

    scale_c^2 (k(x, z) + 1) + effect_c^2 [x = z] + (factor_c sigma)^2 [same reward],

k(x, z) the linear kernel on all columns, each with mean square one: everything that any model could say and more,
a constant, what belongs to a candidate alone (`effect`), and noise larger than stated (`factor` above one). The
density of reward t given those before is computed before it is seen, so that the products over t, and their average
over components, are densities of the whole sequence, however actions were chosen.

Two things make the ratio to a null likelihood safe. It stays a density whatever rounding does to means and variances.
And every one-step density is a mixture of normal densities of variance (sigma)^2, since its variance is at least that:
so the ratio is an e-process not only for normal noise, but for any conditionally sigma-sub-Gaussian noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import product
from math import ceil

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.estimation._shape_kernels import extend_factors, foresee
from alexp.estimation.factory import posteriors
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference

SCALES, FACTORS, EFFECTS = (1.0, 4.0), (1.0, 2.0, 4.0), (0.0, 0.5, 1.0, 2.0)
_SMALLEST = 1e-5  # noise of a component, as a multiple of the size of rewards
MOST_TRAINED = 256  # rewards the processes learn from; later ones are predicted and count, but teach nothing
_EVERY_TIME = 1000  # up to here all times are looked at, later ones in a geometric sequence
_RATIO = 1.02
_LAST_MADE = 64  # rewards after which the units of the alternative stay
_RIDGES = (1.0, 5.0, 25.0)  # multiples of sigma / S_j
_MOST_RIDGES = 100_000  # models beyond which the first has to do
_NOISES, _BOUNDS = (2.0, 4.0, 10.0), (10.0, 100.0)  # multiples of what was stated that might explain a contradiction


def next_look(t: int, every: int, ratio: float) -> int:
    """The number of rewards at which models are looked at after t: every one up to `every`, then `ratio` apart."""
    return t + 1 if t < every else ceil(ratio * t)


class Rewards:
    """Rewards in the order of tells: candidates (t,), rewards (t,) and features (t, P).

    Negative numbers stand for candidates that were there once, each for another one.
    """

    def __init__(self, indices: IntArray, rewards: FloatArray, rows: FloatArray) -> None:
        self.indices, self.rewards, self.rows = indices, rewards, rows

    def __len__(self) -> int:
        return int(self.indices.size)

    def only(self, kept: BoolArray | slice) -> Rewards:
        """Some of them."""
        return Rewards(self.indices[kept], self.rewards[kept], self.rows[kept])

    def followed_by(self, others: Rewards) -> Rewards:
        """These, and then the others."""
        parts = [(self.indices, others.indices), (self.rewards, others.rewards), (self.rows, others.rows)]
        return Rewards(*(np.concatenate(pair) for pair in parts))

    def begin_with(self, others: Rewards) -> bool:
        """Whether the first of them are the others."""
        k = len(others)
        same = self.indices[:k].tobytes() == others.indices.tobytes()
        return same and self.rewards[:k].tobytes() == others.rewards.tobytes()


class Following(ABC):
    """Follows the rewards, one after the other; begins again when the past has been corrected."""

    def __init__(self) -> None:
        self._told, self._n_seen = Rewards(np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 0))), 0
        self.restart()

    @abstractmethod
    def restart(self) -> None:
        """Forget all rewards."""

    @abstractmethod
    def _see(self, t: int, index: int, y: float, row: FloatArray) -> None:
        """Take in reward number t, counted from 1."""

    def catch_up(self, told: Rewards) -> None:
        """Take in what was told since the last time."""
        if told is self._told and self._n_seen == len(told):
            return
        if not told.begin_with(self._told.only(slice(self._n_seen))):
            self.restart()
            self._n_seen = 0
        self._told = told
        for t in range(self._n_seen, len(told)):
            self._n_seen = t + 1
            self._see(t + 1, int(told.indices[t]), float(told.rewards[t]), told.rows[t])


class Ledger(Following):
    """Ridge fits of all models with ridge_j = noise_std / S_j, the natural one for coefficients of norm S_j (M,)."""

    def __init__(self, models: ModelClass, noise_std: float, norms: FloatArray) -> None:
        self._models, self.ridge = models, np.asarray(noise_std / norms)
        super().__init__()

    def restart(self) -> None:
        """Forget all rewards."""
        self.fits = posteriors(self._models, self.ridge)

    def _see(self, t: int, index: int, y: float, row: FloatArray) -> None:
        self.fits.update(row, y)


class Alternative:
    """Log density of a growing sequence of rewards under the mixture, in O(t^2) for each reward.

    Parameters
    ----------
    columns : (P, N) the dictionary on the candidates, feature-major.
    size : a typical size of rewards' differences; scales and effects are multiples of it.
    noise_std : sigma.
    centred : whether columns are centred, as they are where every model has a constant.
    """

    def __init__(self, columns: FloatArray, size: float, noise_std: float, centred: bool) -> None:
        grid = np.array(list(product(SCALES, FACTORS, EFFECTS)))
        # Never so small beside the signal that rounding would be taken for knowledge; larger is always safe.
        noise = np.maximum(grid[:, 1] * noise_std, _SMALLEST * size) ** 2
        self._begin(columns, centred, (grid[:, 0] * size) ** 2, noise, (grid[:, 2] * size) ** 2)
        self._evidence = np.full(len(grid), -np.log(len(grid)))

    def _begin(
        self, columns: FloatArray, centred: bool, signal: FloatArray, noise: FloatArray, effect: FloatArray
    ) -> None:
        """Nothing learned yet; variances (C,) of the components."""
        self._signal, self._noise, self._effect = signal, noise, effect
        self._centre = columns.mean(axis=1) if centred else np.zeros(len(columns))
        squares = np.einsum("pn,pn->p", columns, columns) / columns.shape[1] - self._centre**2
        alive = squares > 1e-12 * max(float(squares.max(initial=0.0)), 1e-300)
        self._weights = np.where(alive, 1.0 / np.where(alive, squares, 1.0), 0.0) / max(int(alive.sum()), 1)
        c, room = len(signal), MOST_TRAINED  # memory that is not written to costs nothing
        self._rows = np.empty((room, len(columns)))  # features of the rewards learned from
        self._indices: IntArray = np.empty(room, dtype=np.int64)
        self._factors = np.empty((c, room * (room + 1) // 2))  # Cholesky factors of the covariances, row by row
        self._values = np.empty((c, room))  # their inverses times the rewards: independent standard normals, supposedly
        self._frozen: dict[int, tuple[FloatArray, FloatArray]] = {}  # predictions once nothing is learned any more
        self.n_trained = 0
        self.log_density = 0.0

    def absorb(
        self, rows: FloatArray, indices: int | IntArray, rewards: float | FloatArray, counted: bool = True
    ) -> float:
        """Take in one reward, or k at once, of candidates with features (k, P); log density of all counted rewards."""
        x, which, y = np.atleast_2d(rows) - self._centre, np.atleast_1d(indices), np.atleast_1d(rewards)
        learned = min(MOST_TRAINED - self.n_trained, which.size)
        if learned:
            self._learn(x[:learned], which[:learned], y[:learned], counted)
        for own, index, reward in zip(x[learned:], which[learned:].tolist(), y[learned:], strict=True):
            mean, variance = self._foreseen(own, index)
            if counted:
                self._count(1, np.square(reward - mean) / variance, np.log(variance))
        return self.log_density

    def _count(self, k: int, squares: FloatArray, log_volumes: FloatArray) -> None:
        """k rewards came with these squared errors, in units of their covariance, and log determinants of it, (C,)."""
        self._evidence -= 0.5 * (k * np.log(2.0 * np.pi) + log_volumes + squares)
        self.log_density = float(np.logaddexp.reduce(self._evidence))

    def _similarities(self, rows: FloatArray, x: FloatArray) -> FloatArray:
        """k(z, x) + 1 of rows (t, P) and (k, P): (t, k), or (C, t, k) where components differ in it."""
        return np.asarray(rows @ (self._weights * x).T + 1.0)

    def follow(self, before: Alternative) -> None:
        """Go on counting where another one, in other units, has ended."""
        self._evidence, self.log_density = before._evidence, before.log_density

    def _covariance(self, rows: FloatArray, own: IntArray, x: FloatArray, indices: IntArray) -> FloatArray:
        """Of the rewards of two lists of actions, noise aside, (C, t, k)."""
        signal, effect = self._signal[:, None, None], self._effect[:, None, None]
        return np.asarray(signal * self._similarities(rows, x) + effect * (own[:, None] == indices))

    def _foreseen(self, x: FloatArray, index: int) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of a reward (C,) from all that was learned; nothing is learned any more."""
        if index in self._frozen:
            return self._frozen[index]
        t, row, own = self.n_trained, x[None], np.array([index])
        cross = self._covariance(row, own, self._rows[:t], self._indices[:t])
        prior = self._covariance(row, own, row, own)[:, 0, 0]
        mean, variance = np.empty_like(prior), np.empty_like(prior)
        foresee(np.ascontiguousarray(cross[:, 0]), prior, self._noise, self._factors, self._values, mean, variance)
        if index >= 0:  # others never come again
            self._frozen[index] = mean, variance
        return mean, variance

    def _learn(self, x: FloatArray, indices: IntArray, y: FloatArray, counted: bool) -> None:
        t, k = self.n_trained, indices.size
        self.n_trained, new = t + k, slice(t, t + k)
        self._rows[new], self._indices[new] = x, indices
        known = slice(self.n_trained)
        covariance = np.ascontiguousarray(self._covariance(x, indices, self._rows[known], self._indices[known]))
        squares, log_volumes = np.zeros((2, len(self._signal)))
        extend_factors(covariance, self._noise, y, self._factors, self._values, squares, log_volumes)
        if counted:
            self._count(k, squares, log_volumes)


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
        self._next = next_look(t, _EVERY_TIME, _RATIO)
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
