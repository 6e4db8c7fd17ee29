"""How far features can bend between two points of a grid."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.problem.dictionaries import Dictionary, Fourier, Legendre, Polynomial, RandomFourier
from alexp.problem.domains import Interval


def curvature_bounds(dictionary: Dictionary, interval: Interval) -> FloatArray | None:
    """Bounds on |phi_k''(x)| over an interval, shape (P,); None for families that have no such formula here.

    |P_n''| <= P_n''(1) = (n-1) n (n+1) (n+2) / 8 on [-1, 1]; (k w)^2 for waves; n (n-1) R^(n-2) for x^n, |x| <= R.

    Between two neighbours at distance h a function with |f''| <= c stays within c h^2 / 8 of the straight line.

    >>> curvature_bounds(Legendre(3), Interval(-1.0, 1.0)).tolist()
    [0.0, 0.0, 3.0, 15.0]
    """
    if isinstance(dictionary, Legendre):
        if interval.lower < dictionary.lower or interval.upper > dictionary.upper:
            return None
        n = np.arange(dictionary.n_columns, dtype=np.float64)
        slope = 2.0 / (dictionary.upper - dictionary.lower)
        return np.asarray(np.abs(n - 1.0) * n * (n + 1.0) * (n + 2.0) / 8.0 * slope**2)
    if isinstance(dictionary, Fourier):
        waves = 2.0 * np.pi / dictionary.period * np.arange(1, dictionary.frequencies + 1)
        return np.concatenate([[0.0], np.repeat(waves**2, 2)])
    if isinstance(dictionary, Polynomial) and dictionary.dim == 1:
        n, reach = np.arange(dictionary.n_columns, dtype=np.float64), max(abs(interval.lower), abs(interval.upper))
        return np.asarray(n * (n - 1.0) * reach ** np.maximum(n - 2.0, 0.0))
    if isinstance(dictionary, RandomFourier) and dictionary.dim == 1:
        return dictionary.curvature()
    return None
