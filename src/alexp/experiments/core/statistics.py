"""Means with their uncertainty, for figures and claims."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import BoolArray, FloatArray

LOCKED = 0.1  # mean regret per round over the last quarter above which a run counts as stuck


class MeanEstimate(NamedTuple):
    """A mean, its standard error, and a 95% interval (Student's t)."""

    mean: float
    error: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def estimate(values: ArrayLike) -> MeanEstimate:
    """Mean of independent values, shape (n,).

    >>> print(estimate([1.0, 2.0, 3.0]))
    2.00 [-0.48, 4.48]
    """
    from scipy.stats import t as student

    sample = np.asarray(values, dtype=np.float64)
    mean, n = float(sample.mean()), sample.size
    if n < 2:
        return MeanEstimate(mean, float("nan"), float("nan"), float("nan"))
    error = float(sample.std(ddof=1) / np.sqrt(n))
    half = float(student.ppf(0.975, n - 1)) * error
    return MeanEstimate(mean, error, mean - half, mean + half)


def mean_and_error(curves: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pointwise mean and standard error of n curves, shape (n, T)."""
    errors = curves.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.zeros(curves.shape[1])
    return curves.mean(axis=0), errors


def ratio(numerator: ArrayLike, denominator: ArrayLike, paired: bool = True, draws: int = 4000) -> MeanEstimate:
    """Ratio of two means with a 95% bootstrap interval; `paired` when both have the same seeds, in order.

    >>> print(ratio([2.0, 2.0], [1.0, 1.0]))
    2.00 [2.00, 2.00]
    """
    above, below = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    rng = np.random.default_rng(0)
    picks = rng.integers(above.size, size=(draws, above.size))
    others = picks if paired else rng.integers(below.size, size=(draws, below.size))
    ratios = above[picks].mean(axis=1) / np.maximum(below[others].mean(axis=1), 1e-12)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return MeanEstimate(float(above.mean() / max(below.mean(), 1e-12)), float(ratios.std()), float(low), float(high))


def locked(regret: FloatArray, per_round: float = LOCKED) -> BoolArray:
    """Runs that still pay more than `per_round` in each of the last quarter of the rounds, from curves (n, T)."""
    quarter = max(regret.shape[1] // 4, 1)
    late = (regret[:, -1] - regret[:, -1 - quarter if regret.shape[1] > quarter else 0]) / quarter
    return np.asarray(late > per_round)
