"""Rows of a table, dense of any precision, memory-mapped, or CSR: inner products, distances, units of columns.

Every entry depends on its two rows alone, never on how many others are computed beside it, so that one point at a time
and many at once agree bit for bit. Equal rows have distance zero, exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard, cast

import numpy as np

from alexp.common.arrays import AnyArray, BoolArray, FloatArray, IntArray, NarrowArray
from alexp.common.backends import ComputeDevice
from alexp.problem._kernels import narrow_distances, narrow_products

if TYPE_CHECKING:  # slow to import
    from scipy.sparse import csr_array, csr_matrix

    Sparse: TypeAlias = csr_array | csr_matrix

Rows: TypeAlias = "AnyArray | Sparse"  # (n, d)
Scales: TypeAlias = tuple[float, ...]  # one divisor per column; 0 for columns that do not count

_BLOCK = 1 << 16  # entries of a block in double precision: half a megabyte, which stays in the cache
_SPARSE_ROWS = 1 << 15
_SQUARED = 1e150  # largest weight with a finite square
_MOST_COMPARED = 300  # candidates whose distances the median is taken over: subsets of inputs take thousands of medians
_COMPUTED = 1e-13  # relative error that a descriptor computed in double precision may have: some 450 roundings
_TINY = float(np.finfo(np.float64).tiny)
_FAR = 1e3  # means of more standard deviations than this are taken off: squares would lose over six digits to them
_CANCELLED = 1e-6  # squared distances below this share of the squared norms are taken from the differences instead


class RemoteRows(ABC):
    """(N, d) rows outside NumPy's memory, on a GPU, say, or on several machines: what is asked about whole tables is
    computed there.

    Rows that are indexed come as NumPy's array. `source` is NumPy's array that was given; None where there was none.
    """

    ndim = 2
    device: ComputeDevice
    source: AnyArray | None = None
    shape: tuple[int, int]
    is_in_parts: bool = False  # whether no one memory has all candidates

    @abstractmethod
    def array_backend(self) -> Any:
        """The `ArrayBackend` that computes with such rows."""

    @abstractmethod
    def column_squares(self, centred: bool) -> FloatArray:
        """Mean square of every column, or its variance, (d,)."""

    @abstractmethod
    def nonzero_columns(self) -> BoolArray:
        """Which columns hold anything but zeros, (d,)."""

    # What kernels are fitted to, for rows in parts; tables on a GPU have linear models only.

    def column_units(self) -> ColumnUnits:
        """Means and standard deviations of the columns."""
        raise NotImplementedError

    def is_counts(self) -> bool:
        """See `kernel_models.is_counts`."""
        raise NotImplementedError

    def mean_diagonal(self, kernel: Any) -> float:
        """Mean of k(x, x) over all rows."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Content hash."""
        raise NotImplementedError


def is_sparse(rows: Rows) -> TypeGuard[Sparse]:
    """Whether rows are kept as CSR."""
    return not isinstance(rows, np.ndarray) and getattr(rows, "format", None) == "csr"


def is_narrow(rows: Rows) -> TypeGuard[NarrowArray]:
    """Whether rows are dense and in single precision."""
    return isinstance(rows, np.ndarray) and rows.dtype == np.float32


def blocks(rows: Rows, width: int = 1) -> Iterator[tuple[slice, Rows]]:
    """Consecutive rows, a bounded number, as `ready`; `width` numbers come of each."""
    n, d = rows.shape
    step = _SPARSE_ROWS if is_sparse(rows) else max(1, _BLOCK // max(d, width, 1))
    for low in range(0, n, step):
        part = slice(low, min(low + step, n))
        yield part, ready(rows[part])


def ready(rows: Rows) -> Rows:
    """Rows as `inner` and `squared_distances` take them: CSR, or contiguous in single or double precision."""
    if is_sparse(rows):
        return rows
    values = np.asarray(rows)
    return np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float32 else np.float64)


