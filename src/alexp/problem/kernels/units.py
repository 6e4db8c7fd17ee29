"""What relative kernels are relative to: the spread of each column and the median distance over the candidates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.problem.descriptions import Description
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.rows import Rows, dense, dense_blocks, divided, spread, squared_distances

Scales = tuple[float, ...]  # one divisor per column; 0 for columns that do not count

_MOST = 300  # candidates whose distances the median is taken over: subsets of inputs take thousands of medians
_COMPUTED = 1e-12  # relative error that a descriptor computed in double precision may have: some 4,500 roundings
_TINY = float(np.finfo(np.float64).tiny)
FAR = 1e3  # means of more standard deviations than this are taken off: squares would lose over six digits to them


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
        far = (spread > 0.0) & (np.abs(self.means) > FAR * spread)
        return np.where(far, self.means, 0.0) if far.any() else None


def checked_scales(scales: Iterable[float] | None) -> Scales | None:
    """Scales as a tuple, or raise unless they are numbers of zero or more."""
    if scales is None:
        return None
    numbers = tuple(float(s) for s in scales)
    if not numbers or not all(np.isfinite(s) and s >= 0.0 for s in numbers):
        raise ValueError("scales must be one number per column, positive or zero for columns that do not count")
    return numbers


def checked_means(means: Iterable[float] | None, scales: Scales | None) -> tuple[float, ...] | None:
    """Means as a tuple, or raise unless they are finite numbers, one for each of the scales."""
    if means is None:
        return None
    numbers = tuple(float(m) for m in means)
    if scales is None or len(numbers) != len(scales) or not all(np.isfinite(numbers)):
        raise ValueError("means must be one finite number per column, beside scales")
    return numbers


def rounding(x: Rows) -> float:
    """The share of a column's largest entry that its standard deviation must exceed, or the column is constant.

    Numbers are computed in double precision, with a relative error of at most 1e-12, and rounded to the precision that
    the table is stored in: 1e-12 for tables in double precision, 1.2e-7 in single, 9.8e-4 in half precision.
    """
    dtype = np.dtype(getattr(x, "dtype", np.float64))
    stored = float(np.finfo(dtype).eps) if dtype.kind == "f" and dtype.itemsize < 8 else 0.0
    return max(_COMPUTED, stored)


def column_units(x: Rows) -> ColumnUnits:
    """Means and standard deviations of the columns of x (N, d), in two passes, block by block.

    Squares are of numbers divided by a power of two, so that they are neither zero nor infinite.
    """
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


def with_arrays(described: Description | None, *names: str) -> Description | None:
    """A description of a kernel with some fields of numbers as arrays."""
    if described is not None:
        numbers = {name: described["fields"][name] for name in names}
        described["fields"] |= {name: np.array(one) for name, one in numbers.items() if one is not None}
    return described


def weights(kernel: Kernel, scales: Scales | None) -> FloatArray | None:
    """What columns are multiplied by, shape (d,); None for ones. Raises where the kernel still has to be fitted."""
    if not kernel.is_fitted:
        raise ValueError(
            f"{kernel.name!r} is relative to the candidates: use kernel.fitted(X) with the (N, d) candidates first"
        )
    return None if scales is None else reciprocals(scales)


def reciprocals(scales: Scales) -> FloatArray:
    """1 / s_c, and 0 for columns that do not count."""
    divisors = np.array(scales)
    return np.asarray(np.divide(1.0, divisors, out=np.zeros_like(divisors), where=divisors > 0.0))


def median_distance(x: Rows, scales: Scales | None) -> float:
    """Median of the distances between different rows of x, of at most 300 of them; 1 where all are equal."""
    rows = dense(divided(x[spread(x.shape[0], _MOST)], None if scales is None else reciprocals(scales)))
    squares = squared_distances(rows, rows)[np.triu_indices(rows.shape[0], 1)]
    apart = squares[squares > 0.0]
    return float(np.sqrt(np.median(apart))) if apart.size else 1.0
