"""Data of the online group Lasso: one row in, a square-root sufficient statistic out.

The regression only ever sees (xt, z, rho2) with ``||y - B beta||^2 = ||z - xt' beta||^2 + rho2``; row ``l`` of ``xt``
is column ``l`` of the data, so that every column is contiguous in memory. Either the columns hold the raw
observations, or they hold the triangular factor of them, which has at most P rows however many were seen. Keeping
a square root of the Gram matrix, and not the Gram matrix itself, is what makes residuals accurate when the noise
is small.
"""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.compiling import ieee

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
