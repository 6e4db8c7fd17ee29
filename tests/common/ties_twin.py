"""Slow twins of `alexp.common.ties`, in plain NumPy."""

from __future__ import annotations

import numpy as np

TIE, ROUNDING = 1e-10, 1e-12


def tolerance(top, lowest):
    """By how much a score may fall short of the largest."""
    size = np.abs(top)
    return TIE * np.minimum(size, top - lowest) + ROUNDING * size


def first_best(scores):
    """Position of the first score that ties with the largest."""
    known = scores[~np.isnan(scores)]
    if not known.size:
        return 0
    top, lowest = known.max(), known.min()
    slack = tolerance(top, lowest) if np.isfinite(top) else 0.0
    return next(i for i, score in enumerate(scores.tolist()) if score >= top - slack)
