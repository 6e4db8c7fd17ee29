"""The group Lasso over all size-s subsets of the columns as one compiled call; nothing in it grows with C(P, s)."""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._cone import SNAP
from alexp.estimation.lasso._cone_step import ConeModel, cone_model, damped_cone_step, first_order, retreat_in_cone
from alexp.estimation.lasso._groups import keep_worst
from alexp.estimation.lasso._linalg import ZERO, floats, integers
from alexp.estimation.lasso._newton import evaluate, hessian
from alexp.estimation.lasso._quadratic import (
    FIRST_DAMPING,
    LARGEST_DAMPING,
    LEAST_DAMPING,
    POLISH,
    SETTLED,
    acceptable,
    relaxed,
)
from alexp.estimation.lasso._subsets import decompose, fill_up, least_total, spread
from alexp.estimation.lasso._working import (
    Groups,
    Point,
    Working,
    correlations,
    drop_ridge,
    empty_point,
    empty_working,
    enlarged_point,
    fitted_ridge,
    gap_terms,
    include,
    relative_gap,
    rounding,
    scaled_copy,
    with_groups,
)

# Few columns at a time keep the quadratic models small, and a step that fails twice needs damping, not patience.
MAX_ADDED = 2
MAX_RETREATS = 2
# A column with less than this share of tau is dropped: the decomposition into subsets could not represent it.
LEAST_SHARE = 1e-14


@compact.kernel
def top_square(g: FloatArray, size: int) -> float:
    """Return the sum of the s largest g_i^2."""
    square = floats(size)
    order = integers(size)
    count = ZERO
    for i in range(g.size):
        count = keep_worst(g[i] * g[i], i, square, order, count)
    total = 0.0
    for i in range(count):
        total += square[i]
    return total


@compact.leaf
def norm(tau: float, work: Working, at: Point) -> float:
    """Return sum_j ||theta_j|| for theta_j = eta_j slope_{S_j} and any eta_j that add up to d and tau."""
    square = 0.0
    for i in range(work.tally[1]):
        square += at.beta[i] * at.slope[i]
    return math.sqrt(tau * square)


@compact.leaf
def threshold(work: Working, at: Point, size: int, tau: float) -> float:
    """Return the g_i^2 above which a column is worth using: the least among those in use, or 0 if there is room."""
    least = np.inf
    used = 0.0
    for i in range(work.tally[1]):
        used += at.d[i]
        if at.d[i] > 0.0:
            least = min(least, at.g[i] * at.g[i])
    return least if used > 0.0 and used >= (1.0 - SNAP) * size * tau else 0.0


@compact.leaf
def tempting(g: FloatArray, work: Working, least: float, size: int, worst: FloatArray, which: IntArray) -> int:
    """List the columns outside the working set with g_i^2 above ``least``, the largest first; return how many."""
    count = ZERO
    for i in range(g.size):
        if work.local[i] < 0 and g[i] * g[i] > least:
            count = keep_worst(g[i] * g[i], i, worst, which, count)
    return min(count, MAX_ADDED if work.tally[0] > 0 else size)


@compact.leaf
def choose_columns(mu: float, least: float, work: Working, at: Point, model: ConeModel) -> None:
    """List the columns that may move: those in use, and those with g_i^2 above ``least``."""
    work.tally[4] = 0
    for j in range(work.tally[0]):
        i = work.member[j]
        square = at.g[i] * at.g[i]
        if at.d[i] > 0.0 or square > least:
            a = work.tally[4]
            model.who[a] = j
            model.d[a] = at.d[i]
            model.pull[a] = 0.5 * square / mu
            work.tally[4] = a + 1


