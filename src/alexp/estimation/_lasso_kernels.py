"""The whole group-Lasso solve as one compiled call: working set, Newton steps, line search, certificate."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from alexp.estimation._lasso_groups import Groups, unrank_subset, worst_groups
from alexp.estimation._lasso_linalg import dot, floats, integers, kernel, matrix
from alexp.estimation._lasso_newton import Model, Point, Working, bounded_quadratic, evaluate, hessian

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_ADDED = 8
SUFFICIENT_DECREASE = 1e-4
# Damping of the Newton steps, relative to the Hessian's diagonal. Repeated groups make the Hessian singular, hence
# the least value; a rejected step multiplies it, an accepted one divides it.
LEAST_DAMPING = 1e-10
FIRST_DAMPING = 1e-5
LARGEST_DAMPING = 1e12
ROUNDING = 1e-11
RATIO = 0.1
FIRST_GOAL = 1e-3
PATIENCE = 3
RETREATS = 3


@kernel
def copied(old: FloatArray, count: int, size: int) -> FloatArray:
    """Return an array of this size that starts with old[:count]."""
    new = floats(size)
    for i in range(count):
        new[i] = old[i]
    return new


@kernel
def copied_integers(old: IntArray, count: int, size: int) -> IntArray:
    """Return an array of this size that starts with old[:count]."""
    new = integers(size)
    for i in range(count):
        new[i] = old[i]
    return new


@kernel
def enlarged(work: Working, groups: int, members: int, columns: int) -> Working:
    """Return the working set with room for so many more groups, members and columns."""
    k = work.count[0]
    c = work.count[1]
    nnz = work.start[k]
    if k + groups < work.start.size and nnz + members <= work.member.size and c + columns <= work.column.size:
        return work
    more_k = 2 * (k + groups)
    more_c = min(2 * (c + columns), work.local.size)
    gram = matrix(more_c, more_c)
    for i in range(work.count[2]):
        for j in range(work.count[2]):
            gram[i, j] = work.gram[i, j]
    return Working(
        copied_integers(work.ids, k, more_k), copied(work.eta, k, more_k), copied(work.weight, k, more_k),
        copied_integers(work.start, k + 1, more_k + 1), copied_integers(work.member, nnz, 2 * (nnz + members)),
        copied_integers(work.column, c, more_c), work.local, gram, work.count,
    )


@kernel
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


@kernel
def empty_point(none: IntArray, zero: FloatArray) -> Point:
    """Return a point without room."""
    return Point(zero, zero, zero, zero, none, zero, zero, zero)


@kernel
def enlarged_model(model: Model, work: Working) -> Model:
    """Return a quadratic model with room for every group of the working set."""
    k = work.ids.size
    if model.who.size == k:
        return model
    return Model(integers(k), floats(k), floats(k), floats(k), floats(k), floats(k))


@kernel
def empty_model(none: IntArray, zero: FloatArray) -> Model:
    """Return a quadratic model without room."""
    return Model(none, zero, zero, zero, zero, zero)


@kernel
def enlarged_point(at: Point, work: Working, n: int) -> Point:
    """Return the point with room for what the working set has room for."""
    c = work.count[1]
    size = work.column.size
    k = work.ids.size
    if at.r.size == n and at.d.size == size and at.q.size == k:
        return at
    c = min(c, at.d.size)
    return Point(
        copied(at.d, c, size), copied(at.g, c, size), copied(at.beta, c, size), copied(at.slope, c, size),
        copied_integers(at.support, c, size), copied(at.root, c, size), copied(at.r, min(n, at.r.size), n),
        copied(at.q, min(at.q.size, work.count[0]), k),
    )


@kernel
def with_groups(
    work: Working, groups: Groups, new: IntArray, eta: FloatArray, scale: float, count: int
) -> Working:
    """Return the working set with the groups ``new[:count]`` at ``scale * eta[:count]`` appended."""
    members = groups.size * count
    if groups.size == 0:
        for a in range(count):
            members += groups.offsets[new[a] + 1] - groups.offsets[new[a]]
    free = work.local.size - work.count[1]
    work = enlarged(work, count, members, min(members, free))
    subset = integers(groups.size)
    for a in range(count):
        j = work.count[0]
        work.ids[j] = new[a]
        work.eta[j] = scale * eta[a]
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


@kernel
def gap_terms(
    xt: FloatArray, n: int, z: FloatArray, rho2: float, mu: float, work: Working, at: Point
) -> tuple[float, float, float, float]:
    """Return P, c0, c1, c2 such that P - D(s r) = c0 + (1 - s) c1 + (1 - s)^2 c2 / 2.

    P = 1/2 ||y - B beta||^2 + mu sum_j w_j ||theta_j|| with theta_j = eta_j slope_{S_j}, and D(a) = y'a - ||a||^2 / 2.
    Written around s = 1 the gap is a sum of small numbers and loses nothing to cancellation.
    """
    penalty = 0.0
    for j in range(work.count[0]):
        if work.eta[j] > 0.0:
            total = 0.0
            for e in range(work.start[j], work.start[j + 1]):
                total += at.slope[work.member[e]] * at.slope[work.member[e]]
            penalty += work.weight[j] * work.eta[j] * math.sqrt(total)
    penalty *= mu
    error = floats(n)
    for row in range(n):
        error[row] = z[row]
    explained = 0.0
    for i in range(work.count[1]):
        beta = at.beta[i]
        if beta != 0.0:
            explained += beta * at.g[i]
            x = xt[work.column[i]]
            for row in range(n):
                error[row] -= beta * x[row]
    primal = 0.5 * (dot(error, error, n) + rho2) + penalty
    for row in range(n):
        error[row] -= at.r[row]
    c0 = penalty - explained + 0.5 * dot(error, error, n)
    return primal, c0, explained + dot(error, at.r, n), dot(at.r, at.r, n) + rho2


@kernel
def relative_gap(terms: tuple[float, float, float, float], top: float) -> float:
    """Return (P - D) / P at the best s with |s| <= 1/top, where top = max_j ||g_{S_j}|| / (mu w_j)."""
    primal, c0, c1, c2 = terms
    if primal <= 0.0:
        return 0.0
    below = -c1 / c2 if c2 > 0.0 else 0.0
    if top > 0.0:
        below = min(max(below, 1.0 - 1.0 / top), 1.0 + 1.0 / top)
    return max(c0 + below * (c1 + 0.5 * below * c2), 0.0) / primal


@kernel
def choose_free(mu: float, work: Working, at: Point, model: Model) -> None:
    """List the groups that may move, active or violating, and what the quadratic model needs to know of them."""
    work.count[4] = 0
    for j in range(work.count[0]):
        if work.eta[j] > 0.0 or at.q[j] > 1.0:
            a = work.count[4]
            model.who[a] = j
            model.q[a] = at.q[j]
            model.scale[a] = mu * work.weight[j] * work.weight[j]
            model.low[a] = -work.eta[j]
            work.count[4] = a + 1


@kernel
def damped_step(h: FloatArray, model: Model, k: int, damping: float) -> tuple[float, float]:
    """Find a step that keeps eta >= 0; return the derivative of F along it (negative) and the damping it took.

    The linear term of the quadratic model makes the unconstrained step the Newton step for 1/||g_{S_j}|| =
    1/(mu w_j): the left side is nearly linear in eta_j, as in the secular equation of trust regions. If that is no
    descent, the plain gradient is next, then more damping.
    """
    secular = True
    while True:
        for a in range(k):
            q = model.q[a]
            model.linear[a] = model.scale[a] * (q * q * (1.0 - q) if secular else 0.5 * (1.0 - q * q))
        bounded_quadratic(h, model.linear, model.low, k, damping, model.step)
        derivative = 0.0
        for a in range(k):
            derivative += 0.5 * model.scale[a] * (1.0 - model.q[a] * model.q[a]) * model.step[a]
        if derivative < 0.0 or damping > LARGEST_DAMPING:
            return derivative, damping
        if not secular:
            damping = max(100.0 * damping, FIRST_DAMPING)
        secular = False


@kernel
def retreat(model: Model, at: Point, k: int, fraction: float) -> float:
    """Shorten a rejected step, given the violations it led to; return the derivative of F along the new one.

    F bends sharply near zero, so a group that was sent there and now violates keeps a tenth. If there was none, the
    whole step shrinks to the zero of the slope by linear interpolation.
    """
    repaired = False
    for a in range(k):
        if model.step[a] == model.low[a] and model.low[a] < 0.0 and at.q[model.who[a]] > 1.0:
            model.step[a] = 0.9 * model.low[a]
            repaired = True
    derivative = 0.0
    for a in range(k):
        if not repaired:
            model.step[a] *= max(0.1, min(fraction, 0.5))
        derivative += 0.5 * model.scale[a] * (1.0 - model.q[a] * model.q[a]) * model.step[a]
    return derivative


@kernel
def export(work: Working, at: Point, unit: float, n_columns: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return beta (P,) and the active groups in increasing order with their eta, in the caller's units."""
    beta = floats(n_columns)
    for i in range(n_columns):
        beta[i] = unit * at.beta[work.local[i]] if work.local[i] >= 0 else 0.0
    active = integers(work.count[0])
    eta = floats(work.count[0])
    work.count[4] = 0
    for j in range(work.count[0]):
        if work.eta[j] > 0.0:
            place = work.count[4]
            while place > 0 and active[place - 1] > work.ids[j]:
                active[place] = active[place - 1]
                eta[place] = eta[place - 1]
                place -= 1
            active[place] = work.ids[j]
            eta[place] = unit * work.eta[j]
            work.count[4] += 1
    k = work.count[4]
    return beta, copied_integers(active, k, k), copied(eta, k, k)


