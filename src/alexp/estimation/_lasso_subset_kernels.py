"""The group Lasso over all size-s subsets of the columns as one compiled call; nothing in it grows with C(P, s)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from alexp.estimation._lasso_cone import SNAP, cone_quadratic
from alexp.estimation._lasso_groups import keep_worst
from alexp.estimation._lasso_linalg import floats, integers, kernel
from alexp.estimation._lasso_newton import evaluate, hessian
from alexp.estimation._lasso_quadratic import (
    FIRST_DAMPING,
    LARGEST_DAMPING,
    LEAST_DAMPING,
    RETREATS,
    acceptable,
    relaxed,
)
from alexp.estimation._lasso_subsets import decompose, fill_up, least_total, spread
from alexp.estimation._lasso_working import (
    Groups,
    Point,
    Working,
    correlations,
    empty_point,
    empty_working,
    enlarged_point,
    gap_terms,
    include,
    relative_gap,
    scaled_copy,
    with_groups,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Hash of the kernels this one is made of. Numba's cache looks for changes in this file only, so this line must change
# with them; a test says to what.
INGREDIENTS = "6bb50e90ca6f"
MAX_ADDED = 8
# A column with less than this share of tau is dropped: the decomposition into subsets could not represent it.
LEAST_SHARE = 1e-14


class ConeModel(NamedTuple):
    """The quadratic model of F around the current d, for the columns that may move."""

    who: IntArray  # (>= f,) their position in the working set
    d: FloatArray  # (>= f,)
    pull: FloatArray  # (>= f,) g_i^2 / (2 mu), minus the derivative of F's first part
    linear: FloatArray  # (>= f,) the same, rescaled
    step: FloatArray  # (>= f,)
    scratch: FloatArray  # (>= f,)
    low: FloatArray  # (>= f,) least d after the step


@kernel
def cone_model(columns: int, work: Working) -> ConeModel:
    """Return room for a model of this many columns."""
    return ConeModel(
        integers(columns), floats(columns), floats(columns), floats(columns), floats(columns), floats(columns),
        floats(columns),
    )


@kernel
def top_square(g: FloatArray, size: int) -> float:
    """Return the sum of the s largest g_i^2."""
    square = floats(size)
    order = integers(size)
    count = size - size
    for i in range(g.size):
        count = keep_worst(g[i] * g[i], i, square, order, count)
    total = 0.0
    for i in range(count):
        total += square[i]
    return total


@kernel
def threshold(work: Working, at: Point, size: int, tau: float) -> float:
    """Return the g_i^2 above which a column is worth using: the least among those in use, or 0 if there is room."""
    least = np.inf
    used = 0.0
    for i in range(work.count[1]):
        used += at.d[i]
        if at.d[i] > 0.0:
            least = min(least, at.g[i] * at.g[i])
    return least if used > 0.0 and used >= (1.0 - SNAP) * size * tau else 0.0


@kernel
def tempting(g: FloatArray, work: Working, least: float, size: int, worst: FloatArray, which: IntArray) -> int:
    """List the columns outside the working set with g_i^2 above ``least``, the largest first; return how many."""
    count = size - size
    for i in range(g.size):
        if work.local[i] < 0 and g[i] * g[i] > least:
            count = keep_worst(g[i] * g[i], i, worst, which, count)
    return min(count, MAX_ADDED if work.count[0] > 0 else size)


@kernel
def choose_columns(mu: float, least: float, work: Working, at: Point, model: ConeModel) -> None:
    """List the columns that may move: those in use, and those with g_i^2 above ``least``."""
    work.count[4] = 0
    for j in range(work.count[0]):
        i = work.member[j]
        square = at.g[i] * at.g[i]
        if at.d[i] > 0.0 or square > least:
            a = work.count[4]
            model.who[a] = j
            model.d[a] = at.d[i]
            model.pull[a] = 0.5 * square / mu
            work.count[4] = a + 1


@kernel
def limit_falls(h: FloatArray, model: ConeModel, k: int, level: float) -> None:
    """Set the least d after the step: zero only for columns that would not be missed.

    With d_i = 0 and the rest as it is, |g_i| would be |g_i| / (1 - d_i x_i'(mu I + X D X')^-1 x_i): F bends sharply
    near zero, where its quadratic model is blind. A column that would then be far above the level keeps a tenth.
    """
    for a in range(k):
        model.low[a] = 0.0
        if model.d[a] > 0.0 and model.pull[a] > 0.0:
            left = 1.0 - 0.5 * model.d[a] * h[a, a] / model.pull[a]
            if left <= 0.0 or model.pull[a] > 4.0 * level * left * left:
                model.low[a] = 0.1 * model.d[a]


@kernel
def rescale(h: FloatArray, model: ConeModel, k: int, size: int, tau: float, target: float) -> None:
    """Make the model's step the Newton step for 1/|g_i| = 1/kappa (free columns), 1/||g_U|| = 1/T (those at the top).

    The left sides are nearly linear in d, as in the secular equation of trust regions. kappa is the level at which the
    free columns would meet if each only felt itself, T the present value; both are scaled so that
    T^2 + (s - u) kappa^2 = (mu w)^2, the condition at the optimum. An error in them matters only to second order.
    ``target`` is (mu w)^2 / (2 mu).
    """
    top = 0.0
    free = 0.0
    mass = 0.0
    n_top = 0
    for a in range(k):
        if model.d[a] >= (1.0 - SNAP) * tau:
            top += model.pull[a]
            n_top += 1
        elif model.d[a] > 0.0:
            room = model.pull[a] / h[a, a] if h[a, a] > 0.0 else 0.0
            free += room * math.sqrt(model.pull[a])
            mass += room
    if tau == 0.0:  # everything is at zero and at the top; the s largest will be
        n_top = 0
        top = 0.0
        for a in range(k):
            if n_top < size:
                top += model.pull[a]
                n_top += 1
    level = (free / mass) ** 2 if mass > 0.0 else 0.0
    excess = math.sqrt((top + (size - n_top) * level) / target) if n_top < size else math.sqrt(top / target)
    common = 1.0 / (excess * excess) + 2.0 * (excess - 1.0)
    level /= excess * excess
    limit_falls(h, model, k, level if level > 0.0 else target / size)
    for a in range(k):
        if level == 0.0 or model.pull[a] == 0.0 or model.d[a] >= (1.0 - SNAP) * tau:
            model.linear[a] = common * model.pull[a]
        else:  # a column that meets the top before the level goes no further
            reach = 1.0 + 0.5 * (tau - model.d[a]) * h[a, a] / model.pull[a]
            ratio = min(math.sqrt(model.pull[a] / level), reach)
            model.linear[a] = model.pull[a] * (1.0 / (ratio * ratio) + 2.0 * (ratio - 1.0))


@kernel
def first_order(
    model: ConeModel, pull: FloatArray, k: int, size: int, tau: float, rise: float, cost: float
) -> float:
    """Return cost rise - sum_i pull_i x_i, the derivative of F along the step, without cancellation near the optimum.

    Since sum x = s rise, any price may be subtracted from all pulls and s times from the cost; the right one makes
    every term small by itself.
    """
    top = 0.0
    n_top = 0
    total = 0.0
    size_of = 0.0
    for a in range(k):
        total += model.step[a]
        size_of += abs(model.step[a])
        if model.d[a] >= (1.0 - SNAP) * tau:
            top += pull[a]
            n_top += 1
    price = 0.0
    if n_top < size and abs(total - size * rise) <= 1e-9 * size_of:
        price = (cost - top) / (size - n_top)
    change = (cost - top - (size - n_top) * price) * rise
    for a in range(k):
        moved = model.step[a]
        if model.d[a] >= (1.0 - SNAP) * tau:  # one that stays at the top moves with it
            moved = 0.0 if abs(moved - rise) <= SNAP * tau else moved - rise
        change -= (pull[a] - price) * moved
    return change


@kernel
def damped_cone_step(
    h: FloatArray, model: ConeModel, k: int, size: int, tau: float, cost: float, damping: float
) -> tuple[float, float, float]:
    """Find a step within the cone; return tau's step, the derivative of F along it (negative) and the damping used."""
    secular = True
    while True:
        if secular:
            rescale(h, model, k, size, tau, cost)
        else:
            for a in range(k):
                model.linear[a] = model.pull[a]
        rise = cone_quadratic(h, model.linear, k, size, cost, damping, model.d, model.low, tau, model.step)
        derivative = first_order(model, model.pull, k, size, tau, rise, cost)
        if derivative < 0.0 or damping > LARGEST_DAMPING:
            return rise, derivative, damping
        if not secular:
            damping = max(100.0 * damping, FIRST_DAMPING)
        secular = False


