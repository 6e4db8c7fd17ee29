"""Sparse exponential weights: the posterior mean of SeqSEW (Gerchinovitz 2013), by Gibbs sampling.

The prior of a coefficient, (3/(2 tau)) (1 + |u|/tau)^-4, is a double exponential whose rate is Gamma(3, tau), and that
a Gaussian whose variance is exponential: given rates and variances the weights exp(-eta ||y - X u||^2) make u Gaussian,
and given u all of them are independent and known. Sweeps through the three have the posterior as their limit; how far
the mean of finitely many is from it is not known, and whoever uses it must not rely on that.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.schema import SQUARE, floats, record

_NEAR = 1e-9  # of tau, below which coefficients count as being this large
_WIDEST = 1e-9  # least precision of a coefficient before any reward


class SparseWeights:
    """Coefficients of P columns under sparse exponential weights.

    Parameters
    ----------
    sweeps : of the sampler after every reward; the first third is left out of the mean.

    Attributes
    ----------
    mean : (P,) the mean of the coefficients, given all rewards so far.
    """

    def __init__(self, n_columns: int, sweeps: int) -> None:
        self.sweeps = sweeps
        self._gram, self._cross = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
        self._draw, self.mean = np.zeros(n_columns), np.zeros(n_columns)

    def learn(self, row: FloatArray, y: float, eta: float, tau: float, rng: np.random.Generator) -> None:
        """Take in a reward of a row (P,), and find the mean anew, beginning where the last sweep ended."""
        self._gram = self._gram + np.outer(row, row)
        self._cross = self._cross + row * y
        self._draw, self.mean = self.swept(self._draw, eta, tau, rng)

    def swept(
        self, draw: FloatArray, eta: float, tau: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Where the sweeps that begin at `draw` (P,) end, and the mean of their conditional means, (P,)."""
        from scipy.linalg import LinAlgError, cholesky, solve_triangular  # slow to import, needed here only

        p, begin, first = draw.size, self.sweeps // 3, draw
        total, right = np.zeros(p), 2.0 * eta * self._cross
        for k in range(self.sweeps):
            size = np.maximum(np.abs(draw), _NEAR * tau)
            rate = rng.gamma(4.0, 1.0, p) / (tau + size)
            precision = np.fmax(np.fmin(rng.wald(rate / size, rate**2), 1.0 / (_NEAR * tau) ** 2), _WIDEST)
            try:
                factor = cholesky(2.0 * eta * self._gram + np.diag(precision), check_finite=False)
            except LinAlgError:  # features of sizes that no arithmetic takes together: it learns nothing here
                return first, self.mean
            half = solve_triangular(factor, right, trans="T", check_finite=False)
            both = np.column_stack([half, half + rng.standard_normal(p)])
            solved = solve_triangular(factor, both, check_finite=False)
            mean, draw = solved[:, 0], solved[:, 1]
            if k >= begin:
                total += mean
        found = total / (self.sweeps - begin)
        return (draw, found) if np.all(np.isfinite(draw) & np.isfinite(found)) else (first, self.mean)

    def state(self) -> State:
        """What rewards have changed."""
        return {"gram": self._gram, "cross": self._cross, "draw": self._draw, "mean": self.mean}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        p = self.mean.size
        vectors = {name: floats(p, low=-SQUARE, high=SQUARE) for name in ("cross", "draw", "mean")}
        known = record("weights", state, vectors | {"gram": floats(p, p, low=-SQUARE, high=SQUARE)})
        self._gram, self._cross, self._draw, self.mean = (known[name] for name in ("gram", "cross", "draw", "mean"))