@njit(cache=True, nogil=True, error_model="numpy")
def solve(
    xt: FloatArray, n: int, y: FloatArray, rho2: float, full: FloatArray, groups: Groups, mu: float,
    start_groups: IntArray, start_eta: FloatArray, tol: float, max_iter: int,
) -> tuple[FloatArray, IntArray, FloatArray, float, int]:
    """Return beta (P,), the active groups, their eta, the certified relative gap and the number of Newton steps."""
    n_columns = xt.shape[0]
    # Units in which mu is in [1/2, 1): scaling y and lambda by a power of two then changes no bit of the iteration.
    unit = math.ldexp(1.0, math.frexp(mu)[1])
    mu /= unit
    rho2 = rho2 / unit / unit
    z = floats(n)
    for i in range(n):
        z[i] = y[i] / unit
    work = empty_working(start_groups[:0], start_eta[:0], n_columns)
    at = empty_point(start_groups[:0], start_eta[:0])
    model = empty_model(start_groups[:0], start_eta[:0])
    worst = floats(n_columns)[:MAX_ADDED]
    which = integers(n_columns)[:MAX_ADDED]
    g = floats(n_columns)
    h = full
    value = np.inf
    derivative = 0.0
    damping = LEAST_DAMPING
    iteration = 0
    work = with_groups(work, groups, start_groups, start_eta, 1.0 / unit, start_groups.size)
    at = enlarged_point(at, work, n)
    gap = np.inf
    last = 0
    rejected = 0
    goal = max(0.5 * tol, FIRST_GOAL)
    pass_cost = n * n_columns + groups.columns.size
    while True:
        for a in range(work.count[4]):
            work.eta[model.who[a]] = max(0.0, model.step[a] - model.low[a])
        trial, factor = evaluate(xt, n, z, full, mu, work.eta, work, at)
        slope = 0.0
        for a in range(work.count[4]):
            q = at.q[model.who[a]]
            slope += 0.5 * model.scale[a] * (1.0 - q * q) * model.step[a]
        good = trial <= value + SUFFICIENT_DECREASE * derivative
        if good or (trial <= (1.0 + ROUNDING) * value and slope <= -0.9 * derivative):
            value = trial
            damping = max(LEAST_DAMPING, 0.01 * damping)
            top = 0.0
            for j in range(work.count[0]):
                top = max(top, at.q[j])
            terms = gap_terms(xt, n, z, rho2, mu, work, at)
            gap = relative_gap(terms, top)
            m = work.count[3]
            found = 0
            cheap = pass_cost <= m * m * (m / 6.0 + work.count[4]) or iteration >= min(last + PATIENCE, max_iter)
            if gap <= goal or cheap:
                last = iteration
                for i in range(n_columns):
                    g[i] = dot(xt[i], at.r, n)
                most, found = worst_groups(g, groups, mu * mu, work.ids, work.count[0], worst, which)
                gap = relative_gap(terms, max(top, math.sqrt(most) / mu))
                if gap <= tol or iteration >= max_iter:
                    break
                goal = max(0.5 * tol, RATIO * gap)
            if found > 0:
                first = work.count[1]
                k = work.count[0]
                work = with_groups(work, groups, which, worst, 0.0, found)
                at = enlarged_point(at, work, n)
                for i in range(first, work.count[1]):
                    at.d[i] = 0.0
                    at.slope[i] = 0.0
                    at.g[i] = g[work.column[i]]
                for a in range(found):
                    at.q[k + a] = math.sqrt(worst[a]) / mu
            model = enlarged_model(model, work)
            choose_free(mu, work, at, model)
            h = hessian(xt, n, full, mu, work, at, factor, model.who)
            rejected = 0
        else:
            rejected += 1
            if rejected == RETREATS:
                rejected = 0
                damping = max(100.0 * damping, FIRST_DAMPING)
                if damping > LARGEST_DAMPING:
                    break
        if rejected == 0:
            derivative, damping = damped_step(h, model, work.count[4], damping)
        else:
            derivative = retreat(model, at, work.count[4], derivative / (derivative - slope))
        iteration += 1
    beta, active, eta = export(work, at, unit, n_columns)
    return beta, active, eta, gap, iteration
