"""The working set of the group Lasso and one Newton step in its variational coordinates eta; both solvers use them.

With mu = lambda t, D = diag(d), d_i = sum of eta_j over the groups that contain column i, and X the data,

    F(eta) = 1/2 min_beta [ ||z - X beta||^2 + mu beta' D^-1 beta ] + (mu/2) sum_j w_j^2 eta_j

is smooth and convex on eta >= 0. At the minimiser, r = z - X beta = mu (mu I + X D X')^-1 z and g = X'r give

    dF/deta_j = (mu/2) (w_j^2 - ||g_{S_j}||^2 / mu^2),    H_jk = (1/mu) z_j' X' (mu I + X D X')^-1 X z_k,

z_j being g restricted to S_j. The factored matrix has the size of the support of d, or of the data, if smaller.

A ridge (1/2) sum_i eps_i beta_i^2 adds eps_i / mu to 1 / d_i. With c_i = mu / (mu + eps_i d_i), C D takes the place of
D in the matrices, g = X'r - eps beta, which is C X'r, and

    H_jk = (1/mu) z_j' C X' (mu I + X C D X')^-1 X C z_k + sum_i g_i^2 eps_i c_i / mu^2,

the sum being over the columns that are in both S_j and S_k.

Numba has no growing arrays, so working sets are named tuples of arrays with room to spare; ``tally`` says how much is
in use, and the ``enlarged`` functions return a copy with more room.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import (
    ZERO,
    add_gram,
    add_scaled,
    cholesky,
    dot,
    floats,
    integers,
    matrix,
    solve_factored,
    solve_lower_many,
    solve_upper_many,
    subtract_rows,
)

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


PIVOT_FLOOR = 1e-15
REFINEMENTS = 6
REFINED = 1e-12
ROUNDED = 1e-14


@compact.leaf
def shrinkage(mu: float, ridge: float, d: float) -> float:
    """Return c = mu / (mu + ridge d), the factor by which a ridge shrinks d; 1, exactly, without one."""
    return mu / (mu + ridge * d)


@compact.leaf
def form_gram(xt: FloatArray, n: int, full: FloatArray, work: Working) -> None:
    """Complete X'X of the local columns, gathered from ``full`` (P, P) or computed if that is empty."""
    done = work.tally[2]
    for a in range(done, work.tally[1]):
        first = work.column[a]
        for b in range(a + 1):
            second = work.column[b]
            value = full[first, second] if full.size > 0 else dot(xt[first], xt[second], n)
            work.gram[a, b] = value
            work.gram[b, a] = value
    work.tally[2] = work.tally[1]


@compact.leaf
def solve_primal(
    xt: FloatArray,
    n: int,
    z: FloatArray,
    mu: float,
    work: Working,
    at: Point,
    m: int,
    factor: FloatArray,
    u: FloatArray,
    step: FloatArray,
    scratch: FloatArray,
) -> None:
    """Solve (mu I + D^1/2 X'X D^1/2) u = D^1/2 X'z on the support, D^1/2 = at.root; set factor, slope and r.

    ``factor`` is zero; ``u``, ``step`` (m,) and ``scratch`` (5 m,) are room. Refinement updates r by -X D^1/2 du
    instead of recomputing it: the rounding error of z - X beta is then damped like the data, and r stays relatively
    accurate even when the fit nearly interpolates.
    """
    for a in range(m):
        row = work.gram[at.support[a]]
        for b in range(a + 1):
            factor[a, b] = at.root[a] * at.root[b] * row[at.support[b]]
        factor[a, a] += mu
        u[a] = at.root[a] * dot(xt[work.column[at.support[a]]], z, n)
    cholesky(factor, m, PIVOT_FLOOR, scratch)
    for a in range(m):
        step[a] = u[a]
        u[a] = 0.0
    for i in range(n):
        at.r[i] = z[i]
    for _ in range(REFINEMENTS):
        solve_factored(factor, step, m)
        largest = 0.0
        moved = 0.0
        for a in range(m):
            u[a] += step[a]
            largest = max(largest, abs(u[a]))
            moved = max(moved, abs(step[a]))
            x = xt[work.column[at.support[a]]]
            add_scaled(at.r, -at.root[a] * step[a], x, n)
        if moved <= REFINED * largest:
            break
        for a in range(m):
            step[a] = at.root[a] * dot(xt[work.column[at.support[a]]], at.r, n) - mu * u[a]
    for a in range(m):
        at.slope[at.support[a]] = u[a] / at.root[a]


