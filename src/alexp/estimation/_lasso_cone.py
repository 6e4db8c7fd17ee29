"""Quadratic models over the cone of all subsets: low_i <= d_i <= tau, sum_i d_i = s tau.

F decreases in every d_i, so capacity (s tau) is never left unused while a column has room; only if there are no more
than s columns are they all at the top and the sum is less.

A primal active-set method: every iterate is feasible and lowers the model, so stopping early still gives a descent
direction. A column is at its bottom (d_i = low_i), free, or at the top (d_i = tau, moving with tau).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from alexp.estimation._lasso_linalg import cholesky, floats, integers, kernel, matrix, solve_factored

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BOTTOM, FREE, TOP = 0, 1, 2
# Entries of the small integer array that the functions below share.
N_FREE, N_TOP, N_FIXED = 0, 1, 2
SNAP = 1e-13


@kernel
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


@kernel
def free_columns(k: int, size: int, state: IntArray, count: IntArray, index: IntArray) -> None:
    """List the free columns; with s columns at the top the capacity is used up and none is free."""
    count[N_FREE] = 0
    count[N_TOP] = 0
    for i in range(k):
        if state[i] == TOP:
            count[N_TOP] += 1
    for i in range(k):
        if state[i] == FREE and count[N_TOP] >= size:
            state[i] = BOTTOM
        if state[i] == FREE:
            index[count[N_FREE]] = i
            count[N_FREE] += 1


@kernel
def equality_step(
    h: FloatArray, grad: FloatArray, k: int, size: int, cost: float, damping: float, state: IntArray, count: IntArray,
    index: IntArray, delta: FloatArray,
) -> float:
    """Minimise the model with the states fixed: fill the steps of the free columns, return that of tau.

    With u columns at the top tau follows the free columns: since sum d = s tau, its step is the sum of theirs over
    s - u. Without free columns tau is the only variable.
    """
    f = count[N_FREE]
    tied = f > 0
    share = 1.0 / (size - count[N_TOP]) if tied else 0.0
    order = max(f, 1)
    with_top = floats(f + 1)
    with_top[f] = 0.0
    slope = cost
    for i in range(k):
        if state[i] == TOP:
            slope += grad[i]
            for j in range(k):
                if state[j] == TOP:
                    with_top[f] += h[i, j]
    system = matrix(order, order)
    rhs = floats(order)
    for a in range(f):
        with_top[a] = 0.0
        for j in range(k):
            if state[j] == TOP:
                with_top[a] += h[index[a], j]
        rhs[a] = -grad[index[a]] - share * slope
        for b in range(a + 1):
            coupling = share * (with_top[a] + with_top[b] + share * with_top[f])
            system[a, b] = h[index[a], index[b]] + coupling
    if not tied:
        system[0, 0] = with_top[0]
        rhs[0] = -slope
    cholesky(system, order, 0.5 * damping)
    solve_factored(system, rhs, order)
    total = 0.0
    for a in range(f):
        delta[index[a]] = rhs[a]
        total += rhs[a]
    return share * total if tied else rhs[0]


@kernel
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


@kernel
def move(
    h: FloatArray, k: int, d: FloatArray, low: FloatArray, x: FloatArray, tau: float, delta: FloatArray, rise: float,
    length: float, state: IntArray, count: IntArray, grad: FloatArray,
) -> float:
    """Take the step, update the model's gradient, fix the columns that reached a bound; return the new tau."""
    new = tau + length * rise
    count[N_FIXED] = 0
    for j in range(k):
        change = rise if state[j] == TOP else (delta[j] if state[j] == FREE else 0.0)
        if change != 0.0:
            for i in range(k):
                grad[i] += length * change * h[i, j]
    for i in range(k):
        if state[i] == FREE:
            x[i] += length * delta[i]
            if length < 1.0 and delta[i] < 0.0 and d[i] + x[i] <= low[i] + 1e-15 * new:
                state[i] = BOTTOM
                x[i] = low[i] - d[i]
                count[N_FIXED] += 1
            elif length < 1.0 and delta[i] > rise and d[i] + x[i] >= (1.0 - 1e-15) * new:
                state[i] = TOP
                count[N_FIXED] += 1
        if state[i] == TOP:
            x[i] = new - d[i]
    return new


@kernel
def release(
    c: FloatArray, grad: FloatArray, k: int, size: int, cost: float, several: bool, state: IntArray, count: IntArray
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
    full = count[N_TOP] == size
    if count[N_FREE] > 0:
        price = slope / (size - count[N_TOP])
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


@kernel
def cone_quadratic(
    lower: FloatArray, c: FloatArray, k: int, size: int, cost: float, damping: float, d: FloatArray, low: FloatArray,
    tau: float, x: FloatArray,
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
    index = integers(k)
    count = integers(k + 3)
    delta = floats(k)
    initial_states(c, k, size, d, tau, state)
    several = k > 0
    risen = 0.0
    for _ in range(10 * k + 50):
        free_columns(k, size, state, count, index)
        rise = equality_step(h, grad, k, size, cost, damping, state, count, index, delta)
        length = longest_step(k, d, low, x, tau, delta, rise, state)
        tau = move(h, k, d, low, x, tau, delta, rise, length, state, count, grad)
        risen += length * rise
        stuck = length < 1.0 and count[N_FIXED] == 0
        if stuck or (length == 1.0 and not release(c, grad, k, size, cost, several, state, count)):
            break
        several = length > 0.0
    return risen