def dense_blocks(rows: Rows) -> Iterator[FloatArray]:
    """Consecutive rows as dense arrays in double precision, a bounded number."""
    step = max(1, _BLOCK // max(rows.shape[1], 1))
    for low in range(0, rows.shape[0], step):
        yield dense(rows[low : low + step])


def take(rows: Rows, columns: IntArray) -> Rows:
    """Some columns of rows, a view where they are neighbours."""
    if columns.size == columns[-1] - columns[0] + 1 and np.all(np.diff(columns) == 1):
        return rows[:, columns[0] : columns[-1] + 1]
    return rows[:, columns]


def dense(rows: Rows) -> FloatArray:
    """Rows as a contiguous array in double precision."""
    return np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)


def divided(rows: Rows, weights: FloatArray | None) -> Rows:
    """Columns times `weights`."""
    if weights is None:
        return rows
    if not is_sparse(rows):
        return cast(AnyArray, rows) * weights
    out = rows.copy()
    out.data = out.data * (weights[out.indices] if weights.size > 1 else weights)
    return out


def shifted(rows: Rows, origin: FloatArray | None) -> Rows:
    """Rows less an origin (d,); entries of CSR rows that were left out stay so where the origin is zero."""
    if origin is None:
        return rows
    if not is_sparse(rows):
        return np.asarray(cast(AnyArray, rows) - origin)
    from scipy.sparse import csr_array  # slow to import, and only sparse tables need it

    n, columns = rows.shape[0], np.flatnonzero(origin)
    places = (np.tile(columns, n), np.arange(n + 1) * columns.size)
    return rows - csr_array((np.tile(origin[columns], n), *places), shape=rows.shape)


def squared_norms(rows: Rows) -> FloatArray:
    """||z||^2 of each row, shape (n,)."""
    if is_sparse(rows):
        squares = rows.copy()
        squares.data = np.square(squares.data, dtype=np.float64)
        return np.asarray(squares @ np.ones(rows.shape[1]))
    values = cast(AnyArray, rows)
    return np.asarray(np.einsum("ij,ij->i", values, values))


def inner(x: FloatArray, z: Rows, weights: FloatArray | None = None) -> FloatArray:
    """sum_c x_ic z_jc w_c^2, shape (n, m), for rows that are `ready`."""
    out = np.empty((x.shape[0], z.shape[0]))
    if weights is not None and weights.max(initial=0.0) > _SQUARED:
        x, z, weights = x * weights, ready(divided(z, weights)), None
    for i, point in enumerate(x if weights is None else x * weights**2):
        if is_sparse(z):
            out[i] = z @ point
        elif is_narrow(z):
            narrow_products(z, point, out[i])
        else:  # row by row: what BLAS gives depends on the rows beside it, and on threads
            np.einsum("ij,j->i", cast(AnyArray, z), point, out=out[i])
    return out


def squared_distances(x: FloatArray, z: Rows, weights: FloatArray | None = None) -> FloatArray:
    """sum_c ((x_ic - z_jc) w_c)^2, shape (n, m), for rows that are `ready`.

    Dense rows: the sum of squared differences. CSR: from norms and inner products, which would cancel where rows are
    close; those few are computed from their differences.
    """
    out = np.empty((x.shape[0], z.shape[0]))
    if is_narrow(z):
        own = np.ones(x.shape[1]) if weights is None else weights
        for i, point in enumerate(x):
            narrow_distances(z, point, own, out[i])
        return out
    points, rows = x if weights is None else x * weights, divided(z, weights)
    if not is_sparse(rows):
        from scipy.spatial.distance import cdist  # slow to import

        return np.asarray(cdist(points, cast(AnyArray, rows), "sqeuclidean"))
    norms = squared_norms(rows)
    for i, point in enumerate(points):
        total = norms + point @ point
        out[i] = total - 2.0 * (rows @ point)
        near = np.flatnonzero(out[i] <= _CANCELLED * total)
        for low in range(0, near.size, 1024):
            part = near[low : low + 1024]
            difference = rows[part].toarray() - point
            out[i, part] = np.einsum("ij,ij->i", difference, difference)
    return out


