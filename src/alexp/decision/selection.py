"""Index rules: which candidate to play, given a mean and a standard deviation for each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import exp, inf, lgamma, log, pi, sqrt

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.posteriors import Component

_NO_INFORMATION = 1e-300
_FAR = 1e5  # standard deviations above the incumbent from which the gain is the difference


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
    gain = _NormalGain() if freedom == inf else _student_gain(freedom)
    out = np.zeros(n)
    for part in components:
        std = np.sqrt(np.maximum(part.variance, _NO_INFORMATION))
        out += part.share * std * gain((part.mean - incumbent) / std)
    return out


class _NormalGain:
    """E[max(z + Z, 0)] for a standard normal variable Z."""

    def __call__(self, z: FloatArray) -> FloatArray:
        from scipy.special import ndtr  # slow to import, and needed here only

        z = np.maximum(z, -1e100)
        return np.asarray(
            np.maximum(z * ndtr(z) + np.exp(-0.5 * np.minimum(np.abs(z), 1e100) ** 2) / sqrt(2.0 * pi), 0.0)
        )


class _StudentGain:
    """E[max(z + T, 0)] for a t-distributed variable T with nu degrees of freedom.

    z F(z) + f(z) (nu + z^2) / (nu - 1) with distribution function F, which is its derivative, and density f. F takes
    half a microsecond, so that logarithms are interpolated, by cubics through values and slopes at 1,400 points that
    lie evenly on the scale of asinh z: to seven digits. Far above zero it is z; below -600,000 nothing changes.
    """

    _STEP, _MOST = 0.02, 700

    def __init__(self, freedom: float) -> None:
        from scipy.special import stdtr

        z = np.sinh(self._STEP * np.arange(-self._MOST, self._MOST + 1.0))
        peak = exp(lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom) - 0.5 * log(freedom * pi))
        density = peak * np.exp(-0.5 * (freedom - 1.0) * np.log1p(z**2 / freedom))
        below = stdtr(freedom, z)
        gains = np.maximum(z * below + freedom / (freedom - 1.0) * density, _NO_INFORMATION)
        self._logs = np.log(gains)
        slopes = np.where(gains > _NO_INFORMATION, below * np.cosh(np.arcsinh(z)) / gains, 0.0)
        self._slopes = self._STEP * slopes

    def __call__(self, z: FloatArray) -> FloatArray:
        place = np.clip(np.arcsinh(z) / self._STEP + self._MOST, 0.0, 2.0 * self._MOST - 1e-9)
        left = place.astype(np.int64)
        u = place - left
        v = 1.0 - u
        lines = self._logs[left] * v + self._logs[left + 1] * u
        rises = self._logs[left + 1] - self._logs[left]
        bends = u * v * ((self._slopes[left] - rises) * v + (rises - self._slopes[left + 1]) * u)
        return np.where(z > _FAR, z, np.exp(lines + bends))


@lru_cache(maxsize=4)
def _student_gain(freedom: float) -> _StudentGain:
    return _StudentGain(freedom)
