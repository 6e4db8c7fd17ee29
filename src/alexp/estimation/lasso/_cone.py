"""Quadratic models over the cone of all subsets: low_i <= d_i <= tau, sum_i d_i = s tau.

F decreases in every d_i, so capacity (s tau) is never left unused while a column has room; only if there are no more
than s columns are they all at the top and the sum is less.

A primal active-set method: every iterate is feasible and lowers the model, so stopping early still gives a descent
direction. A column is at its bottom (d_i = low_i), free, or at the top (d_i = tau, moving with tau).
"""

from __future__ import annotations

from typing import NamedTuple

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import ZERO, add_scaled, cholesky, floats, integers, matrix, solve_factored

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
