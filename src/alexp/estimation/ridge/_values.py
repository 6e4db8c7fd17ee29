"""Compiled: means and quadratic forms of models at candidates.

For coefficients theta and factor R, at a candidate with features phi,

    mean = theta'phi,   q = ||R^-T (1?, phi)||^2,

q by forward substitution: a sum of squares, which cannot be negative.  Every operation is one IEEE multiply or
add in a fixed order, so a plain NumPy loop over features reproduces the results bit for bit.  The loops over a
block of candidates vectorise across these: few distinct arrays, and scratch rows a constant BLOCK apart, so that
the compiler sees they do not overlap.

Many models at a few points (`values_at`) vectorise within a model instead.  With z = Q'y the last column of R and
u = R^-T (1?, phi), the mean is u'z, the quadratic form is u'u, and a draw of covariance V_j^-1 adds u'n for standard
normals n.  Rows of R lie one after the other, and so does what a row takes from the coordinates still to come.
"""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, RealArray
from alexp.common.compiling import checked
from alexp.common.ties import tolerance
from alexp.estimation.ridge._kernels import BLOCK, model_coefficients, widest_model, widest_of

# A count that starts from a literal 0 makes Numba compile what it is passed to a second time.
ZERO: int = np.int64(0)  # type: ignore[assignment]


