"""Index rules: which candidate to play, given a mean and a standard deviation for each."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray

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
