"""Index rules: which candidate to play, given a mean and a standard deviation for each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import inf, lgamma, log, pi, sinh, sqrt

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.backends import entries
from alexp.estimation.posteriors import Component

_TINY = float(np.finfo(np.float64).tiny)
_EDGE, _POINTS = 12.0, 8193  # of tabulated gains: standardised distances up to 80,000 from the incumbent
_REACH = sinh(_EDGE)
_NO_INFORMATION, _ALL_INFORMATION = 1e-300, 1e300


def upper_confidence(mean: FloatArray, std: FloatArray, beta: float) -> int:
    """First argmax of mean + beta std, both of shape (n,)."""
    return int(np.argmax(mean + beta * std))


def information_directed(mean: FloatArray, std: FloatArray, beta: float, noise_variance: float) -> int:
    """First argmin of D^2 / I, the squared regret paid per unit of information gained.

    D(x) = max(mean + beta std) - mean(x) is the largest regret one may be paying and I(x) = log(1 + std(x)^2 /
    noise_variance) twice the information about the reward that one observation at x brings.  Kirschner and Krause
    (2018) use this deterministic form for a single model.  Where nothing is left to learn the best mean wins.

    >>> information_directed(np.array([1.0, 0.9]), np.array([0.1, 0.5]), 2.0, 0.01)
    1
    """
    regret = (mean + beta * std).max() - mean
    with np.errstate(over="ignore"):
        information = np.log1p(np.minimum(std**2 / noise_variance, _ALL_INFORMATION))
    if information.max() < _NO_INFORMATION:
        return int(np.argmax(mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = regret**2 / information
    return int(np.argmin(np.where(information < _NO_INFORMATION, np.inf, ratio)))


def expected_improvement(
    components: Iterable[Component], n: int, incumbents: Iterable[float], freedom: float, width: float = 1.0
) -> FloatArray:
    """E[max(f(x) - incumbent, 0)] under a mixture, shape (n,): the components' own, by their shares.

    Every component has its own incumbent; deviations are multiplied by `width`. A component's f(x) has a t-distribution
    with `freedom` degrees of freedom, a normal one if they are infinite; what it calls variance is the square of that
    distribution's scale.
    """
    out = np.zeros(n)
    slope, logarithms = _gain_table(freedom)
    for part, incumbent in zip(components, incumbents, strict=False):  # one incumbent may stand for all
        part.check()
        std, above = np.maximum(width * np.sqrt(part.variance), _TINY), part.mean - incumbent
        with np.errstate(over="ignore"):  # what is certain is infinitely far from the incumbent
            place = slope * (np.arcsinh(np.clip(above / std, -_REACH, _REACH)) + _EDGE)
        left = np.minimum(place.astype(np.int64), logarithms.size - 2)
        low = entries(logarithms, left)
        gains = std * np.exp(low + (place - left) * (entries(logarithms, left + 1) - low))
        out = out + part.share * np.maximum(gains, above)  # what lies beyond the table is certain
    return out


@lru_cache(maxsize=4)
def _gain_table(freedom: float) -> tuple[float, FloatArray]:
    """log E[max(z + T, 0)] for a standard variable T, at points that are even in arcsinh(z), and points per unit of it.

    A distribution function for every candidate and component would take ten times as long. Interpolated, the logarithm
    is right to 1e-5 where z > -4.
    """
    points = np.linspace(-_EDGE, _EDGE, _POINTS)
    gains = expected_excess(np.sinh(points), freedom)
    return (_POINTS - 1) / (2.0 * _EDGE), np.log(np.maximum(gains, _TINY))


def expected_excess(z: FloatArray, freedom: float) -> FloatArray:
    """E[max(z + T, 0)] for a variable T with a standard t-distribution, or normal where `freedom` is infinite."""
    from scipy.special import ndtr, stdtr  # slow to import, and needed here only

    if freedom == inf:
        return np.asarray(np.maximum(z * ndtr(z) + np.exp(-0.5 * z**2) / sqrt(2.0 * pi), 0.0))
    tail = np.exp(_log_peak(freedom) - 0.5 * (freedom - 1.0) * np.log1p(z**2 / freedom))
    return np.asarray(np.maximum(z * stdtr(freedom, z) + freedom / (freedom - 1.0) * tail, 0.0))


def _log_peak(freedom: float) -> float:
    """Logarithm of the t-density at zero."""
    return lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom) - 0.5 * log(freedom * pi)