def first_rows(rows: Rows, n: int | None) -> Rows:
    """The first n rows; the table itself, not a copy, where that is all of them or n is None."""
    return rows if n is None or n == rows.shape[0] else rows[:n]


def spread(n: int, most: int) -> IntArray:
    """At most `most` row numbers out of n, evenly spread and without a period: steps of the golden ratio."""
    if n <= most:
        return np.arange(n)
    return np.unique((np.arange(most) * 0.6180339887498949 % 1.0 * n).astype(np.int64))


# -- units of columns -------------------------------------------------------------------------------------------


class ColumnUnits(NamedTuple):
    """Of each column over some rows: the mean, the standard deviation, 0 if constant up to rounding, shapes (d,)."""

    means: FloatArray
    deviations: FloatArray

    def origin(self, constants: bool = False) -> FloatArray | None:
        """Means of the columns that are far from zero for their spread, zero for all others, (d,); None if none is far.

        `constants` are counted among them if they are far from zero for the spread of all columns together.
        """
        total = float(np.sqrt(np.square(self.deviations).sum())) if constants else 0.0
        spread = np.where(self.deviations > 0.0, self.deviations, total)
        far = (spread > 0.0) & (np.abs(self.means) > _FAR * spread)
        return np.where(far, self.means, 0.0) if far.any() else None


def rounding(x: Rows) -> float:
    """The share of a column's largest entry that its standard deviation must exceed, or the column is constant.

    Numbers are computed in double precision, with a relative error of at most 1e-13, and rounded to the precision that
    the table is stored in: 1e-13 for tables in double precision, 1.2e-7 in single, 9.8e-4 in half precision.
    """
    dtype = np.dtype(getattr(x, "dtype", np.float64))
    stored = float(np.finfo(dtype).eps) if dtype.kind == "f" and dtype.itemsize < 8 else 0.0
    return max(_COMPUTED, stored)


def column_units(x: Rows) -> ColumnUnits:
    """Means and standard deviations of the columns of x (N, d), in two passes, block by block.

    Squares are of numbers divided by a power of two, so that they are neither zero nor infinite.
    """
    if isinstance(x, RemoteRows):
        return x.column_units()
    n, d = x.shape
    total, squares, largest = np.zeros(d), np.zeros(d), np.zeros(d)
    for rows in dense_blocks(x):
        total += rows.sum(axis=0)
        largest = np.maximum(largest, np.abs(rows).max(axis=0))
    mean, powers = total / n, np.frexp(largest)[1]
    for rows in dense_blocks(x):
        squares += np.square(np.ldexp(rows - mean, -powers)).sum(axis=0)
    deviations = np.ldexp(np.sqrt(squares / n), powers)
    varying = (deviations > rounding(x) * largest) & (deviations >= _TINY)
    return ColumnUnits(mean, np.where(varying, deviations, 0.0))


def column_scales(x: Rows) -> Scales:
    """Standard deviation of each column over the rows, 0 for constant ones."""
    return tuple(column_units(x).deviations.tolist())


def reciprocals(scales: Scales) -> FloatArray:
    """1 / s_c, and 0 for columns that do not count."""
    divisors = np.array(scales)
    return np.asarray(np.divide(1.0, divisors, out=np.zeros_like(divisors), where=divisors > 0.0))


def median_distance(x: Rows, scales: Scales | None) -> float:
    """Median of the distances between different rows of x, of at most 300 of them; 1 where all are equal."""
    rows = dense(divided(x[spread(x.shape[0], _MOST_COMPARED)], None if scales is None else reciprocals(scales)))
    squares = squared_distances(rows, rows)[np.triu_indices(rows.shape[0], 1)]
    apart = squares[squares > 0.0]
    return float(np.sqrt(np.median(apart))) if apart.size else 1.0
