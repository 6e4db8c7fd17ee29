"""PopArt: coefficients as robust means of one-sample estimates, set to zero below a threshold (Jang et al. 2022)."""

from __future__ import annotations

from math import sqrt

import numpy as np

from alexp.common.arrays import FloatArray

_FAR = 1e100


def influence(u: FloatArray) -> FloatArray:
    """psi(u) = sign(u) log(1 + |u| + u^2 / 2), Catoni's (2012): linear near zero, logarithmic far away."""
    size = np.abs(u)
    near, far = np.minimum(size, _FAR), np.maximum(size, _FAR)  # u^2 would not be a number far away
    return np.asarray(np.sign(u) * (np.log1p(near + 0.5 * near**2) + 2.0 * np.log(far / _FAR)))


def catoni_mean(samples: FloatArray, alpha: float) -> float:
    """The root m of sum_t psi(alpha (z_t - m)) = 0 for samples (n,); it lies between the smallest and the largest.

    >>> round(catoni_mean(np.array([1.0, 2.0, 3.0]), 0.1), 12)
    2.0
    """
    from scipy.optimize import brentq  # slow to import, needed here only

    low, high = float(samples.min()), float(samples.max())
    if low == high:
        return low
    return brentq(lambda m: float(influence(alpha * (samples - m)).sum()), low, high, xtol=1e-14 * (high - low))


def popart(samples: FloatArray, variance: float, log_term: float) -> FloatArray:
    """The estimate from one-sample estimates z_t (n, P), unbiased, each coordinate of variance at most `variance`.

    With L = `log_term` = log(2 P / delta) and n > 2 L: alpha = sqrt(2 L / (v n (1 + 2 L / (n - 2 L)))), and a
    coordinate counts as zero where its mean is at most sqrt(2 v L / (n - 2 L)), its error with probability
    1 - delta.
    """
    n = len(samples)
    if n <= 2.0 * log_term:
        raise ValueError(f"PopArt needs more than {2.0 * log_term:.1f} samples at this delta, got {n}")
    spare = n - 2.0 * log_term
    alpha = sqrt(2.0 * log_term / (variance * n * (1.0 + 2.0 * log_term / spare)))
    means = np.array([catoni_mean(column, alpha) for column in np.ascontiguousarray(samples.T)])
    return np.where(np.abs(means) <= sqrt(2.0 * variance * log_term / spare), 0.0, means)
