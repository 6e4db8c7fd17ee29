"""Distances and inner products with rows in single precision, without a copy of them in double precision.

Eight running sums per row: the compiler can add them at once, and the order of summation is the same everywhere.
"""

from __future__ import annotations

from alexp.common.arrays import FloatArray, NarrowArray
from alexp.common.compiling import ieee


@ieee.entry
def narrow_distances(rows: NarrowArray, point: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """sum_c ((z_c - x_c) w_c)^2 of every row z (n, d), into out (n,)."""
    d = rows.shape[1]
    full = d - d % 8
    for i in range(rows.shape[0]):
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        for k in range(0, full, 8):
            t0 = (rows[i, k] - point[k]) * weights[k]
            t1 = (rows[i, k + 1] - point[k + 1]) * weights[k + 1]
            t2 = (rows[i, k + 2] - point[k + 2]) * weights[k + 2]
            t3 = (rows[i, k + 3] - point[k + 3]) * weights[k + 3]
            t4 = (rows[i, k + 4] - point[k + 4]) * weights[k + 4]
            t5 = (rows[i, k + 5] - point[k + 5]) * weights[k + 5]
            t6 = (rows[i, k + 6] - point[k + 6]) * weights[k + 6]
            t7 = (rows[i, k + 7] - point[k + 7]) * weights[k + 7]
            a0 += t0 * t0
            a1 += t1 * t1
            a2 += t2 * t2
            a3 += t3 * t3
            a4 += t4 * t4
            a5 += t5 * t5
            a6 += t6 * t6
            a7 += t7 * t7
        total = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
        for k in range(full, d):
            t0 = (rows[i, k] - point[k]) * weights[k]
            total += t0 * t0
        out[i] = total


@ieee.entry
def narrow_products(rows: NarrowArray, point: FloatArray, out: FloatArray) -> None:
    """<z, x> of every row z (n, d), into out (n,)."""
    d = rows.shape[1]
    full = d - d % 8
    for i in range(rows.shape[0]):
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        for k in range(0, full, 8):
            a0 += rows[i, k] * point[k]
            a1 += rows[i, k + 1] * point[k + 1]
            a2 += rows[i, k + 2] * point[k + 2]
            a3 += rows[i, k + 3] * point[k + 3]
            a4 += rows[i, k + 4] * point[k + 4]
            a5 += rows[i, k + 5] * point[k + 5]
            a6 += rows[i, k + 6] * point[k + 6]
            a7 += rows[i, k + 7] * point[k + 7]
        total = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
        for k in range(full, d):
            total += rows[i, k] * point[k]
        out[i] = total