@checked.leaf
def unpack(
    packed: FloatArray,
    rows: int,
    lead: int,
    shift: FloatArray,
    inverse: FloatArray,
    lower: FloatArray,
) -> float:
    """Lay out one factor for forward substitution u_k = ((phi_k - shift_k) - sum_l lower_kl u_l) * inverse_k.

    ``shift`` carries the intercept's coordinate u_0 = 1/R_00, whose square is returned: it is the same for all
    candidates.  Before any observation R_00 = 0 and the (infinite) coordinate is left out.  Row k of the strictly
    lower triangular part starts at k(k-1)/2 of ``lower``.
    """
    constant = 0.0
    if lead == 1 and packed[0] > 0.0:
        constant = 1.0 / packed[0]
    size = rows - 1 - lead
    for k in range(size):
        shift[k] = packed[1 + k] * constant if lead == 1 else 0.0
    position = rows if lead == 1 else 0
    for k in range(size):
        inverse[k] = 1.0 / packed[position]
        for i in range(k + 1, size):
            lower[(i * (i - 1)) // 2 + k] = packed[position + i - k]
        position += rows - lead - k
    return constant * constant


@checked.leaf
def block_means(
    table: RealArray, columns: IntArray, low: int, high: int, coefficients: RealArray, mean: RealArray
) -> None:
    """mean[i] = sum_k coefficients_k table[columns_k, low + i], summed in column order."""
    size = columns.shape[0]
    out = mean[: high - low]
    n = out.shape[0]
    done = size % 4
    if done == 0:
        out[:] = 0.0
    else:
        last = done - 1
        c0, c1, c2 = coefficients[0], coefficients[min(1, last)], coefficients[last]
        g0, g1 = table[columns[0], low:high], table[columns[min(1, last)], low:high]
        g2 = table[columns[last], low:high]
        if done == 1:
            for i in range(n):
                out[i] = c0 * g0[i]
        elif done == 2:
            for i in range(n):
                out[i] = c0 * g0[i] + c1 * g1[i]
        else:
            for i in range(n):
                out[i] = (c0 * g0[i] + c1 * g1[i]) + c2 * g2[i]
    while done < size:
        c0, c1, c2, c3 = coefficients[done], coefficients[done + 1], coefficients[done + 2], coefficients[done + 3]
        g0, g1 = table[columns[done], low:high], table[columns[done + 1], low:high]
        g2, g3 = table[columns[done + 2], low:high], table[columns[done + 3], low:high]
        for i in range(n):
            out[i] = (((out[i] + c0 * g0[i]) + c1 * g1[i]) + c2 * g2[i]) + c3 * g3[i]
        done += 4


@checked.leaf
def _eliminate(out: RealArray, known: RealArray, lower: RealArray, row: int, column: int, n: int) -> None:
    """Subtract four known coordinates (rows of ``known``) from four rows of ``out``, in order of column."""
    b0 = (row * (row - 1)) // 2 + column
    b1 = b0 + row
    b2 = b1 + row + 1
    b3 = b2 + row + 2
    a00, a01, a02, a03 = lower[b0], lower[b0 + 1], lower[b0 + 2], lower[b0 + 3]
    a10, a11, a12, a13 = lower[b1], lower[b1 + 1], lower[b1 + 2], lower[b1 + 3]
    a20, a21, a22, a23 = lower[b2], lower[b2 + 1], lower[b2 + 2], lower[b2 + 3]
    a30, a31, a32, a33 = lower[b3], lower[b3 + 1], lower[b3 + 2], lower[b3 + 3]
    for i in range(n):
        u0, u1, u2, u3 = known[i], known[BLOCK + i], known[2 * BLOCK + i], known[3 * BLOCK + i]
        out[i] = (((out[i] - a00 * u0) - a01 * u1) - a02 * u2) - a03 * u3
        out[BLOCK + i] = (((out[BLOCK + i] - a10 * u0) - a11 * u1) - a12 * u2) - a13 * u3
        out[2 * BLOCK + i] = (((out[2 * BLOCK + i] - a20 * u0) - a21 * u1) - a22 * u2) - a23 * u3
        out[3 * BLOCK + i] = (((out[3 * BLOCK + i] - a30 * u0) - a31 * u1) - a32 * u2) - a33 * u3


@checked.leaf
def _finish(out: RealArray, inverse: RealArray, lower: RealArray, row: int, total: RealArray) -> None:
    """Solve the 4 x 4 triangle among four rows of ``out``, in place, and add the squares to ``total``."""
    v0, v1, v2, v3 = inverse[row], inverse[row + 1], inverse[row + 2], inverse[row + 3]
    b1 = ((row + 1) * row) // 2 + row
    b2 = b1 + row + 1
    b3 = b2 + row + 2
    a10, a20, a21 = lower[b1], lower[b2], lower[b2 + 1]
    a30, a31, a32 = lower[b3], lower[b3 + 1], lower[b3 + 2]
    for i in range(total.shape[0]):
        u0 = out[i] * v0
        u1 = (out[BLOCK + i] - a10 * u0) * v1
        u2 = ((out[2 * BLOCK + i] - a20 * u0) - a21 * u1) * v2
        u3 = (((out[3 * BLOCK + i] - a30 * u0) - a31 * u1) - a32 * u2) * v3
        out[i] = u0
        out[BLOCK + i] = u1
        out[2 * BLOCK + i] = u2
        out[3 * BLOCK + i] = u3
        total[i] = (((total[i] + u0 * u0) + u1 * u1) + u2 * u2) + u3 * u3


@checked.leaf
def _single_row(
    out: RealArray, coords: RealArray, inverse: RealArray, lower: RealArray, row: int, total: RealArray
) -> None:
    """The same elimination for one row, where fewer than four are left."""
    n = total.shape[0]
    base = (row * (row - 1)) // 2
    done = 0
    while done + 4 <= row:
        known = coords[done * BLOCK : (done + 4) * BLOCK]
        a0, a1, a2, a3 = lower[base + done], lower[base + done + 1], lower[base + done + 2], lower[base + done + 3]
        for i in range(n):
            out[i] = (((out[i] - a0 * known[i]) - a1 * known[BLOCK + i]) - a2 * known[2 * BLOCK + i]) - (
                a3 * known[3 * BLOCK + i]
            )
        done += 4
    while done < row:
        known = coords[done * BLOCK : done * BLOCK + n]
        a0 = lower[base + done]
        for i in range(n):
            out[i] = out[i] - a0 * known[i]
        done += 1
    scale = inverse[row]
    for i in range(n):
        u = out[i] * scale
        out[i] = u
        total[i] = total[i] + u * u


@checked.leaf
def block_quadratics(
    table: RealArray,
    columns: IntArray,
    low: int,
    high: int,
    shift: RealArray,
    inverse: RealArray,
    lower: RealArray,
    constant: float,
    coords: RealArray,
    quadratic: RealArray,
) -> None:
    """quadratic[i] = constant + sum_k u_k^2 at candidate low + i; ``coords`` (d_j * BLOCK,) is scratch for u."""
    n = high - low
    size = columns.shape[0]
    total = quadratic[:n]
    total[:] = constant
    row = ZERO
    while row + 4 <= size:
        out = coords[row * BLOCK : (row + 4) * BLOCK]
        s0, s1, s2, s3 = shift[row], shift[row + 1], shift[row + 2], shift[row + 3]
        f0, f1 = table[columns[row], low:high], table[columns[row + 1], low:high]
        f2, f3 = table[columns[row + 2], low:high], table[columns[row + 3], low:high]
        for i in range(n):
            out[i] = f0[i] - s0
            out[BLOCK + i] = f1[i] - s1
            out[2 * BLOCK + i] = f2[i] - s2
            out[3 * BLOCK + i] = f3[i] - s3
        for column in range(0, row, 4):
            _eliminate(out, coords[column * BLOCK : (column + 4) * BLOCK], lower, row, column, n)
        _finish(out, inverse, lower, row, total)
        row += 4
    while row < size:
        feature = table[columns[row], low:high]
        one = coords[row * BLOCK : row * BLOCK + n]
        offset = shift[row]
        for i in range(n):
            one[i] = feature[i] - offset
        _single_row(one, coords, inverse, lower, row, total)
        row += 1


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
    widest = widest_of(offsets, active)
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
    tie: float,
    lower_ends: FloatArray,
    upper_ends: FloatArray,
    model: IntArray,
) -> None:
    """Widen the band at candidates low..high-1 to hold mu_j -/+ radius_j sqrt(q_j) of every model of ``active`` (K,).

    ``model`` (N,) becomes the model that attains the upper end, the first of equal ones.
    """
    widest = widest_of(offsets, active)
    coords, mu, quadratic = np.empty(widest * BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    shift, inverse = np.empty(widest), np.empty(widest)
    lower, slack = np.empty((widest * (widest - 1)) // 2 + 1), tolerance(1.0, -np.inf, tie)
    for k in range(active.shape[0]):
        j = active[k]
        own = columns[offsets[j] : offsets[j + 1]]
        constant = unpack(factor[starts[j] : starts[j + 1]], lead + own.shape[0] + 1, lead, shift, inverse, lower)
        for begin in range(low, high, BLOCK):
            stop = min(begin + BLOCK, high)
            block_means(table, own, begin, stop, theta[offsets[j] : offsets[j + 1]], mu)
            block_quadratics(table, own, begin, stop, shift, inverse, lower, constant, coords, quadratic)
            for i in range(stop - begin):
                centre = mu[i] + intercepts[j]
                width = radii[k] * np.sqrt(quadratic[i])
                lower_ends[begin + i] = min(lower_ends[begin + i], centre - width)
                end = centre + width
                if end > upper_ends[begin + i]:
                    if end - slack * abs(end) > upper_ends[begin + i]:
                        model[begin + i] = j
                    upper_ends[begin + i] = end


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
    widest = widest_of(offsets, active)
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
    widest = widest_model(offsets, 0, mean.shape[0])
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


@checked.entry
def covariance_roots(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    members: IntArray,
    table: FloatArray,
    means: FloatArray,
    roots: FloatArray,
) -> None:
    """Fill means (m, n) and roots (m, n, D) of some models at candidates (P, n); the intercept is left out.

    Row i of roots[k] is R^-T phi(x_i), padded with zeros, so that roots[k] roots[k]' = Phi V^-1 Phi'.
    """
    n = table.shape[1]
    theta = np.empty(roots.shape[2])
    for place in range(members.shape[0]):
        j = members[place]
        packed = factor[starts[j] : starts[j + 1]]
        own = columns[offsets[j] : offsets[j + 1]]
        size = own.shape[0]
        rows = lead + size + 1
        model_coefficients(packed, rows, lead, theta[:size])
        for i in range(n):
            root = roots[place, i]
            mean = 0.0
            for k in range(size):
                root[k] = table[own[k], i]
                mean += theta[k] * root[k]
            means[place, i] = mean
            for k in range(size, root.shape[0]):
                root[k] = 0.0
            position = lead * rows  # R'u = phi by rows of R: what is known of u leaves the later equations
            for k in range(size):
                root[k] /= packed[position]
                for m in range(1, size - k):
                    root[k + m] -= root[k] * packed[position + m]
                position += rows - lead - k


@checked.leaf
def _substitute(packed: FloatArray, moving: FloatArray) -> float:
    """Turn moving (rows,) from (1?, phi, 0) into (u, -u'z), in place; returns u'u.

    Four rows of R at a time, so that what is still to come is loaded and stored a quarter as often. A pivot is zero
    only where a constant, the first column, has seen no reward: its row is zero, and its coordinate is left out.
    """
    rows = moving.shape[0]
    k, first = ZERO, ZERO
    total = 0.0
    while k + 4 < rows:
        second = first + rows - k
        third = second + rows - k - 1
        fourth = third + rows - k - 2
        v0 = 1.0 / packed[first] if packed[first] != 0.0 else 0.0
        v1, v2, v3 = 1.0 / packed[second], 1.0 / packed[third], 1.0 / packed[fourth]  # none waits for another
        u0 = moving[k] * v0
        u1 = (moving[k + 1] - u0 * packed[first + 1]) * v1
        u2 = ((moving[k + 2] - u0 * packed[first + 2]) - u1 * packed[second + 1]) * v2
        u3 = ((moving[k + 3] - u0 * packed[first + 3]) - u1 * packed[second + 2]) - u2 * packed[third + 1]
        u3 = u3 * v3
        moving[k], moving[k + 1], moving[k + 2], moving[k + 3] = u0, u1, u2, u3
        total += (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3)
        rest = moving[k + 4 : rows]
        n = rest.shape[0]
        r0, r1 = packed[first + 4 : first + 4 + n], packed[second + 3 : second + 3 + n]
        r2, r3 = packed[third + 2 : third + 2 + n], packed[fourth + 1 : fourth + 1 + n]
        for i in range(n):
            rest[i] = (((rest[i] - u0 * r0[i]) - u1 * r1[i]) - u2 * r2[i]) - u3 * r3[i]
        first = fourth + rows - k - 3
        k += 4
    while k < rows - 1:
        u = moving[k] / packed[first] if packed[first] != 0.0 else 0.0
        moving[k] = u
        total += u * u
        for i in range(k + 1, rows):
            moving[i] -= u * packed[first + i - k]
        first += rows - k
        k += 1
    return total


@checked.entry
def values_at(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    members: IntArray,
    points: FloatArray,
    unknown: float,
    normals: FloatArray,
    mean: FloatArray,
    quadratic: FloatArray,
    noise: FloatArray,
) -> None:
    """Fill mean, quadratic (K, n) and noise of models `members` (K,) at dictionary rows `points` (n, P).

    `normals` (K, widest) holds those of each member first; noise (K, n) = u'n is filled unless `normals` is empty.
    `unknown` is the coordinate of a constant that has seen no reward.
    """
    widest = widest_of(offsets, members)
    scratch = np.empty(lead + widest + 1)
    for k in range(members.shape[0]):
        j = members[k]
        own, packed = columns[offsets[j] : offsets[j + 1]], factor[starts[j] : starts[j + 1]]
        absent = lead == 1 and packed[0] == 0.0
        rows = lead + own.shape[0] + 1
        moving = scratch[:rows]
        for i in range(points.shape[0]):
            moving[0] = 1.0
            for c in range(own.shape[0]):
                moving[lead + c] = points[i, own[c]]
            moving[rows - 1] = 0.0
            quadratic[k, i] = _substitute(packed, moving)
            mean[k, i] = 0.0 - moving[rows - 1]  # no negative zeros
            if absent:
                moving[0] = unknown
                quadratic[k, i] += unknown * unknown
            if normals.shape[0] > 0:
                total = 0.0
                for c in range(rows - 1):
                    total += moving[c] * normals[k, c]
                noise[k, i] = total


@checked.entry
def model_posterior(
    packed: FloatArray,
    lead: int,
    features: FloatArray,
    coefficients: FloatArray,
    mean: FloatArray,
    width: FloatArray,
) -> None:
    """Fill mean (n,) = coefficients'phi and width (n,) = sqrt(q) of one model at ``features`` (d_j, n)."""
    size, n = features.shape
    coords = np.empty(size * BLOCK)
    shift, inverse, lower = np.empty(size), np.empty(size), np.empty((size * (size - 1)) // 2 + 1)
    constant = unpack(packed, lead + size + 1, lead, shift, inverse, lower)
    own = np.arange(size)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        block_means(features, own, begin, end, coefficients, mean[begin:end])
        out = width[begin:end]
        block_quadratics(features, own, begin, end, shift, inverse, lower, constant, coords, out)
        for i in range(out.shape[0]):
            out[i] = math.sqrt(out[i])


@checked.entry
def largest_means(
    columns: IntArray,
    offsets: IntArray,
    coefficients: FloatArray,
    intercepts: FloatArray,
    members: IntArray,
    table: FloatArray,
    out: FloatArray,
) -> None:
    """out[k] = max_i theta_j'phi_j(x_i) + intercept_j of model j = members[k] over the candidates of a table (P, n)."""
    n = table.shape[1]
    mean = np.empty(BLOCK)
    for k in range(members.shape[0]):
        j = members[k]
        low, high = offsets[j], offsets[j + 1]
        best = -np.inf
        for first in range(0, n, BLOCK):
            last = min(first + BLOCK, n)
            block_means(table, columns[low:high], first, last, coefficients[low:high], mean)
            for i in range(last - first):
                best = max(best, mean[i])
        out[k] = best + intercepts[j]
