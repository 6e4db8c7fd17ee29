"""The group Lasso over explicit groups as one compiled call: working set, Newton steps, certificate."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import ZERO, cholesky, floats, integers, matrix, solve_factored
from alexp.estimation.lasso._newton import (
    FIRST_DAMPING,
    LARGEST_DAMPING,
    LEAST_DAMPING,
    POLISH,
    RETREATS,
    SETTLED,
    Groups,
    Point,
    Working,
    acceptable,
    copied,
    copied_integers,
    correlations,
    drop_ridge,
    empty_point,
    empty_working,
    enlarged_point,
    evaluate,
    fitted_ridge,
    gap_terms,
    hessian,
    include,
    keep_worst,
    relative_gap,
    relaxed,
    rounding,
    scaled_copy,
    with_groups,
)


@compact.kernel
def contains(values: IntArray, count: int, value: int) -> bool:
    """Whether value is among values[:count]."""
    for i in range(count):  # noqa: SIM110 (generators do not compile)
        if values[i] == value:
            return True
    return False


@compact.kernel
def worst_groups(
    g: FloatArray, groups: Groups, limit: float, taken: IntArray, n_taken: int, worst: FloatArray, which: IntArray
) -> tuple[float, int]:
    """Return max_j ||g_{S_j}||^2 / w_j^2 and collect the worst groups above ``limit`` outside ``taken``."""
    top = 0.0
    found = ZERO
    columns = groups.columns
    square = floats(g.size)
    for i in range(g.size):
        square[i] = g[i] * g[i]
    for j in range(groups.weights.size):
        total = 0.0
        for e in range(groups.offsets[j], groups.offsets[j + 1]):
            total += square[columns[e]]
        total /= groups.weights[j] * groups.weights[j]
        if total > top:
            top = total
        better = total > limit and (found < worst.size or total > worst[found - 1])
        if better and not contains(taken, n_taken, j):
            found = keep_worst(total, j, worst, which, found)
    return top, found


@compact.kernel
def bounded_quadratic(h: FloatArray, c: FloatArray, low: FloatArray, k: int, damping: float, x: FloatArray) -> None:
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
    scratch = floats(5 * k)
    for _ in range(20 * k + 20):
        f = ZERO
        for a in range(k):
            x[a] = low[a]
            if free[a] == 1:
                index[f] = a
                f += 1
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
        cholesky(system, f, 0.5 * damping, scratch)
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


MAX_ADDED = 8
# A pass over all groups is made when it costs less than a Newton step, when the gap on the working set is below the
# goal (a tenth of the last known gap; at first FIRST_GOAL), or after so many steps without one.
FIRST_GOAL = 1e-3
PATIENCE = 3


class Model(NamedTuple):
    """The quadratic model of F around the current eta, for the groups that may move."""

    moving: IntArray  # (>= f,) their position in the working set
    q: FloatArray  # (>= f,) ||g_{S_j}|| / (mu w_j)
    scale: FloatArray  # (>= f,) mu w_j^2
    eta: FloatArray  # (>= f,)
    low: FloatArray  # (>= f,) the least step, -eta_j or -0.9 eta_j
    linear: FloatArray  # (>= f,) linear term
    step: FloatArray  # (>= f,)


@compact.kernel
def enlarged_model(model: Model, work: Working) -> Model:
    """Return a quadratic model with room for every group of the working set."""
    k = work.ids.size
    if model.moving.size == k:
        return model
    return Model(integers(k), floats(k), floats(k), floats(k), floats(k), floats(k), floats(k))


@compact.kernel
def empty_model(none: IntArray, zero: FloatArray) -> Model:
    """Return a quadratic model without room."""
    return Model(none, zero, zero, zero, zero, zero, zero)


@compact.kernel
def choose_free(mu: float, work: Working, at: Point, model: Model) -> None:
    """List the groups that may move, active or violating, and what the quadratic model needs to know of them."""
    work.tally[4] = 0
    for j in range(work.tally[0]):
        if work.eta[j] > 0.0 or at.q[j] > 1.0:
            a = work.tally[4]
            model.moving[a] = j
            model.q[a] = at.q[j]
            model.scale[a] = mu * work.weight[j] * work.weight[j]
            model.eta[a] = work.eta[j]
            work.tally[4] = a + 1


@compact.kernel
def total_weight(work: Working) -> float:
    """Return sum_j w_j^2 eta_j."""
    total = 0.0
    for j in range(work.tally[0]):
        total += work.weight[j] * work.weight[j] * work.eta[j]
    return total


@compact.kernel
def norm(work: Working, at: Point) -> float:
    """Return sum_j w_j ||theta_j|| for theta_j = eta_j slope_{S_j}, which add up to beta exactly."""
    total = 0.0
    for j in range(work.tally[0]):
        if work.eta[j] > 0.0:
            square = 0.0
            for e in range(work.start[j], work.start[j + 1]):
                square += at.slope[work.member[e]] * at.slope[work.member[e]]
            total += work.weight[j] * work.eta[j] * math.sqrt(square)
    return total


@compact.kernel
def limit_falls(h: FloatArray, model: Model, k: int) -> None:
    """Set the least steps: eta_j may fall to zero only if group j would not be missed.

    F bends sharply near zero, where its quadratic model is blind. With eta_j = 0 and the rest as it is, ||g_{S_j}||
    would be at least ||g_{S_j}|| / (1 - eta_j mu H_jj / ||g_{S_j}||^2); if that is a clear violation, keep a tenth.
    """
    for a in range(k):
        left = 1.0 - model.eta[a] * h[a, a] / (model.scale[a] * model.q[a] * model.q[a])
        missed = model.eta[a] > 0.0 and model.q[a] > 0.0 and model.q[a] > 2.0 * left
        model.low[a] = -0.9 * model.eta[a] if missed else -model.eta[a]


@compact.kernel
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


@compact.kernel
def retreat(model: Model, at: Point, k: int, fraction: float) -> float:
    """Shorten a rejected step, given the violations it led to; return the derivative of F along the new one.

    F bends sharply near zero, so a group that was sent there and now violates keeps a tenth. If there was none, the
    whole step shrinks to the zero of the slope by linear interpolation.
    """
    repaired = False
    for a in range(k):
        if model.eta[a] > 0.0 and model.step[a] == -model.eta[a] and at.q[model.moving[a]] > 1.0:
            model.step[a] = -0.9 * model.eta[a]
            repaired = True
    derivative = 0.0
    for a in range(k):
        if not repaired:
            model.step[a] *= max(0.1, min(fraction, 0.5))
        derivative += 0.5 * model.scale[a] * (1.0 - model.q[a] * model.q[a]) * model.step[a]
    return derivative


@compact.kernel
def export(work: Working, at: Point, unit: float, n_columns: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return beta (P,) and the active groups in increasing order with their eta, in the caller's units."""
    beta = floats(n_columns)
    for i in range(n_columns):
        beta[i] = unit * at.beta[work.local[i]] if work.local[i] >= 0 else 0.0
    active = integers(work.tally[0])
    eta = floats(work.tally[0])
    work.tally[4] = 0
    for j in range(work.tally[0]):
        if work.eta[j] > 0.0:
            place = work.tally[4]
            while place > 0 and active[place - 1] > work.ids[j]:
                active[place] = active[place - 1]
                eta[place] = eta[place - 1]
                place -= 1
            active[place] = work.ids[j]
            eta[place] = unit * work.eta[j]
            work.tally[4] += 1
    k = work.tally[4]
    return beta, copied_integers(active, k, k), copied(eta, k, k)


