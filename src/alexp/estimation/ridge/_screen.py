"""Single-precision screen: how many of a run of candidates may beat a score that is already reached.

The score of a candidate is theta'phi + width sqrt(q).  To reach a score B it must satisfy

    g |g| <= q,   g = (B - theta'phi) / unit,

with unit = width; if the width is zero, g <= 0 with any unit.  This is evaluated in single precision, where twice as
many candidates fit an instruction, and with slack: B is lowered and q is raised by what rounding can change at most.
Losers may pass, winners always do, and what passes is scored in double precision.

The slack.  Features are scaled to at most one by powers of two.  Write e for the unit roundoff, S for the sum of all
|theta_k| / unit, and bound the coordinates u_k = (phi_k - shift_k - sum_l lower_kl u_l) inverse_k by
U_k = (1 + |shift_k| + sum_l |lower_kl| U_l) inverse_k.  Every sum has at most d + 3 terms and every term a handful of
roundings, in whatever order they are added and whether or not products are fused, so with c = (d + 8) e

    |error of g| <= c (S + |B| / unit),
    |error of u_k| <= D_k = sum_l |lower_kl| inverse_k D_l + c U_k,
    |error of q| <= sum_k (2 U_k + D_k) D_k + c (constant + sum_k U_k^2).

_TINY covers underflow.  A model whose numbers are too large for this is not screened.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, NarrowArray
from alexp.common.compiling import checked
from alexp.estimation.ridge._blocks import BLOCK, block_means, block_quadratics

RUN = 2048  # most candidates that are screened at once; a sum of two places must be exact in single precision
_UNIT = 2.0**-24
_TINY = 1e-25
_HUGE = 1e12


class Screen(NamedTuple):
    """The candidates in single precision, and scratch."""

    table: NarrowArray  # (P, N) features divided by their scale
    scale: FloatArray  # (P,)
    place: NarrowArray  # (RUN,) 0, 1, ...
    coords: NarrowArray
    terms: NarrowArray


def narrow_table(table: FloatArray) -> tuple[NarrowArray, FloatArray]:
    """The table with every feature divided by a power of two, so that none exceeds one, and these powers (P,)."""
    narrow, scale = np.empty(table.shape, dtype=np.float32), np.ones(table.shape[0])
    _narrow(table, narrow, scale)
    return narrow, scale


@checked.entry
def _narrow(table: FloatArray, narrow: NarrowArray, scale: FloatArray) -> None:
    """``narrow_table``, given arrays, which take longest to compile; ``scale`` holds ones."""
    for k in range(table.shape[0]):
        largest = 0.0
        for i in range(table.shape[1]):
            largest = max(largest, abs(table[k, i]))
        if 1e-290 < largest < 1e290:
            scale[k] = math.ldexp(1.0, math.frexp(largest)[1])
        inverse = 1.0 / scale[k]
        for i in range(table.shape[1]):
            narrow[k, i] = table[k, i] * inverse


@checked.kernel
def screen_for(table: NarrowArray, scale: FloatArray, widest: int) -> Screen:
    """Return a screen for models of up to ``widest`` features."""
    place = np.empty(RUN, dtype=np.float32)
    for i in range(RUN):
        place[i] = i
    coords, terms = np.empty(widest * BLOCK, dtype=np.float32), np.empty(2 * BLOCK, dtype=np.float32)
    return Screen(table, scale, place, coords, terms)


@checked.leaf
def model_size(size: int) -> int:
    """Length of theta, shift and inverse (d each), constant (1) and lower, laid out in this order."""
    return 3 * size + 1 + (size * (size - 1)) // 2


@checked.leaf
def narrow_means(scale: FloatArray, own: IntArray, model: FloatArray, unit: float, out: NarrowArray) -> float:
    """Write theta in these units to ``out``; return S."""
    total = 0.0
    for k in range(own.shape[0]):
        slope = model[k] * scale[own[k]] / unit
        out[k] = slope
        total += abs(slope)
    return total


@checked.leaf
def narrow_quadratics(scale: FloatArray, own: IntArray, model: FloatArray, out: NarrowArray) -> bool:
    """Write the rest of a model in these units, its constant raised, to ``out``; return whether it can be screened.

    ``model`` has room for 2 d numbers at its end.
    """
    size = own.shape[0]
    unit, end, first = (size + 8) * _UNIT, model_size(size), 3 * size + 1
    reach, error = model[end:], model[end + size :]
    squares, slack, largest = model[3 * size], _TINY, 0.0
    for k in range(size):
        up = scale[own[k]]
        down = 1.0 / up
        offset, factor = model[size + k] * down, model[2 * size + k] * up
        out[size + k], out[2 * size + k] = offset, factor
        terms, errors = 1.0 + abs(offset), 0.0
        for j in range(k):
            entry = model[first + j] * down
            out[first + j] = entry
            largest = max(largest, abs(entry))
            terms += abs(entry) * reach[j]
            errors += abs(entry) * error[j]
        first += k
        reach[k] = terms * factor
        error[k] = 1.01 * errors * factor + unit * reach[k]
        squares += reach[k] * reach[k]
        slack += (2.0 * reach[k] + error[k]) * error[k]
    out[3 * size] = model[3 * size] + slack + unit * squares
    return squares < _HUGE and largest < _HUGE


@checked.leaf
def narrow_bound(score: float, unit: float, size: int, total: float) -> float:
    """B / unit, lowered by the slack, or NaN if it is out of range; ``total`` is S."""
    scaled = score / unit
    lowered = scaled - (size + 8) * _UNIT * (total + abs(scaled)) - _TINY
    return lowered if total + abs(scaled) < _HUGE else math.nan


@checked.loose_leaf
def _block_hits(terms: NarrowArray, widened: bool, bound: float, place: NarrowArray) -> tuple[int, int]:
    """Hits and their places, given means and, if ``widened``, quadratic forms BLOCK further on."""
    zero, one = np.float32(0.0), np.float32(1.0)
    limit, hits, where = np.float32(bound), np.float32(0.0), np.float32(0.0)
    for i in range(place.shape[0]):
        g = limit - terms[i]
        hit = g * abs(g) <= (terms[BLOCK + i] if widened else zero)
        hits += one if hit else zero
        where += place[i] if hit else zero
    return int(hits), int(where)


@checked.loose_leaf
def _small_linear_hits(
    table: NarrowArray, own: IntArray, low: int, high: int, model: NarrowArray, bound: float, place: NarrowArray
) -> tuple[int, int]:
    """``narrow_hits`` for width zero and one to four features."""
    last = own.shape[0] - 1
    f0, f1 = table[own[0], low:high], table[own[min(1, last)], low:high]
    f2, f3 = table[own[min(2, last)], low:high], table[own[min(3, last)], low:high]
    zero, one = np.float32(0.0), np.float32(1.0)
    limit, hits, where = np.float32(bound), np.float32(0.0), np.float32(0.0)
    t0, t1 = model[0], model[1] if last >= 1 else zero
    t2, t3 = model[2] if last >= 2 else zero, model[3] if last >= 3 else zero
    for i in range(f0.shape[0]):
        hit = limit <= ((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i]) + t3 * f3[i]
        hits += one if hit else zero
        where += place[i] if hit else zero
    return int(hits), int(where)


@checked.loose_leaf
def _small_hits(
    table: NarrowArray, own: IntArray, low: int, high: int, model: NarrowArray, bound: float, place: NarrowArray
) -> tuple[int, int]:
    """``narrow_hits`` for a positive width and one to four features, all in registers."""
    size = own.shape[0]
    last = size - 1
    f0, f1 = table[own[0], low:high], table[own[min(1, last)], low:high]
    f2, f3 = table[own[min(2, last)], low:high], table[own[last], low:high]
    n = f0.shape[0]
    zero, one = np.float32(0.0), np.float32(1.0)
    limit, hits, where = np.float32(bound), np.float32(0.0), np.float32(0.0)
    constant, lower = model[3 * size], model[3 * size + 1 :]
    t0, s0, v0 = model[0], model[size], model[2 * size]
    if size == 1:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            g = limit - t0 * f0[i]
            hit = g * abs(g) <= constant + u0 * u0
            hits += one if hit else zero
            where += place[i] if hit else zero
        return int(hits), int(where)
    t1, s1, v1, a10 = model[1], model[size + 1], model[2 * size + 1], lower[0]
    if size == 2:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            g = limit - (t0 * f0[i] + t1 * f1[i])
            hit = g * abs(g) <= (constant + u0 * u0) + u1 * u1
            hits += one if hit else zero
            where += place[i] if hit else zero
        return int(hits), int(where)
    t2, s2, v2, a20, a21 = model[2], model[size + 2], model[2 * size + 2], lower[1], lower[2]
    if size == 3:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
            g = limit - ((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i])
            hit = g * abs(g) <= ((constant + u0 * u0) + u1 * u1) + u2 * u2
            hits += one if hit else zero
            where += place[i] if hit else zero
        return int(hits), int(where)
    t3, s3, v3, a30, a31, a32 = model[3], model[size + 3], model[2 * size + 3], lower[3], lower[4], lower[5]
    for i in range(n):
        u0 = (f0[i] - s0) * v0
        u1 = ((f1[i] - s1) - a10 * u0) * v1
        u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
        u3 = ((((f3[i] - s3) - a30 * u0) - a31 * u1) - a32 * u2) * v3
        g = limit - (((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i]) + t3 * f3[i])
        hit = g * abs(g) <= (((constant + u0 * u0) + u1 * u1) + u2 * u2) + u3 * u3
        hits += one if hit else zero
        where += place[i] if hit else zero
    return int(hits), int(where)


@checked.leaf
def small_narrow_hits(
    screen: Screen, own: IntArray, low: int, high: int, model: NarrowArray, widened: bool, bound: float
) -> tuple[int, int]:
    """``narrow_hits`` where every model has one to four features: much less to compile."""
    if widened:
        return _small_hits(screen.table, own, low, high, model, bound, screen.place)
    return _small_linear_hits(screen.table, own, low, high, model, bound, screen.place)


@checked.leaf
def narrow_hits(
    screen: Screen, own: IntArray, low: int, high: int, model: NarrowArray, widened: bool, bound: float
) -> tuple[int, int]:
    """How many of the candidates low..high-1 (at most RUN) pass, and the sum of their places, counted from low.

    ``widened`` says whether the width is positive; if not, only theta is used.
    """
    size = own.shape[0]
    if 1 <= size <= 4:
        return small_narrow_hits(screen, own, low, high, model, widened, bound)
    table, place, coords, terms = screen.table, screen.place, screen.coords, screen.terms
    theta, shift, inverse, lower = model[:size], model[size:], model[2 * size :], model[3 * size + 1 :]
    total, where = 0, 0
    for begin in range(low, high, BLOCK):
        end = min(begin + BLOCK, high)
        block_means(table, own, begin, end, theta, terms)
        if widened:
            block_quadratics(table, own, begin, end, shift, inverse, lower, model[3 * size], coords, terms[BLOCK:])
        hits, places = _block_hits(terms, widened, bound, place[begin - low : end - low])
        total += hits
        where += places
    return total, where
