"""Where values at all candidates are kept and computed with: in NumPy's arrays, by compiled loops, or on a device."""

from __future__ import annotations

import os
from typing import Protocol, cast

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, RealArray
from alexp.estimation.onepass import _kernels as kernels
from alexp.estimation.onepass._kernels import products
from alexp.estimation.onepass.regressions import KernelRegression, about_level
from alexp.estimation.ridge.threads import run_parts
from alexp.problem.kernels import Kernel
from alexp.problem.matrices import Block
from alexp.problem.rows import Rows, is_sparse

_SIMILARITIES = 1 << 16  # in memory when values are made anew
_CONVERTED = 1 << 20  # numbers of a table in half precision that are converted at a time
_THREADED = 10_000_000  # products and sums from which threads pay


class Similar(Protocol):
    """What knows similarities of the points told to candidates."""

    def similarities(self, part: slice) -> FloatArray | None:
        """Of the points told to some candidates, (D, n), if they are known."""


class ArrayBackend(Protocol):
    """The arrays (cells, N) of a family, in the domain's order, and what is done with them.

    Arrays of a backend are annotated as NumPy's; only the backend itself looks into them.
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

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray, reuse: bool) -> FloatArray:
        """Variances less C_c^2 / total_c, in another array unless that of the variances may be written to."""

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
        """Values (N,) of some candidates, (n,), as a NumPy array."""


class HostBackend:
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
        step = max(1, _SIMILARITIES // max(regression.rank, block.n_columns))
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

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray, reuse: bool) -> FloatArray:
        """Variances less C_c^2 / total_c."""
        out = variance if reuse else variance.copy()
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


def product(rows: Rows, directions: FloatArray) -> FloatArray:
    """Phi u for each of several directions u, (k, d), and rows Phi (N, d): shape (k, N), in double precision.

    Tables in double precision are multiplied in that, those in single or half precision in single: some seven digits
    of the largest terms. Half precision is converted a few rows at a time.
    """
    if is_sparse(rows):
        return np.ascontiguousarray((rows @ directions.T).T, dtype=np.float64)
    table = cast(RealArray, rows)
    out = np.empty((len(directions), len(table)))
    if table.dtype == np.float64:
        _multiply(table, np.ascontiguousarray(directions), out)
        return out
    narrow = np.ascontiguousarray(directions, dtype=np.float32)
    if table.dtype == np.float32:
        _multiply(table, narrow, out)
        return out
    step = max(1, _CONVERTED // table.shape[1])
    for low in range(0, len(table), step):
        piece = np.asarray(table[low : low + step], dtype=np.float32)
        products(piece, narrow, 0, len(piece), out[:, low : low + step])
    return out


def _multiply(rows: RealArray, directions: RealArray, out: FloatArray) -> None:
    """The whole product, by all cores if it is large."""
    n, threads = len(rows), os.cpu_count() or 1
    if threads == 1 or directions.size * n < _THREADED:
        products(rows, directions, 0, n, out)
        return
    cuts = [n * part // threads for part in range(threads + 1)]
    run_parts(lambda low, high: products(rows, directions, low, high, out), cuts, threads)
