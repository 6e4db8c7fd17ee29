"""Compiled kernels on the packed R-factors of all ridge regressions: updates, coefficients and their moments.

Model j keeps the upper triangular factor R of its augmented least-squares matrix [1? | Phi_j | y], ridge rows
included.  With ``lead`` = 1 for an intercept and 0 without, R has n_j = lead + d_j + 1 rows; they are packed one
after the other, row k holding columns k..n_j-1, and model j starts at ``starts[j]`` of the flat array ``factor``.
The last column is z = Q'y, the last diagonal entry is rho >= 0 with rho^2 the penalised residual sum of squares.

A component c of a mixture is one model's ridge regression with posterior mean theta_c and covariance s_c^2 V_c^-1, and
has weight w_c.  Two routes lead to the mean and the total variance of the mixture at the candidates:

* by coefficients, here: the mean and the covariance of the whole coefficient vector (Q,) under the mixture, then one
  quadratic form per candidate.  Far cheaper when few columns are shared by many models.  Q counts the dictionary
  columns and, last, the constant when there is an intercept;
* by candidates, in ``_values``: mean and variance of every component on every candidate, merged by the updating formula
  of West (1979), whose between-part only ever adds non-negative terms.
"""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked

BLOCK = 256  # candidates per block; the rows of a small model then fit the first-level cache
# Between these magnitudes the squares in sqrt(a^2 + b^2) neither overflow nor lose bits to underflow.
_SAFE_SMALL = 1e-140
_SAFE_LARGE = 1e140


def initial_factor(starts: IntArray, offsets: IntArray, lead: int, ridge: FloatArray) -> FloatArray:
    """Packed factors before any observation: ridge_j on the feature diagonal of model j, zero elsewhere."""
    factor = np.zeros(starts[-1])  # here, because making arrays takes longest to compile
    _fill_diagonals(starts, offsets, lead, ridge, factor)
    return factor


@checked.entry
def _fill_diagonals(starts: IntArray, offsets: IntArray, lead: int, ridge: FloatArray, factor: FloatArray) -> None:
    """Write ridge_j to the feature diagonal of model j."""
    for j in range(ridge.shape[0]):
        rows = lead + offsets[j + 1] - offsets[j] + 1
        position = starts[j]
        for k in range(rows - 1):
            if k >= lead:
                factor[position] = ridge[j]
            position += rows - k


@checked.leaf
def length(a: float, b: float) -> float:
    """sqrt(a^2 + b^2) from IEEE operations only, so that it is the same on every machine."""
    a = abs(a)
    b = abs(b)
    large = max(a, b)
    if large == 0.0:
        return 0.0
    if large > _SAFE_LARGE or large < _SAFE_SMALL:
        ratio = min(a, b) / large
        return large * math.sqrt(1.0 + ratio * ratio)
    return math.sqrt(a * a + b * b)


@checked.leaf
def rotate(factor: FloatArray, position: int, rows: int, begin: int, incoming: FloatArray) -> None:
    """Rotate ``incoming`` (rows,), zero before ``begin``, into the packed rows ``begin`` and below, at ``position``.

    Each Givens rotation [c s; -s c] zeroes one entry of the incoming row against the diagonal of R.  A diagonal
    entry never shrinks, so feature pivots stay >= ridge_j and only the intercept's pivot can be zero (at t = 0).
    """
    for k in range(begin, rows - 1):
        if incoming[k] != 0.0:
            pivot = length(factor[position], incoming[k])
            cosine = factor[position] / pivot
            sine = incoming[k] / pivot
            factor[position] = pivot
            kept = factor[position + 1 : position + rows - k]
            moving = incoming[k + 1 : rows]
            for i in range(kept.shape[0]):
                old = kept[i]
                new = moving[i]
                kept[i] = cosine * old + sine * new
                moving[i] = cosine * new - sine * old
        position += rows - k
    factor[position] = length(factor[position], incoming[rows - 1])


@checked.leaf
def widest_model(offsets: IntArray, first: int, last: int) -> int:
    """The largest number of features of models first..last-1."""
    widest = 0
    for j in range(first, last):
        widest = max(widest, offsets[j + 1] - offsets[j])
    return widest


@checked.leaf
def widest_of(offsets: IntArray, members: IntArray) -> int:
    """The largest number of features of models ``members`` (K,)."""
    widest = 0
    for k in range(members.shape[0]):
        widest = max(widest, offsets[members[k] + 1] - offsets[members[k]])
    return widest


@checked.entry
def absorb(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    row: FloatArray,
    y: float,
    first: int,
    last: int,
) -> None:
    """Rotate the observation (row, y) into the factors of models first..last-1, in place."""
    widest = widest_model(offsets, first, last)
    incoming = np.empty(lead + widest + 1)
    for j in range(first, last):
        size = offsets[j + 1] - offsets[j]
        rows = lead + size + 1
        incoming[0] = 1.0
        for k in range(size):
            incoming[lead + k] = row[columns[offsets[j] + k]]
        incoming[rows - 1] = y
        rotate(factor, starts[j], rows, 0, incoming)


