"""Small dense linear algebra for the group Lasso, compiled, with a fixed order of summation; and how rows are taken in.

Results are the same on every call and with any number of threads, which a threaded BLAS does not promise.

The regression only ever sees (xt, z, rho2) with ``||y - B beta||^2 = ||z - xt' beta||^2 + rho2``; row ``l`` of ``xt``
is column ``l`` of the data, so that every column is contiguous in memory. Either the columns hold the raw
observations, or they hold the triangular factor of them, which has at most P rows however many were seen. Keeping
a square root of the Gram matrix, and not the Gram matrix itself, is what makes residuals accurate when the noise
is small.
"""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import ieee

# Counters start from this and not from a literal 0, for which Numba would compile every function they are passed to
# a second time.
ZERO: int = np.int64(0)  # type: ignore[assignment]


@ieee.kernel
def floats(size: int) -> FloatArray:
    """Return an uninitialised vector. (Allocating through these helpers keeps compilation short.)"""
    return np.empty(size)


@ieee.kernel
def integers(size: int) -> IntArray:
    """Return an uninitialised vector of integers."""
    return np.empty(size, dtype=np.int64)


@ieee.kernel
def matrix(rows: int, columns: int) -> FloatArray:
    """Return a matrix of zeros."""
    return np.zeros((rows, columns))


@ieee.leaf
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


@ieee.leaf
def add_scaled(target: FloatArray, scale: float, values: FloatArray, n: int) -> None:
    """Add scale * values[i] to target[i] for i < n."""
    for i in range(n):
        target[i] += scale * values[i]


@ieee.leaf
def cholesky(a: FloatArray, n: int, floor: float, scratch: FloatArray) -> None:
    """Factor a = L L' in place (lower triangle); a pivot below ``floor`` times its diagonal becomes the diagonal.

    A direction lost to rounding is then left alone instead of amplified. Callers refine against exact residuals
    or search along the step, so they need no more than that. Four columns are eliminated at a time; ``scratch`` has
    room for 5 n numbers.
    """
    diagonal = scratch[4 * n : 5 * n]
    for i in range(n):
        diagonal[i] = a[i, i]
    p0 = scratch[:n]
    p1 = scratch[n : 2 * n]
    p2 = scratch[2 * n : 3 * n]
    p3 = scratch[3 * n : 4 * n]
    for k in range(0, n, 4):
        end = min(k + 4, n)
        for i in range(k, end):
            for j in range(k, i + 1):
                left = a[i, j]
                for p in range(k, j):
                    left -= a[i, p] * a[j, p]
                if j < i:
                    a[i, j] = left / a[j, j]
                else:
                    kept = left if left > floor * diagonal[i] else diagonal[i]
                    a[i, i] = math.sqrt(kept) if kept > 0.0 else 1.0
        if end == n:
            break
        v0 = 1.0 / a[k, k]
        v1 = 1.0 / a[k + 1, k + 1]
        v2 = 1.0 / a[k + 2, k + 2]
        v3 = 1.0 / a[k + 3, k + 3]
        l10 = a[k + 1, k]
        l20 = a[k + 2, k]
        l21 = a[k + 2, k + 1]
        l30 = a[k + 3, k]
        l31 = a[k + 3, k + 1]
        l32 = a[k + 3, k + 2]
        for i in range(end, n):
            row = a[i, k:end]
            x0 = row[0] * v0
            x1 = (row[1] - x0 * l10) * v1
            x2 = (row[2] - x0 * l20 - x1 * l21) * v2
            x3 = (row[3] - x0 * l30 - x1 * l31 - x2 * l32) * v3
            row[0] = p0[i] = x0
            row[1] = p1[i] = x1
            row[2] = p2[i] = x2
            row[3] = p3[i] = x3
        # Slices, because an index that is not known to be positive costs a test.
        q0 = p0[end:]
        q1 = p1[end:]
        q2 = p2[end:]
        q3 = p3[end:]
        for i in range(end, n):
            row = a[i, end : i + 1]
            l0 = p0[i]
            l1 = p1[i]
            l2 = p2[i]
            l3 = p3[i]
            for j in range(row.size):
                row[j] -= (l0 * q0[j] + l1 * q1[j]) + (l2 * q2[j] + l3 * q3[j])


@ieee.leaf
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


