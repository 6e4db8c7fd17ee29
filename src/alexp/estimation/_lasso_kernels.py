"""The whole group-Lasso solve as one compiled call: working set, Newton steps, line search, certificate."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from alexp.estimation._lasso_groups import Groups, unrank_subset, worst_groups
from alexp.estimation._lasso_linalg import dot
from alexp.estimation._lasso_newton import Point, Working, bounded_quadratic, evaluate, hessian

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_ADDED = 8
SUFFICIENT_DECREASE = 1e-4


@njit(cache=True, nogil=True)
def enlarged(work: Working, groups: int, members: int, columns: int) -> Working:
    """Return the working set with room for so many more groups, members and columns."""
    k = work.count[0]
    c = work.count[1]
    nnz = work.start[k]
    if (k + groups < work.start.size and nnz + members <= work.member.size and c + columns <= work.column.size):
        return work
    more_k = 2 * (k + groups)
    more_c = min(2 * (c + columns), work.local.size)
    ids = np.empty(more_k, dtype=np.int64)
    ids[:k] = work.ids[:k]
    eta = np.zeros(more_k)
    eta[:k] = work.eta[:k]
    weight = np.empty(more_k)
    weight[:k] = work.weight[:k]
    start = np.zeros(more_k + 1, dtype=np.int64)
    start[: k + 1] = work.start[: k + 1]
    member = np.empty(2 * (nnz + members), dtype=np.int64)
    member[:nnz] = work.member[:nnz]
    column = np.empty(more_c, dtype=np.int64)
    column[:c] = work.column[:c]
    gram = np.empty((more_c, more_c))
    formed = work.count[2]
    gram[:formed, :formed] = work.gram[:formed, :formed]
    return Working(ids, eta, weight, start, member, column, work.local, gram, work.count)


@njit(cache=True, nogil=True)
def empty_point(work: Working, n: int) -> Point:
    """Return room for what is known at one eta."""
    c = work.column.size
    k = work.ids.size
    return Point(
        np.zeros(c), np.zeros(c), np.zeros(c), np.zeros(c), np.empty(c, dtype=np.int64), np.empty(c), np.zeros(n),
        np.zeros(k),
    )


@njit(cache=True, nogil=True)
def with_groups(work: Working, groups: Groups, new: IntArray, eta: FloatArray, count: int) -> Working:
    """Return the working set with the groups ``new[:count]`` at ``eta[:count]`` appended."""
    members = 0
    for a in range(count):
        members += groups.size if groups.size > 0 else groups.offsets[new[a] + 1] - groups.offsets[new[a]]
    free = work.local.size - work.count[1]
    work = enlarged(work, count, members, min(members, free))
    subset = np.empty(groups.size, dtype=np.int64)
    for a in range(count):
        j = work.count[0]
        work.ids[j] = new[a]
        work.eta[j] = eta[a]
        if groups.size > 0:
            unrank_subset(new[a], groups.binomial, groups.size, subset)
            work.weight[j] = groups.weights[0]
        else:
            subset = groups.columns[groups.offsets[new[a]] : groups.offsets[new[a] + 1]]
            work.weight[j] = groups.weights[new[a]]
        place = work.start[j]
        for column in subset:
            if work.local[column] < 0:
                work.local[column] = work.count[1]
                work.column[work.count[1]] = column
                work.count[1] += 1
            work.member[place] = work.local[column]
            place += 1
        work.start[j + 1] = place
        work.count[0] = j + 1
    return work


@njit(cache=True, nogil=True)
def relative_gap(
    xt: FloatArray, n: int, z: FloatArray, rho2: float, mu: float, work: Working, eta: FloatArray, at: Point, top: float
) -> float:
    """Return (P - D) / P for theta_j = eta_j slope_{S_j} and the dual point s r, ``top`` = max_j ||g_{S_j}||/(mu w_j).

    P = 1/2 ||z - X beta||^2 + mu sum_j w_j ||theta_j||, D = s y'r - s^2 ||r||^2 / 2. Their difference is evaluated as
    1/2 ||(z - X beta) - s r||^2 + penalty - s beta'g, which does not subtract large numbers.
    """
    penalty = 0.0
    for j in range(work.count[0]):
        if eta[j] > 0.0:
            total = 0.0
            for e in range(work.start[j], work.start[j + 1]):
                total += at.slope[work.member[e]] ** 2
            penalty += work.weight[j] * eta[j] * math.sqrt(total)
    penalty *= mu
    residual = z.copy()
    explained = 0.0
    for i in range(work.count[1]):
        beta = at.beta[i]
        if beta != 0.0:
            explained += beta * at.g[i]
            x = xt[work.column[i]]
            for row in range(n):
                residual[row] -= beta * x[row]
    primal = 0.5 * (dot(residual, residual, n) + rho2) + penalty
    if primal <= 0.0:
        return 0.0
    square = dot(at.r, at.r, n) + rho2
    s = 1.0 if square <= 0.0 else (dot(residual, at.r, n) + rho2 + explained) / square
    if top > 0.0:
        s = max(-1.0 / top, min(s, 1.0 / top))
    gap = penalty - s * explained + 0.5 * (1.0 - s) ** 2 * rho2
    for row in range(n):
        gap += 0.5 * (residual[row] - s * at.r[row]) ** 2
    return max(gap, 0.0) / primal


@njit(cache=True, nogil=True)
def direction(
    xt: FloatArray, n: int, mu: float, work: Working, at: Point, factor: FloatArray, m: int, secular: bool
) -> tuple[FloatArray, float]:
    """Return a step in eta (k,) that keeps eta >= 0, and the derivative of F along it.

    The quadratic model has the exact Hessian. Its linear term makes the unconstrained step the Newton step for
    1/||g_{S_j}|| = 1/(mu w_j), which is nearly linear in eta_j, as in the secular equation of trust regions; the
    plain gradient is the alternative if that is no descent.
    """
    k = work.count[0]
    step = np.zeros(k)
    who = np.empty(k, dtype=np.int64)
    count = 0
    for j in range(k):
        if work.eta[j] > 0.0 or at.q[j] > 1.0:
            who[count] = j
            count += 1
    who = who[:count]
    linear = np.empty(count)
    low = np.empty(count)
    for a in range(count):
        q = at.q[who[a]]
        scale = mu * work.weight[who[a]] ** 2
        linear[a] = scale * (q * q * (1.0 - q) if secular else 0.5 * (1.0 - q * q))
        low[a] = -work.eta[who[a]]
    x = bounded_quadratic(hessian(xt, n, mu, work, at, factor, m, who), linear, low)
    derivative = 0.0
    for a in range(count):
        q = at.q[who[a]]
        step[who[a]] = x[a]
        derivative += 0.5 * mu * work.weight[who[a]] ** 2 * (1.0 - q * q) * x[a]
    return step, derivative


@njit(cache=True, nogil=True)
def slope_along(mu: float, work: Working, at: Point, step: FloatArray) -> float:
    """Return the derivative of F at ``at`` along ``step``."""
    total = 0.0
    for j in range(step.size):
        total += 0.5 * mu * work.weight[j] ** 2 * (1.0 - at.q[j] * at.q[j]) * step[j]
    return total


@njit(cache=True, nogil=True)
def solve(
    xt: FloatArray, n: int, z: FloatArray, rho2: float, full: FloatArray, groups: Groups, mu: float,
    start_groups: IntArray, start_eta: FloatArray, tol: float, max_iter: int,
) -> tuple[FloatArray, IntArray, FloatArray, float, int]:
    """Return beta (P,), the active groups, their eta, the certified relative gap and the number of Newton steps."""
    n_columns = xt.shape[0]
    # Units in which mu is in [1/2, 1): scaling y and lambda by a power of two then changes no bit of the iteration.
    unit = math.ldexp(1.0, math.frexp(mu)[1])
    mu /= unit
    z = z[:n] / unit
    rho2 = rho2 / unit / unit
    none = np.empty(0, dtype=np.int64)
    local = np.full(n_columns, -1, dtype=np.int64)
    counts = np.zeros(3, dtype=np.int64)
    work = Working(
        none, np.empty(0), np.empty(0), np.zeros(1, dtype=np.int64), none, none, local, np.empty((0, 0)), counts
    )
    work = with_groups(work, groups, start_groups, start_eta / unit, start_groups.size)
    at = empty_point(work, n)
    worst = np.empty(MAX_ADDED)
    which = np.empty(MAX_ADDED, dtype=np.int64)
    nothing = np.zeros(MAX_ADDED)
    g = np.empty(n_columns)
    value, m, factor = evaluate(xt, n, z, full, mu, work.eta, work, at)
    iteration = 0
    while True:
        for i in range(n_columns):
            g[i] = dot(xt[i], at.r, n)
        top, found = worst_groups(g, groups, mu * mu, work.ids, work.count[0], worst, which)
        top = math.sqrt(top) / mu
        for j in range(work.count[0]):
            top = max(top, at.q[j])
        gap = relative_gap(xt, n, z, rho2, mu, work, work.eta, at, top)
        if gap <= tol or iteration >= max_iter:
            break
        if found > 0:
            work = with_groups(work, groups, which, nothing, found)
            if work.column.size > at.d.size or work.ids.size > at.q.size:
                at = empty_point(work, n)
            value, m, factor = evaluate(xt, n, z, full, mu, work.eta, work, at)
        step, derivative = direction(xt, n, mu, work, at, factor, m, True)
        if not derivative < 0.0:
            step, derivative = direction(xt, n, mu, work, at, factor, m, False)
        iteration += 1
        length = 1.0
        trial = np.zeros(work.ids.size)
        k = work.count[0]
        while True:
            for j in range(k):
                trial[j] = work.eta[j] + length * step[j]
                if trial[j] < 0.0 or (length == 1.0 and step[j] == -work.eta[j]):
                    trial[j] = 0.0
            trial_value, m, factor = evaluate(xt, n, z, full, mu, trial, work, at)
            slope = slope_along(mu, work, at, step)
            if slope <= 0.0 or trial_value <= value + SUFFICIENT_DECREASE * length * derivative:
                break
            if abs(trial_value - value) <= 1e-13 * value and slope <= -0.9 * derivative:
                break
            if length < 1e-12:
                break
            length *= max(0.1, min(0.7, derivative / (derivative - slope)))
        value = trial_value
        work.eta[:k] = trial[:k]
    beta = np.zeros(n_columns)
    for i in range(work.count[1]):
        beta[work.column[i]] = at.beta[i] * unit
    k = 0
    for j in range(work.count[0]):
        if work.eta[j] > 0.0:
            work.ids[k] = work.ids[j]
            work.eta[k] = work.eta[j] * unit
            k += 1
    order = np.argsort(work.ids[:k])
    return beta, work.ids[:k][order], work.eta[:k][order], gap, iteration
