"""Where values at all candidates are kept and computed with: in NumPy's arrays, by compiled loops, or on a device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, RealArray
from alexp.estimation.onepass import _kernels as kernels
from alexp.estimation.onepass._kernels import products, subtract_products as subtract_products
from alexp.estimation.onepass.regressions import KernelRegression, PointFit, PointTold, about_level
from alexp.estimation.ridge.threads import run_parts
from alexp.problem.kernels import Kernel
from alexp.problem.matrices import Block
from alexp.problem.rows import Rows, is_sparse

_SIMILARITIES = 1 << 16  # in memory when values are made anew
_CONVERTED = 1 << 20  # numbers of a table in half precision that are converted at a time
_THREADED = 10_000_000  # products and sums from which threads pay


class Similar(Protocol):
    """What knows similarities of the points told to candidates."""

    def similarities(self, part: slice | IntArray) -> FloatArray | None:
        """Of the points told to some candidates, (D, n), if they are known."""


class ModelMoments(NamedTuple):
    """The part of a model in a mixture: mean and variance (cells, N), and the cells that count (k,).

    `shares` and `scales` of the variances (k,) have one entry for each of these cells.
    """

    mean: FloatArray
    variance: FloatArray
    cells: IntArray
    shares: FloatArray
    scales: FloatArray


class ToldValue(NamedTuple):
    """Mean and variance, (cells,) each, that one candidate is known to have."""

    candidate: int
    mean: FloatArray
    variance: FloatArray


class ArrayBackend(Protocol):
    """Mean and variance of a family in one array, (2, cells, N), in the domain's order, and what is done with them.

    Arrays of a backend are annotated as NumPy's; only the backend itself looks into them.

    Attributes
    ----------
    keeps_values : whether values are kept between rewards; where they are not, they are `made` anew after each.
    """

    keeps_values: bool

    def over(self, block: Block, kernel: Kernel | None) -> Pass:
        """How covariances of a model with one point come about on all candidates."""

    def prior(self, block: Block, kernel: Kernel | None, cells: int, level: bool) -> tuple[FloatArray, float]:
        """Values before any reward, and the largest k(x, x); variances less the `level` of all, see `about_level`."""

    def product(self, block: Block, directions: FloatArray, constants: FloatArray | None = None) -> FloatArray:
        """Phi u, plus a constant, for each of k directions u, (k, d), and constants (k,): (k, N)."""

    def made(self, regression: KernelRegression, over: Similar, block: Block) -> FloatArray:
        """Values of all candidates from the factors."""

    def move(
        self, values: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray, told: ToldValue | None
    ) -> FloatArray:
        """Add gain_c C_c to the means and take C_c^2 / total_c off the variances; may write to the values."""

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray, reuse: bool) -> FloatArray:
        """Variances less C_c^2 / total_c, in another array unless that of the variances may be written to."""

    def mixed(self, models: Sequence[ModelMoments]) -> FloatArray:
        """Mean and variance of a mixture, within plus between its components, (2, N)."""

    def taken(self, values: FloatArray, indices: IntArray) -> FloatArray:
        """Values (N,) of some candidates, (n,), as a NumPy array."""


class Pass(Protocol):
    """How posterior covariances with one point come about on all candidates."""

    def covariances(self, number: int, probe: PointFit, at: PointTold) -> FloatArray:
        """C(x, point) of all candidates, (cells, N); the `number` of a point told is below D, that of a new one D."""

    def add(self, at: PointTold) -> None:
        """Take note of a point that is new to the regression."""

    def similarities(self, part: slice | IntArray) -> FloatArray | None:
        """Of the points told to some candidates, (D, n), if they are known."""

    def copy(self) -> Pass:
        """A copy that may absorb fantasies."""


class LinearPass:
    """C = Phi [directions] + constant: one product for all cells."""

    def __init__(self, block: Block, backend: ArrayBackend) -> None:
        self._block, self._backend = block, backend

    def covariances(self, number: int, probe: PointFit, at: PointTold) -> FloatArray:
        return self._backend.product(self._block, probe.weights, probe.constant)

    def add(self, at: PointTold) -> None:
        """Points are known to the regression, which has their features."""

    def similarities(self, part: slice | IntArray) -> None:
        """Nothing is kept."""

    def copy(self) -> LinearPass:
        """Nothing ever changes."""
        return self


class KernelPass:
    """C = k(., point) - weights'K + constant, with the kernel rows K (D, N) of all points told."""

    def __init__(self, n_candidates: int) -> None:
        self._n_candidates = n_candidates
        self._chunks: list[FloatArray] = []  # of kernel rows, (n, N); each as large as all before it
        self._used: list[int] = []  # rows of each chunk

    def covariances(self, number: int, probe: PointFit, at: PointTold) -> FloatArray:
        known = number < sum(self._used)
        out = np.add.outer(probe.constant, self._row(number) if known else similar(at))
        first = 0
        for chunk, used in zip(self._chunks, self._used, strict=True):
            kernels.subtract_products(out, probe.weights[:, first : first + used], chunk)
            first += used
        return out

    def _row(self, number: int) -> FloatArray:
        for chunk, used in zip(self._chunks, self._used, strict=True):
            if number < used:
                return np.asarray(chunk[number])
            number -= used
        raise IndexError("there is no such point")

    def add(self, at: PointTold) -> None:
        if not self._chunks or self._used[-1] == len(self._chunks[-1]):
            self._chunks.append(np.empty((max(16, sum(self._used)), self._n_candidates)))
            self._used.append(0)
        self._chunks[-1][self._used[-1]] = similar(at)
        self._used[-1] += 1

    def similarities(self, part: slice | IntArray) -> FloatArray:
        return np.vstack([chunk[:used, part] for chunk, used in zip(self._chunks, self._used, strict=True)])

    def copy(self) -> KernelPass:
        """One that shares the rows so far and begins a chunk of its own."""
        out = KernelPass(self._n_candidates)
        out._chunks = [chunk[:used] for chunk, used in zip(self._chunks, self._used, strict=True)]
        out._used = self._used.copy()
        return out