@ieee.leaf
def subtract_rows(row: FloatArray, weights: FloatArray, rows: FloatArray, n: int) -> None:
    """Subtract sum over j < n of weights[j] rows[j] from ``row``, four at a time."""
    width = row.size
    whole = n - n % 4
    for j in range(0, whole, 4):
        f0 = weights[j]
        f1 = weights[j + 1]
        f2 = weights[j + 2]
        f3 = weights[j + 3]
        b0 = rows[j]
        b1 = rows[j + 1]
        b2 = rows[j + 2]
        b3 = rows[j + 3]
        for c in range(width):
            row[c] -= (f0 * b0[c] + f1 * b1[c]) + (f2 * b2[c] + f3 * b3[c])
    for j in range(whole, n):
        f0 = weights[j]
        b0 = rows[j]
        for c in range(width):
            row[c] -= f0 * b0[c]


@ieee.leaf
def solve_lower_many(factor: FloatArray, b: FloatArray, n: int) -> None:
    """Overwrite the rows of b (n, k) with L^-1 b."""
    for i in range(n):
        row = b[i]
        subtract_rows(row, factor[i], b, i)
        inverse = 1.0 / factor[i, i]
        for c in range(row.size):
            row[c] *= inverse


@ieee.leaf
def solve_upper_many(factor: FloatArray, b: FloatArray, n: int, scratch: FloatArray) -> None:
    """Overwrite the rows of b (n, k) with L'^-1 b; ``scratch`` has room for n numbers."""
    for i in range(n - 1, -1, -1):
        row = b[i]
        below = n - 1 - i
        for j in range(below):
            scratch[j] = factor[i + 1 + j, i]
        subtract_rows(row, scratch, b[i + 1 :], below)
        inverse = 1.0 / factor[i, i]
        for c in range(row.size):
            row[c] *= inverse


@ieee.leaf
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


# Between these magnitudes the squares in sqrt(a^2 + b^2) neither overflow nor lose bits to underflow.
_SAFE_SMALL = 1e-140
_SAFE_LARGE = 1e140


@ieee.leaf
def length(a: float, b: float) -> float:
    """Return sqrt(a^2 + b^2) from IEEE operations only, so that it is the same on every machine."""
    large = max(abs(a), abs(b))
    if large == 0.0:
        return 0.0
    if large > _SAFE_LARGE or large < _SAFE_SMALL:
        ratio = min(abs(a), abs(b)) / large
        return large * math.sqrt(1.0 + ratio * ratio)
    return math.sqrt(a * a + b * b)


@ieee.entry
def centre_row(row: FloatArray, y: float, mean: FloatArray, count: float) -> tuple[FloatArray, float]:
    """Project an observation on the complement of the intercept and update the running means in place.

    The residual sum of squares after an unpenalised intercept is that of the Helmert rows
    ``sqrt((t-1)/t) (x_t - mean_{t-1})``: this is the first Givens rotation of the factor of [1 | B | y], so rows
    already stored never have to be centred again. ``mean`` (P + 1,) ends with the mean of y; ``count`` is t >= 1, or
    the weight of all observations over that of this one.
    """
    n_columns = row.size
    shrink = math.sqrt((count - 1.0) / count)
    out = np.empty(n_columns)
    for i in range(n_columns):
        step = row[i] - mean[i]
        mean[i] += step / count
        out[i] = shrink * step
    step = y - mean[n_columns]
    mean[n_columns] += step / count
    return out, shrink * step


@ieee.entry
def rotate_in(xt: FloatArray, z: FloatArray, rho: FloatArray, gram: FloatArray, row: FloatArray, y: float) -> int:
    """Absorb one observation into the triangular factor by Givens rotations, in place, in O(P^2).

    Return the number of leading rows of the factor that may be nonzero, at most the number of observations.
    ``xt`` (P, P) lower triangular with ``xt xt' = B'B``, ``z`` (P,), ``rho`` (1,) the norm of what no column
    explains, ``gram`` (P, P) = B'B by a rank-one update (used for Newton systems only, never for residuals).
    """
    n_columns = row.size
    used = 0
    cosine = np.empty(n_columns)
    sine = np.empty(n_columns)
    for column in range(n_columns):
        left = row[column]
        if left != 0.0:
            for other in range(n_columns):
                gram[column, other] += left * row[other]
        for i in range(column):
            kept = xt[column, i]
            xt[column, i] = cosine[i] * kept + sine[i] * left
            left = cosine[i] * left - sine[i] * kept
        norm = length(xt[column, column], left)
        if norm > 0.0:
            used = column + 1
            cosine[column] = xt[column, column] / norm
            sine[column] = left / norm
        else:
            cosine[column] = 1.0
            sine[column] = 0.0
        xt[column, column] = norm
    left = y
    for i in range(n_columns):
        kept = z[i]
        z[i] = cosine[i] * kept + sine[i] * left
        left = cosine[i] * left - sine[i] * kept
    rho[0] = length(rho[0], left)
    return used