@checked.entry
def fade(
    factor: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    ridge: FloatArray,
    forget: float,
    first: int,
    last: int,
) -> None:
    """Multiply the data in the factors of models first..last-1 by sqrt(forget), in place; the ridge stays as it is.

    R'R = D + ridge^2 E, with the data in D, becomes forget D + ridge^2 E: all of R fades, and what the ridge has lost
    comes back as rows sqrt(1 - forget) ridge e_k, one for each feature. O(d_j^3 / 6) rotations.
    """
    widest = widest_model(offsets, first, last)
    incoming = np.empty(lead + widest + 1)
    for j in range(first, last):
        rows = lead + offsets[j + 1] - offsets[j] + 1
        root, lost = math.sqrt(forget), math.sqrt(1.0 - forget) * ridge[j]
        for i in range(starts[j], starts[j + 1]):
            factor[i] *= root
        place = starts[j] + lead * rows
        for begin in range(lead, rows - 1):
            incoming[:] = 0.0
            incoming[begin] = lost
            rotate(factor, place, rows, begin, incoming)
            place += rows - begin


@checked.leaf
def back_substitute(packed: FloatArray, rows: int, lead: int, target: FloatArray) -> None:
    """Solve R theta = target on the feature coordinates, in place; ``packed`` is one model's factor.

    R is upper triangular and the intercept comes first, so the features do not need it.
    """
    size = rows - 1 - lead
    for k in range(size - 1, -1, -1):
        row = lead + k
        position = row * rows - (row * (row - 1)) // 2
        total = target[k]
        for i in range(k + 1, size):
            total -= packed[position + i - k] * target[i]
        target[k] = total / packed[position]


