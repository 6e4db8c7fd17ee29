"""Coefficients from rewards at random corners of the cube inside a ball, and which of them cannot be zero."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from alexp.common.arrays import FloatArray, IntArray


def corner(dim: int, radius: float, rng: np.random.Generator) -> FloatArray:
    """One of the 2^dim points {-1, 1}^dim x radius/sqrt(dim), each alike; shape (dim,)."""
    return np.asarray((radius / sqrt(dim)) * (2.0 * rng.integers(0, 2, dim) - 1.0))


def coefficients_at_corners(sums: FloatArray, n: int, radius: float) -> FloatArray:
    """P/(radius^2 n) sum_s x_s y_s from the sums (..., P) of n rewards at corners: no bias, since E xx' = r^2 I/P."""
    return np.asarray(sums * (sums.shape[-1] / (radius**2 * n)))


def deviation(size: float, dim: int, delta: float) -> float:
    """b: all dim coefficients are within b/sqrt(n) of the truth with probability 1 - delta, for any one n.

    y = <x, theta + eta> at a corner x makes P x_k y / r^2 = theta_k + eta_k + sum_{j != k} e_k e_j (theta_j + eta_j),
    random signs e: sub-Gaussian about theta_k with a parameter of at most `size` = ||theta|| + bound of ||eta||. The
    union bound does the rest.
    """
    return size * sqrt(2.0 * log(2.0 * dim / delta))


def active_columns(theta: FloatArray, threshold: float) -> IntArray:
    """Coefficients of at least `threshold` in size; the largest one, if there is none."""
    sizes = np.abs(theta)
    kept = np.flatnonzero(sizes >= threshold)
    return kept if kept.size else np.array([int(np.argmax(sizes))])
