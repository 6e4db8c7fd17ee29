"""The `Engine` on the CPU: what `kernels.cu` computes, by the same formulas in the same order, for subsets of any size.

Compiled functions first, then the class that runs them on all cores.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.common.ties import rules, tolerance
from alexp.estimation.ridge.threads import run_parts
from alexp.problem.groups import binomial_table

if TYPE_CHECKING:
    from alexp.gpu.subsets import CellTerms, SharedSums

FAR = -46.0  # weights below exp of it are left out
LOWEST = -1.7e308


@compact.kernel
def decompose(gram: FloatArray, columns: IntArray, rho: float, lower: FloatArray, inverse: FloatArray) -> float:
    """L and D^-1 of gram + rho I = L D L' on some columns; returns log det(V / rho)."""
    size, determinant = columns.size, 1.0
    for i in range(size):
        pivot = gram[columns[i], columns[i]] + rho
        for k in range(i):
            value = gram[columns[i], columns[k]]
            for m in range(k):
                value -= lower[i, m] * lower[k, m] / inverse[m]
            lower[i, k] = value * inverse[k]
            pivot -= lower[i, k] * value
        pivot = max(pivot, rho)
        inverse[i] = 1.0 / pivot
        determinant *= pivot / rho
    return math.log(determinant)


@compact.kernel
def regress(
    cross: FloatArray, columns: IntArray, total: float, lower: FloatArray, inverse: FloatArray, along: FloatArray
) -> float:
    """L^-1 of the right-hand side; returns the penalised residual."""
    residual = total
    for i in range(columns.size):
        value = cross[columns[i]]
        for m in range(i):
            value -= lower[i, m] * along[m]
        along[i] = value
        residual -= value * value * inverse[i]
    return max(residual, 0.0)


@compact.kernel
def in_order(subset: IntArray, columns: IntArray) -> None:
    """The columns of a subset, sorted: what it weighs must be the same, to the last bit, with every pair."""
    for i in range(subset.size):
        place = i
        while place > 0 and columns[place - 1] > subset[i]:
            columns[place] = columns[place - 1]
            place -= 1
        columns[place] = subset[i]


@compact.kernel
def coefficients(lower: FloatArray, inverse: FloatArray, theta: FloatArray) -> None:
    """From L^-1 of the right-hand side, which they replace, to the coefficients."""
    for i in range(theta.size - 1, -1, -1):
        theta[i] *= inverse[i]
        for m in range(i + 1, theta.size):
            theta[i] -= lower[m, i] * theta[m]


@compact.kernel
def unit_of(units: FloatArray, columns: IntArray) -> float:
    """What the ridges of a subset are multiplied by."""
    unit = 0.0
    for i in columns:
        unit += units[i]
    return unit if unit > 0.0 else 1.0


@compact.kernel
def weigh(cell: FloatArray, power: float, shape: float, residual: float, log_determinant: float) -> float:
    """Log weight of a component; `CellTerms` has the formula."""
    excess = residual * cell[1]
    misfit = excess if shape == 0.0 else shape * math.log1p(excess)
    return max(float(power * (cell[2] - misfit - 0.5 * log_determinant)), -1e300)


@compact.kernel
def next_others(places: IntArray, n: int) -> bool:
    """Step to the next increasing tuple of numbers below n; whether there is one."""
    k = places.size
    i = k - 1
    while i >= 0 and places[i] == n - k + i:
        i -= 1
    if i < 0:
        return False
    places[i] += 1
    for m in range(i + 1, k):
        places[m] = places[m - 1] + 1
    return True


@compact.kernel
def level_of(
    gram: FloatArray,
    cross: FloatArray,
    total: float,
    cells: FloatArray,
    units: FloatArray,
    power: float,
    shape: float,
    columns: IntArray,
    lower: FloatArray,
    work: FloatArray,
) -> float:
    """Logarithm of the summed weights of a subset's components; ``work`` (2, s) is overwritten."""
    top, summed = LOWEST, 0.0
    unit = unit_of(units, columns)
    for c in range(cells.shape[0]):
        determinant = decompose(gram, columns, cells[c, 0] * unit, lower, work[0])
        residual = regress(cross, columns, total, lower, work[0], work[1])
        level = weigh(cells[c], power, shape, residual, determinant)
        if level > top:
            summed = 1.0 + (summed * math.exp(top - level) if top - level > FAR else 0.0)
            top = level
        elif level - top > FAR:
            summed += math.exp(level - top)
    return top + math.log(summed)


