"""One Newton step of the group Lasso in its variational coordinates eta.

With mu = lambda t, D = diag(d), d_i = sum of eta_j over the groups that contain column i, and X the data,

    F(eta) = 1/2 min_beta [ ||z - X beta||^2 + mu beta' D^-1 beta ] + (mu/2) sum_j w_j^2 eta_j

is smooth and convex on eta >= 0. At the minimiser, r = z - X beta = mu (mu I + X D X')^-1 z and g = X'r give

    dF/deta_j = (mu/2) (w_j^2 - ||g_{S_j}||^2 / mu^2),    H_jk = (1/mu) z_j' X' (mu I + X D X')^-1 X z_k,

z_j being g restricted to S_j. The factored matrix has the size of the support of d, or of the data, if smaller.

A ridge (1/2) sum_i eps_i beta_i^2 adds eps_i / mu to 1 / d_i. With c_i = mu / (mu + eps_i d_i), C D takes the place of
D in the matrices, g = X'r - eps beta, which is C X'r, and

    H_jk = (1/mu) z_j' C X' (mu I + X C D X')^-1 X C z_k + sum_i g_i^2 eps_i c_i / mu^2,

the sum being over the columns that are in both S_j and S_k.
"""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import (
    add_gram,
    add_scaled,
    cholesky,
    dot,
    floats,
    matrix,
    solve_factored,
    solve_lower_many,
    solve_upper_many,
    subtract_rows,
)
from alexp.estimation.lasso._working import Point, Working, violation

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


@compact.kernel
def solve_primal(xt: FloatArray, n: int, z: FloatArray, mu: float, work: Working, at: Point, m: int) -> FloatArray:
    """Solve (mu I + D^1/2 X'X D^1/2) u = D^1/2 X'z on the support, D^1/2 = at.root; set slope, r; return the factor.

    Refinement updates r by -X D^1/2 du instead of recomputing it: the rounding error of z - X beta is then damped
    like the data, and r stays relatively accurate even when the fit nearly interpolates.
    """
    factor = matrix(m, m)
    _solve_primal(xt, n, z, mu, work, at, m, factor, floats(m), floats(m), floats(5 * m))
    return factor


@compact.leaf
def _solve_primal(
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
    """``solve_primal``, given room."""
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


@compact.kernel
def solve_dual(xt: FloatArray, n: int, z: FloatArray, mu: float, work: Working, at: Point, m: int) -> FloatArray:
    """Solve (mu I + X D X') w = z, D^1/2 = at.root; set r = mu w and slope = X'w on the support; return the factor.

    Refinement corrects w and X'w side by side: recomputing the latter would bring back the rounding of X'r, which
    large columns amplify.
    """
    factor = matrix(n, n)
    _solve_dual(xt, n, z, mu, work, at, m, factor, matrix(m, n), floats(n), floats(m), floats(5 * n))
    return factor


@compact.leaf
def _solve_dual(
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
    """``solve_dual``, given room; ``factor`` is zero."""
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
        factor = solve_primal(xt, n, z, mu, work, at, m)
    else:
        factor = solve_dual(xt, n, z, mu, work, at, m)
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
    who: IntArray,
) -> FloatArray:
    """Return H (k, k), lower triangle, on the groups ``who[:k]`` of the working set, k = work.tally[4]."""
    m = work.tally[3]
    k = work.tally[4]
    out = matrix(k, k)
    if m > n or m == 0:
        _hessian_by_rows(xt, n, mu, eps, work, at, factor, who, matrix(n, k), out)
    else:
        form_gram(xt, n, full, work)
        _hessian_by_columns(mu, eps, work, at, factor, who, matrix(work.tally[1], k), matrix(m, k), floats(m), out)
    _add_shared(mu, eps, work, at, who, floats(work.tally[1]), out)
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
    who: IntArray,
    fitted: FloatArray,
    out: FloatArray,
) -> None:
    """``hessian`` from the factor of mu I + X C D X' (or none, if D = 0); ``fitted`` (n, k) is zero."""
    m = work.tally[3]
    k = work.tally[4]
    for b in range(k):
        for e in range(work.start[who[b]], work.start[who[b] + 1]):
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
    mu: float, eps: FloatArray, work: Working, at: Point, who: IntArray, share: FloatArray, out: FloatArray
) -> None:
    """Add the ridge's part of H, g_i^2 eps_i c_i / mu^2 for shared columns; ``share`` (c,) is room."""
    share[:] = 0.0
    for b in range(work.tally[4]):
        for e in range(work.start[who[b]], work.start[who[b] + 1]):
            i = work.member[e]
            ridge = eps[work.column[i]]
            share[i] = ridge * at.g[i] * at.g[i] * shrinkage(mu, ridge, at.d[i]) / (mu * mu)
        for a in range(b, work.tally[4]):
            for e in range(work.start[who[a]], work.start[who[a] + 1]):
                out[a, b] += share[work.member[e]]
        for e in range(work.start[who[b]], work.start[who[b] + 1]):
            share[work.member[e]] = 0.0


@compact.leaf
def _hessian_by_columns(
    mu: float,
    eps: FloatArray,
    work: Working,
    at: Point,
    factor: FloatArray,
    who: IntArray,
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
        for e in range(work.start[who[b]], work.start[who[b] + 1]):
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
        for e in range(work.start[who[a]], work.start[who[a] + 1]):
            j = work.member[e]
            scale = inverse * at.g[j] * shrinkage(mu, eps[work.column[j]], at.d[j])
            for b in range(a + 1):
                out[a, b] += scale * pulled[j, b]
