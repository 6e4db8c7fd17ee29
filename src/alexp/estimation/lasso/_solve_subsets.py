"""The group Lasso over all size-s subsets of P columns as one compiled call; nothing in it grows with C(P, s).

Over all subsets the eta_j act only through d_i = sum of eta_j over the subsets with column i and tau = sum of all
eta_j, and exactly the d with 0 <= d_i <= tau and sum_i d_i <= s tau can be reached (a cone over the hypersimplex;
the penalty is the k-support norm of Argyriou, Foygel and Srebro 2012). The problem thus has P variables, not C(P, s).

Quadratic models over that cone are minimised by a primal active-set method. F decreases in every d_i, so capacity
(s tau) is never left unused while a column has room; only if there are no more than s columns are they all at the top
and the sum is less. Every iterate is feasible and lowers the model, so stopping early still gives a descent direction.
A column is at its bottom (d_i = low_i), free, or at the top (d_i = tau, moving with tau).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import ZERO, add_scaled, cholesky, floats, integers, matrix, solve_factored
from alexp.estimation.lasso._newton import (
    FIRST_DAMPING,
    LARGEST_DAMPING,
    LEAST_DAMPING,
    POLISH,
    SETTLED,
    Groups,
    Point,
    Working,
    acceptable,
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


@compact.leaf
def rank_subset(subset: IntArray, binomial: IntArray, size: int) -> int:
    """Return the lexicographic index of an increasing subset of range(n)."""
    n = binomial.shape[0] - 1
    rank = binomial[n, size] - 1
    for i in range(size):
        rank -= binomial[n - 1 - subset[i], size - i]
    return int(rank)


@compact.leaf
def unrank_subset(rank: int, binomial: IntArray, size: int, subset: IntArray) -> None:
    """Write the subset with this lexicographic index into ``subset`` (s,)."""
    n = binomial.shape[0] - 1
    left = binomial[n, size] - 1 - rank
    column = 0
    for i in range(size):
        while binomial[n - 1 - column, size - i] > left:
            column += 1
        subset[i] = column
        left -= binomial[n - 1 - column, size - i]
        column += 1


@compact.entry
def subset_of(rank: int, binomial: IntArray, size: int, subset: IntArray) -> None:
    """``unrank_subset`` for Python."""
    unrank_subset(rank, binomial, size, subset)


@compact.kernel
def spread(
    groups: IntArray,
    eta: FloatArray,
    scale: float,
    binomial: IntArray,
    d: FloatArray,
    which: IntArray,
    values: FloatArray,
) -> int:
    """Write d (P,) for these subsets; list the columns with d > 0 and their d; return how many."""
    size = binomial.shape[1] - 1
    subset = integers(size)
    for i in range(d.size):
        d[i] = 0.0
    for a in range(groups.size):
        unrank_subset(groups[a], binomial, size, subset)
        for i in subset:
            d[i] += scale * eta[a]
    count = ZERO
    for i in range(d.size):
        if d[i] > 0.0:
            which[count] = i
            values[count] = d[i]
            count += 1
    return count


@compact.leaf
def least_total(d: FloatArray, count: int, size: int) -> float:
    """Return tau = max(max_i d_i, sum_i d_i / s), the least sum of eta with this d."""
    largest = 0.0
    total = 0.0
    for i in range(count):
        largest = max(largest, d[i])
        total += d[i]
    return max(largest, total / size)


@compact.leaf
def fill_up(d: FloatArray, count: int, tau: float, size: int) -> None:
    """Raise entries of d[:count] up to tau, those in use first, until they sum to s tau (or all are at tau)."""
    missing = size * tau
    for i in range(count):
        missing -= d[i]
    for turn in range(2):
        for i in range(count):
            if missing > 1e-13 * tau and (d[i] > 0.0 or turn == 1):
                more = min(missing, tau - d[i])
                d[i] += more
                missing -= more


@compact.kernel
def decompose(d: FloatArray, tau: float, binomial: IntArray) -> tuple[IntArray, FloatArray]:
    """Return subsets, in increasing order, and eta > 0 that add up to d and tau (systematic sampling).

    Lay intervals of length d_i end to end; the subset at u in [0, tau) holds the columns found at u, u + tau, ...
    It changes only where an interval ends, so there are at most as many subsets as columns.
    """
    size = binomial.shape[1] - 1
    n = d.size
    ends = floats(n)
    cuts = floats(n + 1)
    reached = 0.0
    count = ZERO
    for i in range(n):
        reached += d[i]
        ends[i] = reached
        if d[i] > 0.0:
            cut = reached - tau * math.floor(reached / tau)
            place = count
            while place > 0 and cuts[place - 1] > cut:
                cuts[place] = cuts[place - 1]
                place -= 1
            cuts[place] = cut
            count += 1
    cuts[count] = tau
    ids = integers(count + 1)
    eta = floats(count + 1)
    subset = integers(size)
    found = ZERO
    before = 0.0
    for a in range(count + 1):
        width = cuts[a] - before
        if width > 1e-15 * tau:
            column = 0
            for i in range(size):
                u = before + 0.5 * width + i * tau
                while column < n - 1 and (ends[column] <= u or d[column] == 0.0):
                    column += 1
                subset[i] = min(column, n - size + i)
                column += 1
            found = insert(ids, eta, found, rank_subset(subset, binomial, size), width)
            before = cuts[a]
    return ids[:found], eta[:found]


@compact.leaf
def insert(ids: IntArray, eta: FloatArray, count: int, new: int, value: float) -> int:
    """Add ``value`` to the eta of a group in a list kept in increasing order; return the length of the list."""
    place = count
    while place > 0 and ids[place - 1] > new:
        place -= 1
    if place > 0 and ids[place - 1] == new:
        eta[place - 1] += value
        return count
    for i in range(count, place, -1):
        ids[i] = ids[i - 1]
        eta[i] = eta[i - 1]
    ids[place] = new
    eta[place] = value
    return count + 1


BOTTOM, FREE, TOP = 0, 1, 2
# Entries of ``Sides.tally``.
N_FREE, N_TOP, N_FIXED = 0, 1, 2
SNAP = 1e-13


@compact.leaf
def initial_states(c: FloatArray, k: int, size: int, d: FloatArray, tau: float, state: IntArray) -> None:
    """Classify the columns at a feasible point; at the origin the s largest gradients start at the top."""
    for i in range(k):
        state[i] = BOTTOM if d[i] == 0.0 else FREE
        if tau > 0.0 and d[i] >= (1.0 - SNAP) * tau:
            state[i] = TOP
    if tau == 0.0:
        for _ in range(min(size, k)):
            best = -1
            for i in range(k):
                if state[i] == BOTTOM and (best < 0 or c[i] > c[best]):
                    best = i
            state[best] = TOP


class Sides(NamedTuple):
    """Which columns are free and which are at the top, in increasing order, and scratch for their equations."""

    tally: IntArray  # (3,) how many are free, how many at the top, how many a step has fixed
    free: IntArray  # (k,)
    top: IntArray  # (k,)
    system: FloatArray  # (k + 1, k + 1)
    rhs: FloatArray  # (k + 1,)
    coupling: FloatArray  # (k + 1,)
    scratch: FloatArray  # (5 k + 5,)


@compact.kernel
def sides_of(k: int) -> Sides:
    """Return room for k columns."""
    return Sides(
        integers(k + 3), integers(k), integers(k), matrix(k + 1, k + 1), floats(k + 1), floats(k + 1), floats(5 * k + 5)
    )


@compact.leaf
def take_sides(k: int, size: int, state: IntArray, sides: Sides) -> None:
    """List the columns; with s of them at the top the capacity is used up and none is free."""
    free = ZERO
    top = ZERO
    for i in range(k):
        if state[i] == TOP:
            sides.top[top] = i
            top += 1
    for i in range(k):
        if state[i] == FREE and top >= size:
            state[i] = BOTTOM
        if state[i] == FREE:
            sides.free[free] = i
            free += 1
    sides.tally[N_FREE] = free
    sides.tally[N_TOP] = top


@compact.leaf
def equality_step(
    h: FloatArray, grad: FloatArray, size: int, cost: float, damping: float, sides: Sides, delta: FloatArray
) -> float:
    """Minimise the model with the states fixed: fill the steps of the free columns, return that of tau.

    With u columns at the top tau follows the free columns: since sum d = s tau, its step is the sum of theirs over
    s - u. Without free columns tau is the only variable.
    """
    f = sides.tally[N_FREE]
    u = sides.tally[N_TOP]
    share = 1.0 / (size - u) if f > 0 else 0.0
    order = max(f, 1)
    system = sides.system
    rhs = sides.rhs
    coupling = sides.coupling
    slope = cost
    among = 0.0
    for b in range(u):
        i = sides.top[b]
        slope += grad[i]
        for a in range(u):
            among += h[i, sides.top[a]]
    for a in range(f):
        row = h[sides.free[a]]
        total = 0.0
        for b in range(u):
            total += row[sides.top[b]]
        coupling[a] = total
        rhs[a] = -grad[sides.free[a]] - share * slope
        for b in range(a + 1):
            system[a, b] = row[sides.free[b]] + share * (total + coupling[b] + share * among)
    if f == 0:
        system[0, 0] = among
        rhs[0] = -slope
    cholesky(system, order, 0.5 * damping, sides.scratch)
    solve_factored(system, rhs, order)
    if f == 0:
        return float(rhs[0])
    moved = 0.0
    for a in range(f):
        delta[sides.free[a]] = rhs[a]
        moved += rhs[a]
    return share * moved


@compact.leaf
def longest_step(
    k: int, d: FloatArray, low: FloatArray, x: FloatArray, tau: float, delta: FloatArray, rise: float, state: IntArray
) -> float:
    """Return the longest step, up to one, that keeps low <= d + x <= tau."""
    length = 1.0
    for i in range(k):
        if state[i] == FREE:
            here = d[i] + x[i]
            if here - low[i] + length * delta[i] < 0.0:
                length = max(0.0, (here - low[i]) / -delta[i])
            if tau - here + length * (rise - delta[i]) < 0.0:
                length = max(0.0, (tau - here) / (delta[i] - rise))
        elif state[i] == TOP and tau - low[i] + length * rise < 0.0:
            length = (tau - low[i]) / -rise
    return length


@compact.leaf
def move(
    h: FloatArray,
    k: int,
    d: FloatArray,
    low: FloatArray,
    x: FloatArray,
    tau: float,
    delta: FloatArray,
    rise: float,
    length: float,
    state: IntArray,
    sides: Sides,
    grad: FloatArray,
) -> float:
    """Take the step, update the model's gradient, fix the columns that reached a bound; return the new tau."""
    new = tau + length * rise
    for j in range(k):
        change = rise if state[j] == TOP else (delta[j] if state[j] == FREE else 0.0)
        if change != 0.0:
            add_scaled(grad, change * length, h[j], k)
    fixed = ZERO
    for i in range(k):
        if state[i] == FREE:
            x[i] += length * delta[i]
            if length < 1.0 and delta[i] < 0.0 and d[i] + x[i] <= low[i] + 1e-15 * new:
                state[i] = BOTTOM
                x[i] = low[i] - d[i]
                fixed += 1
            elif length < 1.0 and delta[i] > rise and d[i] + x[i] >= (1.0 - 1e-15) * new:
                state[i] = TOP
                fixed += 1
        if state[i] == TOP:
            x[i] = new - d[i]
    sides.tally[N_FIXED] = fixed
    return new