@checked.leaf
def model_coefficients(packed: FloatArray, rows: int, lead: int, out: FloatArray) -> None:
    """Write the posterior mean R^-1 z of one model's feature coefficients into ``out`` (d_j,)."""
    for k in range(rows - 1 - lead):
        row = lead + k
        out[k] = packed[row * rows - (row * (row - 1)) // 2 + rows - 1 - row]
    back_substitute(packed, rows, lead, out)


@checked.entry
def one_mean(packed: FloatArray, rows: int, lead: int, out: FloatArray) -> None:
    """``model_coefficients`` for Python."""
    model_coefficients(packed, rows, lead, out)


@checked.entry
def one_deviation(packed: FloatArray, rows: int, lead: int, normals: FloatArray) -> None:
    """``back_substitute`` for Python."""
    back_substitute(packed, rows, lead, normals)


@checked.entry
def model_intercept(packed: FloatArray, rows: int, coefficients: FloatArray) -> float:
    """Intercept (z_0 - R_0 theta) / R_00 that goes with the coefficients; 0 before any observation."""
    if packed[0] == 0.0:
        return 0.0
    total = packed[rows - 1]
    for k in range(coefficients.shape[0]):
        total -= packed[1 + k] * coefficients[k]
    return float(total / packed[0])


@checked.entry
def believe(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    rows: FloatArray,
    first: int,
    last: int,
) -> None:
    """`absorb` rows (k, P), each with the reward that every one of models first..last-1 expects, in place.

    What is expected is computed anew for every row although the mean stays: one row more then is the same, bit for
    bit, as all rows at once, and a process that starts with many pending trials decides like one that saw them come.
    """
    for j in range(first, last):
        own = columns[offsets[j] : offsets[j + 1]]
        packed = factor[starts[j] : starts[j + 1]]
        theta = np.empty(own.shape[0])
        size = lead + own.shape[0] + 1
        for i in range(rows.shape[0]):
            model_coefficients(packed, size, lead, theta)
            expected = model_intercept(packed, size, theta) if lead else 0.0
            for k in range(own.shape[0]):
                expected += theta[k] * rows[i, own[k]]
            absorb(factor, starts, columns, offsets, lead, rows[i], expected, j, j + 1)


@checked.entry
def gather(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    rows: FloatArray,
    first: int,
    last: int,
) -> None:
    """`absorb` rows (k, P) without rewards into the factors of models first..last-1, in place."""
    for i in range(rows.shape[0]):
        absorb(factor, starts, columns, offsets, lead, rows[i], 0.0, first, last)


@checked.entry
def stack(
    factor: FloatArray,
    others: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    believe_means: bool,
    first: int,
    last: int,
) -> None:
    """Rotate the rows of ``others``, factors of the same layout, into those of models first..last-1, in place.

    Their rewards are left out: each row comes with the reward that the model expects there, or without one.
    """
    widest = widest_model(offsets, first, last)
    incoming, expected = np.empty(lead + widest + 1), np.zeros(lead + widest)
    for j in range(first, last):
        packed, other = factor[starts[j] : starts[j + 1]], others[starts[j] : starts[j + 1]]
        rows = lead + offsets[j + 1] - offsets[j] + 1
        if believe_means:
            theta = expected[lead : rows - 1]
            model_coefficients(packed, rows, lead, theta)
            if lead:
                expected[0] = model_intercept(packed, rows, theta)
        begin = 0
        for k in range(rows - 1):
            total = 0.0
            for i in range(k, rows - 1):
                incoming[i] = other[begin + i - k]
                total += incoming[i] * expected[i]
            incoming[rows - 1] = total
            rotate(packed, begin, rows, k, incoming)
            begin += rows - k


@checked.entry
def posterior_means(
    factor: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    first: int,
    last: int,
    coefficients: FloatArray,
    intercepts: FloatArray,
) -> None:
    """Fill coefficients (nnz,) and intercepts (M,) for models first..last-1."""
    for j in range(first, last):
        packed = factor[starts[j] : starts[j + 1]]
        out = coefficients[offsets[j] : offsets[j + 1]]
        rows = lead + out.shape[0] + 1
        model_coefficients(packed, rows, lead, out)
        intercepts[j] = model_intercept(packed, rows, out) if lead else 0.0


@checked.entry
def posterior_draws(
    factor: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    first: int,
    last: int,
    normals: FloatArray,
    scale: FloatArray,
    draws: FloatArray,
) -> None:
    """Fill draws (nnz,) with theta_j + scale_j R_j^-1 normals_j for models first..last-1."""
    widest = widest_model(offsets, first, last)
    scratch = np.empty(widest)
    for j in range(first, last):
        packed = factor[starts[j] : starts[j + 1]]
        out = draws[offsets[j] : offsets[j + 1]]
        rows = lead + out.shape[0] + 1
        noise = scratch[: out.shape[0]]
        for k in range(noise.shape[0]):
            noise[k] = normals[offsets[j] + k]
        back_substitute(packed, rows, lead, noise)
        model_coefficients(packed, rows, lead, out)
        for k in range(noise.shape[0]):
            out[k] += scale[j] * noise[k]


@checked.entry
def all_finite(values: FloatArray) -> bool:
    """Whether a vector holds neither NaN nor an infinity."""
    bad = 0
    for i in range(values.shape[0]):
        bad += not (abs(values[i]) < np.inf)
    return bad == 0


@checked.entry
def solve_normal(packed: FloatArray, rows: int, x: FloatArray) -> None:
    """Solve R'R x = x in place for all columns but the last of a packed factor with `rows` rows; x (rows - 1,)."""
    n = rows - 1
    start = 0
    for k in range(n):  # R'z = x by rows of R: what is known of z leaves the later equations
        x[k] /= packed[start]
        for m in range(1, n - k):
            x[k + m] -= x[k] * packed[start + m]
        start += rows - k
    for k in range(n - 1, -1, -1):
        start -= rows - k
        total = x[k]
        for m in range(1, n - k):
            total -= packed[start + m] * x[k + m]
        x[k] = total / packed[start]


@checked.entry
def absorb_members(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    rows: FloatArray,
    rewards: FloatArray,
    members: IntArray,
    seen: IntArray,
    last: int,
) -> None:
    """Absorb observations seen_k..last-1 (rows (T, P), rewards (T,)) into model members_k, in order."""
    for k in range(members.shape[0]):
        for t in range(seen[k], last):
            absorb(factor, starts, columns, offsets, lead, rows[t], rewards[t], members[k], members[k] + 1)


@checked.entry
def log_determinants(
    factor: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    ridge: FloatArray,
    members: IntArray,
    out: FloatArray,
) -> None:
    """2 sum_i log(R_ii / ridge_j) over the feature coordinates of some models, shape (K,)."""
    for k in range(members.shape[0]):
        j = members[k]
        rows = lead + offsets[j + 1] - offsets[j] + 1
        position = starts[j]
        total = 0.0
        for i in range(rows - 1):
            if i >= lead:
                total += math.log(factor[position] / ridge[j])
            position += rows - i
        out[k] = 2.0 * total


@checked.entry
def member_means(
    factor: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    members: IntArray,
    coefficients: FloatArray,
    intercepts: FloatArray,
) -> None:
    """Fill the entries of some models in coefficients (nnz,) and intercepts (M,)."""
    for k in range(members.shape[0]):
        posterior_means(factor, starts, offsets, lead, members[k], members[k] + 1, coefficients, intercepts)


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
def add_moments(
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
    mean: FloatArray,
    moments: FloatArray,
) -> None:
    """Add first moments to mean (Q,) and second moments about a reference to the upper triangle of moments (Q, Q).

    They are the sums of w_c theta_c and of w_c [ s_c^2 V_c^-1 + (theta_c - ref)(theta_c - ref)' ] over ``active``.
    ``support`` (r,) are the columns where ``reference`` (Q,) is not zero: a difference has at most r + d_j + 1 entries,
    however many columns the dictionary has.
    """
    add_mean_coefficients(columns, offsets, lead, theta, intercepts, active, weights, mean)
    size = reference.shape[0]
    widest = widest_of(offsets, active)
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
