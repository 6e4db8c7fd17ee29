"""What to do with a mean and a standard deviation per candidate."""

from __future__ import annotations

from math import log, pi, sqrt

import numpy as np

from alexp.common.arrays import FloatArray


def acquisition(rule: str, mean: FloatArray, std: FloatArray, width: float, best: float) -> FloatArray:
    """mean + width std for "ucb"; the logarithm of the expected improvement on `best` for "ei"."""
    return mean + width * std if rule == "ucb" else log_improvement(mean, std, best)


def log_improvement(mean: FloatArray, std: FloatArray, best: float) -> FloatArray:
    """log E[max(f - best, 0)] for f ~ N(mean, std^2), accurate far below `best` (Ament et al. 2023).

    >>> log_improvement(np.array([0.0, -40.0]), np.ones(2), 0.0).round(2).tolist()
    [-0.92, -808.3]
    """
    from scipy.special import erfcx, ndtr

    scale = np.maximum(std, 1e-12)
    z = (mean - best) / scale
    near, far = np.maximum(z, -1.0), np.minimum(z, -1.0)
    density = np.exp(-0.5 * near**2) / sqrt(2.0 * pi)
    above = np.log(density + near * ndtr(near))
    log_density = -0.5 * far**2 - 0.5 * log(2.0 * pi)
    share = sqrt(0.5 * pi) * -far * erfcx(-far / sqrt(2.0))  # one minus it is about far^-2, and round-off beyond -1e4
    below = log_density + np.where(far > -1e4, np.log1p(-np.minimum(share, 1.0 - 1e-16)), -2.0 * np.log(-far))
    return np.asarray(np.log(scale) + np.where(z > -1.0, above, below))
