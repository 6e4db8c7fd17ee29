"""Means with their uncertainty, for figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import BoolArray, FloatArray, IntArray

STUCK = 0.1  # mean regret per round over the last quarter above which a run counts as stuck


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
    sample = np.asarray(values, dtype=np.float64)
    mean, n = float(sample.mean()), sample.size
    if n < 2:
        return MeanEstimate(mean, float("nan"), float("nan"), float("nan"))
    return interval(mean, float(sample.std(ddof=1) / np.sqrt(n)), n)


def interval(mean: float, error: float, n: int) -> MeanEstimate:
    """The estimate of n values of which mean and standard error are known."""
    from scipy.stats import t as student

    half = float(student.ppf(0.975, n - 1)) * error
    return MeanEstimate(mean, error, mean - half, mean + half)


def mean_and_error(curves: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pointwise mean and standard error of n curves, shape (n, T)."""
    errors = curves.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.zeros(curves.shape[1])
    return curves.mean(axis=0), errors


Centre = Callable[..., FloatArray]  # np.mean or np.median


def _resampled(sample: FloatArray, picks: IntArray, centre: Centre) -> FloatArray:
    """Centre of every resample, shape (draws,)."""
    return np.asarray(centre(sample[picks], axis=1), dtype=np.float64)


def _interval(value: float, draws: FloatArray) -> MeanEstimate:
    low, high = np.quantile(draws, [0.025, 0.975])
    return MeanEstimate(value, float(draws.std()), float(low), float(high))


def ratio(
    numerator: ArrayLike,
    denominator: ArrayLike,
    paired: bool = True,
    draws: int = 4000,
    centre: Centre = np.mean,
) -> MeanEstimate:
    """Ratio of two means (or medians) with a 95% bootstrap interval; `paired` when both have the same seeds, in order.

    >>> print(ratio([2.0, 2.0], [1.0, 1.0]))
    2.00 [2.00, 2.00]
    """
    above, below = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    rng = np.random.default_rng(0)
    picks = rng.integers(above.size, size=(draws, above.size))
    others = picks if paired else rng.integers(below.size, size=(draws, below.size))
    ratios = _resampled(above, picks, centre) / np.maximum(_resampled(below, others, centre), 1e-12)
    return _interval(float(centre(above) / max(float(centre(below)), 1e-12)), ratios)


Pair = tuple[ArrayLike, ArrayLike]


def ratio_of_ratios(one: Pair, other: Pair, draws: int = 4000, centre: Centre = np.mean) -> MeanEstimate:
    """How much larger the ratio of one pair is than that of another, with a 95% bootstrap interval.

    Both samples of a pair have the same seeds, in order; the pairs are independent of each other.

    >>> print(ratio_of_ratios(([6.0, 6.0], [2.0, 2.0]), ([2.0, 2.0], [1.0, 1.0])))
    1.50 [1.50, 1.50]
    """
    rng = np.random.default_rng(0)
    values, resamples = [], []
    for pair in (one, other):
        above, below = (np.asarray(part, dtype=np.float64) for part in pair)
        picks = rng.integers(above.size, size=(draws, above.size))
        values.append(float(centre(above)) / max(float(centre(below)), 1e-12))
        resamples.append(_resampled(above, picks, centre) / np.maximum(_resampled(below, picks, centre), 1e-12))
    return _interval(values[0] / max(values[1], 1e-12), resamples[0] / np.maximum(resamples[1], 1e-12))


def share(hits: ArrayLike) -> MeanEstimate:
    """Share of cases in which something happened, with Wilson's 95% interval.

    >>> print(share([True, True, True, False]))
    0.75 [0.30, 0.95]
    """
    cases = np.asarray(hits, dtype=bool)
    n, p, z = cases.size, float(cases.mean()), 1.959964
    centre, half = p + z**2 / (2 * n), z * float(np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)))
    scale = 1 + z**2 / n
    return MeanEstimate(p, float(np.sqrt(p * (1 - p) / n)), (centre - half) / scale, (centre + half) / scale)


def growth_exponent(sizes: ArrayLike, samples: Sequence[ArrayLike], draws: int = 4000) -> MeanEstimate:
    """Exponent of the mean in the size: least-squares slope on logarithmic scales, with a 95% bootstrap interval.

    One sample per size, independent of each other.

    >>> print(growth_exponent([1.0, 2.0, 4.0], [[3.0, 3.0], [6.0, 6.0], [12.0, 12.0]]))
    1.00 [1.00, 1.00]
    """
    centred = np.log(np.asarray(sizes, dtype=np.float64))
    centred -= centred.mean()
    weights, rng = centred / (centred @ centred), np.random.default_rng(0)
    values = [np.asarray(sample, dtype=np.float64) for sample in samples]
    picks = [rng.integers(value.size, size=(draws, value.size)) for value in values]
    means = np.array([_resampled(value, own, np.mean) for value, own in zip(values, picks, strict=True)])
    own_means = np.array([value.mean() for value in values])
    return _interval(float(weights @ np.log(np.maximum(own_means, 1e-12))), weights @ np.log(np.maximum(means, 1e-12)))


def difference(one: ArrayLike, other: ArrayLike) -> MeanEstimate:
    """Difference of the means of two independent samples, with Welch's 95% interval.

    >>> print(difference([3.0, 4.0, 5.0], [1.0, 1.5, 2.0]))
    2.50 [0.42, 4.58]
    """
    from scipy.stats import t as student

    samples = [np.asarray(values, dtype=np.float64) for values in (one, other)]
    mean = float(samples[0].mean() - samples[1].mean())
    spreads = np.array([sample.var(ddof=1) / sample.size for sample in samples])
    error = float(np.sqrt(spreads.sum()))
    if error == 0.0:
        return MeanEstimate(mean, 0.0, mean, mean)
    sizes = np.array([sample.size for sample in samples])
    freedom = error**4 / float(np.sum(spreads**2 / (sizes - 1)))
    half = float(student.ppf(0.975, freedom)) * error
    return MeanEstimate(mean, error, mean - half, mean + half)


def is_stuck(regret: FloatArray, per_round: float = STUCK) -> BoolArray:
    """Runs that still pay more than `per_round` in each of the last quarter of the rounds, from curves (n, T)."""
    quarter = max(regret.shape[1] // 4, 1)
    late = (regret[:, -1] - regret[:, -1 - quarter if regret.shape[1] > quarter else 0]) / quarter
    return np.asarray(late > per_round)
