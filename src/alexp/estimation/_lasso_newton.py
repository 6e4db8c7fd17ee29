"""One Newton step of the group Lasso in its variational coordinates eta.

With mu = lambda t, D = diag(d), d_i = sum of eta_j over the groups that contain column i, and X the data,

    F(eta) = 1/2 min_beta [ ||z - X beta||^2 + mu beta' D^-1 beta ] + (mu/2) sum_j w_j^2 eta_j

is smooth and convex on eta >= 0. At the minimiser, r = z - X beta = mu (mu I + X D X')^-1 z and g = X'r give

    dF/deta_j = (mu/2) (w_j^2 - ||g_{S_j}||^2 / mu^2),    H_jk = (1/mu) z_j' X' (mu I + X D X')^-1 X z_k,

z_j being g restricted to S_j. The factored matrix has the size of the support of d, or of the data, if smaller.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from alexp.estimation._lasso_linalg import (
    add_gram,
    cholesky,
    dot,
    floats,
    integers,
    kernel,
    matrix,
    solve_factored,
    solve_lower_many,
    solve_upper_many,
    subtract_rows,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PIVOT_FLOOR = 1e-15
REFINEMENTS = 6
REFINED = 1e-12


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
    count: IntArray  # (5,) k, c, local columns whose inner products are formed, support size, free groups


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


class Model(NamedTuple):
    """The quadratic model of F around the current eta, for the groups that may move."""

    who: IntArray  # (>= f,) their position in the working set
    q: FloatArray  # (>= f,) ||g_{S_j}|| / (mu w_j)
    scale: FloatArray  # (>= f,) mu w_j^2
    low: FloatArray  # (>= f,) -eta_j, the least step
    linear: FloatArray  # (>= f,) linear term
    step: FloatArray  # (>= f,)


@kernel
def form_gram(xt: FloatArray, n: int, full: FloatArray, work: Working) -> None:
    """Complete the inner products of the local columns, gathered from ``full`` (P, P) or computed if that is empty."""
    done = work.count[2]
    for a in range(done, work.count[1]):
        first = work.column[a]
        for b in range(a + 1):
            second = work.column[b]
            value = full[first, second] if full.size > 0 else dot(xt[first], xt[second], n)
            work.gram[a, b] = value
            work.gram[b, a] = value
    work.count[2] = work.count[1]


@kernel
def solve_primal(xt: FloatArray, n: int, z: FloatArray, mu: float, work: Working, at: Point, m: int) -> FloatArray:
    """Solve (mu I + D^1/2 X'X D^1/2) u = D^1/2 X'z on the support; set beta, slope and r; return the factor.

    Refinement updates r by -X D^1/2 du instead of recomputing it: the rounding error of z - X beta is then damped
    like the data, and r stays relatively accurate even when the fit nearly interpolates.
    """
    factor = matrix(m, m)
    u = floats(m)
    for a in range(m):
        row = work.gram[at.support[a]]
        for b in range(a + 1):
            factor[a, b] = at.root[a] * at.root[b] * row[at.support[b]]
        factor[a, a] += mu
        u[a] = at.root[a] * dot(xt[work.column[at.support[a]]], z, n)
    cholesky(factor, m, PIVOT_FLOOR)
    step = floats(m)
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
            scale = at.root[a] * step[a]
            for i in range(n):
                at.r[i] -= scale * x[i]
        if moved <= REFINED * largest:
            break
        for a in range(m):
            step[a] = at.root[a] * dot(xt[work.column[at.support[a]]], at.r, n) - mu * u[a]
    for a in range(m):
        at.slope[at.support[a]] = u[a] / at.root[a]
    return factor


@kernel
def solve_dual(xt: FloatArray, n: int, z: FloatArray, mu: float, work: Working, at: Point, m: int) -> FloatArray:
    """Solve (mu I + X D X') r = mu z; set slope = X'r / mu on the support and r; return the factor."""
    scaled = matrix(m, n)
    for a in range(m):
        x = xt[work.column[at.support[a]]]
        for i in range(n):
            scaled[a, i] = at.root[a] * x[i]
    factor = matrix(n, n)
    add_gram(scaled, m, factor, n)
    for i in range(n):
        factor[i, i] += mu
    cholesky(factor, n, PIVOT_FLOOR)
    step = floats(n)
    for i in range(n):
        step[i] = mu * z[i]
        at.r[i] = 0.0
    product = floats(m)
    for _ in range(REFINEMENTS):
        solve_factored(factor, step, n)
        largest = 0.0
        moved = 0.0
        for i in range(n):
            at.r[i] += step[i]
            largest = max(largest, abs(at.r[i]))
            moved = max(moved, abs(step[i]))
        for a in range(m):
            product[a] = dot(scaled[a], at.r, n)
        if moved <= REFINED * largest:
            break
        for i in range(n):
            step[i] = mu * (z[i] - at.r[i])
        for a in range(m):
            for i in range(n):
                step[i] -= product[a] * scaled[a, i]
    for a in range(m):
        at.slope[at.support[a]] = product[a] / (mu * at.root[a])
    return factor


@kernel
def evaluate(
    xt: FloatArray, n: int, z: FloatArray, full: FloatArray, mu: float, eta: FloatArray, work: Working, at: Point
) -> tuple[float, FloatArray]:
    """Minimise over beta at ``eta``; fill ``at``; return F(eta) and the Cholesky factor."""
    k = work.count[0]
    c = work.count[1]
    for i in range(c):
        at.d[i] = 0.0
        at.slope[i] = 0.0
    value = 0.0
    for j in range(k):
        if eta[j] > 0.0:
            value += work.weight[j] * work.weight[j] * eta[j]
            for e in range(work.start[j], work.start[j + 1]):
                at.d[work.member[e]] += eta[j]
    work.count[3] = 0
    for i in range(c):
        if at.d[i] > 0.0:
            at.support[work.count[3]] = i
            at.root[work.count[3]] = math.sqrt(at.d[i])
            work.count[3] += 1
    m = work.count[3]
    if m == 0:
        for i in range(n):
            at.r[i] = z[i]
        factor = matrix(m, m)
    elif m <= n:
        form_gram(xt, n, full, work)
        factor = solve_primal(xt, n, z, mu, work, at, m)
    else:
        factor = solve_dual(xt, n, z, mu, work, at, m)
    for i in range(c):
        at.beta[i] = at.d[i] * at.slope[i]
        value += at.beta[i] * at.slope[i]
        at.g[i] = dot(xt[work.column[i]], at.r, n)
    for j in range(k):
        total = 0.0
        for e in range(work.start[j], work.start[j + 1]):
            total += at.g[work.member[e]] * at.g[work.member[e]]
        at.q[j] = math.sqrt(total) / (mu * work.weight[j])
    return 0.5 * (dot(at.r, at.r, n) + mu * value), factor


@kernel
def hessian(
    xt: FloatArray, n: int, full: FloatArray, mu: float, work: Working, at: Point, factor: FloatArray, who: IntArray
) -> FloatArray:
    """Return H (k, k), lower triangle, on the groups ``who[:k]`` of the working set, k = work.count[4]."""
    m = work.count[3]
    k = work.count[4]
    out = matrix(k, k)
    if m > n or m == 0:
        fitted = matrix(n, k)
        for b in range(k):
            for e in range(work.start[who[b]], work.start[who[b] + 1]):
                i = work.member[e]
                x = xt[work.column[i]]
                for row in range(n):
                    fitted[row, b] += at.g[i] * x[row]
        if m > 0:
            solve_lower_many(factor, fitted, n)
        add_gram(fitted, n, out, k)
        inverse = 1.0 / mu if m > 0 else 1.0 / (mu * mu)
        for a in range(k):
            for b in range(a + 1):
                out[a, b] *= inverse
        return out
    form_gram(xt, n, full, work)
    c = work.count[1]
    # pulled[i, b] = (X' y_b)_i first, then (X' mu (mu I + X D X')^-1 y_b)_i, with y_b = X z_b
    pulled = matrix(c, k)
    for b in range(k):
        for e in range(work.start[who[b]], work.start[who[b] + 1]):
            j = work.member[e]
            row = work.gram[j]
            for i in range(c):
                pulled[i, b] += at.g[j] * row[i]
    ridge = matrix(m, k)
    weights = floats(m)
    for a in range(m):
        for b in range(k):
            ridge[a, b] = at.root[a] * pulled[at.support[a], b]
    solve_lower_many(factor, ridge, m)
    solve_upper_many(factor, ridge, m)
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
            scale = inverse * at.g[j]
            for b in range(a + 1):
                out[a, b] += scale * pulled[j, b]
    return out


@kernel
def bounded_quadratic(
    h: FloatArray, c: FloatArray, low: FloatArray, k: int, damping: float, x: FloatArray
) -> None:
    """Minimise 1/2 x'(H + damping diag(H))x + c'x over x >= low by block principal pivoting (Kim and Park 2011)."""
    free = integers(k)
    for a in range(k):
        free[a] = 1
    best = k + 1
    patience = 3
    system = matrix(k, k)
    rhs = floats(k)
    index = integers(k)
    swap = integers(k)
    free_count = integers(1)
    for _ in range(20 * k + 20):
        free_count[0] = 0
        for a in range(k):
            x[a] = low[a]
            if free[a] == 1:
                index[free_count[0]] = a
                free_count[0] += 1
        f = free_count[0]
        for a in range(f):
            row = index[a]
            for b in range(a + 1):
                system[a, b] = h[row, index[b]]
            system[a, a] *= 1.0 + damping
            total = -c[row]
            for b in range(k):
                if free[b] == 0:
                    total -= low[b] * (h[row, b] if b <= row else h[b, row])
            rhs[a] = total
        cholesky(system, f, 0.5 * damping)
        solve_factored(system, rhs, f)
        for a in range(f):
            x[index[a]] = rhs[a]
        wrong = 0
        for a in range(k):
            if free[a] == 1:
                if x[a] < low[a]:
                    swap[wrong] = a
                    wrong += 1
            else:
                total = c[a] + h[a, a] * damping * x[a]
                size = abs(c[a])
                for b in range(k):
                    term = x[b] * (h[a, b] if b <= a else h[b, a])
                    total += term
                    size += abs(term)
                if total < -1e-13 * size:
                    swap[wrong] = a
                    wrong += 1
        if wrong == 0:
            break
        if wrong < best:
            best = wrong
            patience = 3
        elif patience > 0:
            patience -= 1
        else:
            swap[0] = swap[wrong - 1]
            wrong = 1
        for i in range(wrong):
            free[swap[i]] = 1 - free[swap[i]]
    for a in range(k):
        x[a] = max(x[a], low[a])
