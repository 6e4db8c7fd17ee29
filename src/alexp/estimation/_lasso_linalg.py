"""Small dense linear algebra for the group Lasso, compiled, with a fixed order of summation.

Results are the same on every call and with any number of threads, which a threaded BLAS does not promise.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

FloatArray = npt.NDArray[np.float64]
PIVOT_FLOOR = 4.0 * np.finfo(np.float64).eps


@njit(cache=True, nogil=True)
def dot(a: FloatArray, b: FloatArray, n: int) -> float:
    """Return sum of a[i] b[i] over i < n with eight fixed partial sums (vectorises without reassociation)."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = n - n % 8
    for i in range(0, whole, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    tail = 0.0
    for i in range(whole, n):
        tail += a[i] * b[i]
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7)) + tail


@njit(cache=True, nogil=True)
def cholesky(a: FloatArray, n: int) -> None:
    """Factor a = L L' in place (lower triangle). A pivot lost to rounding is floored, relative to its diagonal.

    The floor turns a numerically singular matrix into a preconditioner; callers refine against exact residuals.
    """
    for i in range(n):
        row = a[i]
        diagonal = row[i]
        for j in range(i):
            row[j] = (row[j] - dot(row, a[j], j)) / a[j, j]
        pivot = diagonal - dot(row, row, i)
        floor = PIVOT_FLOOR * diagonal
        row[i] = math.sqrt(pivot if pivot > floor else floor)


@njit(cache=True, nogil=True)
def solve_factored(factor: FloatArray, b: FloatArray, n: int) -> None:
    """Overwrite b with (L L')^-1 b."""
    for i in range(n):
        b[i] = (b[i] - dot(factor[i], b, i)) / factor[i, i]
    for i in range(n - 1, -1, -1):
        value = b[i] / factor[i, i]
        b[i] = value
        row = factor[i]
        for j in range(i):
            b[j] -= value * row[j]


@njit(cache=True, nogil=True)
def solve_lower_many(factor: FloatArray, b: FloatArray, n: int) -> None:
    """Overwrite the rows of b (n, k) with L^-1 b."""
    width = b.shape[1]
    for i in range(n):
        row = b[i]
        for j in range(i):
            scale = factor[i, j]
            other = b[j]
            for c in range(width):
                row[c] -= scale * other[c]
        inverse = 1.0 / factor[i, i]
        for c in range(width):
            row[c] *= inverse


@njit(cache=True, nogil=True)
def solve_upper_many(factor: FloatArray, b: FloatArray, n: int) -> None:
    """Overwrite the rows of b (n, k) with L'^-1 b."""
    width = b.shape[1]
    for i in range(n - 1, -1, -1):
        row = b[i]
        inverse = 1.0 / factor[i, i]
        for c in range(width):
            row[c] *= inverse
        for j in range(i):
            scale = factor[i, j]
            other = b[j]
            for c in range(width):
                other[c] -= scale * row[c]
