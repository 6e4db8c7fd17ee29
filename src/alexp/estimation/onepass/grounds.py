"""Where values at all candidates are kept and computed with: in NumPy's arrays, by compiled loops, or on a device."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.onepass import _kernels as kernels
from alexp.estimation.onepass.products import product
from alexp.estimation.onepass.regressions import KernelRegression, about_level
from alexp.problem.kernels import Kernel
from alexp.problem.tables import Block

_PIECE = 1 << 16  # similarities in memory when values are made anew


class Similar(Protocol):
    """What knows similarities of the points told to candidates."""

    def similarities(self, part: slice) -> FloatArray | None:
        """Of the points told to some candidates, (D, n), if they are known."""


class Ground(Protocol):
    """The arrays (cells, N) of a family, in the domain's order, and what is done with them.

    Arrays of a ground are annotated as NumPy's; only the ground itself looks into them.
    """

    def prior(self, block: Block, kernel: Kernel | None, cells: int) -> tuple[FloatArray, FloatArray]:
        """Mean and variance before any reward, (cells, N) each."""

    def levelled(self, block: Block, kernel: Kernel | None, variance: FloatArray) -> FloatArray:
        """Prior variances (cells, N) less the level of all candidates, see `about_level`."""

    def product(self, block: Block, directions: FloatArray, constants: FloatArray | None = None) -> FloatArray:
        """Phi u, plus a constant, for each of k directions u, (k, d), and constants (k,): (k, N)."""

    def made(self, regression: KernelRegression, over: Similar, block: Block) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of all candidates from the factors, (cells, N) each."""

    def move(
        self, mean: FloatArray, variance: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add gain_c C_c to the means and take C_c^2 / total_c off the variances; may write to them."""

    def put(self, mean: FloatArray, variance: FloatArray, index: int, values: tuple[FloatArray, FloatArray]) -> None:
        """Set mean and variance of one candidate to values (cells,)."""

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray) -> FloatArray:
        """Variances less C_c^2 / total_c, in another array."""

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
        """Merge some cells of a model into moments (3, N), mean and variance within and between; may write to them.

        ``shares`` and ``scales`` of the variances have one entry per cell merged; ``total`` is the share merged before.
        """

    def largest(self, values: FloatArray) -> float:
        """The largest of some values."""

    def zeros(self, rows: int, n: int) -> FloatArray:
        """(rows, n) zeros."""

    def taken(self, values: FloatArray, indices: IntArray) -> FloatArray:
        """Values (N,) of some candidates, (n,): for those who decide."""


class HostGround:
    """NumPy's arrays and compiled loops."""

    def prior(self, block: Block, kernel: Kernel | None, cells: int) -> tuple[FloatArray, FloatArray]:
        """Mean and variance before any reward."""
        own = block.squared_norms() if kernel is None else kernel.diagonal(block.rows)
        return np.zeros((cells, block.n_rows)), np.repeat(own[None], cells, axis=0)

    def levelled(self, block: Block, kernel: Kernel | None, variance: FloatArray) -> FloatArray:
        """Prior variances less the level of all candidates."""
        return np.repeat(about_level(kernel, block.rows, variance[0])[None], len(variance), axis=0)

    def product(self, block: Block, directions: FloatArray, constants: FloatArray | None = None) -> FloatArray:
        """Phi u, plus a constant, for each of k directions u."""
        out = product(block.rows, directions)
        if constants is not None:
            out += constants[:, None]
        return out

    def made(self, regression: KernelRegression, over: Similar, block: Block) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of all candidates from the factors."""
        mean, variance = np.empty((2, regression.ratios.size, block.n_rows))
        step = max(1, _PIECE // max(regression.rank, block.n_columns))
        for low in range(0, block.n_rows, step):
            part = slice(low, min(low + step, block.n_rows))
            known = over.similarities(part)
            mean[:, part], variance[:, part] = regression.moments(block.dense(part), known)
        return mean, variance

    def move(
        self, mean: FloatArray, variance: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add gain_c C_c to the means and take C_c^2 / total_c off the variances."""
        kernels.move(mean, variance, covariances, gain, total)
        return mean, variance

    def put(self, mean: FloatArray, variance: FloatArray, index: int, values: tuple[FloatArray, FloatArray]) -> None:
        """Set mean and variance of one candidate."""
        mean[:, index], variance[:, index] = values

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray) -> FloatArray:
        """Variances less C_c^2 / total_c."""
        out = variance.copy()
        kernels.shrink(out, covariances, total)
        return out

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
        """Merge some cells of a model into moments."""
        kernels.merge(mean, variance, cells, shares, scales, total, moments)
        return moments

    def largest(self, values: FloatArray) -> float:
        """The largest of some values."""
        return float(values.max(initial=0.0))

    def zeros(self, rows: int, n: int) -> FloatArray:
        """Zeros."""
        return np.zeros((rows, n))

    def taken(self, values: FloatArray, indices: IntArray) -> FloatArray:
        """Values of some candidates."""
        return np.asarray(values[indices])
