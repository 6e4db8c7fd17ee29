"""Compiled: how likely each of n candidates is the best, by lines through the posteriors of several components."""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import ieee

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # multiples of it, less whole numbers, are spread evenly


@ieee.leaf
def between(low: float, high: float) -> float:
    """Probability that a standard normal variable lies there, right to many digits in both tails."""
    if low > 0.0:
        return 0.5 * (math.erfc(low * math.sqrt(0.5)) - math.erfc(high * math.sqrt(0.5)))
    return 0.5 * (math.erfc(-high * math.sqrt(0.5)) - math.erfc(-low * math.sqrt(0.5)))


@ieee.leaf
def add_envelope(base: FloatArray, slope: FloatArray, share: float, out: FloatArray) -> None:
    """Add to `out` (n,) share x P(line i is the highest at s), for lines base + s slope and s ~ N(0, 1).

    Of equal lines the first is meant. Walks along the upper envelope from the left.
    """
    n = base.shape[0]
    current = 0
    for i in range(1, n):
        if slope[i] < slope[current] or (slope[i] == slope[current] and base[i] > base[current]):
            current = i
    low = -math.inf
    while True:
        following = -1
        high = math.inf
        for i in range(n):
            if slope[i] > slope[current]:
                crossing = (base[current] - base[i]) / (slope[i] - slope[current])
                if crossing < high or (crossing == high and following >= 0 and slope[i] > slope[following]):
                    high = crossing
                    following = i
        high = max(high, low)
        out[current] += share * between(low, high)
        if following < 0:
            return
        low = high
        current = following


@ieee.leaf
def rank_rivals(means: FloatArray, roots: FloatArray, scale: float, lead: int, out: FloatArray) -> float:
    """How often each candidate should be the rival, (n,), and the sum: (1 + z^2)^-2, z the gap over its deviation."""
    total = 0.0
    for i in range(means.shape[0]):
        square = 0.0
        for k in range(roots.shape[1]):
            square += (roots[i, k] - roots[lead, k]) ** 2
        out[i] = 0.0
        if square > 0.0:
            out[i] = (1.0 + (means[lead] - means[i]) ** 2 / (scale * scale * square)) ** -2
        total += out[i]
    return total


@ieee.leaf
def pick(weights: FloatArray, point: float) -> int:
    """Where the cumulative weights exceed a point; the last one, if nowhere."""
    for i in range(weights.shape[0]):
        point -= weights[i]
        if point < 0.0:
            return i
    return int(weights.shape[0] - 1)


@ieee.entry
def add_chances(
    means: FloatArray,
    roots: FloatArray,
    scales: FloatArray,
    counts: IntArray,
    first: int,
    normals: FloatArray,
    stretches: FloatArray,
    share: float,
    out: FloatArray,
) -> None:
    """Add share x counts[c] x P(candidate i is the best under component c) to `out` (n,), each from counts[c] lines.

    Component c has f = means[c] + scales[c] g roots[c] z with z ~ N(0, I) and g a draw from `stretches` (S,). A line
    has z = z' + s w, where w is the direction in which a rival differs most from the component's best mean, z' a
    row of `normals` (S, D) without its part along w, and s ~ N(0, 1), over which the highest line is integrated
    exactly. Rivals take turns, the close ones more often. Draws are used from number `first` on.
    """
    n, width = roots.shape[1], roots.shape[2]
    direction, rest = np.empty(width), np.empty(width)
    base, slope, closeness = np.empty(n), np.empty(n), np.empty(n)
    draw = first
    for c in range(counts.shape[0]):
        lead = 0
        for i in range(1, n):
            if means[c, i] > means[c, lead]:
                lead = i
        total = rank_rivals(means[c], roots[c], scales[c], lead, closeness)
        for _ in range(counts[c]):
            rival = pick(closeness, total * (draw * _GOLDEN % 1.0))
            square = 0.0
            along = 0.0
            for k in range(width):
                direction[k] = roots[c, rival, k] - roots[c, lead, k]
                square += direction[k] * direction[k]
                along += direction[k] * normals[draw, k]
            inverse = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
            along *= inverse
            for k in range(width):
                direction[k] *= inverse
                rest[k] = normals[draw, k] - along * direction[k]
            scale = scales[c] * stretches[draw]
            for i in range(n):
                still = 0.0
                moving = 0.0
                for k in range(width):
                    still += roots[c, i, k] * rest[k]
                    moving += roots[c, i, k] * direction[k]
                base[i] = means[c, i] + scale * still
                slope[i] = scale * moving
            add_envelope(base, slope, share, out)
            draw += 1
