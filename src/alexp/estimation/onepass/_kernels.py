"""Compiled kernels on lower triangular factors, one per cell, in arrays of shape (cells, capacity, capacity)."""

from __future__ import annotations

import math

from alexp.common.arrays import FloatArray
from alexp.common.compiling import ieee


@ieee.loose_leaf
def _dot(left: FloatArray, right: FloatArray, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += left[k] * right[k]
    return total


@ieee.leaf
def _subtract(target: FloatArray, factor: float, row: FloatArray, n: int) -> None:
    for k in range(n):
        target[k] -= factor * row[k]


@ieee.entry
def forward(factors: FloatArray, n: int, right: FloatArray) -> None:
    """Solve L_c z = right_c in place, in every cell c and for each of its right-hand sides (cells, sides, capacity)."""
    for c in range(right.shape[0]):
        for side in range(right.shape[1]):
            z = right[c, side]
            for k in range(n):
                row = factors[c, k]
                z[k] = (z[k] - _dot(row, z, k)) / row[k]


@ieee.entry
def backward(factors: FloatArray, n: int, right: FloatArray) -> None:
    """Solve L_c' x = right_c in place, in every cell c, shape (cells, capacity)."""
    for c in range(right.shape[0]):
        x = right[c]
        for k in range(n - 1, -1, -1):
            row = factors[c, k]
            x[k] /= row[k]
            _subtract(x, x[k], row, k)


@ieee.entry
def drop(factors: FloatArray, n: int, i: int) -> None:
    """Delete row and column i of the n x n matrices L_c L_c', in place.

    What stood in column i below the diagonal is rotated into the columns after it: sums of squares, which lose nothing.
    """
    for c in range(factors.shape[0]):
        own = factors[c]
        for k in range(i + 1, n):
            a, b = own[k, k], own[k, i]
            size = math.sqrt(a * a + b * b)
            cosine, sine = a / size, b / size
            own[k, k] = size
            for m in range(k + 1, n):
                x, y = own[m, k], own[m, i]
                own[m, k] = cosine * x + sine * y
                own[m, i] = cosine * y - sine * x
        for k in range(i + 1, n):
            for m in range(i):
                own[k - 1, m] = own[k, m]
            for m in range(i + 1, k + 1):
                own[k - 1, m - 1] = own[k, m]


@ieee.entry
def grow(factors: FloatArray, n: int, row: FloatArray, diagonal: float, noise: FloatArray) -> None:
    """Append the row (row_c, sqrt(diagonal + noise_c - |row_c|^2)) to every factor.

    ``row`` (cells, capacity); what is left on the diagonal is at least ``noise`` (cells,), in exact arithmetic as well.
    """
    for c in range(factors.shape[0]):
        left = diagonal + noise[c]
        for k in range(n):
            factors[c, n, k] = row[c, k]
            left -= row[c, k] * row[c, k]
        factors[c, n, n] = math.sqrt(max(left, noise[c]))
