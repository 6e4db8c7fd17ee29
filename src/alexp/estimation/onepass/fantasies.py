"""Variances of a family while trials are pending: at all candidates, or at a few of them.

A pending trial p takes C(x, p)^2 / (C(p, p) + r) off the variance at x, with C the posterior covariance beside the
trials before it and r the noise. `FamilyFantasies` does that at all candidates, one trial after the other.

`FewVariances` is for the candidates that most of a plate looks at. With C the covariance without pending trials, let
C(p, p') + r I = L L' and z(x) = L^-1 C(p, x): the variance at x is C(x, x) - z(x)'z(x). One more pending trial is one
more row of L.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.onepass._kernels import take_off_fantasies
from alexp.estimation.onepass.backends import ArrayBackend, Pass
from alexp.estimation.onepass.regressions import KernelRegression, PointTold
from alexp.estimation.ridge.bank import CondensedTrials
from alexp.problem.candidates import PendingBlock
from alexp.problem.matrices import Block


class FamilyFantasies:
    """The variances of a family once rewards of pending trials are in; means stay as they are.

    `regression` and `over` are copies of its own, which grow by one point for each pending trial.
    """

    def __init__(
        self, regression: KernelRegression, over: Pass, block: Block, variance: FloatArray, backend: ArrayBackend
    ) -> None:
        self.regression, self.over, self._block, self.variance = regression, over, block, variance
        self._backend, self._is_own = backend, False  # whether the variances are

    def absorb_blocks(self, condensed: CondensedTrials, blocks: tuple[PendingBlock, ...]) -> bool:
        """Take in that many rewards will come, if they can be condensed, before all others; whether they were."""
        if not self.regression.fantasise_blocks(condensed, blocks):
            return False
        self.variance = self._backend.made(self.regression, self.over, self._block)[1, :, :]
        self._is_own = True
        return True

    def absorb(self, at: PointTold) -> None:
        """Take in that a reward of a point will come."""
        regression, over = self.regression, self.over
        probe, number = regression.probe(at), regression.points.find(at.row)
        is_new, is_first = number == regression.points.n, regression.points.n == 0 and regression.intercept
        # What a first reward takes from the constant's variance cannot be said, because that is infinite.
        covariances = over.covariances(number, probe, at) if self._backend.keeps_values and not is_first else None
        if is_new:
            over.add(at)
        regression.fantasise(at)
        if covariances is None:
            self.variance = self._backend.made(regression, over, self._block)[1, :, :]
        else:
            total = probe.variance + regression.ratios
            self.variance = self._backend.shrunk(self.variance, covariances, total, self._is_own)
        self._is_own = True


class FewVariances:
    """Variances of a family at candidates that are named one ask after the other.

    A variance depends on its candidate and the pending trials alone, whatever else is asked for.

    Parameters
    ----------
    base : without pending trials, but for those in blocks; where there is an intercept it has had a reward.
    block : the model's columns on all candidates.
    """

    def __init__(self, base: FamilyFantasies, block: Block) -> None:
        self._base, self._block, self._n, cells = base, block, 0, base.regression.ratios.size
        # Of the P pending trials: features (P, d), weights (P, cells, .) and constants (P, cells) of `PointFit`, and L.
        self._points, self._constants = np.empty((8, block.n_columns)), np.empty((8, cells))
        self._weights, self._factor = np.empty((0, cells, 0)), np.zeros((cells, 8, 8))
        self._last = np.empty(0, dtype=np.int64), np.empty((0, cells, 0)), np.empty((cells, 0))

    def absorb_blocks(self, condensed: CondensedTrials, blocks: tuple[PendingBlock, ...]) -> bool:
        """Take in that many rewards will come, if they can be condensed, before all others; whether they were."""
        return self._base.absorb_blocks(condensed, blocks)

    def absorb(self, at: PointTold) -> None:
        """Take in that a reward of a candidate will come."""
        assert at.candidate is not None
        k, fit = self._n, self._base.regression.probe(PointTold(at.row, at.candidate))
        if not (place := np.flatnonzero(self._last[0] == at.candidate)).size:
            self.at(np.array([at.candidate]))
            place = np.array([0])
        _, z, variance = self._last
        if k == 0:
            self._weights = np.empty((8, *fit.weights.shape))
        elif k == len(self._points):
            self._points, self._constants = _twice(self._points), _twice(self._constants)
            self._weights, self._factor = _twice(self._weights), np.pad(self._factor, ((0, 0), (0, k), (0, k)))
        self._factor[:, k, :k] = z[:, :, place[0]].T
        self._factor[:, k, k] = np.sqrt(variance[:, place[0]] + self._base.regression.ratios)
        self._points[k], self._weights[k], self._constants[k] = at.row, fit.weights, fit.constant
        self._n, self._last = k + 1, (np.empty(0, dtype=np.int64), *self._last[1:])

    def at(self, candidates: IntArray) -> FloatArray:
        """Variances of some candidates, (cells, n)."""
        variance = np.ascontiguousarray(self._base.variance[:, candidates])
        z, k = np.empty((0, *variance.shape)), self._n
        if k:
            fits = self._points[:k], self._weights[:k], self._constants[:k]
            known = self._base.over.similarities(candidates)
            z = self._base.regression.cross_covariances(*fits, self._block.taken(candidates), known)
            take_off_fantasies(z, self._factor, variance)
        self._last = candidates, z, variance
        return variance


def _twice(array: FloatArray) -> FloatArray:
    """The array with as much room again along the first axis."""
    return np.concatenate([array, np.empty_like(array)])
