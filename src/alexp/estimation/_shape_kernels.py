"""Compiled least squares of many models from one matrix of sums of products."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked


@checked.entry
def penalised(
    products: FloatArray,
    columns: IntArray,
    offsets: IntArray,
    penalties: FloatArray,
    ratios: FloatArray,
    residuals: FloatArray,
    determinants: FloatArray,
) -> None:
    """F = min ||y - Z b||^2 + r ||b||^2 and log det(Z'Z / r + I) of every ratio r and model, (R, M) each.

    ``products`` (P + 1, P + 1) are the sums of products of the columns and, last, the reward. Z has the columns of the
    model, each divided by the square root of its penalty; ``penalties`` are in the order of ``columns``.
    """
    last = products.shape[0] - 1
    widest = 0
    for j in range(offsets.shape[0] - 1):
        widest = max(widest, offsets[j + 1] - offsets[j])
    # The products of the model's columns, r times the penalties added on the diagonal, are L D L'; `raw`: a row of L D.
    lower, raw = np.empty((widest, widest)), np.empty(widest)
    inverse, solved = np.empty(widest), np.empty(widest)
    for j in range(offsets.shape[0] - 1):
        own = columns[offsets[j] : offsets[j + 1]]
        d = own.shape[0]
        for c in range(ratios.shape[0]):
            rest, volume, growth = products[last, last], 0.0, 1.0
            for k in range(d):
                ridge = ratios[c] * penalties[offsets[j] + k]
                pivot, total = products[own[k], own[k]] + ridge, products[own[k], last]
                for i in range(k):
                    value = products[own[k], own[i]]
                    for m in range(i):
                        value -= raw[m] * lower[i, m]
                    raw[i] = value
                    lower[k, i] = value * inverse[i]
                    pivot -= value * lower[k, i]
                    total -= lower[k, i] * solved[i]
                pivot = max(pivot, ridge)  # as it is but for rounding
                inverse[k], solved[k] = 1.0 / pivot, total
                rest -= total * total * inverse[k]
                growth *= pivot / ridge
                if growth > 1e100:
                    volume += np.log(growth)
                    growth = 1.0
            residuals[c, j] = max(rest, 0.0)
            determinants[c, j] = volume + np.log(growth)


@checked.entry
def least_squares(
    products: FloatArray,
    columns: IntArray,
    offsets: IntArray,
    tolerance: float,
    residuals: FloatArray,
    ranks: IntArray,
) -> None:
    """Smallest sum of squares (M,) and rank (M,) of every model, by Cholesky factors with pivots.

    A column of which less than ``tolerance`` is left beside the others, in squares, counts as their combination.
    """
    last = products.shape[0] - 1
    widest = 0
    for j in range(offsets.shape[0] - 1):
        widest = max(widest, offsets[j + 1] - offsets[j])
    factor, left, order = np.empty((widest, widest)), np.empty(widest), np.empty(widest, dtype=np.int64)
    total = np.empty(widest)
    for j in range(offsets.shape[0] - 1):
        own = columns[offsets[j] : offsets[j + 1]]
        d = own.shape[0]
        rest, rank = products[last, last], 0
        for k in range(d):
            order[k] = own[k]
            left[k] = 1.0 if products[own[k], own[k]] > 0.0 else 0.0
        for k in range(d):
            best = k
            for i in range(k + 1, d):
                if left[i] > left[best]:
                    best = i
            if left[best] <= tolerance:
                break
            order[k], order[best] = order[best], order[k]
            left[k], left[best] = left[best], left[k]
            for m in range(k):
                factor[k, m], factor[best, m] = factor[best, m], factor[k, m]
            size = np.sqrt(products[order[k], order[k]])
            pivot = np.sqrt(left[k])
            value = products[order[k], last] / size
            for m in range(k):
                value -= factor[k, m] * total[m]
            total[k] = value / pivot
            rest -= total[k] * total[k]
            for i in range(k + 1, d):
                if left[i] > 0.0:
                    value = products[order[i], order[k]] / (size * np.sqrt(products[order[i], order[i]]))
                    for m in range(k):
                        value -= factor[i, m] * factor[k, m]
                    factor[i, k] = value / pivot
                    left[i] -= factor[i, k] * factor[i, k]
            rank += 1
        residuals[j] = max(rest, 0.0)
        ranks[j] = rank