@compact.entry
def solve_subsets(
    xt: FloatArray,
    n: int,
    y: FloatArray,
    rho2: float,
    full: FloatArray,
    singles: Groups,
    binomial: IntArray,
    weight: float,
    mu: float,
    squares: FloatArray,
    kappa: float,
    start_groups: IntArray,
    start_eta: FloatArray,
    tol: float,
    fine: float,
    max_iter: int,
) -> tuple[FloatArray, IntArray, FloatArray, float, int]:
    """Return beta (P,), the active subsets, their eta, the certified relative gap and the number of Newton steps.

    ``singles`` are the groups of one column each; ``binomial`` (P + 1, s + 1) ranks the subsets. The rest is as
    in ``_kernels.solve``.
    """
    n_columns = xt.shape[0]
    size = binomial.shape[1] - 1
    # Units in which mu is in [1/2, 1): scaling y and lambda by a power of two then changes no bit of the iteration.
    unit = math.ldexp(1.0, math.frexp(mu)[1])
    mu /= unit
    rho2 = rho2 / unit / unit
    cost = 0.5 * mu * weight * weight
    z = scaled_copy(y, n, 1.0 / unit)
    eps = scaled_copy(squares, n_columns, 0.0)
    g = floats(n_columns)
    worst = floats(n_columns)
    which = integers(n_columns)
    found = spread(start_groups, start_eta, 1.0 / unit, binomial, g, which, worst)
    work = empty_working(start_groups[:0], start_eta[:0], n_columns)
    work = with_groups(work, singles, which, worst, 1.0, found)
    at = enlarged_point(empty_point(start_groups[:0], start_eta[:0]), work, n)
    model = cone_model(n_columns)
    tau = 0.0
    rise = 0.0
    total = weight * weight * least_total(work.eta, work.tally[0], size)
    scale = fitted_ridge(squares, kappa * mu, total, 0.0, eps)
    moved = np.inf
    lost = 0.0
    h = full
    value = np.inf
    derivative = 0.0
    damping = LEAST_DAMPING
    gap = np.inf
    good = max_iter
    rejected = 0
    iteration = 0
    while True:
        for a in range(work.tally[4]):
            work.eta[model.who[a]] = max(0.0, model.d[a] + model.step[a])
        new_tau = least_total(work.eta, work.tally[0], size)
        for j in range(work.tally[0]):
            if work.eta[j] < LEAST_SHARE * new_tau:
                work.eta[j] = 0.0
        fill_up(work.eta, work.tally[0], new_tau, size)
        trial, factor = evaluate(xt, n, z, full, mu, eps, work, at)
        trial += cost * new_tau
        for a in range(work.tally[4]):
            model.scratch[a] = 0.5 * at.g[work.member[model.who[a]]] ** 2 / mu
        slope = first_order(model, model.scratch, work.tally[4], size, tau, rise, cost)
        if acceptable(trial, value, slope, derivative):
            before = scale
            scale = fitted_ridge(squares, kappa * mu, weight * weight * new_tau, before, eps)
            if scale != before:  # the same point again, with the new ridge
                value = np.inf
                moved = np.inf
                work.tally[4] = 0
                continue
            value = trial
            tau = new_tau
            damping = relaxed(damping, slope, derivative)
            correlations(xt, n, eps, work, at, g)
            top = math.sqrt(top_square(g, size)) / (mu * weight)
            terms = gap_terms(xt, n, z, rho2, mu * weight * norm(tau, work, at), eps, work, at)
            gap = relative_gap(terms, top)
            good = min(good, iteration) if gap <= tol else good
            polished = gap <= fine and (scale == 0.0 or moved <= SETTLED * size * tau)
            if polished or (gap <= tol and iteration >= good + POLISH) or iteration >= max_iter:
                lost = rounding(xt, n, z, terms[0], work, at)
                break
            least = threshold(work, at, size, tau)
            found = tempting(g, work, least, size, worst, which)
            work, at = include(work, at, n, mu, singles, which, worst, found, g)
            choose_columns(mu, least, work, at, model)
            h = hessian(xt, n, full, mu, eps, work, at, factor, model.who)
            rejected = 0
        else:
            rejected += 1
            if rejected == MAX_RETREATS:
                rejected = 0
                damping = max(100.0 * damping, FIRST_DAMPING)
                if damping > LARGEST_DAMPING:
                    correlations(xt, n, eps, work, at, g)
                    break
        if rejected == 0:
            rise, derivative, damping = damped_cone_step(h, model, work.tally[4], size, tau, cost, damping)
        else:
            fraction = derivative / (derivative - slope)
            rise = retreat_in_cone(model, work, at, size, tau, rise, cost, mu, fraction)
            derivative = first_order(model, model.pull, work.tally[4], size, tau, rise, cost)
        moved = 0.0
        for a in range(work.tally[4]):
            moved += abs(model.step[a])
        iteration += 1
    tau = new_tau
    if scale > 0.0:
        drop_ridge(eps, work, at, g)
        terms = gap_terms(xt, n, z, rho2, mu * weight * norm(tau, work, at), eps, work, at)
        gap = relative_gap(terms, math.sqrt(top_square(g, size)) / (mu * weight))
    gap = lost if lost > tol else gap
    beta = floats(n_columns)
    for i in range(n_columns):
        beta[i] = unit * at.beta[work.local[i]] if work.local[i] >= 0 else 0.0
        g[i] = unit * at.d[work.local[i]] if work.local[i] >= 0 else 0.0
    tau *= unit
    if tau > 0.0:
        fill_up(g, n_columns, tau, size)
    active, eta = decompose(g, tau, binomial)
    return beta, active, eta, gap, iteration
