"""Compiled kernels on lower triangular factors, one per cell, in arrays of shape (cells, capacity, capacity)."""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, RealArray
from alexp.common.compiling import ieee

BLOCK = 512  # candidates whose values stay in the cache
_LANES = 32  # candidates that pending trials are taken into at once
LONG = 4096  # the same where many arrays are read at a time: shorter pieces are not fetched ahead


@ieee.loose_leaf
def _dot(left: FloatArray, right: FloatArray, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += left[k] * right[k]
    return total


@ieee.leaf
def _subtract(target: FloatArray, factor: float, row: FloatArray, n: int) -> None:
    for k in range(n):
        target[k] -= factor * row[k]


@ieee.leaf
def _forward(factor: FloatArray, n: int, z: FloatArray) -> None:
    """Solve L z = z in place."""
    for k in range(n):
        row = factor[k]
        z[k] = (z[k] - _dot(row, z, k)) / row[k]


@ieee.leaf
def _backward(factor: FloatArray, n: int, x: FloatArray) -> None:
    """Solve L'x = x in place."""
    for k in range(n - 1, -1, -1):
        row = factor[k]
        x[k] /= row[k]
        _subtract(x, x[k], row, k)


@ieee.entry
def forward(factors: FloatArray, n: int, right: FloatArray) -> None:
    """Solve L_c z = right_c in place, in every cell c and for each of its right-hand sides (cells, sides, n)."""
    for c in range(right.shape[0]):
        for side in range(right.shape[1]):
            _forward(factors[c], n, right[c, side])


@ieee.entry
def backward(factors: FloatArray, n: int, right: FloatArray) -> None:
    """Solve L_c' x = right_c in place, in every cell c, shape (cells, n)."""
    for c in range(right.shape[0]):
        _backward(factors[c], n, right[c])


@ieee.entry
def fit_point(
    factors: FloatArray,
    order: IntArray,
    means: FloatArray,
    similarities: FloatArray,
    own: float,
    intercept: bool,
    z: FloatArray,
    numbers: FloatArray,
    weights: FloatArray,
) -> None:
    """Posterior of one point in every cell: ``numbers`` (3, cells) become mean, variance and constant.

    The factors' rows are the points by ``order`` (D,); ``means``, ``similarities`` (D,) and ``weights`` (cells, D) go
    by the points' own numbers. ``z`` (3, D) is for work: z_k, z_m and z_e of `DualFactor`.
    """
    n = order.shape[0]
    for c in range(factors.shape[0]):
        for k in range(n):
            z[0, k] = similarities[order[k]]
            z[1, k] = means[order[k]]
            z[2, k] = 1.0
        _forward(factors[c], n, z[0])
        _forward(factors[c], n, z[1])
        mean, variance, constant = _dot(z[0], z[1], n), own - _dot(z[0], z[0], n), 0.0
        if intercept:
            _forward(factors[c], n, z[2])
            s, shared = _dot(z[2], z[2], n), _dot(z[0], z[2], n)
            constant = (1.0 - shared) / s
            mean += constant * _dot(z[1], z[2], n)
            variance += (1.0 - shared) * constant
            _subtract(z[0], -constant, z[2], n)
        _backward(factors[c], n, z[0])
        for k in range(n):
            weights[c, order[k]] = z[0, k]
        numbers[0, c], numbers[1, c], numbers[2, c] = mean, max(variance, 0.0), constant


@ieee.entry
def drop(factors: FloatArray, n: int, i: int) -> None:
    """Delete row and column i of the n x n matrices L_c L_c', in place.

    What stood in column i below the diagonal is rotated into the columns after it: sums of squares, which lose nothing.
    """
    for c in range(factors.shape[0]):
        own = factors[c]
        for k in range(i + 1, n):
            a, b = own[k, k], own[k, i]
            size = math.sqrt(a * a + b * b)
            cosine, sine = a / size, b / size
            own[k, k] = size
            for m in range(k + 1, n):
                x, y = own[m, k], own[m, i]
                own[m, k] = cosine * x + sine * y
                own[m, i] = cosine * y - sine * x
        for k in range(i + 1, n):
            for m in range(i):
                own[k - 1, m] = own[k, m]
            for m in range(i + 1, k + 1):
                own[k - 1, m - 1] = own[k, m]


@ieee.entry
def append(factors: FloatArray, order: IntArray, gram: FloatArray, number: int, noise: FloatArray) -> None:
    """Append point ``number`` to the factors, whose rows are the points by ``order`` (D,); noise (cells,).

    What is left on the diagonal is at least the noise, in exact arithmetic as well.
    """
    n = order.shape[0]
    for c in range(factors.shape[0]):
        row = factors[c, n]
        for k in range(n):
            row[k] = gram[number, order[k]]
        _forward(factors[c], n, row)
        left = gram[number, number] + noise[c] - _dot(row, row, n)
        row[n] = math.sqrt(max(left, noise[c]))


@ieee.leaf
def _move(mean: FloatArray, variance: FloatArray, column: FloatArray, gain: float, total: float) -> None:
    for i in range(mean.shape[0]):
        mean[i] += gain * column[i]
        variance[i] = max(variance[i] - column[i] * column[i] / total, 0.0)


@ieee.entry
def move(mean: FloatArray, variance: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray) -> None:
    """Add gain_c C_c to the means and take C_c^2 / total_c off the variances, (cells, N) each."""
    for c in range(mean.shape[0]):
        _move(mean[c], variance[c], covariances[c], gain[c], total[c])


@ieee.entry
def shrink(variance: FloatArray, covariances: FloatArray, total: FloatArray) -> None:
    """Take C_c^2 / total_c off the variances (cells, N)."""
    for c in range(variance.shape[0]):
        spread, column = variance[c], covariances[c]
        for i in range(spread.shape[0]):
            spread[i] = max(spread[i] - column[i] * column[i] / total[c], 0.0)


@ieee.leaf
def _merge(
    own: FloatArray,
    spread: FloatArray,
    step: float,
    pull: float,
    factor: float,
    centre: FloatArray,
    within: FloatArray,
    between: FloatArray,
) -> None:
    for i in range(own.shape[0]):
        delta = own[i] - centre[i]
        centre[i] += step * delta
        between[i] += pull * delta * delta
    for i in range(own.shape[0]):  # a loop over all five arrays is not vectorised
        within[i] += factor * spread[i]


@ieee.entry
def merge(
    mean: FloatArray,
    variance: FloatArray,
    cells: IntArray,
    shares: FloatArray,
    scales: FloatArray,
    total: float,
    moments: FloatArray,
) -> None:
    """Merge some cells of a model into moments (3, N), mean and variance within and between: see `CandidateMoments`.

    ``shares`` and ``scales`` of the variances have one entry per cell merged; ``total`` is the share merged before.
    """
    for low in range(0, moments.shape[1], LONG):
        part, merged = slice(low, min(low + LONG, moments.shape[1])), total
        centre, within, between = moments[0, part], moments[1, part], moments[2, part]
        for k in range(cells.shape[0]):
            merged += shares[k]
            step, c = shares[k] / merged, cells[k]
            pull = shares[k] * (1.0 - step)
            _merge(mean[c, part], variance[c, part], step, pull, shares[k] * scales[k], centre, within, between)


@ieee.loose_leaf
def _subtract_four(target: FloatArray, w: FloatArray, rows: FloatArray, k: int, low: int, high: int) -> None:
    one, two, three, four = w[k], w[k + 1], w[k + 2], w[k + 3]
    first, second, third, fourth = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
    for i in range(low, high):
        target[i] -= one * first[i] + two * second[i] + three * third[i] + four * fourth[i]


@ieee.leaf
def _subtract_rows(target: FloatArray, w: FloatArray, rows: FloatArray, n: int) -> None:
    """target -= w'rows with the first n rows, (n, N)."""
    size, whole = target.shape[0], n // 4 * 4
    for k in range(0, whole, 4):
        _subtract_four(target, w, rows, k, 0, size)
    for k in range(whole, n):
        _subtract(target, w[k], rows[k], size)


@ieee.entry
def extend_fantasies(
    z: FloatArray,
    variances: FloatArray,
    done: IntArray,
    places: IntArray,
    prior: FloatArray,
    weights: FloatArray,
    constants: FloatArray,
    known: FloatArray,
    factors: FloatArray,
    k: int,
) -> None:
    """Numbers done..k-1 of z = L^-1 C(p, x) of candidates x, by place, and z^2 taken off their variances.

    z (V, cells, capacity), variances (V, cells) and done (V,) are changed. C(p, x) = prior + constant - weights'known
    with `prior` (k - first, places) of pending trials from the first on that any of the candidates lacks, weights
    (k, cells, w), constants (k, cells) and known (V, w). The rows of L (cells, .) stand one after the other.
    """
    first, width = k - prior.shape[0], known.shape[1]
    work, near = np.zeros((k, _LANES)), np.zeros((width, _LANES))
    for low in range(0, places.shape[0], _LANES):
        some = places[low : low + _LANES]
        for i in range(some.shape[0]):
            for m in range(width):
                near[m, i] = known[some[i], m]
        for c in range(z.shape[1]):
            for i in range(some.shape[0]):
                for m in range(first):
                    work[m, i] = z[some[i], c, m]
            for m in range(first, k):
                target, row = work[m], factors[c, m * (m + 1) // 2 :]
                for i in range(some.shape[0]):
                    target[i] = prior[m - first, low + i] + constants[m, c]
                for i in range(some.shape[0], _LANES):
                    target[i] = 0.0
                _subtract_rows(target, weights[m, c], near, width)
                _subtract_rows(target, row, work, m)
                for i in range(some.shape[0]):
                    target[i] /= row[m]
                    if m >= done[some[i]]:
                        z[some[i], c, m] = target[i]
                        variances[some[i], c] = max(variances[some[i], c] - target[i] * target[i], 0.0)
        for i in range(some.shape[0]):
            done[some[i]] = max(done[some[i]], k)


@ieee.entry
def subtract_products(out: FloatArray, weights: FloatArray, rows: FloatArray) -> None:
    """out -= weights rows, (cells, n) and the first n of the rows (capacity, N); out (cells, N)."""
    n, size = weights.shape[1], out.shape[1]
    whole = n // 4 * 4
    for low in range(0, size, BLOCK):
        high = min(low + BLOCK, size)
        for k in range(0, whole, 4):
            for c in range(out.shape[0]):
                _subtract_four(out[c], weights[c], rows, k, low, high)
        for k in range(whole, n):
            for c in range(out.shape[0]):
                target, factor, row = out[c], weights[c, k], rows[k]
                for i in range(low, high):
                    target[i] -= factor * row[i]


@ieee.loose_leaf
def _five(row: RealArray, u: RealArray, c: int, i: int, out: FloatArray) -> None:
    """Products of a row with directions c..c+4."""
    zero = row[0] - row[0]
    first, second, third, fourth, fifth = zero, zero, zero, zero, zero
    one, two, three, four, five = u[c], u[c + 1], u[c + 2], u[c + 3], u[c + 4]
    for k in range(row.shape[0]):
        x = row[k]
        first += x * one[k]
        second += x * two[k]
        third += x * three[k]
        fourth += x * four[k]
        fifth += x * five[k]
    out[c, i], out[c + 1, i], out[c + 2, i], out[c + 3, i], out[c + 4, i] = first, second, third, fourth, fifth


@ieee.loose_leaf
def _one(row: RealArray, u: RealArray) -> float:
    total = row[0] - row[0]
    for k in range(row.shape[0]):
        total += row[k] * u[k]
    return float(total)


@ieee.entry
def products(rows: RealArray, directions: RealArray, low: int, high: int, out: FloatArray) -> None:
    """out[c, i] = rows[i]'directions[c] for rows low..high-1; both of the same precision, out in double."""
    whole = directions.shape[0] // 5 * 5
    for i in range(low, high):
        for c in range(0, whole, 5):
            _five(rows[i], directions, c, i, out)
        for c in range(whole, directions.shape[0]):
            out[c, i] = _one(rows[i], directions[c])


@ieee.leaf
def _add(target: FloatArray, constant: float) -> None:
    for i in range(target.shape[0]):
        target[i] += constant


@ieee.entry
def absorb(
    rows: RealArray,
    directions: RealArray,
    constants: FloatArray,
    gain: FloatArray,
    total: FloatArray,
    work: FloatArray,
    values: FloatArray,
) -> None:
    """`move` of values (2, cells, N) by covariances rows[i]'directions[c] + constants[c]; work (cells, LONG)."""
    for low in range(0, rows.shape[0], LONG):
        part = slice(low, min(low + LONG, rows.shape[0]))
        n = part.stop - low
        products(rows[part], directions, 0, n, work)
        for c in range(work.shape[0]):
            own = work[c, :n]
            _add(own, constants[c])
            _move(values[0, c, part], values[1, c, part], own, gain[c], total[c])
