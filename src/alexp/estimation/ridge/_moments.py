"""Compiled kernels for mixtures of ridge posteriors.

A component c is one model's ridge regression with posterior mean theta_c and covariance s_c^2 V_c^-1, and has
weight w_c.  The factors are packed as in ``_kernels``.  Two routes lead to the mean and the total variance
of the mixture at the candidates:

* by candidates: mean and variance of every component on every candidate, merged by the updating formula of West
  (1979), whose between-part only ever adds non-negative terms;
* by coefficients: the mean and the covariance of the whole coefficient vector (Q,) under the mixture, then one
  quadratic form per candidate.  Far cheaper when few columns are shared by many models.

Q counts the dictionary columns and, last, the constant when there is an intercept.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked
from alexp.estimation.ridge._blocks import BLOCK, block_means, block_quadratics, unpack


@checked.entry
def add_candidate_moments(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    theta: FloatArray,
    intercepts: FloatArray,
    active: IntArray,
    weights: FloatArray,
    variances: FloatArray,
    table: FloatArray,
    low: int,
    high: int,
    total: float,
    mean: FloatArray,
    within: FloatArray,
    between: FloatArray,
) -> None:
    """Merge components ``active`` (K,) into the moments at candidates low..high-1, after a weight of ``total``.

    ``variances`` (K,) are the components' s^2.
    within += w s^2 q;  delta = mu - mean, mean += (w/W) delta, between += w (1 - w/W) delta^2, with W the weight
    including this component.
    """
    widest = 0
    for k in range(active.shape[0]):
        widest = max(widest, offsets[active[k] + 1] - offsets[active[k]])
    coords, mu, quadratic = np.empty(widest * BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    shift, inverse = np.empty(widest), np.empty(widest)
    lower = np.empty((widest * (widest - 1)) // 2 + 1)
    for k in range(active.shape[0]):
        j = active[k]
        own = columns[offsets[j] : offsets[j + 1]]
        constant = unpack(factor[starts[j] : starts[j + 1]], lead + own.shape[0] + 1, lead, shift, inverse, lower)
        weight = weights[k]
        total += weight
        share = weight / total
        spread, inner = weight * (1.0 - share), weight * variances[k]
        for begin in range(low, high, BLOCK):
            end = min(begin + BLOCK, high)
            block_means(table, own, begin, end, theta[offsets[j] : offsets[j + 1]], mu)
            block_quadratics(table, own, begin, end, shift, inverse, lower, constant, coords, quadratic)
            for i in range(end - begin):
                delta = (mu[i] + intercepts[j]) - mean[begin + i]
                mean[begin + i] += share * delta
                between[begin + i] += spread * (delta * delta)
                within[begin + i] += inner * quadratic[i]


@checked.entry
def add_mean_coefficients(
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    theta: FloatArray,
    intercepts: FloatArray,
    active: IntArray,
    weights: FloatArray,
    mean: FloatArray,
) -> None:
    """mean (Q,) += sum over ``active`` of w_c theta_c, scattered to the columns."""
    for k in range(active.shape[0]):
        j = active[k]
        for position in range(offsets[j], offsets[j + 1]):
            mean[columns[position]] += weights[k] * theta[position]
        if lead == 1:
            mean[mean.shape[0] - 1] += weights[k] * intercepts[j]


@checked.entry
def inverse_factor(packed: FloatArray, rows: int, out: FloatArray) -> None:
    """Upper triangular R^-1 of one model's packed factor, without the column of y, into ``out`` (n, n), n = rows - 1.

    A zero pivot, the constant before any observation, gives zeros: its infinite variance is common to all
    candidates and left out.
    """
    n = rows - 1
    for column in range(n):
        for row in range(column, -1, -1):
            position = row * rows - (row * (row - 1)) // 2
            pivot = packed[position]
            value = 1.0 if row == column else 0.0
            for i in range(row + 1, column + 1):
                value -= packed[position + i - row] * out[i, column]
            out[row, column] = value / pivot if pivot != 0.0 else 0.0


@checked.entry
def add_second_moments(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    theta: FloatArray,
    intercepts: FloatArray,
    active: IntArray,
    weights: FloatArray,
    variances: FloatArray,
    reference: FloatArray,
    support: IntArray,
    moments: FloatArray,
) -> None:
    """Upper triangle of moments (Q, Q) += sum of w_c [ s_c^2 V_c^-1 + (theta_c - ref)(theta_c - ref)' ].

    ``support`` (r,) are the columns where ``reference`` (Q,) is not zero: a difference has at most r + d_j + 1 entries,
    however many columns the dictionary has.
    """
    size = reference.shape[0]
    widest = 0
    for k in range(active.shape[0]):
        widest = max(widest, offsets[active[k] + 1] - offsets[active[k]])
    inverse = np.empty((lead + widest, lead + widest))
    own = np.empty(lead + widest, dtype=np.int64)
    place, values = np.empty(support.shape[0] + lead + widest, dtype=np.int64), np.empty(size)
    slot = np.full(size, -1)
    for i in range(support.shape[0]):
        slot[support[i]] = i
    for k in range(active.shape[0]):
        j = active[k]
        d = offsets[j + 1] - offsets[j]
        n = lead + d
        inverse_factor(factor[starts[j] : starts[j + 1]], n + 1, inverse)
        used = support.shape[0]
        for i in range(used):
            place[i] = support[i]
            values[i] = -reference[support[i]]
        for i in range(n):
            own[i] = size - 1 if i < lead else columns[offsets[j] + i - lead]
            at = slot[own[i]]
            if at < 0:
                at = used
                used += 1
                place[at] = own[i]
                values[at] = 0.0
            values[at] += intercepts[j] if i < lead else theta[offsets[j] + i - lead]
        inner = weights[k] * variances[k]
        for a in range(n):
            for b in range(a, n):
                total = 0.0
                for i in range(b, n):
                    total += inverse[a, i] * inverse[b, i]
                moments[min(own[a], own[b]), max(own[a], own[b])] += inner * total
        for a in range(used):
            scaled = weights[k] * values[a]
            for b in range(a, used):
                moments[min(place[a], place[b]), max(place[a], place[b])] += scaled * values[b]


@checked.entry
def quadratic_forms(table: FloatArray, matrix: FloatArray, lead: int, low: int, high: int, out: FloatArray) -> None:
    """out[i] = f' A f, f = (phi, 1?), at candidates low..high-1; ``matrix`` (Q, Q) is A's upper triangle."""
    size = matrix.shape[0]
    width = size - lead
    work = np.empty(BLOCK)
    for begin in range(low, high, BLOCK):
        end = min(begin + BLOCK, high)
        n = end - begin
        target = out[begin:end]
        target[:] = matrix[size - 1, size - 1] if lead == 1 else 0.0
        for a in range(width):
            feature = table[a, begin:end]
            start = 2.0 * matrix[a, size - 1] if lead == 1 else 0.0
            for i in range(n):
                work[i] = start + matrix[a, a] * feature[i]
            for b in range(a + 1, width):
                other = table[b, begin:end]
                twice = 2.0 * matrix[a, b]
                for i in range(n):
                    work[i] += twice * other[i]
            for i in range(n):
                target[i] += feature[i] * work[i]


@checked.entry
def add_band(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    theta: FloatArray,
    intercepts: FloatArray,
    active: IntArray,
    radii: FloatArray,
    table: FloatArray,
    low: int,
    high: int,
    lower_ends: FloatArray,
    upper_ends: FloatArray,
    model: IntArray,
) -> None:
    """Widen the band at candidates low..high-1 to hold mu_j -/+ radius_j sqrt(q_j) of every model of ``active`` (K,).

    ``model`` (N,) becomes the model that attains the upper end, the first of equal ones.
    """
    widest = 0
    for k in range(active.shape[0]):
        widest = max(widest, offsets[active[k] + 1] - offsets[active[k]])
    coords, mu, quadratic = np.empty(widest * BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    shift, inverse = np.empty(widest), np.empty(widest)
    lower = np.empty((widest * (widest - 1)) // 2 + 1)
    for k in range(active.shape[0]):
        j = active[k]
        own = columns[offsets[j] : offsets[j + 1]]
        constant = unpack(factor[starts[j] : starts[j + 1]], lead + own.shape[0] + 1, lead, shift, inverse, lower)
        for begin in range(low, high, BLOCK):
            end = min(begin + BLOCK, high)
            block_means(table, own, begin, end, theta[offsets[j] : offsets[j + 1]], mu)
            block_quadratics(table, own, begin, end, shift, inverse, lower, constant, coords, quadratic)
            for i in range(end - begin):
                centre = mu[i] + intercepts[j]
                width = radii[k] * np.sqrt(quadratic[i])
                lower_ends[begin + i] = min(lower_ends[begin + i], centre - width)
                if centre + width > upper_ends[begin + i]:
                    upper_ends[begin + i] = centre + width
                    model[begin + i] = j


@checked.entry
def certified_gaps(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    theta: FloatArray,
    active: IntArray,
    radii: FloatArray,
    differences: FloatArray,
    gaps: FloatArray,
    estimates: FloatArray,
) -> None:
    """How much better than a reference the best candidate can be, for every model of ``active`` (K,).

    ``differences`` (P, N) are the candidates' features minus the reference's.  gaps_k = max_i theta_j'delta_i +
    radius_j ||delta_i||_{V_j^-1} and estimates_k = max_i theta_j'delta_i; the constant cancels.
    """
    n_candidates = differences.shape[1]
    widest = 0
    for k in range(active.shape[0]):
        widest = max(widest, offsets[active[k] + 1] - offsets[active[k]])
    coords, mu, quadratic = np.empty(widest * BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    shift, inverse = np.empty(widest), np.empty(widest)
    lower = np.empty((widest * (widest - 1)) // 2 + 1)
    for k in range(active.shape[0]):
        j = active[k]
        own = columns[offsets[j] : offsets[j + 1]]
        unpack(factor[starts[j] : starts[j + 1]], lead + own.shape[0] + 1, lead, shift, inverse, lower)
        shift[:] = 0.0
        gaps[k], estimates[k] = 0.0, 0.0
        for begin in range(0, n_candidates, BLOCK):
            end = min(begin + BLOCK, n_candidates)
            block_means(differences, own, begin, end, theta[offsets[j] : offsets[j + 1]], mu)
            block_quadratics(differences, own, begin, end, shift, inverse, lower, 0.0, coords, quadratic)
            for i in range(end - begin):
                gaps[k] = max(gaps[k], mu[i] + radii[k] * np.sqrt(quadratic[i]))
                estimates[k] = max(estimates[k], mu[i])


@checked.entry
def point_posteriors(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    theta: FloatArray,
    intercepts: FloatArray,
    row: FloatArray,
    mean: FloatArray,
    quadratic: FloatArray,
) -> None:
    """Mean mu_j and quadratic form ||phi_j||^2_{V_j^-1} of every model at one dictionary row (P,), shapes (M,)."""
    widest = 0
    for j in range(mean.shape[0]):
        widest = max(widest, offsets[j + 1] - offsets[j])
    shift, inverse, coords = np.empty(widest), np.empty(widest), np.empty(widest)
    lower = np.empty((widest * (widest - 1)) // 2 + 1)
    for j in range(mean.shape[0]):
        size = offsets[j + 1] - offsets[j]
        total = unpack(factor[starts[j] : starts[j + 1]], lead + size + 1, lead, shift, inverse, lower)
        centre = intercepts[j]
        for k in range(size):
            feature = row[columns[offsets[j] + k]]
            centre += theta[offsets[j] + k] * feature
            value = feature - shift[k]
            for i in range(k):
                value -= lower[(k * (k - 1)) // 2 + i] * coords[i]
            coords[k] = value * inverse[k]
            total += coords[k] * coords[k]
        mean[j] = centre
        quadratic[j] = total
