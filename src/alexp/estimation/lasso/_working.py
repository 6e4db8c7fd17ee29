"""The working set of the group Lasso: the groups under consideration and what is known at their eta.

Numba has no growing arrays, so these are named tuples of arrays with room to spare; ``tally`` says how much is in
use, and the ``enlarged`` functions return a copy with more room.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import ZERO, add_scaled, dot, floats, integers, matrix

EPSILON = 2.0**-53


class Groups(NamedTuple):
    """All groups of the problem, as plain arrays."""

    columns: IntArray  # (nnz,)
    offsets: IntArray  # (M + 1,)
    weights: FloatArray  # (M,)


class Working(NamedTuple):
    """The working set: k groups over c distinct columns (the leading parts of larger arrays)."""

    ids: IntArray  # (>= k,) group index
    eta: FloatArray  # (>= k,)
    weight: FloatArray  # (>= k,)
    start: IntArray  # (>= k + 1,) offsets into member
    member: IntArray  # (>= nnz,) local column of each member
    column: IntArray  # (>= c,) dictionary column of each local column
    local: IntArray  # (P,) local column of each dictionary column, -1 if none
    gram: FloatArray  # (>= c, >= c) inner products of the local columns, where already formed
    tally: IntArray  # (5,) k, c, columns whose inner products are formed, size of the support, groups that may move


class Point(NamedTuple):
    """What is known at the current eta (the leading parts of larger arrays)."""

    d: FloatArray  # (>= c,) diagonal of D
    g: FloatArray  # (>= c,) X'r
    beta: FloatArray  # (>= c,)
    slope: FloatArray  # (>= c,) beta / d, zero off the support
    support: IntArray  # (>= c,) local columns with d > 0
    root: FloatArray  # (>= c,) their sqrt(d)
    r: FloatArray  # (n,)
    q: FloatArray  # (>= k,) ||g_{S_j}|| / (mu w_j)


@compact.kernel
def copied(old: FloatArray, count: int, size: int) -> FloatArray:
    """Return an array of this size that starts with old[:count]."""
    new = floats(size)
    for i in range(count):
        new[i] = old[i]
    return new


@compact.kernel
def copied_integers(old: IntArray, count: int, size: int) -> IntArray:
    """Return an array of this size that starts with old[:count]."""
    new = integers(size)
    for i in range(count):
        new[i] = old[i]
    return new


@compact.kernel
def empty_working(none: IntArray, zero: FloatArray, n_columns: int) -> Working:
    """Return a working set without groups; ``none`` and ``zero`` are empty arrays."""
    local = integers(n_columns)
    for i in range(n_columns):
        local[i] = -1
    count = integers(n_columns + 5)
    for i in range(5):
        count[i] = 0
    start = integers(n_columns)
    start[0] = 0
    return Working(none, zero, zero, start[:1], none, none, local, matrix(none.size, none.size), count)


@compact.kernel
def empty_point(none: IntArray, zero: FloatArray) -> Point:
    """Return a point without room."""
    return Point(zero, zero, zero, zero, none, zero, zero, zero)


@compact.kernel
def enlarged(work: Working, groups: int, members: int, columns: int) -> Working:
    """Return the working set with room for so many more groups, members and columns."""
    k = work.tally[0]
    c = work.tally[1]
    nnz = work.start[k]
    if k + groups < work.start.size and nnz + members <= work.member.size and c + columns <= work.column.size:
        return work
    more_k = 2 * (k + groups)
    more_c = min(2 * (c + columns), work.local.size)
    gram = matrix(more_c, more_c)
    for i in range(work.tally[2]):
        for j in range(work.tally[2]):
            gram[i, j] = work.gram[i, j]
    return Working(
        copied_integers(work.ids, k, more_k),
        copied(work.eta, k, more_k),
        copied(work.weight, k, more_k),
        copied_integers(work.start, k + 1, more_k + 1),
        copied_integers(work.member, nnz, 2 * (nnz + members)),
        copied_integers(work.column, c, more_c),
        work.local,
        gram,
        work.tally,
    )


@compact.kernel
def enlarged_point(at: Point, work: Working, n: int) -> Point:
    """Return the point with room for what the working set has room for."""
    c = work.tally[1]
    size = work.column.size
    k = work.ids.size
    if at.r.size == n and at.d.size == size and at.q.size == k:
        return at
    c = min(c, at.d.size)
    return Point(
        copied(at.d, c, size),
        copied(at.g, c, size),
        copied(at.beta, c, size),
        copied(at.slope, c, size),
        copied_integers(at.support, c, size),
        copied(at.root, c, size),
        copied(at.r, min(n, at.r.size), n),
        copied(at.q, min(at.q.size, work.tally[0]), k),
    )


@compact.kernel
def with_groups(work: Working, groups: Groups, new: IntArray, eta: FloatArray, scale: float, count: int) -> Working:
    """Return the working set with the groups ``new[:count]`` at ``scale * eta[:count]`` appended."""
    members = ZERO
    for a in range(count):
        members += groups.offsets[new[a] + 1] - groups.offsets[new[a]]
    work = enlarged(work, count, members, min(members, work.local.size - work.tally[1]))
    for a in range(count):
        j = work.tally[0]
        work.ids[j] = new[a]
        work.eta[j] = scale * eta[a]
        work.weight[j] = groups.weights[new[a]]
        place = work.start[j]
        for e in range(groups.offsets[new[a]], groups.offsets[new[a] + 1]):
            column = groups.columns[e]
            if work.local[column] < 0:
                work.local[column] = work.tally[1]
                work.column[work.tally[1]] = column
                work.tally[1] += 1
            work.member[place] = work.local[column]
            place += 1
        work.start[j + 1] = place
        work.tally[0] = j + 1
    return work


@compact.kernel
def include(
    work: Working,
    at: Point,
    n: int,
    mu: float,
    groups: Groups,
    new: IntArray,
    none: FloatArray,
    count: int,
    g: FloatArray,
) -> tuple[Working, Point]:
    """Return the working set with new groups at eta = 0, and the current point, which tells their gradient from g."""
    columns = work.tally[1]
    k = work.tally[0]
    work = with_groups(work, groups, new, none, 0.0, count)
    at = enlarged_point(at, work, n)
    for i in range(columns, work.tally[1]):
        at.d[i] = 0.0
        at.slope[i] = 0.0
        at.beta[i] = 0.0
        at.g[i] = g[work.column[i]]
    for j in range(k, work.tally[0]):
        at.q[j] = violation(mu, work, at, j)
    return work, at


@compact.leaf
def violation(mu: float, work: Working, at: Point, j: int) -> float:
    """Return ||g_{S_j}|| / (mu w_j) for group j of the working set; above one it violates."""
    total = 0.0
    for e in range(work.start[j], work.start[j + 1]):
        total += at.g[work.member[e]] * at.g[work.member[e]]
    return float(math.sqrt(total) / (mu * work.weight[j]))


@compact.kernel
def scaled_copy(values: FloatArray, count: int, scale: float) -> FloatArray:
    """Return scale * values[:count]."""
    out = floats(count)
    for i in range(count):
        out[i] = scale * values[i]
    return out


@compact.leaf
def fitted_ridge(squares: FloatArray, strength: float, total: float, scale: float, eps: FloatArray) -> float:
    """Write the ridge eps_i = kappa mu w_i^2 / scale (P,) unless the present one is good enough; return its scale.

    ``squares`` (P,) are w_i^2, w_i the least weight of a group with column i; ``strength`` is kappa mu. The scale is
    the power of two above ``total`` = sum_j w_j ||theta_j||: the ridge is then at most kappa / 2 of the penalty, and
    few steps change it. It stays while the total is within a hundredth of that range. Zero stands for no ridge.
    """
    if strength == 0.0 or total == 0.0 or 0.495 * scale <= total <= 1.01 * scale:
        return scale
    scale = math.ldexp(1.0, math.frexp(total)[1])
    for i in range(eps.size):
        eps[i] = squares[i] * (strength / scale)
    return scale


@compact.leaf
def correlations(xt: FloatArray, n: int, eps: FloatArray, work: Working, at: Point, g: FloatArray) -> None:
    """Write g = X'r - eps beta (P,) for all dictionary columns."""
    for i in range(g.size):
        g[i] = dot(xt[i], at.r, n)
    for i in range(work.tally[1]):
        g[work.column[i]] -= eps[work.column[i]] * at.beta[i]


