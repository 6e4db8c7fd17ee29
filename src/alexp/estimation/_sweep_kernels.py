"""Fused search for every agent's best candidate, without a models x candidates array.

The score of a candidate is mean + width * sqrt(q).  Roots are expensive, and almost no candidate wins, so each
block is first screened: with B a score that some candidate reaches, a candidate can only reach B as well if
B - mean <= width * sqrt(q), that is if g |g| <= width^2 q with g = B - mean.  The screen evaluates this with a
margin that covers all rounding, so it may let losers through but never drops a winner; what it lets through is
scored exactly.  The result is the argmax of the plain formula, bit for bit, the first of equal candidates.

B is the score of a guess, usually the winner of the sweep before: one observation moves few winners.  Models of up to
four features are screened in long runs that keep nothing but the number of hits.  A run whose only hit is the guess
is done with, and so is a run without any; the others are gone through block by block.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from alexp.estimation._block_kernels import BLOCK, block_means, block_quadratics, unpack
from alexp.estimation._ridge_kernels import FloatArray, IntArray, model_coefficients

# Suppose fl(mean + x) >= B with x = fl(width fl(sqrt(q))).  Then x >= B - mean up to 2^-53 |B|, which lowering B by
# _MARGIN |B| absorbs, and g^2 <= width^2 q up to a handful of relative roundings, absorbed by width^2 (1 + _MARGIN).
# Rounding is monotone, so an inequality that holds for the factors also holds for the rounded products, even where
# those underflow.  Only width^2 itself must be an ordinary number; outside these limits nothing is screened.
_MARGIN = 1e-14
_SMALLEST, _LARGEST = 1e-280, 1e280

_RUN = 2048  # candidates that are screened at once, with nothing stored
_STRIP = 16  # a block that is not dropped as a whole is screened again in strips of this many candidates


@njit(cache=True, nogil=True)
def _hits(terms: FloatArray, n: int, squared: float, bound: float) -> int:
    """Number of the first n candidates of ``terms`` whose score may reach ``bound``.

    ``terms`` holds the means and, BLOCK further on, the quadratic forms; ``squared`` is width^2 plus margin.
    """
    hits = 0
    for i in range(n):
        g = bound - terms[i]
        hits += g * abs(g) <= squared * terms[BLOCK + i]
    return hits


@njit(cache=True, nogil=True)
def _small_block(
    table: FloatArray, own: IntArray, low: int, high: int, theta: FloatArray,
    shift: FloatArray, inverse: FloatArray, lower: FloatArray, constant: float,
    squared: float, bound: float, terms: FloatArray,
) -> int:
    """Means, quadratic forms and number of hits of a block for one to four features, all in registers.

    The operations are those of ``block_means``, ``block_quadratics`` and ``_hits``, in the same order.
    """
    size = own.shape[0]
    last = size - 1
    f0, f1 = table[own[0], low:high], table[own[min(1, last)], low:high]
    f2, f3 = table[own[min(2, last)], low:high], table[own[last], low:high]
    n = f0.shape[0]
    t0, s0, v0 = theta[0], shift[0], inverse[0]
    hits = 0
    if size == 1:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            m = t0 * f0[i]
            q = constant + u0 * u0
            terms[i] = m
            terms[BLOCK + i] = q
            hits += (bound - m) * abs(bound - m) <= squared * q
        return hits
    t1, s1, v1, a10 = theta[1], shift[1], inverse[1], lower[0]
    if size == 2:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            m = t0 * f0[i] + t1 * f1[i]
            q = (constant + u0 * u0) + u1 * u1
            terms[i] = m
            terms[BLOCK + i] = q
            hits += (bound - m) * abs(bound - m) <= squared * q
        return hits
    t2, s2, v2, a20, a21 = theta[2], shift[2], inverse[2], lower[1], lower[2]
    if size == 3:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
            m = (t0 * f0[i] + t1 * f1[i]) + t2 * f2[i]
            q = ((constant + u0 * u0) + u1 * u1) + u2 * u2
            terms[i] = m
            terms[BLOCK + i] = q
            hits += (bound - m) * abs(bound - m) <= squared * q
        return hits
    t3, s3, v3, a30, a31, a32 = theta[3], shift[3], inverse[3], lower[3], lower[4], lower[5]
    for i in range(n):
        u0 = (f0[i] - s0) * v0
        u1 = ((f1[i] - s1) - a10 * u0) * v1
        u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
        u3 = ((((f3[i] - s3) - a30 * u0) - a31 * u1) - a32 * u2) * v3
        m = ((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i]) + t3 * f3[i]
        q = (((constant + u0 * u0) + u1 * u1) + u2 * u2) + u3 * u3
        terms[i] = m
        terms[BLOCK + i] = q
        hits += (bound - m) * abs(bound - m) <= squared * q
    return hits


@njit(cache=True, nogil=True)
def _run_hits(
    table: FloatArray, own: IntArray, low: int, high: int, theta: FloatArray,
    shift: FloatArray, inverse: FloatArray, lower: FloatArray, constant: float,
    squared: float, bound: float,
) -> int:
    """Number of hits among candidates low..high-1 for one to four features, all in registers.

    The operations are those of ``_small_block``; nothing is stored.
    """
    size = own.shape[0]
    last = size - 1
    f0, f1 = table[own[0], low:high], table[own[min(1, last)], low:high]
    f2, f3 = table[own[min(2, last)], low:high], table[own[last], low:high]
    n = f0.shape[0]
    t0, s0, v0 = theta[0], shift[0], inverse[0]
    hits = 0
    if size == 1:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            g = bound - t0 * f0[i]
            hits += g * abs(g) <= squared * (constant + u0 * u0)
        return hits
    t1, s1, v1, a10 = theta[1], shift[1], inverse[1], lower[0]
    if size == 2:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            g = bound - (t0 * f0[i] + t1 * f1[i])
            hits += g * abs(g) <= squared * ((constant + u0 * u0) + u1 * u1)
        return hits
    t2, s2, v2, a20, a21 = theta[2], shift[2], inverse[2], lower[1], lower[2]
    if size == 3:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
            g = bound - ((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i])
            hits += g * abs(g) <= squared * (((constant + u0 * u0) + u1 * u1) + u2 * u2)
        return hits
    t3, s3, v3, a30, a31, a32 = theta[3], shift[3], inverse[3], lower[3], lower[4], lower[5]
    for i in range(n):
        u0 = (f0[i] - s0) * v0
        u1 = ((f1[i] - s1) - a10 * u0) * v1
        u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
        u3 = ((((f3[i] - s3) - a30 * u0) - a31 * u1) - a32 * u2) * v3
        g = bound - (((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i]) + t3 * f3[i])
        hits += g * abs(g) <= squared * ((((constant + u0 * u0) + u1 * u1) + u2 * u2) + u3 * u3)
    return hits


@njit(cache=True, nogil=True)
def _reaching(values: FloatArray, bound: float) -> int:
    """Number of values not below ``bound``."""
    count = 0
    for i in range(values.shape[0]):
        count += values[i] >= bound
    return count


@njit(cache=True, nogil=True)
def _best_mean(
    table: FloatArray, own: IntArray, low: int, high: int, theta: FloatArray,
    guess: int, mean: FloatArray,
) -> tuple[float, int]:
    """Largest theta'phi over candidates low..high-1 and the first candidate that attains it.

    The score at ``guess``, any candidate of the range, only serves to skip blocks that do not reach it.
    """
    block_means(table, own, guess, guess + 1, theta, mean)
    reached = mean[0]
    best, winner = -np.inf, low
    for begin in range(low, high, BLOCK):
        end = min(begin + BLOCK, high)
        block_means(table, own, begin, end, theta, mean)
        if _reaching(mean[: end - begin], reached) > 0:
            for i in range(end - begin):
                if mean[i] > best:
                    best = mean[i]
                    winner = begin + i
            reached = max(reached, best)
    return best, winner


@njit(cache=True, nogil=True)
def _best_in_blocks(
    table: FloatArray, own: IntArray, low: int, high: int, theta: FloatArray,
    weight: float, squared: float, shift: FloatArray, inverse: FloatArray, lower: FloatArray, constant: float,
    coords: FloatArray, terms: FloatArray, best: float, winner: int, bound: float, pending: int,
) -> tuple[float, int, float]:
    """Best score so far, its candidate and the bound after candidates low..high-1; ``squared`` = inf: no screen.

    ``pending`` is the number of hits still to be met, at least; the blocks after the last of them are left out.
    """
    size = own.shape[0]
    screened = squared < np.inf
    quadratic = terms[BLOCK:]
    for begin in range(low, high, BLOCK):
        if pending <= 0:
            break
        end = min(begin + BLOCK, high)
        if 1 <= size <= 4:
            hits = _small_block(
                table, own, begin, end, theta, shift, inverse, lower, constant, squared, bound, terms
            )
        else:
            block_means(table, own, begin, end, theta, terms)
            block_quadratics(table, own, begin, end, shift, inverse, lower, constant, coords, quadratic)
            hits = _hits(terms, end - begin, squared, bound)
        if screened and hits == 0:
            continue
        pending -= hits if screened else 0  # a raised bound only lowers the count, so this never runs ahead
        for strip in range(0, end - begin, _STRIP):
            part = terms[strip:]
            n = min(_STRIP, end - begin - strip)
            if screened and _hits(part, n, squared, bound) == 0:
                continue
            for i in range(n):
                score = part[i] + weight * math.sqrt(part[BLOCK + i])
                if score > best:
                    best = score
                    winner = begin + strip + i
            bound = max(bound, best - _MARGIN * abs(best))
    return best, winner, bound


@njit(cache=True, nogil=True)
def _best_ucb(
    table: FloatArray, own: IntArray, low: int, high: int, theta: FloatArray,
    guess: int, weight: float, shift: FloatArray, inverse: FloatArray, lower: FloatArray, constant: float,
    coords: FloatArray, terms: FloatArray,
) -> tuple[float, int]:
    """``_best_mean`` for the score theta'phi + weight sqrt(q)."""
    size = own.shape[0]
    squared = weight * weight * (1.0 + _MARGIN)
    screened = _SMALLEST < squared < _LARGEST
    quadratic = terms[BLOCK:]
    block_means(table, own, guess, guess + 1, theta, terms)
    block_quadratics(table, own, guess, guess + 1, shift, inverse, lower, constant, coords, quadratic)
    reached = terms[0] + weight * math.sqrt(quadratic[0])
    at_guess = reached - _MARGIN * abs(reached)
    bound = at_guess
    best, winner = -np.inf, low
    for run in range(low, high, _RUN):
        stop = min(run + _RUN, high)
        hits = stop - run
        if screened and 1 <= size <= 4:
            hits = _run_hits(
                table, own, run, stop, theta, shift, inverse, lower, constant, squared, bound
            )
            if hits == 0:
                continue
            if hits == 1 and run <= guess < stop and bound == at_guess:  # the guess is a hit, so it is the one
                if reached > best:
                    best, winner = reached, guess
                continue
        best, winner, bound = _best_in_blocks(
            table, own, run, stop, theta, weight, squared if screened else np.inf, shift, inverse, lower, constant,
            coords, terms, best, winner, bound, hits,
        )
    return best, winner