@compact.leaf
def solve_dual(
    xt: FloatArray,
    n: int,
    z: FloatArray,
    mu: float,
    work: Working,
    at: Point,
    m: int,
    factor: FloatArray,
    scaled: FloatArray,
    error: FloatArray,
    u: FloatArray,
    scratch: FloatArray,
) -> None:
    """Solve (mu I + X D X') w = z, D^1/2 = at.root; set factor, r = mu w, and slope = X'w on the support.

    ``factor`` is zero; ``scaled`` (m, n), ``error`` (n,), ``u`` (m,) and ``scratch`` (5 n,) are room. Refinement
    corrects w and X'w side by side: recomputing the latter would bring back the rounding of X'r, which large columns
    amplify.
    """
    for a in range(m):
        x = xt[work.column[at.support[a]]]
        for i in range(n):
            scaled[a, i] = at.root[a] * x[i]
    add_gram(scaled, m, factor, n)
    for i in range(n):
        factor[i, i] += mu
    cholesky(factor, n, PIVOT_FLOOR, scratch)
    size = 0.0
    for i in range(n):
        error[i] = z[i]
        at.r[i] = 0.0
        size = max(size, abs(z[i]))
    for a in range(m):
        u[a] = 0.0
    before = np.inf
    for _ in range(REFINEMENTS):
        solve_factored(factor, error, n)
        for a in range(m):
            u[a] += dot(scaled[a], error, n)
        largest = 0.0
        for i in range(n):
            at.r[i] += mu * error[i]
            error[i] = z[i] - at.r[i]
        for a in range(m):
            add_scaled(error, -u[a], scaled[a], n)
        for i in range(n):
            largest = max(largest, abs(error[i]))
        if largest <= ROUNDED * size or largest > 0.25 * before:
            break
        before = largest
    for a in range(m):
        at.slope[at.support[a]] = u[a] / at.root[a]


@compact.kernel
def evaluate(
    xt: FloatArray, n: int, z: FloatArray, full: FloatArray, mu: float, eps: FloatArray, work: Working, at: Point
) -> tuple[float, FloatArray]:
    """Minimise over beta at work.eta; fill ``at``; return the minimum (F without its last term) and the factor."""
    k = work.tally[0]
    c = work.tally[1]
    for i in range(c):
        at.d[i] = 0.0
        at.slope[i] = 0.0
    for j in range(k):
        if work.eta[j] > 0.0:
            for e in range(work.start[j], work.start[j + 1]):
                at.d[work.member[e]] += work.eta[j]
    work.tally[3] = 0
    for i in range(c):
        if at.d[i] > 0.0:
            at.support[work.tally[3]] = i
            at.root[work.tally[3]] = math.sqrt(at.d[i] * shrinkage(mu, eps[work.column[i]], at.d[i]))
            work.tally[3] += 1
    m = work.tally[3]
    if m == 0:
        for i in range(n):
            at.r[i] = z[i]
        factor = matrix(m, m)
    elif m <= n:
        form_gram(xt, n, full, work)
        factor = matrix(m, m)
        solve_primal(xt, n, z, mu, work, at, m, factor, floats(m), floats(m), floats(5 * m))
    else:
        factor = matrix(n, n)
        solve_dual(xt, n, z, mu, work, at, m, factor, matrix(m, n), floats(n), floats(m), floats(5 * n))
    value = dot(at.r, at.r, n)
    for i in range(c):
        at.slope[i] *= shrinkage(mu, eps[work.column[i]], at.d[i])
        at.beta[i] = at.d[i] * at.slope[i]
        drawn = eps[work.column[i]] * at.beta[i]
        value += mu * at.beta[i] * at.slope[i] + drawn * at.beta[i]
        at.g[i] = dot(xt[work.column[i]], at.r, n) - drawn
    for j in range(k):
        at.q[j] = violation(mu, work, at, j)
    return 0.5 * value, factor


@compact.kernel
def hessian(
    xt: FloatArray,
    n: int,
    full: FloatArray,
    mu: float,
    eps: FloatArray,
    work: Working,
    at: Point,
    factor: FloatArray,
    moving: IntArray,
) -> FloatArray:
    """Return H (k, k), lower triangle, on the groups ``moving[:k]`` of the working set, k = work.tally[4]."""
    m = work.tally[3]
    k = work.tally[4]
    out = matrix(k, k)
    if m > n or m == 0:
        _hessian_by_rows(xt, n, mu, eps, work, at, factor, moving, matrix(n, k), out)
    else:
        form_gram(xt, n, full, work)
        _hessian_by_columns(mu, eps, work, at, factor, moving, matrix(work.tally[1], k), matrix(m, k), floats(m), out)
    _add_shared(mu, eps, work, at, moving, floats(work.tally[1]), out)
    return out


@compact.leaf
def _hessian_by_rows(
    xt: FloatArray,
    n: int,
    mu: float,
    eps: FloatArray,
    work: Working,
    at: Point,
    factor: FloatArray,
    moving: IntArray,
    fitted: FloatArray,
    out: FloatArray,
) -> None:
    """``hessian`` from the factor of mu I + X C D X' (or none, if D = 0); ``fitted`` (n, k) is zero."""
    m = work.tally[3]
    k = work.tally[4]
    for b in range(k):
        for e in range(work.start[moving[b]], work.start[moving[b] + 1]):
            i = work.member[e]
            x = xt[work.column[i]]
            pull = at.g[i] * shrinkage(mu, eps[work.column[i]], at.d[i])
            for row in range(n):
                fitted[row, b] += pull * x[row]
    if m > 0:
        solve_lower_many(factor, fitted, n)
    add_gram(fitted, n, out, k)
    inverse = 1.0 / mu if m > 0 else 1.0 / (mu * mu)
    for a in range(k):
        for b in range(a + 1):
            out[a, b] *= inverse