@kernel
def retreat_in_cone(
    model: ConeModel, work: Working, at: Point, size: int, tau: float, rise: float, cost: float, mu: float,
    fraction: float,
) -> float:
    """Shorten a rejected step: columns sent to zero that now violate keep a tenth, or else everything shrinks.

    Return tau's step.
    """
    k = work.count[4]
    repaired = False
    for a in range(k):
        g = at.g[work.member[model.who[a]]]
        if model.d[a] > 0.0 and model.step[a] == -model.d[a] and 0.5 * size * g * g > mu * cost:
            model.step[a] *= 0.9
            repaired = True
    fraction = 1.0 if repaired else max(0.1, min(fraction, 0.5))
    for a in range(k):
        model.step[a] *= fraction
        model.scratch[a] = model.d[a] + model.step[a]
    return least_total(model.scratch, k, size) - tau if repaired else fraction * rise


@njit(cache=True, nogil=True, error_model="numpy")
def solve_subsets(
    xt: FloatArray, n: int, y: FloatArray, rho2: float, full: FloatArray, singles: Groups, binomial: IntArray,
    weight: float, mu: float, start_groups: IntArray, start_eta: FloatArray, tol: float, max_iter: int,
) -> tuple[FloatArray, IntArray, FloatArray, float, int]:
    """Return beta (P,), the active subsets, their eta, the certified relative gap and the number of Newton steps.

    ``singles`` are the groups of one column each; ``binomial`` (P + 1, s + 1) ranks the subsets.
    """
    n_columns = xt.shape[0]
    size = binomial.shape[1] - 1
    # Units in which mu is in [1/2, 1): scaling y and lambda by a power of two then changes no bit of the iteration.
    unit = math.ldexp(1.0, math.frexp(mu)[1])
    mu /= unit
    rho2 = rho2 / unit / unit
    cost = 0.5 * mu * weight * weight
    z = scaled_copy(y, n, 1.0 / unit)
    g = floats(n_columns)
    worst = floats(n_columns)
    which = integers(n_columns)
    found = spread(start_groups, start_eta, 1.0 / unit, binomial, g, which, worst)
    work = empty_working(start_groups[:0], start_eta[:0], n_columns)
    work = with_groups(work, singles, which, worst, 1.0, found)
    at = enlarged_point(empty_point(start_groups[:0], start_eta[:0]), work, n)
    model = cone_model(n_columns, work)
    tau = 0.0
    rise = 0.0
    h = full
    value = np.inf
    derivative = 0.0
    damping = LEAST_DAMPING
    gap = np.inf
    rejected = 0
    iteration = 0
    while True:
        for a in range(work.count[4]):
            work.eta[model.who[a]] = max(0.0, model.d[a] + model.step[a])
        new_tau = least_total(work.eta, work.count[0], size)
        for j in range(work.count[0]):
            if work.eta[j] < LEAST_SHARE * new_tau:
                work.eta[j] = 0.0
        fill_up(work.eta, work.count[0], new_tau, size)
        trial, factor = evaluate(xt, n, z, full, mu, work, at)
        trial += cost * new_tau
        for a in range(work.count[4]):
            model.scratch[a] = 0.5 * at.g[work.member[model.who[a]]] ** 2 / mu
        slope = first_order(model, model.scratch, work.count[4], size, tau, rise, cost)
        if acceptable(trial, value, slope, derivative):
            value = trial
            tau = new_tau
            damping = relaxed(damping, slope, derivative)
            correlations(xt, n, at.r, g)
            square = 0.0
            for i in range(work.count[1]):
                square += at.beta[i] * at.slope[i]
            penalty = mu * weight * math.sqrt(tau * square)
            top = math.sqrt(top_square(g, size)) / (mu * weight)
            gap = relative_gap(gap_terms(xt, n, z, rho2, penalty, work, at), top)
            if gap <= tol or iteration >= max_iter:
                break
            least = threshold(work, at, size, tau)
            found = tempting(g, work, least, size, worst, which)
            work, at = include(work, at, n, mu, singles, which, worst, found, g)
            choose_columns(mu, least, work, at, model)
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
            rise, derivative, damping = damped_cone_step(h, model, work.count[4], size, tau, cost, damping)
        else:
            fraction = derivative / (derivative - slope)
            rise = retreat_in_cone(model, work, at, size, tau, rise, cost, mu, fraction)
            derivative = first_order(model, model.pull, work.count[4], size, tau, rise, cost)
        iteration += 1
    beta = floats(n_columns)
    for i in range(n_columns):
        beta[i] = unit * at.beta[work.local[i]] if work.local[i] >= 0 else 0.0
        g[i] = unit * at.d[work.local[i]] if work.local[i] >= 0 else 0.0
    tau *= unit
    if tau > 0.0:
        fill_up(g, n_columns, tau, size)
    active, eta = decompose(g, tau, binomial)
    return beta, active, eta, gap, iteration
