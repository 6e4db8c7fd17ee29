"""Compiled: least squares of many models from one matrix of sums of products, and Gaussian processes that grow."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked


@checked.entry
def penalised(
    products: FloatArray,
    members: IntArray,
    columns: IntArray,
    offsets: IntArray,
    penalties: FloatArray,
    ratios: FloatArray,
    residuals: FloatArray,
    determinants: FloatArray,
) -> None:
    """F = min ||y - Z b||^2 + r ||b||^2 and log det(Z'Z / r + I) of k pairs of a model and a ratio r, (k,) each.

    ``products`` (P + 1, P + 1) are the sums of products of the columns and, last, the reward. Z has the columns of the
    model, each divided by the square root of its penalty; ``penalties`` are in the order of ``columns``.
    """
    last = products.shape[0] - 1
    widest = 0
    for j in members:
        widest = max(widest, offsets[j + 1] - offsets[j])
    # The products of the model's columns, r times the penalties added on the diagonal, are L D L'; `raw`: a row of L D.
    lower, raw = np.empty((widest, widest)), np.empty(widest)
    inverse, solved = np.empty(widest), np.empty(widest)
    for position in range(members.shape[0]):
        j = members[position]
        own = columns[offsets[j] : offsets[j + 1]]
        rest, volume, growth = products[last, last], 0.0, 1.0
        for k in range(own.shape[0]):
            ridge = ratios[position] * penalties[offsets[j] + k]
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
        residuals[position] = max(rest, 0.0)
        determinants[position] = volume + np.log(growth)


@checked.entry
def least_squares(
    products: FloatArray,
    members: IntArray,
    columns: IntArray,
    offsets: IntArray,
    tolerance: float,
    residuals: FloatArray,
    ranks: IntArray,
) -> None:
    """Smallest sum of squares (k,) and rank (k,) of some of the models, by Cholesky factors with pivots.

    A column of which less than ``tolerance`` is left beside the others, in squares, counts as their combination.
    """
    last = products.shape[0] - 1
    widest = 0
    for j in members:
        widest = max(widest, offsets[j + 1] - offsets[j])
    factor, left, order = np.empty((widest, widest)), np.empty(widest), np.empty(widest, dtype=np.int64)
    total = np.empty(widest)
    for position in range(members.shape[0]):
        j = members[position]
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
        residuals[position] = max(rest, 0.0)
        ranks[position] = rank


@checked.entry
def add_products(
    products: FloatArray, mean: FloatArray, values: FloatArray, before: float, weight: float, centred: bool
) -> None:
    """Add the products of a row of values (P,) to weighted sums (P, P); about the mean (P,) if centred.

    ``before`` is the sum of the weights so far.
    """
    size = values.shape[0]
    share = weight / (before + weight)
    difference = np.empty(size)
    for p in range(size):
        difference[p] = values[p] - mean[p]
        if centred:
            mean[p] += share * difference[p]
    if centred:
        weight *= 1.0 - share
    for p in range(size):
        for q in range(size):
            products[p, q] += weight * difference[p] * difference[q]


@checked.leaf
def _whiten(row: FloatArray, t: int, factor: FloatArray, out: FloatArray, start: int) -> float:
    """Solve L z = row for the first t rows of a packed factor, into out[start:]; the sum of squares of z."""
    squares, begin = 0.0, 0
    for i in range(t):
        value = row[i]
        for m in range(i):
            value -= factor[begin + m] * out[start + m]
        begin += i + 1
        value /= factor[begin - 1]
        out[start + i] = value
        squares += value * value
    return squares


@checked.entry
def extend_factors(
    covariance: FloatArray,
    noise: FloatArray,
    rewards: FloatArray,
    factors: FloatArray,
    values: FloatArray,
    squares: FloatArray,
    log_volumes: FloatArray,
) -> None:
    """Take k rewards into C processes: rows of Cholesky factors L of K + noise I, and of L^-1 y.

    ``covariance`` (C, k, t) are the last k rows of K, ``noise`` (C,) is added on its diagonal. ``factors`` hold L by
    rows. What the k rewards add to y'(K + noise I)^-1 y and to its log determinant is added to the last two, (C,).
    """
    n_components, k, t = covariance.shape
    for c in range(n_components):
        factor, value = factors[c], values[c]
        for new in range(k):
            i = t - k + new
            start = i * (i + 1) // 2
            row = covariance[c, new]
            explained = _whiten(row, i, factor, factor, start)
            variance = max(row[i] - explained, 0.0) + noise[c]
            root = np.sqrt(variance)
            rest = rewards[new]
            for m in range(i):
                rest -= factor[start + m] * value[m]
            factor[start + i] = root
            value[i] = rest / root
            squares[c] += value[i] * value[i]
            log_volumes[c] += np.log(variance)


@checked.entry
def foresee(
    cross: FloatArray,
    prior: FloatArray,
    noise: FloatArray,
    factors: FloatArray,
    values: FloatArray,
    means: FloatArray,
    variances: FloatArray,
) -> None:
    """Mean and variance (C,) of a reward, noise included, whose covariances with those learned are (C, t)."""
    n_components, t = cross.shape
    solved = np.empty(t)
    for c in range(n_components):
        explained = _whiten(cross[c], t, factors[c], solved, 0)
        mean = 0.0
        for m in range(t):
            mean += solved[m] * values[c, m]
        means[c], variances[c] = mean, max(prior[c] - explained, 0.0) + noise[c]
