"""Whether a column of numbers is better taken in its logarithm: learning rates, concentrations, regularisation."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray

_UNEVEN = 0.2  # by which steps over a decade or more may differ from their mean: 1, 3, 10, 30 and 1, 2, 5, 10 are even
_EXACT = 0.02  # by which those of four or more levels may over less: 16, 32, 64, 128
_SMALLEST = 0.15  # decades of a step: 1.4 times the level before
_DECADES = 3.0  # that other values span
_ROUNDER = 0.5  # of their distance from being even: that of the logarithms, at most


def why_logarithm(values: FloatArray | None) -> str:
    """Why positive numbers, (N,) with NaN where there is none, are taken in their logarithm; empty if they are not.

    Either their levels are equally spaced in the logarithm: nearly so over a decade, or exactly so if there are four.
    Or they span three decades, and are half as far from being even over their range as the numbers, or less.

    >>> why_logarithm(np.geomspace(1e-8, 1.0, 9)), why_logarithm(np.array([60.0, 80.0, 100.0, 120.0]))
    ('9 levels, equally spaced in the logarithm', '')
    """
    levels = np.unique(values[~np.isnan(values)]) if values is not None else np.empty(0)
    if len(levels) < 3 or levels[0] <= 0.0:
        return ""
    logs = np.log10(levels)
    steps, decades = np.diff(logs), float(logs[-1] - logs[0])
    uneven = float(np.abs(steps / steps.mean() - 1.0).max())
    is_even = uneven <= _UNEVEN if decades >= 0.999 else len(levels) > 3 and uneven <= _EXACT
    if is_even and steps.min() >= _SMALLEST:
        return f"{len(levels)} levels, equally spaced in the logarithm"
    if decades >= _DECADES and _unevenness(logs) <= _ROUNDER * _unevenness(levels):
        return f"they span {decades:.1f} decades, and are spread more evenly in the logarithm"
    return ""


def _unevenness(levels: FloatArray) -> float:
    """The largest distance between the distribution of sorted numbers and an even one over their range."""
    even = (levels - levels[0]) / (levels[-1] - levels[0])
    n = len(levels)
    return float(max(np.abs(even - np.arange(n) / n).max(), np.abs(even - np.arange(1, n + 1) / n).max()))
