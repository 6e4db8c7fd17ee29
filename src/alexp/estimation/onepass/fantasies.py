"""Variances of a family while trials are pending: at all candidates, or at a few of them.

A pending trial p takes C(x, p)^2 / (C(p, p) + r) off the variance at x, with C the posterior covariance beside the
trials before it and r the noise. `FamilyFantasies` does that at all candidates, one trial after the other.

`FewVariances` is for the candidates that most of a plate looks at. With C the covariance without pending trials, let
C(p, p') + r I = L L' and z(x) = L^-1 C(p, x): the variance at x is C(x, x) - z(x)'z(x). One more pending trial is one
more row of L.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.estimation.onepass._kernels import extend_fantasies
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

    z(x) is kept for the candidates asked for: one more pending trial is one more number of it, and one more row of L,
    which is z at that trial. A variance depends on its candidate and the pending trials alone, whatever else is asked
    for.

    Parameters
    ----------
    base : without pending trials, but for those in blocks; where there is an intercept it has had a reward.
    block : the model's columns on all candidates.
    """

    def __init__(self, base: FamilyFantasies, block: Block) -> None:
        self._base, self._block, self._n, cells = base, block, 0, base.regression.ratios.size
        # Of the P pending trials: features (P, d), weights (P, cells, .) and constants (P, cells) of `PointFit`, and L,
        # its rows one after the other.
        self._points, self._constants = np.empty((_ROOM, block.n_columns)), np.empty((_ROOM, cells))
        self._weights, self._factors = np.empty((0, cells, 0)), np.empty((cells, _ROOM * (_ROOM + 1) // 2))
        self._forget()

    def _forget(self, n: int = 0) -> None:
        """Keep nothing of any candidate; have room for n, and for as many as `_KEPT` numbers are."""
        self._places: dict[int, int] = {}
        cells, d, room = self._base.regression.ratios.size, self._block.n_columns, len(self._points)
        n = max(n, _KEPT // (cells * room + 2 * d))
        # Of candidates by place: features, similarities or features again, variances, z, and how much of z is known.
        self._rows, self._known = np.empty((n, d)), np.empty((n, 0))
        self._variances, self._z = np.empty((n, cells)), np.empty((n, cells, room))
        self._done = np.empty(n, dtype=np.int64)

    def absorb_blocks(self, condensed: CondensedTrials, blocks: tuple[PendingBlock, ...]) -> bool:
        """Take in that many rewards will come, if they can be condensed, before all others; whether they were."""
        return self._base.absorb_blocks(condensed, blocks)

    def absorb(self, at: PointTold) -> None:
        """Take in that a reward of a candidate will come."""
        assert at.candidate is not None
        k, place, regression = self._n, self._places.get(at.candidate), self._base.regression
        if place is None or self._done[place] < k:
            self.at(np.array([at.candidate]))
            place = self._places[at.candidate]
        fit = regression.probe(at, self._known[place])
        row = np.column_stack([self._z[place, :, :k], np.sqrt(self._variances[place] + regression.ratios)])
        if k == 0:
            self._weights = np.empty((_ROOM, *fit.weights.shape))
        elif k == len(self._points):
            more = k // 2
            self._points, self._constants = _longer(self._points, more), _longer(self._constants, more)
            self._weights = _longer(self._weights, more)
            self._factors = np.pad(self._factors, ((0, 0), (0, more * k + more * (more + 1) // 2)))
            self._forget()
        first = k * (k + 1) // 2
        self._factors[:, first : first + k + 1] = row
        self._points[k], self._weights[k], self._constants[k] = at.row, regression.sign * fit.weights, fit.constant
        self._n = k + 1

    def at(self, candidates: IntArray) -> FloatArray:
        """Variances of some candidates, (cells, n)."""
        places, k = self._placed(candidates), self._n
        done = self._done[places]
        is_new = done < k - _RECENT
        for part in (np.unique(places[is_new]), np.unique(places[~is_new & (done < k)])):
            if part.size:
                first = int(self._done[part].min())
                prior = self._base.regression.prior_covariances(self._points[first:k], self._rows[part])
                fits = self._weights, self._constants, self._known, self._factors
                extend_fantasies(self._z, self._variances, self._done, part, prior, *fits, k)
        return np.ascontiguousarray(self._variances[places].T)

    def _placed(self, candidates: IntArray) -> IntArray:
        """Where these candidates are kept, (n,), from now on if they are not yet."""
        own = candidates.tolist()
        new = [candidate for candidate in dict.fromkeys(own) if candidate not in self._places]
        if new:
            if len(self._places) + len(new) > self._done.size:
                new = list(dict.fromkeys(own))
                self._forget(len(new))
            self._add(np.array(new))
        return np.array([self._places[candidate] for candidate in own])

    def _add(self, new: IntArray) -> None:
        base, part = self._base, slice(len(self._places), len(self._places) + new.size)
        rows, known = self._block.taken(new), base.over.similarities(new)
        own = rows if known is None else known.T
        if not self._places:
            self._known = np.empty((self._done.size, own.shape[1]))
        self._rows[part], self._known[part], self._done[part] = rows, own, 0
        self._variances[part] = base.variance[:, new].T
        self._places |= zip(new.tolist(), range(part.start, part.stop), strict=True)


_ROOM = 64  # pending trials that there is room for at first
_RECENT = 8  # pending trials that candidates looked at not long ago lack
_KEPT = 1 << 18  # numbers that are kept of candidates, by family: two megabytes


def _longer(array: AnyArray, more: int) -> AnyArray:
    """The array with room for more along the first axis."""
    return np.concatenate([array, np.empty((more, *array.shape[1:]), dtype=array.dtype)])