@compact.leaf
def drop_ridge(eps: FloatArray, work: Working, at: Point, g: FloatArray) -> None:
    """Set eps to zero, and to X'r both at.g of the local columns and g (P,) of all."""
    for i in range(work.tally[1]):
        column = work.column[i]
        at.g[i] += eps[column] * at.beta[i]
        g[column] = at.g[i]
        eps[column] = 0.0


@compact.kernel
def gap_terms(
    xt: FloatArray, n: int, z: FloatArray, rho2: float, penalty: float, eps: FloatArray, work: Working, at: Point
) -> tuple[float, float, float, float]:
    """Return P, c0, c1, c2 such that P - D(s r) = c0 + (1 - s) c1 + (1 - s)^2 c2 / 2.

    P = 1/2 ||y - B beta||^2 + penalty, and D(a) = y'a - ||a||^2 / 2. Written around s = 1 the gap is a sum of small
    numbers and loses nothing to cancellation. A ridge adds rows with target 0 and residual -sqrt(eps_i) beta_i.
    """
    return _gap_terms(xt, n, z, rho2, penalty, eps, work, at, floats(n))


@compact.leaf
def _gap_terms(
    xt: FloatArray,
    n: int,
    z: FloatArray,
    rho2: float,
    penalty: float,
    eps: FloatArray,
    work: Working,
    at: Point,
    error: FloatArray,
) -> tuple[float, float, float, float]:
    """``gap_terms``, given room."""
    for row in range(n):
        error[row] = z[row]
    explained = 0.0
    for i in range(work.tally[1]):
        beta = at.beta[i]
        if beta != 0.0:
            explained += beta * at.g[i]
            rho2 += eps[work.column[i]] * beta * beta
            add_scaled(error, -beta, xt[work.column[i]], n)
    primal = 0.5 * (dot(error, error, n) + rho2) + penalty
    for row in range(n):
        error[row] -= at.r[row]
    c0 = penalty - explained + 0.5 * dot(error, error, n)
    return primal, c0, explained + dot(error, at.r, n), dot(at.r, at.r, n) + rho2


@compact.leaf
def relative_gap(terms: tuple[float, float, float, float], top: float) -> float:
    """Return (P - D) / P at the best s with |s| <= 1/top, where top = max_j ||g_{S_j}|| / (mu w_j)."""
    primal, c0, c1, c2 = terms
    if primal <= 0.0:
        return 0.0
    below = -c1 / c2 if c2 > 0.0 else 0.0
    if top > 0.0:
        below = min(max(below, 1.0 - 1.0 / top), 1.0 + 1.0 / top)
    return max(c0 + below * (c1 + 0.5 * below * c2), 0.0) / primal


@compact.leaf
def rounding(xt: FloatArray, n: int, z: FloatArray, primal: float, work: Working, at: Point) -> float:
    """Return the share of P that rounding beta to doubles may add: 1/2 (eps (|z| + |X| |beta|))^2 over P."""
    total = 0.0
    for row in range(n):
        size = abs(z[row])
        for i in range(work.tally[1]):
            size += abs(at.beta[i] * xt[work.column[i], row])
        total += size * size
    return 0.5 * EPSILON * EPSILON * total / primal if primal > 0.0 else 0.0
