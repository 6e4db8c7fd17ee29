"""Values of wide linear models at all candidates, on a device: one pass over the table for every reward.

Tables are read in the precision they are stored in, half, single or double. Products with them are summed in single
precision (double for tables in double); means and variances are kept and updated in double precision, and what is made
anew from the factors is computed in double precision throughout. Factors of the points told, t x t or d x d, stay on
the CPU: they are small. What the products lose is bounded as for any sum in single precision, by some
d^(1/2) 2^-24 ||phi(x)|| ||u|| in C(x) = phi(x)'u, which moves a mean by that times (y - mean) / (v + r); at the
candidate that was told both are exact.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.devices.arrays import taken
from alexp.common.devices.places import Place
from alexp.estimation.onepass.backends import Similar
from alexp.estimation.onepass.regressions import KernelRegression, LinearRegression
from alexp.problem.device_tables import DeviceRows
from alexp.problem.kernels import Kernel
from alexp.problem.tables import Block


class DeviceGround:
    """A `Ground` on a device, through the array API."""

    def __init__(self, place: Place) -> None:
        self._place, self._xp = place, place.xp

    def prior(self, block: Block, kernel: Kernel | None, cells: int) -> tuple[FloatArray, FloatArray]:
        """Mean and variance before any reward, (cells, N) each."""
        own = _rows(block).squared_norms()
        return self.zeros(cells, block.n_rows), self.zeros(cells, 1) + own[None, :]

    def levelled(self, block: Block, kernel: Kernel | None, variance: FloatArray) -> FloatArray:
        """Prior variances (cells, N) less the level of all candidates."""
        mean = _rows(block).column_means()
        shared = self.product(block, mean[None])
        return self._positive(variance - 2.0 * shared + float(mean @ mean))

    def product(self, block: Block, directions: FloatArray, constants: FloatArray | None = None) -> FloatArray:
        """Phi u, plus a constant, for each of k directions u, (k, d), and constants (k,): (k, N)."""
        rows = _rows(block)
        own = self._place.directions(directions, rows.dtype)
        parts = [self._place.product(own, piece) for _, piece in rows.pieces()]
        out: FloatArray = parts[0] if len(parts) == 1 else self._xp.concat(parts, axis=1)
        return out if constants is None else out + self._column(constants)

    def made(self, regression: KernelRegression, over: Similar, block: Block) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of all candidates from the factors, (cells, N) each, in double precision."""
        assert isinstance(regression, LinearRegression)
        fit, xp, cells = regression.expansion(), self._xp, regression.ratios.size
        points = None if fit.points is None else self._place.array(fit.points)
        slopes, levels = self._place.array(fit.slopes), self._column(fit.levels)
        roots = [self._place.array(root) for root in fit.roots]
        shifts = [self._place.array(shift) for shift in fit.shifts]
        shared = self._place.array(fit.shared)
        mean, variance = self.zeros(cells, block.n_rows), self.zeros(cells, block.n_rows)
        for part, rows in _rows(block).doubles(fit.width):
            known = rows if points is None else xp.matmul(rows, points.T)
            mean[:, part] = xp.matmul(slopes, known.T) + levels
            own = xp.sum(rows * rows, axis=1)
            surprise = 1.0 - xp.matmul(shared, known.T)
            for c in range(cells):
                z = xp.matmul(known, roots[c].T) + shifts[c]
                left = float(fit.own) * own + float(fit.signs[c]) * xp.sum(z * z, axis=1)
                variance[c, part] = self._positive(left + float(fit.shares[c]) * surprise[c, :] ** 2)
        return mean, variance

    def move(
        self, mean: FloatArray, variance: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add gain_c C_c to the means and take C_c^2 / total_c off the variances."""
        return mean + self._column(gain) * covariances, self.shrunk(variance, covariances, total)

    def put(self, mean: FloatArray, variance: FloatArray, index: int, values: tuple[FloatArray, FloatArray]) -> None:
        """Set mean and variance of one candidate to values (cells,)."""
        both = self._place.array(np.stack(values))
        mean[:, index], variance[:, index] = both[0, :], both[1, :]

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray) -> FloatArray:
        """Variances less C_c^2 / total_c."""
        return self._positive(variance - covariances * covariances / self._column(total))

    def merge(
        self,
        moments: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        cells: IntArray,
        shares: FloatArray,
        scales: FloatArray,
        total: float,
    ) -> FloatArray:
        """Merge some cells of a model into moments (3, N): squares are taken about the new mean."""
        if cells.size == 0:
            return moments
        xp, centre = self._xp, moments[0, :]
        own, spread = mean, variance
        if cells.size < mean.shape[0]:
            own, spread = (xp.take(values, self._place.array(cells), axis=0) for values in (mean, variance))
        weights, factors = self._place.array(shares), self._place.array(shares * scales)
        after = total + float(shares.sum())
        new = centre + xp.matmul(weights, own - centre) / after
        between = moments[2, :] + total * (centre - new) ** 2 + xp.matmul(weights, (own - new) ** 2)
        out: FloatArray = xp.stack([new, moments[1, :] + xp.matmul(factors, spread), between])
        return out

    def largest(self, values: FloatArray) -> float:
        """The largest of some values."""
        return float(self._xp.max(values))

    def zeros(self, rows: int, n: int) -> FloatArray:
        """(rows, n) zeros."""
        return self._place.full((rows, n), 0.0)

    def taken(self, values: FloatArray, indices: IntArray) -> FloatArray:
        """Values (N,) of some candidates, (n,), on the device; NumPy's functions of them are computed there."""
        return cast(FloatArray, taken(values, indices, self._place))

    def _column(self, values: FloatArray) -> AnyArray:
        return self._place.array(values[:, None])

    def _positive(self, values: AnyArray) -> FloatArray:
        out: FloatArray = self._xp.where(values > 0.0, values, self._place.full((), 0.0))
        return out


def _rows(block: Block) -> DeviceRows:
    assert block.on_device is not None
    return block.on_device
