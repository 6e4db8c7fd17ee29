"""The rival of all models: a predictable density of the rewards that needs none of them to be true.

A mixture of Gaussian processes. Component c says that rewards have covariance

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

from itertools import product

import numpy as np

from alexp.common.arrays import FloatArray, IntArray

SCALES, FACTORS, EFFECTS = (1.0, 4.0), (1.0, 2.0, 4.0), (0.0, 0.5, 1.0, 2.0)
_SMALLEST = 1e-5  # noise of a component, as a multiple of the size of rewards
MOST_TRAINED = 256  # rewards the processes learn from; later ones are predicted and count, but teach nothing


class Alternative:
    """Log density of a growing sequence of rewards under the mixture, one reward at a time in O(t^2).

    Parameters
    ----------
    columns : (P, N) the dictionary on the candidates, feature-major.
    size : a typical size of rewards' differences; scales and effects are multiples of it.
    noise_std : sigma.
    centred : whether columns are centred, as they are where every model has a constant.
    """

    def __init__(self, columns: FloatArray, size: float, noise_std: float, centred: bool) -> None:
        grid = np.array(list(product(SCALES, FACTORS, EFFECTS)))
        self._signal = (grid[:, 0] * size) ** 2
        # Never so small beside the signal that rounding would be taken for knowledge; larger is always safe.
        self._noise = np.maximum(grid[:, 1] * noise_std, _SMALLEST * size) ** 2
        self._effect = (grid[:, 2] * size) ** 2
        self._centre = columns.mean(axis=1) if centred else np.zeros(len(columns))
        squares = np.einsum("pn,pn->p", columns, columns) / columns.shape[1] - self._centre**2
        alive = squares > 1e-12 * max(float(squares.max(initial=0.0)), 1e-300)
        self._weights = np.where(alive, 1.0 / np.where(alive, squares, 1.0), 0.0) / max(int(alive.sum()), 1)
        c, room = len(grid), 16
        self._rows = np.empty((room, len(columns)))  # features of the rewards learned from
        self._indices: IntArray = np.empty(room, dtype=np.int64)
        self._white = np.zeros((c, room, room))  # inverse Cholesky factors of the covariances
        self._values = np.zeros((c, room))  # what they make of the rewards: independent standard normals, supposedly
        self._frozen: dict[int, tuple[FloatArray, FloatArray]] = {}  # predictions once nothing is learned any more
        self.n_trained = 0
        self._evidence = np.full(c, -np.log(c))
        self.log_density = 0.0

    def absorb(self, row: FloatArray, index: int, y: float, counted: bool = True) -> float:
        """Take in a reward of candidate `index` with features (P,); log density of all counted rewards."""
        x = row - self._centre
        mean, variance, solved = self._predict(x, index)
        if counted:
            with np.errstate(over="ignore"):
                self._evidence -= 0.5 * (np.log(2.0 * np.pi * variance) + (y - mean) ** 2 / variance)
            self.log_density = float(np.logaddexp.reduce(self._evidence))
        if solved is not None:
            self._learn(x, index, (y - mean) / np.sqrt(variance), variance, solved)
        return self.log_density

    def follow(self, before: Alternative) -> None:
        """Go on counting where another one, in other units, has ended."""
        self._evidence, self.log_density = before._evidence, before.log_density

    def _predict(self, x: FloatArray, index: int) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Means and variances of the next reward (C,), and the whitened covariances (C, t) if it can be learned."""
        t = self.n_trained
        if index in self._frozen:
            return *self._frozen[index], None
        kernel = self._rows[:t] @ (self._weights * x) + 1.0
        same = self._indices[:t] == index
        cross = self._signal[:, None] * kernel + self._effect[:, None] * same
        solved = np.matmul(self._white[:, :t, :t], cross[:, :, None])[:, :, 0]
        prior = self._signal * (float(x @ (self._weights * x)) + 1.0) + self._effect
        variance = np.maximum(prior - np.square(solved).sum(axis=1), 0.0) + self._noise
        mean = np.einsum("ct,ct->c", solved, self._values[:, :t])
        if t < MOST_TRAINED:
            return mean, variance, solved
        if index >= 0:  # others never come again
            self._frozen[index] = mean, variance
        return mean, variance, None

    def _learn(self, x: FloatArray, index: int, value: FloatArray, variance: FloatArray, solved: FloatArray) -> None:
        t = self.n_trained
        if t == len(self._rows):
            self._grow()
        self._rows[t], self._indices[t], self._values[:, t] = x, index, value
        root = np.sqrt(variance)[:, None]
        before = np.matmul(solved[:, None, :], self._white[:, :t, :t])[:, 0]
        self._white[:, t, :t], self._white[:, t, t] = -before / root, 1.0 / root[:, 0]
        self.n_trained = t + 1

    def _grow(self) -> None:
        t = len(self._rows)
        room = min(2 * t, MOST_TRAINED)
        self._rows = np.concatenate([self._rows, np.empty((room - t, self._rows.shape[1]))])
        self._indices = np.concatenate([self._indices, np.empty(room - t, dtype=np.int64)])
        self._values = np.pad(self._values, ((0, 0), (0, room - t)))
        self._white = np.pad(self._white, ((0, 0), (0, room - t), (0, room - t)))