def similar(at: PointTold) -> FloatArray:
    """k(x, point) of all candidates, (N,)."""
    assert at.similarities is not None
    return at.similarities()


class HostBackend:
    """NumPy's arrays and compiled loops."""

    keeps_values = True

    def over(self, block: Block, kernel: Kernel | None) -> Pass:
        """One product for linear models; of kernels, the rows of all points told are kept."""
        return LinearPass(block, self) if kernel is None else KernelPass(block.n_rows)

    def prior(
        self, block: Block, kernel: Kernel | None, cells: int, level: bool, mean: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Values before any reward; `mean` (d,) is that of all candidates, where the block has only some of them."""
        own = block.squared_norms() if kernel is None else kernel.diagonal(block.rows)
        values = np.zeros((2, cells, block.n_rows))
        values[1] = about_level(kernel, block.rows, own, mean) if level else own
        return values, float(own.max(initial=0.0))

    def product(self, block: Block, directions: FloatArray, constants: FloatArray | None = None) -> FloatArray:
        out = product(block.rows, directions)
        if constants is not None:
            out += constants[:, None]
        return out

    def made(self, regression: KernelRegression, over: Similar, block: Block) -> FloatArray:
        values = np.empty((2, regression.ratios.size, block.n_rows))
        step = max(1, _SIMILARITIES // max(regression.rank, block.n_columns))
        for low in range(0, block.n_rows, step):
            part = slice(low, min(low + step, block.n_rows))
            known = over.similarities(part)
            values[0, :, part], values[1, :, part] = regression.moments(block.dense(part), known)
        return values

    def move(
        self, values: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray, told: ToldValue | None
    ) -> FloatArray:
        kernels.move(values[0], values[1], covariances, gain, total)
        return _told(values, told)

    def move_by_product(
        self,
        values: FloatArray,
        block: Block,
        directions: FloatArray,
        constants: FloatArray | None,
        gain: FloatArray,
        total: FloatArray,
        told: ToldValue | None,
    ) -> FloatArray:
        """`move` by a `product` that is of no other use: dense rows are read once, nothing is written but values."""
        rows = block.rows
        if constants is None or not isinstance(rows, np.ndarray) or rows.dtype not in (np.float32, np.float64):
            return self.move(values, self.product(block, directions, constants), gain, total, told)
        own = np.ascontiguousarray(directions, dtype=rows.dtype)
        kernels.absorb(rows, own, constants, gain, total, np.empty((len(own), kernels.LONG)), values)
        return _told(values, told)

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray, reuse: bool) -> FloatArray:
        out = variance if reuse else variance.copy()
        kernels.shrink(out, covariances, total)
        return out

    def mixed(self, models: Sequence[ModelMoments]) -> FloatArray:
        moments, total = np.zeros((3, models[0].mean.shape[1])), 0.0
        for model in models:
            kernels.merge(*model, total, moments)
            total += float(model.shares.sum())
        moments[1] += moments[2]
        return moments[:2]

    def taken(self, values: FloatArray, indices: IntArray) -> FloatArray:
        return np.asarray(values[indices])


def _told(values: FloatArray, told: ToldValue | None) -> FloatArray:
    if told is not None:
        values[0, :, told.candidate], values[1, :, told.candidate] = told.mean, told.variance
    return values


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
    n = len(rows)
    if directions.size * n < _THREADED or (threads := os.cpu_count() or 1) == 1:
        products(rows, directions, 0, n, out)
        return
    cuts = [n * part // threads for part in range(threads + 1)]
    run_parts(lambda low, high: products(rows, directions, low, high, out), cuts, threads)
