"""Wide linear models on a device: tables that are kept there or sent in pieces, and values at all candidates.

Tables are read in the precision they are stored in, half, single or double. Products with them are summed in single
precision (double for tables in double); means and variances are kept and updated in double precision, and what is made
anew from the factors is computed in double precision throughout. Factors of the points told, t x t or d x d, stay on
the CPU: they are small. What the products lose is bounded as for any sum in single precision, by some
d^(1/2) 2^-24 ||phi(x)|| ||u|| in C(x) = phi(x)'u, which moves a mean by that times (y - mean) / (v + r); at the
candidate that was told both are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, BoolArray, FloatArray, IntArray
from alexp.common.backends import is_foreign
from alexp.common.validation import matrix
from alexp.estimation.onepass.backends import LinearPass, ModelMoments, Pass, Similar, ToldValue
from alexp.estimation.onepass.regressions import KernelRegression, LinearRegression
from alexp.gpu.devices import Device, taken
from alexp.problem.kernels import Kernel
from alexp.problem.matrices import Block
from alexp.problem.rows import RemoteRows

STREAMED = 1 << 27  # bytes of a table that are on their way to the device at a time
_ROWS = 1 << 20  # of a table that are multiplied at a time
_DOUBLE = 1 << 25  # numbers that are in double precision at a time
_KEPT = ("float16", "float32", "float64")
_LARGEST = {"float32": 1e15, "float64": 1e100}  # products and sums of smaller numbers do not overflow


class DeviceRows(RemoteRows):
    """N rows of d columns in the domain's order, in the precision they were handed in.

    Stands where NumPy's (N, d) stands: rows that are asked for by index come as NumPy's array, from `source` if
    there is one.

    Attributes
    ----------
    device : where the rows are.
    array : (N, d) there; None where they do not fit and are sent from `source` whenever they are needed.
    source : NumPy's array that was handed in; None where rows were on the device before.
    """

    device: Device

    def __init__(self, device: Device, array: AnyArray | None, source: AnyArray | None) -> None:
        known = source if array is None else array
        assert known is not None
        self.device, self.array, self.source = device, array, source
        self.shape = (int(known.shape[0]), int(known.shape[1]))
        self.dtype = known.dtype if array is None else device.precision(array)

    def __getitem__(self, key: slice | IntArray | tuple[slice, slice]) -> AnyArray | DeviceRows:
        if isinstance(key, tuple):
            arrays = (None if own is None else own[key] for own in (self.array, self.source))
            return DeviceRows(self.device, *arrays)
        if self.source is not None:
            return np.asarray(self.source[key])
        assert self.array is not None
        if isinstance(key, slice):
            return self.device.host(self.array[key, :])
        return self.device.host(self.device.xp.take(self.array, self.device.array(key), axis=0))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> AnyArray:
        rows = cast(AnyArray, self[:])
        return rows if dtype is None else rows.astype(cast(type, dtype))

    def pieces(self, rows: int = _ROWS) -> Iterator[tuple[slice, AnyArray]]:
        """Consecutive rows on the device, some at a time."""
        n, d = self.shape
        if self.array is None:
            assert self.source is not None
            yield from self.device.stream(self.source, min(rows, max(1, STREAMED // max(d * self.dtype.itemsize, 1))))
            return
        for low in range(0, n, rows):
            part = slice(low, min(low + rows, n))
            yield part, self.array[part, :]

    def doubles(self, width: int = 1) -> Iterator[tuple[slice, AnyArray]]:
        """Consecutive rows on the device in double precision, fewer at a time; `width` numbers come of each."""
        for part, rows in self.pieces(min(self._few, max(1, _DOUBLE // width))):
            yield part, self.device.double(rows)

    @property
    def _few(self) -> int:
        """Rows of which a copy in double precision does not matter."""
        return max(1, _DOUBLE // max(self.shape[1], 1))

    def array_backend(self) -> DeviceBackend:
        return DeviceBackend(self.device)

    # -- what is asked about whole tables ----------------------------------------------------------------------

    def squared_norms(self) -> AnyArray:
        """||phi(x)||^2 of all candidates, (N,), on the device."""
        out = self.device.full((self.shape[0],), 0.0)
        for part, rows in self.doubles():
            out[part] = self.device.xp.sum(rows * rows, axis=1)
        return out

    def column_means(self) -> FloatArray:
        """Mean of every column, (d,)."""
        return np.asarray(self.device.host(self._means()))

    def _means(self) -> AnyArray:
        mean = self.device.full((self.shape[1],), 0.0)
        for _, rows in self.doubles():
            mean = mean + self.device.xp.sum(rows, axis=0) / self.shape[0]
        return mean

    def column_squares(self, centred: bool) -> FloatArray:
        xp, n = self.device.xp, self.shape[0]
        out = self.device.full((self.shape[1],), 0.0)
        mean = self._means() if centred else out
        for _, rows in self.doubles():
            out = out + xp.sum((rows - mean) ** 2, axis=0) / n
        return np.asarray(self.device.host(out))

    def nonzero_columns(self) -> BoolArray:
        out = np.zeros(self.shape[1], dtype=bool)
        for _, rows in self.pieces(self._few):
            out |= self.device.host(self.device.xp.any(rows != 0, axis=0))
            if out.all():
                break
        return out

    def check_finite(self, name: str) -> None:
        """Raise unless all entries are numbers, and so small that products with them are."""
        largest = _LARGEST.get(self.dtype.name, np.inf)
        for part, rows in self.pieces(self._few):
            finite = self.device.xp.isfinite(rows)
            if not bool(self.device.xp.all(finite)):
                row, column = np.argwhere(~self.device.host(finite))[0]
                value = float(rows[int(row), int(column)])
                where = f"row {part.start + row}, column {column}"
                raise ValueError(f"{name} has {value} at {where}; features must be finite")
            if rows.shape[0] * rows.shape[1] and float(self.device.xp.max(self.device.xp.abs(rows))) > largest:
                raise ValueError(f"{name} in {self.dtype.name} must not exceed {largest:g} in size; use other units")


def device_rows(name: str, value: ArrayLike | object, device: Device, n_rows: int | None) -> DeviceRows:
    """A matrix where it is to be, or an error that says what is wrong with it."""
    if hasattr(value, "tocsr") or "sparse" in str(getattr(value, "layout", "")):  # of PyTorch, the latter
        raise ValueError(f"{name} is sparse, and tables on a device are dense; pass it dense, or as CSR without device")
    if not is_foreign(value):
        value = _host_rows(name, value, n_rows)
    given = cast(AnyArray, value)
    shape = tuple(int(n) for n in given.shape)
    if len(shape) != 2 or (n_rows is not None and shape[0] != n_rows):
        wanted = "(n, d)" if n_rows is None else f"({n_rows}, d), one row per point"
        raise ValueError(f"{name} must have shape {wanted}, got {shape}")
    if isinstance(value, np.ndarray) and not device.fits(value.nbytes):
        rows = DeviceRows(device, None, value)
    else:
        array = device.array(given)
        try:
            device.precision(array)
        except TypeError as error:
            raise TypeError(f"{name} {error}") from None
        rows = DeviceRows(device, array, value if isinstance(value, np.ndarray) else None)
    rows.check_finite(name)
    return rows


def _host_rows(name: str, value: object, n_rows: int | None) -> AnyArray:
    """What is no device's array as NumPy's: as it is where it holds real numbers, in double precision otherwise."""
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.name in _KEPT:
        return value
    return matrix(name, value, n_rows)


class DeviceBackend:
    """An `ArrayBackend` on a device, through the array API."""

    keeps_values = True

    def __init__(self, device: Device) -> None:
        self._device, self._xp = device, device.xp

    def prior(self, block: Block, kernel: Kernel | None, cells: int, level: bool) -> tuple[FloatArray, float]:
        """Values before any reward, and the largest squared norm."""
        own, values = _rows(block).squared_norms(), self._device.full((2, cells, block.n_rows), 0.0)
        if level:
            mean = _rows(block).column_means()
            values[1, :, :] += self._positive(own - 2.0 * self.product(block, mean[None])[0, :] + float(mean @ mean))
        else:
            values[1, :, :] += own
        return values, float(self._xp.max(own))

    def over(self, block: Block, kernel: Kernel | None) -> Pass:
        """Linear models only."""
        return LinearPass(block, self)

    def product(self, block: Block, directions: FloatArray, constants: FloatArray | None = None) -> FloatArray:
        rows = _rows(block)
        own = self._device.directions(directions, rows.dtype)
        parts = [self._device.product(own, piece) for _, piece in rows.pieces()]
        out: FloatArray = parts[0] if len(parts) == 1 else self._xp.concat(parts, axis=1)
        return out if constants is None else out + self._column(constants)

    def made(self, regression: KernelRegression, over: Similar, block: Block) -> FloatArray:
        assert isinstance(regression, LinearRegression)
        fit, xp, cells = regression.expansion(), self._xp, regression.ratios.size
        points = None if fit.points is None else self._device.array(fit.points)
        slopes, levels = self._device.array(fit.slopes), self._column(fit.levels)
        roots = [self._device.array(root) for root in fit.roots]
        shifts = [self._device.array(shift) for shift in fit.shifts]
        shared = self._device.array(fit.shared)
        values = self._device.full((2, cells, block.n_rows), 0.0)
        for part, rows in _rows(block).doubles(fit.width):
            known = rows if points is None else xp.matmul(rows, points.T)
            values[0, :, part] = xp.matmul(slopes, known.T) + levels
            own = xp.sum(rows * rows, axis=1)
            surprise = 1.0 - xp.matmul(shared, known.T)
            for c in range(cells):
                z = xp.matmul(known, roots[c].T) + shifts[c]
                left = float(fit.own) * own + float(fit.signs[c]) * xp.sum(z * z, axis=1)
                values[1, c, part] = self._positive(left + float(fit.shares[c]) * surprise[c, :] ** 2)
        return values

    def move(
        self, values: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray, told: ToldValue | None
    ) -> FloatArray:
        values[0, :, :] += self._column(gain) * covariances
        values[1, :, :] = self.shrunk(values[1, :, :], covariances, total, False)
        if told is not None:
            values[:, :, told.candidate] = self._device.array(np.stack([told.mean, told.variance]))
        return values

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray, reuse: bool) -> FloatArray:
        return self._positive(variance - covariances * covariances / self._column(total))

    def mixed(self, models: Sequence[ModelMoments]) -> FloatArray:
        """Mean and variance of a mixture, (2, N): squares are taken about the mean of the models so far."""
        xp, total = self._xp, 0.0
        zero = self._device.full((int(models[0].mean.shape[1]),), 0.0)
        centre = within = between = zero
        for model in models:
            own, spread = model.mean, model.variance
            if model.cells.size < own.shape[0]:
                own, spread = (xp.take(values, self._device.array(model.cells), axis=0) for values in (own, spread))
            weights, factors = self._device.array(model.shares), self._device.array(model.shares * model.scales)
            before, total = total, total + float(model.shares.sum())
            new = centre + xp.matmul(weights, own - centre) / total
            between = between + before * (centre - new) ** 2 + xp.matmul(weights, (own - new) ** 2)
            centre, within = new, within + xp.matmul(factors, spread)
        out: FloatArray = xp.stack([centre, within + between])
        return out

    def taken(self, values: FloatArray, indices: IntArray) -> FloatArray:
        """Values (N,) of some candidates, (n,), on the device; NumPy's functions of them are computed there."""
        return cast(FloatArray, taken(values, indices, self._device))

    def _column(self, values: FloatArray) -> AnyArray:
        return self._device.array(values[:, None])

    def _positive(self, values: AnyArray) -> FloatArray:
        out: FloatArray = self._xp.where(values > 0.0, values, self._device.full((), 0.0))
        return out


def _rows(block: Block) -> DeviceRows:
    assert isinstance(block.rows, DeviceRows)
    return block.rows