@compact.entry
def solve(
    xt: FloatArray,
    n: int,
    y: FloatArray,
    rho2: float,
    full: FloatArray,
    groups: Groups,
    mu: float,
    squares: FloatArray,
    kappa: float,
    start_groups: IntArray,
    start_eta: FloatArray,
    tol: float,
    fine: float,
    max_iter: int,
) -> tuple[FloatArray, IntArray, FloatArray, float, int]:
    """Return beta (P,), the active groups, their eta, the certified relative gap and the number of Newton steps.

    ``squares`` (P,) and ``kappa`` say what ridge makes beta unique, see ``fitted_ridge``; kappa = 0 is none. Steps are
    made until the gap of the problem with the ridge is at most ``tol``, and some more until it is at most ``fine`` and
    the last step was small. The gap that is returned is that of the problem without the ridge.
    """
    n_columns = xt.shape[0]
    # Units in which mu is in [1/2, 1): scaling y and lambda by a power of two then changes no bit of the iteration.
    unit = math.ldexp(1.0, math.frexp(mu)[1])
    mu /= unit
    rho2 = rho2 / unit / unit
    z = scaled_copy(y, n, 1.0 / unit)
    eps = scaled_copy(squares, n_columns, 0.0)
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
    scale = fitted_ridge(squares, kappa * mu, total_weight(work), 0.0, eps)
    moved = np.inf
    lost = 0.0
    gap = np.inf
    last = 0
    rejected = 0
    good = max_iter
    goal = max(0.5 * fine, FIRST_GOAL)
    pass_cost = n * n_columns + groups.columns.size
    while True:
        for a in range(work.tally[4]):
            work.eta[model.moving[a]] = max(0.0, model.eta[a] + model.step[a])
        trial, factor = evaluate(xt, n, z, full, mu, eps, work, at)
        total = total_weight(work)
        trial += 0.5 * mu * total
        slope = 0.0
        for a in range(work.tally[4]):
            q = at.q[model.moving[a]]
            slope += 0.5 * model.scale[a] * (1.0 - q * q) * model.step[a]
        if acceptable(trial, value, slope, derivative):
            before = scale
            scale = fitted_ridge(squares, kappa * mu, total, before, eps)
            if scale != before:  # the same point again, with the new ridge
                value = np.inf
                moved = np.inf
                work.tally[4] = 0
                continue
            value = trial
            damping = relaxed(damping, slope, derivative)
            top = 0.0
            for j in range(work.tally[0]):
                top = max(top, at.q[j])
            terms = gap_terms(xt, n, z, rho2, mu * norm(work, at), eps, work, at)
            gap = relative_gap(terms, top)
            m = work.tally[3]
            cheap = pass_cost <= m * m * (m / 6.0 + work.tally[4]) or iteration >= min(last + PATIENCE, max_iter)
            if gap <= goal or cheap:
                last = iteration
                correlations(xt, n, eps, work, at, g)
                most, found = worst_groups(g, groups, mu * mu, work.ids, work.tally[0], worst, which)
                gap = relative_gap(terms, max(top, math.sqrt(most) / mu))
                good = min(good, iteration) if gap <= tol else good
                polished = gap <= fine and (scale == 0.0 or moved <= SETTLED * mu * total)
                if polished or (gap <= tol and iteration >= good + POLISH) or iteration >= max_iter:
                    lost = rounding(xt, n, z, terms[0], work, at)
                    break
                goal = max(0.5 * fine, 0.1 * gap)
                work, at = include(work, at, n, mu, groups, which, worst, found, g)
            model = enlarged_model(model, work)
            choose_free(mu, work, at, model)
            h = hessian(xt, n, full, mu, eps, work, at, factor, model.moving)
            limit_falls(h, model, work.tally[4])
            rejected = 0
        else:
            rejected += 1
            if rejected == RETREATS:
                rejected = 0
                damping = max(100.0 * damping, FIRST_DAMPING)
                if damping > LARGEST_DAMPING:
                    correlations(xt, n, eps, work, at, g)
                    break
        if rejected == 0:
            derivative, damping = damped_step(h, model, work.tally[4], damping)
        else:
            derivative = retreat(model, at, work.tally[4], derivative / (derivative - slope))
        moved = 0.0
        for a in range(work.tally[4]):
            moved += model.scale[a] * abs(model.step[a])
        iteration += 1
    if scale > 0.0:
        drop_ridge(eps, work, at, g)
        terms = gap_terms(xt, n, z, rho2, mu * norm(work, at), eps, work, at)
        most, found = worst_groups(g, groups, np.inf, work.ids, work.tally[0], worst, which)
        gap = relative_gap(terms, math.sqrt(most) / mu)
    gap = lost if lost > tol else gap
    beta, active, eta = export(work, at, unit, n_columns)
    return beta, active, eta, gap, iteration
