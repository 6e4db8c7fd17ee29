"""Weights over agents: exponential, in log space, and how to draw by them."""

from __future__ import annotations

from math import isfinite

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.backends import backend


def exponential_weights(scores: FloatArray, rate: float) -> FloatArray:
    """q_j proportional to exp(rate * scores_j), shape (M,).

    The whole sum of returns is weighted by one rate; running products of exp(rate_s * return_s) are a different
    algorithm as soon as the rate varies.

    >>> exponential_weights(np.array([0.0, np.log(3.0)]), 1.0).round(12).tolist()
    [0.25, 0.75]
    >>> exponential_weights(np.array([1e6, 0.0]), 1e6).tolist()
    [1.0, 0.0]
    >>> exponential_weights(np.array([-1e300, -1e301, -1e300]), 1e10).tolist()
    [0.5, 0.0, 0.5]
    """
    with np.errstate(over="ignore"):
        exponents = rate * scores
        top = exponents.max()
        if not isfinite(top):  # differences may be numbers where scores times rate are not
            best = scores.max()
            exponents = rate * (scores - best) if isfinite(best) else np.where(scores == best, 0.0, -np.inf)
            top = 0.0
    weights = np.exp(exponents - top)
    shares: FloatArray = weights / weights.sum()  # where the scores are: on a device, if they are there
    return shares


def draw_index(weights: FloatArray, rng: np.random.Generator) -> int:
    """A number in 0..K-1 drawn with probabilities proportional to weights (K,).

    >>> draw_index(np.array([0.0, 2.0, 0.0]), np.random.default_rng(0))
    1
    """
    if not isinstance(weights, np.ndarray):
        return int(backend("draw_on_device")(weights, rng))
    cumulative = np.cumsum(weights)
    drawn = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    return int(min(drawn, cumulative.size - 1))


def in_memory(values: FloatArray) -> FloatArray:
    """An array as one of NumPy, wherever it is."""
    return values if isinstance(values, np.ndarray) else values.get()
