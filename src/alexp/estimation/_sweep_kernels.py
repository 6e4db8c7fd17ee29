"""Fused search for every agent's best candidate, without a models x candidates array.

For one model with coefficients theta and factor R the score of a candidate with features phi is

    mean + width * sqrt(q),   mean = theta'phi,   q = ||R^-T (1?, phi)||^2,

q by forward substitution, a sum of squares that cannot be negative.  Every operation is one IEEE multiply, add
or root in a fixed order, so a plain NumPy loop over features reproduces each score bit for bit.  Candidates go
through in blocks that stay in the first-level cache.  A block that provably cannot hold a better score than one
already seen is skipped before its roots are taken; the proof allows for rounding, so the answer never changes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from alexp.estimation._ridge_kernels import FloatArray, IntArray, model_coefficients

BLOCK = 256  # candidates per block; larger models take smaller blocks so that their scratch stays in cache
_SCRATCH = 2048  # floats of scratch per block before the block shrinks
_SMALLEST_BLOCK = 32


@njit(cache=True, nogil=True)
def unpack(
    packed: FloatArray, rows: int, lead: int,
    shift: FloatArray, inverse: FloatArray, lower: FloatArray,
) -> float:
    """Lay out one factor for forward substitution u_k = ((phi_k - shift_k) - sum_l lower_kl u_l) * inverse_k.

    ``shift`` carries the intercept's coordinate u_0 = 1/R_00, whose square is returned: it is the same for all
    candidates.  Before any observation R_00 = 0 and the (infinite) coordinate is left out.  Row k of the strictly
    lower triangular part starts at k(k-1)/2 of ``lower``.
    """
    constant = 0.0
    if lead == 1 and packed[0] > 0.0:
        constant = 1.0 / packed[0]
    size = rows - 1 - lead
    for k in range(size):
        shift[k] = packed[1 + k] * constant if lead == 1 else 0.0
    position = rows if lead == 1 else 0
    for k in range(size):
        inverse[k] = 1.0 / packed[position]
        for i in range(k + 1, size):
            lower[(i * (i - 1)) // 2 + k] = packed[position + i - k]
        position += rows - lead - k
    return constant * constant


@njit(cache=True, nogil=True)
def _subtract(out: FloatArray, coords: FloatArray, lower: FloatArray, row: int, count: int) -> None:
    """out -= lower[row, l] * coords[l] for l = 0..count-1 in order, several l per pass to spare loads."""
    n = out.shape[0]
    base = (row * (row - 1)) // 2
    done = 0
    while done + 4 <= count:
        c0, c1, c2, c3 = coords[done, :n], coords[done + 1, :n], coords[done + 2, :n], coords[done + 3, :n]
        r0, r1, r2, r3 = lower[base + done], lower[base + done + 1], lower[base + done + 2], lower[base + done + 3]
        for i in range(n):
            out[i] = (((out[i] - r0 * c0[i]) - r1 * c1[i]) - r2 * c2[i]) - r3 * c3[i]
        done += 4
    while done < count:
        c0, r0 = coords[done, :n], lower[base + done]
        for i in range(n):
            out[i] = out[i] - r0 * c0[i]
        done += 1


@njit(cache=True, nogil=True)
def block_means(
    table: FloatArray, columns: IntArray, low: int, high: int, coefficients: FloatArray, mean: FloatArray
) -> None:
    """mean[i] = sum_k coefficients_k table[columns_k, low + i], summed in column order."""
    mean[: high - low] = 0.0
    out = mean[: high - low]
    for k in range(columns.shape[0]):
        feature = table[columns[k], low:high]
        theta = coefficients[k]
        for i in range(out.shape[0]):
            out[i] = out[i] + theta * feature[i]


@njit(cache=True, nogil=True)
def block_quadratics(
    table: FloatArray, columns: IntArray, low: int, high: int,
    shift: FloatArray, inverse: FloatArray, lower: FloatArray, constant: float,
    coords: FloatArray, quadratic: FloatArray,
) -> None:
    """quadratic[i] = constant + sum_k u_k^2 at candidate low + i; ``coords`` (d_j, block) is scratch for u."""
    n = high - low
    total = quadratic[:n]
    total[:] = constant
    for k in range(columns.shape[0]):
        feature = table[columns[k], low:high]
        out = coords[k, :n]
        offset = shift[k]
        for i in range(n):
            out[i] = feature[i] - offset
        _subtract(out, coords, lower, k, k)
        scale = inverse[k]
        for i in range(n):
            u = out[i] * scale
            out[i] = u
            total[i] = total[i] + u * u


@njit(cache=True, nogil=True)
def _scan(scores: FloatArray, n: int, low: int, best: float, index: int) -> tuple[float, int]:
    """First position whose score beats ``best``, and that score; a vectorised test guards the search."""
    better = 0
    view = scores[:n]
    for i in range(n):
        better += view[i] > best
    if better > 0:
        for i in range(n):
            if view[i] > best:
                best = view[i]
                index = low + i
    return best, index


@njit(cache=True, nogil=True)
def block_size(widest: int) -> int:
    """Candidates per block for models of up to ``widest`` features."""
    return max(_SMALLEST_BLOCK, min(BLOCK, _SCRATCH // max(widest, 1) // 16 * 16))


@njit(cache=True, nogil=True)
def sweep_linear(
    table: FloatArray, columns: IntArray, offsets: IntArray, coefficients: FloatArray,
    first: int, last: int, low: int, high: int, index: IntArray, value: FloatArray,
) -> None:
    """argmax over candidates low..high-1 of theta_j'phi_j for models first..last-1, and its value."""
    mean = np.empty(BLOCK)
    for j in range(first, last):
        own = columns[offsets[j] : offsets[j + 1]]
        theta = coefficients[offsets[j] : offsets[j + 1]]
        best, winner = -np.inf, low
        for begin in range(low, high, BLOCK):
            end = min(begin + BLOCK, high)
            block_means(table, own, begin, end, theta, mean)
            best, winner = _scan(mean, end - begin, begin, best, winner)
        index[j] = winner
        value[j] = best


