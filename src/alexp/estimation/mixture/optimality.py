"""How likely each choice is the best one under a mixture: the propensities of exact probability matching, compiled.

    P(x is best) = sum_c w_c P_c(f(x) >= f(x') for all x'),

summed over components c = (cell, model) and integrated over their functions. Components are drawn in proportion to
their weights, evenly spaced so that a component's share is right to one line in all; each has lines through its
posterior along which the highest candidate is integrated exactly (`add_chances`). With two candidates and known noise a
component's probability is exact, whatever the line; small probabilities are small numbers instead of zeros.
"""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import ieee
from alexp.common.ties import first_best_of, first_few, rules
from alexp.estimation.posteriors import PosteriorGrid
from alexp.problem.candidates import Choices

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
    tie: float,
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
        lead = first_best_of(means[c], tie)
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


LINES = 512  # of a round; docs/clicks.md has what that is worth
MOST = 200  # choices that can be the best; those with the largest mean + 2 std
DRAWS = 64  # where posteriors are no ridge regressions, and draws stand in for lines
_CHUNK = 1_000_000  # numbers in the square roots of covariances that are in memory at once


def by_lines(
    grid: PosteriorGrid,
    weights: FloatArray,
    deviations: FloatArray,
    choices: Choices,
    normals: FloatArray,
    stretches: FloatArray,
    offset: float,
    price: FloatArray | None = None,
) -> FloatArray:
    """Probability of each choice to be the best, shape (n,), from S lines.

    ``weights`` and noise ``deviations`` (cells, M); ``normals`` (S, D) for models of at most D coefficients;
    ``stretches`` (S,) multiply the deviations; ``offset`` in 0..1 is where the evenly spaced components begin;
    ``price`` (n,) is taken off the rewards.
    """
    n_lines, n = len(stretches), len(choices)
    counts = evenly(weights.ravel(), n_lines, offset).reshape(weights.shape)
    out, first = np.zeros(n), 0
    step = max(_CHUNK // (n * normals.shape[1] + 1), 1)
    for cell, row in enumerate(counts):
        members = np.flatnonzero(row)
        for start in range(0, members.size, step):
            some = members[start : start + step]
            means, roots = grid.roots(cell, some, choices)
            means = means if price is None else means - price
            number, scales = row[some], deviations[cell, some]
            add_chances(means, roots, scales, number, first, normals, stretches, 1.0 / n_lines, rules.tie, out)
            first += int(number.sum())
    return np.asarray(out / out.sum())


def evenly(weights: FloatArray, n: int, offset: float) -> IntArray:
    """How many of n evenly spaced points fall to each of some weights (K,), int (K,)."""
    ends = np.cumsum(weights)
    points = (np.arange(n) + offset) * (ends[-1] / n)
    places = np.minimum(np.searchsorted(ends, points, side="right"), weights.size - 1)
    return np.bincount(places, minlength=weights.size).astype(np.int64)


def promising(mean: FloatArray, variance: FloatArray) -> IntArray:
    """Positions, in increasing order, of the choices that may be the best: at most `MOST`."""
    upper = mean + 2.0 * np.sqrt(variance)
    return first_few(upper, MOST)