@njit(cache=True, nogil=True)
def sweep_linear(
    table: FloatArray, columns: IntArray, offsets: IntArray, coefficients: FloatArray,
    first: int, last: int, low: int, high: int, index: IntArray, value: FloatArray,
) -> None:
    """argmax over candidates low..high-1 of theta_j'phi_j for models first..last-1, and its value."""
    mean = np.empty(BLOCK)
    winner = low
    for j in range(first, last):
        own = columns[offsets[j] : offsets[j + 1]]
        theta = coefficients[offsets[j] : offsets[j + 1]]
        value[j], winner = _best_mean(table, own, low, high, theta, winner, mean)
        index[j] = winner


@njit(cache=True, nogil=True)
def sweep_ucb(
    factor: FloatArray, starts: IntArray, columns: IntArray, offsets: IntArray, lead: int,
    table: FloatArray, width: FloatArray,
    first: int, last: int, low: int, high: int, index: IntArray, value: FloatArray,
) -> None:
    """argmax over candidates low..high-1 of mean + width_j sqrt(q) for models first..last-1, and its value.

    On entry ``index`` holds a guess for each model, or -1: then the previous model's winner is the guess, since
    neighbours share features.  Guesses save time and never change the result.
    """
    widest = 0
    for j in range(first, last):
        widest = max(widest, offsets[j + 1] - offsets[j])
    coords, terms = np.empty(widest * BLOCK), np.empty(2 * BLOCK)
    coefficients, shift, inverse = np.empty(widest), np.empty(widest), np.empty(widest)
    lower = np.empty((widest * (widest - 1)) // 2 + 1)
    winner = low
    for j in range(first, last):
        own = columns[offsets[j] : offsets[j + 1]]
        rows = lead + own.shape[0] + 1
        packed = factor[starts[j] : starts[j + 1]]
        theta = coefficients[: own.shape[0]]
        model_coefficients(packed, rows, lead, theta)
        if width[j] > 0.0:
            constant = unpack(packed, rows, lead, shift, inverse, lower)
            guess = index[j] if low <= index[j] < high else winner
            value[j], winner = _best_ucb(
                table, own, low, high, theta, guess, width[j], shift, inverse, lower, constant, coords, terms
            )
        else:
            value[j], winner = _best_mean(table, own, low, high, theta, winner, terms)
        index[j] = winner


@njit(cache=True, nogil=True)
def model_posterior(
    packed: FloatArray, lead: int, features: FloatArray, coefficients: FloatArray,
    mean: FloatArray, width: FloatArray,
) -> None:
    """Fill mean (n,) = coefficients'phi and width (n,) = sqrt(q) of one model at ``features`` (d_j, n)."""
    size, n = features.shape
    coords = np.empty(size * BLOCK)
    shift, inverse, lower = np.empty(size), np.empty(size), np.empty((size * (size - 1)) // 2 + 1)
    constant = unpack(packed, lead + size + 1, lead, shift, inverse, lower)
    own = np.arange(size)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        block_means(features, own, begin, end, coefficients, mean[begin:end])
        out = width[begin:end]
        block_quadratics(features, own, begin, end, shift, inverse, lower, constant, coords, out)
        for i in range(out.shape[0]):
            out[i] = math.sqrt(out[i])
