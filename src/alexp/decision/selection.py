"""Index rules: which candidate to play, given a mean and a standard deviation for each."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, inf, lgamma, log, pi, sqrt

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.posteriors import Component

_TINY = float(np.finfo(np.float64).tiny)
_NO_INFORMATION = 1e-300


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
    information = np.log1p(std**2 / noise_variance)
    if information.max() < _NO_INFORMATION:
        return int(np.argmax(mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = regret**2 / information
    return int(np.argmin(np.where(information < _NO_INFORMATION, np.inf, ratio)))


def expected_improvement(
    components: Iterable[Component], n: int, incumbents: Iterable[float], freedom: float, width: float = 1.0
) -> FloatArray:
    """E[max(f(x) - incumbent, 0)] under a mixture, shape (n,): the components' own, by their shares.

    Every component has its own incumbent; deviations are multiplied by `width`.

    A component's f(x) has a t-distribution with `freedom` degrees of freedom, a normal one if they are infinite; what
    it calls variance is the square of that distribution's scale.
    """
    from scipy.special import ndtr, stdtr  # slow to import, and needed here only

    out = np.zeros(n)
    tail: FloatArray
    for part, incumbent in zip(components, incumbents, strict=False):  # one incumbent may stand for all
        std = np.maximum(width * np.sqrt(part.variance), _TINY)
        z = np.clip((part.mean - incumbent) / std, -1e100, 1e100)
        if freedom == inf:
            below, tail = ndtr(z), np.exp(-0.5 * z**2) / sqrt(2.0 * pi)
        else:
            power = -0.5 * (freedom - 1.0)
            below = stdtr(freedom, z)
            tail = freedom / (freedom - 1.0) * exp(_log_peak(freedom)) * (1.0 + z**2 / freedom) ** power
        gains: FloatArray = np.maximum((part.mean - incumbent) * below + std * tail, 0.0)
        out += part.share * gains
    return out


def _log_peak(freedom: float) -> float:
    """Logarithm of the t-density at zero."""
    return lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom) - 0.5 * log(freedom * pi)