@njit(cache=True, nogil=True)
def sweep_ucb(
    factor: FloatArray, starts: IntArray, columns: IntArray, offsets: IntArray, lead: int,
    table: FloatArray, width: FloatArray,
    first: int, last: int, low: int, high: int, index: IntArray, value: FloatArray,
) -> None:
    """argmax over candidates low..high-1 of mean + width_j sqrt(q) for models first..last-1, and its value."""
    widest = 0
    for j in range(first, last):
        widest = max(widest, offsets[j + 1] - offsets[j])
    block = block_size(widest)
    coords = np.empty((widest, block))
    mean, quadratic, scores = np.empty(block), np.empty(block), np.empty(block)
    theta, shift, inverse = np.empty(widest), np.empty(widest), np.empty(widest)
    lower = np.empty((widest * (widest - 1)) // 2 + 1)
    for j in range(first, last):
        own = columns[offsets[j] : offsets[j + 1]]
        rows = lead + own.shape[0] + 1
        packed = factor[starts[j] : starts[j + 1]]
        model_coefficients(packed, rows, lead, theta)
        constant = unpack(packed, rows, lead, shift, inverse, lower)
        best, winner = -np.inf, low
        for begin in range(low, high, block):
            end = min(begin + block, high)
            n = end - begin
            block_means(table, own, begin, end, theta, mean)
            if width[j] > 0.0:
                block_quadratics(table, own, begin, end, shift, inverse, lower, constant, coords, quadratic)
                for i in range(n):
                    scores[i] = mean[i] + width[j] * math.sqrt(quadratic[i])
                best, winner = _scan(scores, n, begin, best, winner)
            else:
                best, winner = _scan(mean, n, begin, best, winner)
        index[j] = winner
        value[j] = best


@njit(cache=True, nogil=True)
def model_posterior(
    packed: FloatArray, lead: int, features: FloatArray, coefficients: FloatArray,
    mean: FloatArray, width: FloatArray,
) -> None:
    """Fill mean (n,) = coefficients'phi and width (n,) = sqrt(q) of one model at ``features`` (d_j, n)."""
    size, n = features.shape
    block = block_size(size)
    coords = np.empty((size, block))
    shift, inverse, lower = np.empty(size), np.empty(size), np.empty((size * (size - 1)) // 2 + 1)
    constant = unpack(packed, lead + size + 1, lead, shift, inverse, lower)
    own = np.arange(size)
    for begin in range(0, n, block):
        end = min(begin + block, n)
        block_means(features, own, begin, end, coefficients, mean[begin:end])
        out = width[begin:end]
        block_quadratics(features, own, begin, end, shift, inverse, lower, constant, coords, out)
        for i in range(out.shape[0]):
            out[i] = math.sqrt(out[i])