@compact.entry
def best_of_pairs(
    gram: FloatArray,
    cross: FloatArray,
    total: float,
    cells: FloatArray,
    units: FloatArray,
    power: float,
    shape: float,
    size: int,
    first: int,
    last: int,
    best: FloatArray,
) -> None:
    """best[a, b], first <= a < last: the largest level of the subsets whose two smallest columns are a < b."""
    p = gram.shape[0]
    columns, places = np.empty(size, np.int64), np.empty(size - 2, np.int64)
    lower, work = np.empty((size, size)), np.empty((2, size))
    for a in range(first, last):
        for b in range(a + 1, p):
            top, n = LOWEST, p - 1 - b
            for i in range(size - 2):
                places[i] = i
            more = n >= size - 2
            while more:
                columns[0], columns[1] = a, b
                for i in range(size - 2):
                    columns[i + 2] = places[i] + b + 1
                level = level_of(gram, cross, total, cells, units, power, shape, columns, lower, work)
                top = max(top, level)
                more = next_others(places, n)
            best[a, b] = top


@compact.entry
def sums_of_pairs(
    gram: FloatArray,
    cross: FloatArray,
    total: float,
    cells: FloatArray,
    units: FloatArray,
    power: float,
    shape: float,
    reference: float,
    later: FloatArray,
    size: int,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """out (7, P, P), zeros before: sums over the subsets with columns a and b, where first <= min(a, b) < last.

    Of w, w noise, w theta_a, w theta_a^2, w theta_a theta_b, w noise (V^-1)_aa and w noise (V^-1)_ab, where
    w = exp(log weight - reference) of each component and V has the gram matrix ``later``.
    """
    p = gram.shape[0]
    subset, columns, places = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size - 2, np.int64)
    lower, inverse, theta = np.empty((size, size)), np.empty(size), np.empty(size)
    x, y = size - 2, size - 1
    for a in range(first, last):
        for b in range(a + 1, p):
            subset[x], subset[y] = a, b
            for i in range(size - 2):
                places[i] = i
            more = p >= size
            while more:
                for i in range(size - 2):
                    column = places[i]
                    column += column >= a
                    subset[i] = column + (column >= b)
                in_order(subset, columns)
                unit = unit_of(units, columns)
                for c in range(cells.shape[0]):
                    determinant = decompose(gram, columns, cells[c, 0] * unit, lower, inverse)
                    residual = regress(cross, columns, total, lower, inverse, theta)
                    level = weigh(cells[c], power, shape, residual, determinant) - reference
                    if level > FAR:
                        w = math.exp(level)
                        noise = cells[c, 3] * (1.0 if shape == 0.0 else 1.0 + residual * cells[c, 1])
                        coefficients(lower, inverse, theta)
                        theta_a = theta_b = 0.0
                        for i in range(size):
                            theta_a = theta[i] if columns[i] == a else theta_a
                            theta_b = theta[i] if columns[i] == b else theta_b
                        decompose(later, subset, cells[c, 0] * unit, lower, inverse)
                        slope = lower[y, x]
                        out[0, a, b] += w
                        out[1, a, b] += w * noise
                        out[2, a, b] += w * theta_a
                        out[2, b, a] += w * theta_b
                        out[3, a, b] += w * theta_a * theta_a
                        out[3, b, a] += w * theta_b * theta_b
                        out[4, a, b] += w * theta_a * theta_b
                        out[5, a, b] += w * noise * (inverse[x] + slope * slope * inverse[y])
                        out[5, b, a] += w * noise * inverse[y]
                        out[6, a, b] -= w * noise * slope * inverse[y]
                more = next_others(places, p - 2)
            for i in (0, 1, 4, 6):
                out[i, b, a] = out[i, a, b]


@compact.kernel
def unrank(rank: int, binomial: IntArray, columns: IntArray) -> None:
    """The subset of a rank in lexicographic order; ``binomial`` (P + 1, s + 1) holds C(n, k)."""
    p, size = binomial.shape[0] - 1, columns.size
    left = binomial[p, size] - 1 - rank
    low = 0
    for i in range(size):
        high = p - 1
        while low < high:
            middle = (low + high) // 2
            if binomial[p - 1 - middle, size - i] > left:
                low = middle + 1
            else:
                high = middle
        columns[i] = low
        left -= binomial[p - 1 - low, size - i]
        low += 1


