"""Hypervolume: how much of the space of objectives a set of points dominates, and how much a further one would add.

All objectives are to be maximised. A point dominates all points that are at most as large in every objective. The
hypervolume of a set is the volume of what it dominates above a reference point, exact for any number of objectives, and
fast for two and three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray


class Boxes(NamedTuple):
    """Disjoint boxes, lower and upper corners (B, K); upper ends may be infinite."""

    lower: FloatArray
    upper: FloatArray


def non_dominated(points: FloatArray) -> BoolArray:
    """Which of m points (m, K) no other point dominates, (m,); of equal ones all.

    >>> non_dominated(np.array([[2.0, 1.0], [1.0, 2.0], [1.0, 1.0]])).tolist()
    [True, True, False]
    """
    at_least = (points[:, None, :] >= points[None, :, :]).all(axis=2)
    larger = (points[:, None, :] > points[None, :, :]).any(axis=2)
    return np.asarray(~(at_least & larger).any(axis=0))


def hypervolume(points: FloatArray, reference: FloatArray) -> float:
    """Volume of what m points (m, K) dominate above the reference point (K,).

    >>> hypervolume(np.array([[2.0, 1.0], [1.0, 2.0]]), np.zeros(2))
    3.0
    """
    above = points[(points > reference).all(axis=1)]
    if not above.size:
        return 0.0
    if reference.size == 1:
        return float(above.max() - reference[0])
    ends = np.concatenate([reference[-1:], np.unique(above[:, -1])])
    slices = (hypervolume(above[above[:, -1] >= end, :-1], reference[:-1]) for end in ends[1:])
    return float(sum(thickness * area for thickness, area in zip(np.diff(ends), slices, strict=True)))


def free_boxes(points: FloatArray, reference: FloatArray) -> Boxes:
    """What lies above the reference point (K,) and is dominated by none of m points (m, K), as disjoint boxes."""
    lower, upper = _free(points[(points > reference).all(axis=1)], reference)
    return Boxes(np.array(lower), np.array(upper))


def _free(points: FloatArray, reference: FloatArray) -> tuple[list[list[float]], list[list[float]]]:
    """Slices along the last objective: within one, the points that reach through it leave boxes of the others."""
    if reference.size == 1:
        return [[float(points.max(initial=float(reference[0])))]], [[np.inf]]
    ends = [float(reference[-1]), *np.unique(points[:, -1]).tolist(), np.inf]
    lower, upper = list[list[float]](), list[list[float]]()
    for low, high in pairwise(ends):
        inner = _free(points[points[:, -1] >= high, :-1], reference[:-1])
        lower += [[*corner, low] for corner in inner[0]]
        upper += [[*corner, high] for corner in inner[1]]
    return lower, upper


def expected_improvement(boxes: Boxes, excesses: Sequence[Callable[[FloatArray], FloatArray]]) -> FloatArray:
    """Expected growth of the hypervolume by a point of n choices, (n,), if its K objectives are independent.

    A point y adds, in every free box (l, u), the product over objectives of (min(y, u) - l)+. The expectation of a
    product of independent factors is the product of theirs, and E(min(y, u) - l)+ = E(y - l)+ - E(y - u)+: nothing is
    drawn. `excesses` has a function per objective that gives E(y - level)+ of every choice at L levels, (L, n).
    """
    gains: FloatArray | None = None
    for k, excess in enumerate(excesses):
        levels = np.unique(np.concatenate([boxes.lower[:, k], boxes.upper[:, k]]))
        finite = levels[np.isfinite(levels)]
        known = excess(finite)
        known = np.vstack([known, np.zeros((1, known.shape[1]))])  # nothing exceeds infinity
        low, high = np.searchsorted(finite, boxes.lower[:, k]), np.searchsorted(finite, boxes.upper[:, k])
        sides = np.maximum(known[low] - known[high], 0.0)
        gains = sides if gains is None else gains * sides
    assert gains is not None
    return np.asarray(gains.sum(axis=0))


def reference_point(values: FloatArray) -> FloatArray:
    """The reference point of measured values (m, K): the worst of every objective less a tenth of its range.

    Where all values of an objective are equal, a tenth of their size takes the place of the range, and one where they
    are zero.
    """
    worst, span = values.min(axis=0), np.ptp(values, axis=0)
    size = np.where(worst == 0.0, 1.0, 0.1 * np.abs(worst))
    return np.asarray(worst - np.where(span > 0.0, 0.1 * span, size))
