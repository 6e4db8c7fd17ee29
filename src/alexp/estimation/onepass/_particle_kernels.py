"""Compiled kernels of Gaussian processes with Matern 5/2 whose points are divided by the lengthscales already."""

from __future__ import annotations

import math

from alexp.common.arrays import FloatArray
from alexp.common.compiling import ieee
from alexp.estimation.onepass._kernels import _dot, _forward

BLOCK = 128  # candidates whose rows stay in the cache
_FIVE = math.sqrt(5.0)


@ieee.loose_leaf
def _matern(square: float) -> float:
    a = _FIVE * math.sqrt(square)
    return (1.0 + a * (1.0 + a / 3.0)) * math.exp(-a)


@ieee.entry
def factorise(points: FloatArray, noise: FloatArray, factor: FloatArray, first: int) -> None:
    """Rows `first`, ... of the Cholesky factor of K + diag(noise), in place; points (n, d), noise (n,).

    A row depends on the rows before it and nothing else: it has the same bits whenever it is made.
    """
    n, d = points.shape
    for i in range(first, n):
        row = factor[i]
        for k in range(i):
            square = 0.0
            for c in range(d):
                apart = points[i, c] - points[k, c]
                square += apart * apart
            row[k] = _matern(square)
        _forward(factor, i, row)
        row[i] = math.sqrt(max(1.0 + noise[i] - _dot(row, row, i), noise[i]))


@ieee.entry
def solve(factor: FloatArray, first: int, right: FloatArray) -> None:
    """Entries `first`, ... of the solutions z of L z = right, in place, for each right-hand side (sides, n)."""
    for side in range(right.shape[0]):
        z = right[side]
        for k in range(first, right.shape[1]):
            row = factor[k]
            z[k] = (z[k] - _dot(row, z, k)) / row[k]


@ieee.loose_leaf
def _subtract_eight(target: FloatArray, w: FloatArray, rows: FloatArray, k: int, low: int, high: int) -> None:
    a, b, c, d = w[k], w[k + 1], w[k + 2], w[k + 3]
    e, f, g, h = w[k + 4], w[k + 5], w[k + 6], w[k + 7]
    ra, rb, rc, rd = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
    re, rf, rg, rh = rows[k + 4], rows[k + 5], rows[k + 6], rows[k + 7]
    for i in range(low, high):
        first = a * ra[i] + b * rb[i] + c * rc[i] + d * rd[i]
        target[i] -= first + (e * re[i] + f * rf[i] + g * rg[i] + h * rh[i])


@ieee.loose_leaf
def _subtract_one(target: FloatArray, w: float, row: FloatArray, low: int, high: int) -> None:
    for i in range(low, high):
        target[i] -= w * row[i]


@ieee.loose_leaf
def _similarities(out: FloatArray, table: FloatArray, point: FloatArray, low: int, high: int) -> None:
    """Matern of the distances of candidates low..high-1 of a table (d, N) to a point (d,), into `out` (N,)."""
    for i in range(low, high):
        out[i] = 0.0
    for c in range(point.shape[0]):
        own, column = point[c], table[c]
        for i in range(low, high):
            out[i] += (column[i] - own) * (column[i] - own)
    for i in range(low, high):
        out[i] = _matern(out[i])


@ieee.entry
def extend(factor: FloatArray, points: FloatArray, table: FloatArray, z: FloatArray, first: int) -> None:
    """Rows `first`, ... of z = L^-1 K(points, table), in place; points (n, d), candidates (d, N), z (capacity, N)."""
    n, size = points.shape[0], table.shape[1]
    for low in range(0, size, BLOCK):
        high = min(low + BLOCK, size)
        for i in range(first, n):
            target, weights = z[i], factor[i]
            _similarities(target, table, points[i], low, high)
            whole = i // 8 * 8
            for k in range(0, whole, 8):
                _subtract_eight(target, weights, z, k, low, high)
            for k in range(whole, i):
                _subtract_one(target, weights[k], z[k], low, high)
            for j in range(low, high):
                target[j] /= weights[i]


@ieee.entry
def accumulate(z: FloatArray, sides: FloatArray, first: int, sums: FloatArray) -> None:
    """Add z_i^2, z_i z_m and z_i z_e of rows i = `first`, ... to sums (3, N); sides (2, n) are z_m and z_e."""
    squares, means, ones = sums[0], sums[1], sums[2]
    for i in range(first, sides.shape[1]):
        row, mean, one = z[i], sides[0, i], sides[1, i]
        for j in range(row.shape[0]):
            squares[j] += row[j] * row[j]
            means[j] += row[j] * mean
            ones[j] += row[j] * one