@compact.leaf
def release(
    c: FloatArray, grad: FloatArray, k: int, size: int, cost: float, several: bool, state: IntArray, sides: Sides
) -> bool:
    """Free what the multipliers at a stationary point say should move; return whether there was anything.

    One column at a time makes progress; ``several`` at once are faster but may block each other. With s columns at
    the top the price of capacity is not determined, and it takes a pair, one from each side, to tell.
    """
    slope = cost
    top = -1
    other = -1
    for i in range(k):
        if state[i] == TOP:
            slope += grad[i]
            top = i if top < 0 or grad[i] > grad[top] else top
        elif state[i] == BOTTOM:
            other = i if other < 0 or grad[i] < grad[other] else other
    n_top = sides.tally[N_TOP]
    full = n_top == size
    if sides.tally[N_FREE] > 0:
        price = slope / (size - n_top)
    elif full and other >= 0:
        price = -0.5 * (grad[top] + grad[other])
    else:
        return False
    worst = 0.0
    for i in range(k):
        wrong = grad[i] + price if state[i] == TOP else -grad[i] - price
        if state[i] != FREE and wrong > 1e-12 * (abs(c[i]) + abs(price)):
            worst = max(worst, wrong)
    if worst == 0.0:
        return False
    least = 0.5 * worst if several and not full else worst
    for i in range(k):
        wrong = grad[i] + price if state[i] == TOP else -grad[i] - price
        if state[i] != FREE and (wrong >= least if not full else i == top or (i == other and wrong > 0.0)):
            state[i] = FREE
    return True


