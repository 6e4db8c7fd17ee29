"""What relative kernels are relative to: the spread of each column and the median distance over the candidates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.problem.descriptions import Description
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.rows import Rows, dense, dense_blocks, divided, spread, squared_distances

Scales = tuple[float, ...]  # one divisor per column; 0 for columns that do not count

_MOST = 300  # candidates whose distances the median is taken over: subsets of inputs take thousands of medians
_CONSTANT = 1e-12  # standard deviations below this share of the column's size are rounding


def checked_scales(scales: Iterable[float] | None) -> Scales | None:
    """Scales as a tuple, or raise unless they are numbers of zero or more."""
    if scales is None:
        return None
    numbers = tuple(float(s) for s in scales)
    if not numbers or not all(np.isfinite(s) and s >= 0.0 for s in numbers):
        raise ValueError("scales must be one number per column, positive or zero for columns that do not count")
    return numbers


def column_scales(x: Rows) -> Scales:
    """Standard deviation of each column over the rows, 0 for constant ones; in two passes, block by block."""
    n, d = x.shape
    total, squares, largest = np.zeros(d), np.zeros(d), np.zeros(d)
    for rows in dense_blocks(x):
        total += rows.sum(axis=0)
        largest = np.maximum(largest, np.abs(rows).max(axis=0))
    mean = total / n
    for rows in dense_blocks(x):
        squares += np.square(rows - mean).sum(axis=0)
    deviations = np.sqrt(squares / n)
    return tuple(np.where(deviations > _CONSTANT * largest, deviations, 0.0).tolist())


def with_array(described: Description | None, field: str) -> Description | None:
    """A description of a kernel with a field of numbers as an array."""
    if described is not None and described["fields"][field] is not None:
        described["fields"][field] = np.array(described["fields"][field])
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