@compact.leaf
def _add_shared(
    mu: float, eps: FloatArray, work: Working, at: Point, moving: IntArray, share: FloatArray, out: FloatArray
) -> None:
    """Add the ridge's part of H, g_i^2 eps_i c_i / mu^2 for shared columns; ``share`` (c,) is room."""
    share[:] = 0.0
    for b in range(work.tally[4]):
        for e in range(work.start[moving[b]], work.start[moving[b] + 1]):
            i = work.member[e]
            ridge = eps[work.column[i]]
            share[i] = ridge * at.g[i] * at.g[i] * shrinkage(mu, ridge, at.d[i]) / (mu * mu)
        for a in range(b, work.tally[4]):
            for e in range(work.start[moving[a]], work.start[moving[a] + 1]):
                out[a, b] += share[work.member[e]]
        for e in range(work.start[moving[b]], work.start[moving[b] + 1]):
            share[work.member[e]] = 0.0


@compact.leaf
def _hessian_by_columns(
    mu: float,
    eps: FloatArray,
    work: Working,
    at: Point,
    factor: FloatArray,
    moving: IntArray,
    pulled: FloatArray,
    ridge: FloatArray,
    weights: FloatArray,
    out: FloatArray,
) -> None:
    """``hessian`` from the factor of mu I + R X'X R on the support, R^2 = C D; ``pulled`` (c, k) is zero.

    pulled[i, b] = (X' y_b)_i first, then (X' mu (mu I + X C D X')^-1 y_b)_i, with y_b = X C z_b.
    """
    m = work.tally[3]
    k = work.tally[4]
    c = work.tally[1]
    for b in range(k):
        for e in range(work.start[moving[b]], work.start[moving[b] + 1]):
            j = work.member[e]
            row = work.gram[j]
            pull = at.g[j] * shrinkage(mu, eps[work.column[j]], at.d[j])
            for i in range(c):
                pulled[i, b] += pull * row[i]
    for a in range(m):
        for b in range(k):
            ridge[a, b] = at.root[a] * pulled[at.support[a], b]
    solve_lower_many(factor, ridge, m)
    solve_upper_many(factor, ridge, m, weights)
    for i in range(c):
        if at.d[i] == 0.0:
            for a in range(m):
                weights[a] = work.gram[i, at.support[a]] * at.root[a]
            subtract_rows(pulled[i], weights, ridge, m)
    for a in range(m):
        for b in range(k):
            pulled[at.support[a], b] = (mu / at.root[a]) * ridge[a, b]
    inverse = 1.0 / (mu * mu)
    for a in range(k):
        for e in range(work.start[moving[a]], work.start[moving[a] + 1]):
            j = work.member[e]
            scale = inverse * at.g[j] * shrinkage(mu, eps[work.column[j]], at.d[j])
            for b in range(a + 1):
                out[a, b] += scale * pulled[j, b]


# Damping of the Newton steps, relative to the Hessian's diagonal. Repeated groups make the Hessian singular, hence
# the least value. A step rejected RETREATS times multiplies it, an accepted one divides it.
LEAST_DAMPING = 1e-10
FIRST_DAMPING = 1e-2
LARGEST_DAMPING = 1e12
RETREATS = 3
POLISH = 10  # so many steps are made for a gap beyond the one that is asked for; one is the rule
SETTLED = 1e-2  # a Newton step that moves less than this share of eta leaves little for the next one
SUFFICIENT_DECREASE = 0.1  # a tenth of what the slope promises; less lets steps jump to and fro across a valley
ROUNDING = 1e-11


@compact.leaf
def acceptable(trial: float, value: float, slope: float, derivative: float) -> bool:
    """Whether a step that changes F from ``value`` to ``trial`` and its derivative along the step to ``slope`` is good.

    Near the optimum the decrease drowns in rounding; the derivative is then the better witness.
    """
    if trial <= value + SUFFICIENT_DECREASE * derivative:
        return True
    return trial <= (1.0 + ROUNDING) * value and slope <= -0.9 * derivative


@compact.leaf
def relaxed(damping: float, slope: float, derivative: float) -> float:
    """Return the damping after an accepted step.

    If the slope hardly changed, F is linear along the step, which only the damping kept from being longer; it may
    then fall below its usual least value.
    """
    if derivative < 0.0 and slope < 0.5 * derivative:
        return max(0.01 * damping, 1e-6 * LEAST_DAMPING)
    return max(0.01 * damping, LEAST_DAMPING)


@compact.leaf
def keep_worst(value: float, group: int, worst: FloatArray, which: IntArray, found: int) -> int:
    """Insert a group into the list of the worst ones, decreasing in value; return how many the list holds."""
    room = worst.size
    if found == room:
        if value <= worst[room - 1]:
            return found
        found -= 1
    place = found
    while place > 0 and worst[place - 1] < value:
        worst[place] = worst[place - 1]
        which[place] = which[place - 1]
        place -= 1
    worst[place] = value
    which[place] = group
    return found + 1