@compact.kernel
def cone_quadratic(
    lower: FloatArray,
    c: FloatArray,
    k: int,
    size: int,
    cost: float,
    damping: float,
    d: FloatArray,
    low: FloatArray,
    tau: float,
    x: FloatArray,
) -> float:
    """Minimise 1/2 x'(H + damping diag(H))x - c'x + cost e over d + x, tau + e in the cone, from x = 0; return e."""
    h = matrix(k, k)
    grad = floats(k)
    for i in range(k):
        grad[i] = -c[i]
        x[i] = 0.0
        for j in range(i + 1):
            h[i, j] = lower[i, j]
            h[j, i] = lower[i, j]
        h[i, i] *= 1.0 + damping
    state = integers(k)
    sides = sides_of(k)
    delta = floats(k)
    initial_states(c, k, size, d, tau, state)
    several = k > 0
    risen = 0.0
    for _ in range(10 * k + 50):
        take_sides(k, size, state, sides)
        rise = equality_step(h, grad, size, cost, damping, sides, delta)
        length = longest_step(k, d, low, x, tau, delta, rise, state)
        tau = move(h, k, d, low, x, tau, delta, rise, length, state, sides, grad)
        risen += length * rise
        stuck = length < 1.0 and sides.tally[N_FIXED] == 0
        if stuck or (length == 1.0 and not release(c, grad, k, size, cost, several, state, sides)):
            break
        several = length > 0.0
    return risen


