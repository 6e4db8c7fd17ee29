"""Small dense linear algebra for the group Lasso, compiled, with a fixed order of summation.

Results are the same on every call and with any number of threads, which a threaded BLAS does not promise.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def floats(size: int) -> FloatArray:
    """Return an uninitialised vector. (Allocating through these helpers keeps compilation short.)"""
    return np.empty(size)


@njit(cache=True, nogil=True, error_model="numpy")
def integers(size: int) -> IntArray:
    """Return an uninitialised vector of integers."""
    return np.empty(size, dtype=np.int64)


@njit(cache=True, nogil=True, error_model="numpy")
def matrix(rows: int, columns: int) -> FloatArray:
    """Return a matrix of zeros."""
    return np.zeros((rows, columns))


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def cholesky(a: FloatArray, n: int, floor: float) -> None:
    """Factor a = L L' in place (lower triangle); a pivot below ``floor`` times its diagonal becomes the diagonal.

    A direction lost to rounding is then left alone instead of amplified. Callers refine against exact residuals
    or search along the step, so they need no more than that.
    """
    for i in range(n):
        row = a[i]
        diagonal = row[i]
        for j in range(i):
            row[j] = (row[j] - dot(row, a[j], j)) / a[j, j]
        pivot = diagonal - dot(row, row, i)
        row[i] = math.sqrt(pivot if pivot > floor * diagonal else diagonal)


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def add_gram(rows: FloatArray, n_rows: int, out: FloatArray, n: int) -> None:
    """Add rows' rows (n, n) to the lower triangle of ``out``; ``rows`` is (n_rows, n)."""
    whole = n_rows - n_rows % 4
    for a in range(0, whole, 4):
        r0 = rows[a]
        r1 = rows[a + 1]
        r2 = rows[a + 2]
        r3 = rows[a + 3]
        for i in range(n):
            x0 = r0[i]
            x1 = r1[i]
            x2 = r2[i]
            x3 = r3[i]
            target = out[i]
            for j in range(i + 1):
                target[j] += (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j])
    for a in range(whole, n_rows):
        r0 = rows[a]
        for i in range(n):
            x0 = r0[i]
            target = out[i]
            for j in range(i + 1):
                target[j] += x0 * r0[j]
