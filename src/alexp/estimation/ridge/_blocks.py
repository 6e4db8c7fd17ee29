"""Means and quadratic forms of one model on a block of candidates.

For coefficients theta and factor R, at a candidate with features phi,

    mean = theta'phi,   q = ||R^-T (1?, phi)||^2,

q by forward substitution: a sum of squares, which cannot be negative.  Every operation is one IEEE multiply or
add in a fixed order, so a plain NumPy loop over features reproduces the results bit for bit.  The loops over a
block are written so that they vectorise: few distinct arrays, and scratch rows a constant BLOCK apart, so that
the compiler sees they do not overlap.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, RealArray
from alexp.common.compiling import checked

# A count that starts from a literal 0 makes Numba compile what it is passed to a second time.
ZERO: int = np.int64(0)  # type: ignore[assignment]

BLOCK = 256  # candidates per block; the rows of a small model then fit the first-level cache


@checked.leaf
def unpack(
    packed: FloatArray,
    rows: int,
    lead: int,
    shift: FloatArray,
    inverse: FloatArray,
    lower: FloatArray,
) -> float:
    """Lay out one factor for forward substitution u_k = ((phi_k - shift_k) - sum_l lower_kl u_l) * inverse_k.

    ``shift`` carries the intercept's coordinate u_0 = 1/R_00, whose square is returned: it is the same for all
    candidates.  Before any observation R_00 = 0 and the (infinite) coordinate is left out.  Row k of the strictly
    lower triangular part starts at k(k-1)/2 of ``lower``.
    """
    constant = 0.0
    if lead == 1 and packed[0] > 0.0:
        constant = 1.0 / packed[0]
    size = rows - 1 - lead
    for k in range(size):
        shift[k] = packed[1 + k] * constant if lead == 1 else 0.0
    position = rows if lead == 1 else 0
    for k in range(size):
        inverse[k] = 1.0 / packed[position]
        for i in range(k + 1, size):
            lower[(i * (i - 1)) // 2 + k] = packed[position + i - k]
        position += rows - lead - k
    return constant * constant


@checked.leaf
def block_means(
    table: RealArray, columns: IntArray, low: int, high: int, coefficients: RealArray, mean: RealArray
) -> None:
    """mean[i] = sum_k coefficients_k table[columns_k, low + i], summed in column order."""
    size = columns.shape[0]
    out = mean[: high - low]
    n = out.shape[0]
    done = size % 4
    if done == 0:
        out[:] = 0.0
    else:
        last = done - 1
        c0, c1, c2 = coefficients[0], coefficients[min(1, last)], coefficients[last]
        g0, g1 = table[columns[0], low:high], table[columns[min(1, last)], low:high]
        g2 = table[columns[last], low:high]
        if done == 1:
            for i in range(n):
                out[i] = c0 * g0[i]
        elif done == 2:
            for i in range(n):
                out[i] = c0 * g0[i] + c1 * g1[i]
        else:
            for i in range(n):
                out[i] = (c0 * g0[i] + c1 * g1[i]) + c2 * g2[i]
    while done < size:
        c0, c1, c2, c3 = coefficients[done], coefficients[done + 1], coefficients[done + 2], coefficients[done + 3]
        g0, g1 = table[columns[done], low:high], table[columns[done + 1], low:high]
        g2, g3 = table[columns[done + 2], low:high], table[columns[done + 3], low:high]
        for i in range(n):
            out[i] = (((out[i] + c0 * g0[i]) + c1 * g1[i]) + c2 * g2[i]) + c3 * g3[i]
        done += 4


@checked.leaf
def _eliminate(out: RealArray, known: RealArray, lower: RealArray, row: int, column: int, n: int) -> None:
    """Subtract four known coordinates (rows of ``known``) from four rows of ``out``, in order of column."""
    b0 = (row * (row - 1)) // 2 + column
    b1 = b0 + row
    b2 = b1 + row + 1
    b3 = b2 + row + 2
    a00, a01, a02, a03 = lower[b0], lower[b0 + 1], lower[b0 + 2], lower[b0 + 3]
    a10, a11, a12, a13 = lower[b1], lower[b1 + 1], lower[b1 + 2], lower[b1 + 3]
    a20, a21, a22, a23 = lower[b2], lower[b2 + 1], lower[b2 + 2], lower[b2 + 3]
    a30, a31, a32, a33 = lower[b3], lower[b3 + 1], lower[b3 + 2], lower[b3 + 3]
    for i in range(n):
        u0, u1, u2, u3 = known[i], known[BLOCK + i], known[2 * BLOCK + i], known[3 * BLOCK + i]
        out[i] = (((out[i] - a00 * u0) - a01 * u1) - a02 * u2) - a03 * u3
        out[BLOCK + i] = (((out[BLOCK + i] - a10 * u0) - a11 * u1) - a12 * u2) - a13 * u3
        out[2 * BLOCK + i] = (((out[2 * BLOCK + i] - a20 * u0) - a21 * u1) - a22 * u2) - a23 * u3
        out[3 * BLOCK + i] = (((out[3 * BLOCK + i] - a30 * u0) - a31 * u1) - a32 * u2) - a33 * u3


@checked.leaf
def _finish(out: RealArray, inverse: RealArray, lower: RealArray, row: int, total: RealArray) -> None:
    """Solve the 4 x 4 triangle among four rows of ``out``, in place, and add the squares to ``total``."""
    v0, v1, v2, v3 = inverse[row], inverse[row + 1], inverse[row + 2], inverse[row + 3]
    b1 = ((row + 1) * row) // 2 + row
    b2 = b1 + row + 1
    b3 = b2 + row + 2
    a10, a20, a21 = lower[b1], lower[b2], lower[b2 + 1]
    a30, a31, a32 = lower[b3], lower[b3 + 1], lower[b3 + 2]
    for i in range(total.shape[0]):
        u0 = out[i] * v0
        u1 = (out[BLOCK + i] - a10 * u0) * v1
        u2 = ((out[2 * BLOCK + i] - a20 * u0) - a21 * u1) * v2
        u3 = (((out[3 * BLOCK + i] - a30 * u0) - a31 * u1) - a32 * u2) * v3
        out[i] = u0
        out[BLOCK + i] = u1
        out[2 * BLOCK + i] = u2
        out[3 * BLOCK + i] = u3
        total[i] = (((total[i] + u0 * u0) + u1 * u1) + u2 * u2) + u3 * u3


@checked.leaf
def _single_row(
    out: RealArray, coords: RealArray, inverse: RealArray, lower: RealArray, row: int, total: RealArray
) -> None:
    """The same elimination for one row, where fewer than four are left."""
    n = total.shape[0]
    base = (row * (row - 1)) // 2
    done = 0
    while done + 4 <= row:
        known = coords[done * BLOCK : (done + 4) * BLOCK]
        a0, a1, a2, a3 = lower[base + done], lower[base + done + 1], lower[base + done + 2], lower[base + done + 3]
        for i in range(n):
            out[i] = (((out[i] - a0 * known[i]) - a1 * known[BLOCK + i]) - a2 * known[2 * BLOCK + i]) - (
                a3 * known[3 * BLOCK + i]
            )
        done += 4
    while done < row:
        known = coords[done * BLOCK : done * BLOCK + n]
        a0 = lower[base + done]
        for i in range(n):
            out[i] = out[i] - a0 * known[i]
        done += 1
    scale = inverse[row]
    for i in range(n):
        u = out[i] * scale
        out[i] = u
        total[i] = total[i] + u * u


@checked.leaf
def block_quadratics(
    table: RealArray,
    columns: IntArray,
    low: int,
    high: int,
    shift: RealArray,
    inverse: RealArray,
    lower: RealArray,
    constant: float,
    coords: RealArray,
    quadratic: RealArray,
) -> None:
    """quadratic[i] = constant + sum_k u_k^2 at candidate low + i; ``coords`` (d_j * BLOCK,) is scratch for u."""
    n = high - low
    size = columns.shape[0]
    total = quadratic[:n]
    total[:] = constant
    row = ZERO
    while row + 4 <= size:
        out = coords[row * BLOCK : (row + 4) * BLOCK]
        s0, s1, s2, s3 = shift[row], shift[row + 1], shift[row + 2], shift[row + 3]
        f0, f1 = table[columns[row], low:high], table[columns[row + 1], low:high]
        f2, f3 = table[columns[row + 2], low:high], table[columns[row + 3], low:high]
        for i in range(n):
            out[i] = f0[i] - s0
            out[BLOCK + i] = f1[i] - s1
            out[2 * BLOCK + i] = f2[i] - s2
            out[3 * BLOCK + i] = f3[i] - s3
        for column in range(0, row, 4):
            _eliminate(out, coords[column * BLOCK : (column + 4) * BLOCK], lower, row, column, n)
        _finish(out, inverse, lower, row, total)
        row += 4
    while row < size:
        feature = table[columns[row], low:high]
        one = coords[row * BLOCK : row * BLOCK + n]
        offset = shift[row]
        for i in range(n):
            one[i] = feature[i] - offset
        _single_row(one, coords, inverse, lower, row, total)
        row += 1