class ConeModel(NamedTuple):
    """The quadratic model of F around the current d, for the columns that may move."""

    moving: IntArray  # (>= f,) their position in the working set
    d: FloatArray  # (>= f,)
    pull: FloatArray  # (>= f,) g_i^2 / (2 mu), minus the derivative of F's first part
    linear: FloatArray  # (>= f,) the same, rescaled
    step: FloatArray  # (>= f,)
    scratch: FloatArray  # (>= f,)
    low: FloatArray  # (>= f,) least d after the step


@compact.kernel
def cone_model(columns: int) -> ConeModel:
    """Return room for a model of this many columns."""
    return ConeModel(
        integers(columns),
        floats(columns),
        floats(columns),
        floats(columns),
        floats(columns),
        floats(columns),
        floats(columns),
    )


@compact.leaf
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


@compact.leaf
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


@compact.leaf
def first_order(model: ConeModel, pull: FloatArray, k: int, size: int, tau: float, rise: float, cost: float) -> float:
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


@compact.kernel
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


@compact.leaf
def retreat_in_cone(
    model: ConeModel,
    work: Working,
    at: Point,
    size: int,
    tau: float,
    rise: float,
    cost: float,
    mu: float,
    fraction: float,
) -> float:
    """Shorten a rejected step: columns sent to zero that now violate keep a tenth, or else everything shrinks.

    Return tau's step.
    """
    k = work.tally[4]
    repaired = False
    for a in range(k):
        g = at.g[work.member[model.moving[a]]]
        if model.d[a] > 0.0 and model.step[a] == -model.d[a] and 0.5 * size * g * g > mu * cost:
            model.step[a] *= 0.9
            repaired = True
    fraction = 1.0 if repaired else max(0.1, min(fraction, 0.5))
    for a in range(k):
        model.step[a] *= fraction
        model.scratch[a] = model.d[a] + model.step[a]
    return least_total(model.scratch, k, size) - tau if repaired else fraction * rise


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
            model.moving[a] = j
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
            work.eta[model.moving[a]] = max(0.0, model.d[a] + model.step[a])
        new_tau = least_total(work.eta, work.tally[0], size)
        for j in range(work.tally[0]):
            if work.eta[j] < LEAST_SHARE * new_tau:
                work.eta[j] = 0.0
        fill_up(work.eta, work.tally[0], new_tau, size)
        trial, factor = evaluate(xt, n, z, full, mu, eps, work, at)
        trial += cost * new_tau
        for a in range(work.tally[4]):
            model.scratch[a] = 0.5 * at.g[work.member[model.moving[a]]] ** 2 / mu
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
            h = hessian(xt, n, full, mu, eps, work, at, factor, model.moving)
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
