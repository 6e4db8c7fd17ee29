"""Index rules: which candidate to play, given a mean and a standard deviation for each."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, inf, lgamma, log, pi, sqrt

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.posteriors import Component

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


def expected_improvement(components: Iterable[Component], n: int, incumbent: float, freedom: float) -> FloatArray:
    """E[max(f(x) - incumbent, 0)] under a mixture, shape (n,): the components' own, by their shares.

    A component's f(x) has a t-distribution with `freedom` degrees of freedom, a normal one if they are infinite; what
    it calls variance is the square of that distribution's scale.
    """
    out = np.zeros(n)
    for part in components:
        std = np.sqrt(np.maximum(part.variance, _NO_INFORMATION))
        z = np.clip((part.mean - incumbent) / std, -1e100, 1e100)
        below, tail = _normal_parts(z) if freedom == inf else _student_parts(z, freedom)
        out += part.share * np.maximum((part.mean - incumbent) * below + std * tail, 0.0)
    return out


def _normal_parts(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distribution function and density of a standard normal variable, whose mean above -z is the density."""
    from scipy.special import ndtr  # slow to import, and needed here only

    return np.asarray(ndtr(z)), np.asarray(np.exp(-0.5 * z**2) / sqrt(2.0 * pi))


def _student_parts(z: FloatArray, freedom: float) -> tuple[FloatArray, FloatArray]:
    """The same of a t-distributed variable: (freedom + z^2) / (freedom - 1) times the density is its mean above -z."""
    from scipy.special import stdtr

    factor = freedom / (freedom - 1.0) * exp(_log_peak(freedom))
    return np.asarray(stdtr(freedom, z)), factor * (1.0 + z**2 / freedom) ** (-0.5 * (freedom - 1.0))


def _log_peak(freedom: float) -> float:
    """Logarithm of the t-density at zero."""
    return lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom) - 0.5 * log(freedom * pi)
