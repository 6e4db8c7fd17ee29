"""Convex quadratic models over the directions in which eta may move."""

from __future__ import annotations

from alexp.common.arrays import FloatArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import ZERO, cholesky, floats, integers, matrix, solve_factored

# Damping of the Newton steps, relative to the Hessian's diagonal. Repeated groups make the Hessian singular, hence
# the least value. A step rejected RETREATS times multiplies it, an accepted one divides it.
LEAST_DAMPING = 1e-10
FIRST_DAMPING = 1e-2
LARGEST_DAMPING = 1e12
RETREATS = 3
POLISH = 10  # so many steps are made for a gap beyond the one that is asked for; one is the rule
SETTLED = 1e-2  # a Newton step that moves less than this share of eta leaves little for the next one
SUFFICIENT_DECREASE = 0.1  # a tenth of what the slope promises; less lets steps jump to and fro across a valley
ROUNDING = 1e-11


@compact.leaf
def acceptable(trial: float, value: float, slope: float, derivative: float) -> bool:
    """Whether a step that changes F from ``value`` to ``trial`` and its derivative along the step to ``slope`` is good.

    Near the optimum the decrease drowns in rounding; the derivative is then the better witness.
    """
    if trial <= value + SUFFICIENT_DECREASE * derivative:
        return True
    return trial <= (1.0 + ROUNDING) * value and slope <= -0.9 * derivative


@compact.leaf
def relaxed(damping: float, slope: float, derivative: float) -> float:
    """Return the damping after an accepted step.

    If the slope hardly changed, F is linear along the step, which only the damping kept from being longer; it may
    then fall below its usual least value.
    """
    if derivative < 0.0 and slope < 0.5 * derivative:
        return max(0.01 * damping, 1e-6 * LEAST_DAMPING)
    return max(0.01 * damping, LEAST_DAMPING)


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