@compact.entry
def levels_of_ranks(
    gram: FloatArray,
    cross: FloatArray,
    total: float,
    cells: FloatArray,
    units: FloatArray,
    power: float,
    shape: float,
    binomial: IntArray,
    ranks: IntArray,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """out[k], first <= k < last: the level of the subset of rank ranks[k]."""
    size = binomial.shape[1] - 1
    columns, lower, work = np.empty(size, np.int64), np.empty((size, size)), np.empty((2, size))
    for k in range(first, last):
        unrank(ranks[k], binomial, columns)
        out[k] = level_of(gram, cross, total, cells, units, power, shape, columns, lower, work)


@compact.entry
def sweep(
    gram: FloatArray,
    cross: FloatArray,
    later: FloatArray,
    believes: bool,
    rho: float,
    base: float,
    width: float,
    binomial: IntArray,
    points: FloatArray,
    start: int,
    first: int,
    last: int,
    tie: float,
    winners: IntArray,
) -> None:
    """winners[k]: first position of the largest mean + width sqrt(base + q) of the subset of rank start + k.

    ``points`` (n, P) are the candidates; q is taken from the gram matrix ``later`` if ``believes``.
    """
    size = binomial.shape[1] - 1
    columns, lower, inverse = np.empty(size, np.int64), np.empty((size, size)), np.empty(size)
    theta, whitened = np.empty(size), np.empty(size)
    for k in range(first, last):
        unrank(start + k, binomial, columns)
        decompose(gram, columns, rho, lower, inverse)
        regress(cross, columns, 0.0, lower, inverse, theta)
        coefficients(lower, inverse, theta)
        if believes:
            decompose(later, columns, rho, lower, inverse)
        best, winner, won = LOWEST, 0, LOWEST
        for i in range(points.shape[0]):
            mean, quadratic = 0.0, base
            for m in range(size):
                value = points[i, columns[m]]
                mean += theta[m] * value
                for h in range(m):
                    value -= lower[m, h] * whitened[h]
                whitened[m] = value
                quadratic += value * value * inverse[m]
            score = mean + width * math.sqrt(quadratic)
            if score > best:
                if not won >= score - tolerance(score, -math.inf, tie):
                    winner, won = i, score
                best = score
        winners[k] = winner


class CpuEngine:
    """An `Engine` on all cores."""

    xp: ModuleType = np

    def __init__(self, n_columns: int, size: int) -> None:
        self.size, self._binomial = size, binomial_table(n_columns, size)
        self._threads = os.cpu_count() or 1

    def host(self, values: FloatArray) -> FloatArray:
        """The array itself."""
        return values

    def best_of_pairs(self, sums: SharedSums, terms: CellTerms) -> FloatArray:
        best = np.full(sums.gram.shape, LOWEST)
        known = (*_known(sums, terms), self.size)
        self._in_parts(lambda low, high: best_of_pairs(*known, low, high, best), len(best))
        return best

    def sums_of_pairs(self, sums: SharedSums, terms: CellTerms, reference: float, later: SharedSums) -> FloatArray:
        out = np.zeros((7, *sums.gram.shape))
        known = (*_known(sums, terms), reference, later.gram, self.size)
        self._in_parts(lambda low, high: sums_of_pairs(*known, low, high, out), len(sums.gram))
        return out

    def levels_of_ranks(self, sums: SharedSums, terms: CellTerms, ranks: IntArray) -> FloatArray:
        out = np.empty(ranks.size)
        known = (*_known(sums, terms), self._binomial, ranks)
        self._in_parts(lambda low, high: levels_of_ranks(*known, low, high, out), ranks.size)
        return out

    def sweep(
        self, sums: SharedSums, later: SharedSums, rho: float, width: float, points: FloatArray, first: int, n: int
    ) -> IntArray:
        winners = np.empty(n, dtype=np.int64)
        known = (sums.gram, sums.cross, later.gram, later is not sums, rho, later.base, width, self._binomial, points)
        tie = rules.tie
        self._in_parts(lambda low, high: sweep(*known, first, low, high, tie, winners), n)
        return winners

    def _in_parts(self, task: Callable[[int, int], None], n: int) -> None:
        """Run task(low, high) in parts that differ in work, hence many of them."""
        cuts = [n * part // (16 * self._threads) for part in range(16 * self._threads + 1)]
        run_parts(task, sorted(set(cuts)), self._threads)


def _known(
    sums: SharedSums, terms: CellTerms
) -> tuple[FloatArray, FloatArray, float, FloatArray, FloatArray, float, float]:
    return sums.gram, sums.cross, sums.total, terms.cells, terms.units, terms.power, terms.shape
