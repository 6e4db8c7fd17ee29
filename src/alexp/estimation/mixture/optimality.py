"""How likely each choice is the best one under a mixture: the propensities of exact probability matching.

    P(x is best) = sum_c w_c P_c(f(x) >= f(x') for all x'),

summed over components c = (cell, model) and integrated over their functions. Components are drawn in proportion to
their weights, evenly spaced so that a component's share is right to one line in all; each has lines through its
posterior along which the highest candidate is integrated exactly (`_lines`). With two candidates and known noise a
component's probability is exact, whatever the line; small probabilities are small numbers instead of zeros.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.mixture._lines import add_chances
from alexp.estimation.posteriors import PosteriorGrid
from alexp.problem.candidates import Choices

LINES = 512  # of a round; docs/contextual/logging.md has what that is worth
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
) -> FloatArray:
    """Probability of each choice to be the best, shape (n,), from S lines.

    ``weights`` and noise ``deviations`` (cells, M); ``normals`` (S, D) for models of at most D coefficients;
    ``stretches`` (S,) multiply the deviations; ``offset`` in 0..1 is where the evenly spaced components begin.
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
            number, scales = row[some], deviations[cell, some]
            add_chances(means, roots, scales, number, first, normals, stretches, 1.0 / n_lines, out)
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
    return np.sort(np.argsort(-upper, kind="stable")[:MOST])
