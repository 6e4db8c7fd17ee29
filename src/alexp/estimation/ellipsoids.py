"""Optimism on a ball: the point whose reward is largest for some coefficients of a confidence ellipsoid.

max over ||x|| <= r of <x, m> + w ||x||_{V^-1} is r times max over ||u|| <= 1 of ||m + w V^(-1/2) u||: a convex
quadratic on a ball, whose maximum one eigendecomposition and the root of one increasing function give.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from alexp.common.arrays import FloatArray

_MOST_STEPS = 100  # of Newton's method, which takes a handful
_SAME = 1e-12  # by which directions that are equally uncertain may differ, relatively


def optimistic_point(
    mean: FloatArray, triangle: FloatArray, width: float, radius: float, towards: FloatArray
) -> FloatArray:
    """A maximiser of <x, mean> + width ||x||_{V^-1} over the ball of this radius, V = triangle' triangle; shape (d,).

    With V = Q diag(v) Q', a_i = width^2/v_i and g_i = width v_i^(-1/2) (Q' mean)_i, the best u has u_i = g_i/(l - a_i)
    where l >= max a solves sum_i u_i^2 = 1. Where g vanishes on the most uncertain directions there may be no root:
    then l = max a, and u takes what is missing to norm one in these directions. All of them are equally good; `towards`
    (d,), a vector in general position, says which.

    >>> optimistic_point(np.array([3.0, 0.0]), np.eye(2), 0.0, 2.0, np.ones(2)).tolist()
    [2.0, 0.0]
    """
    _, roots, axes = np.linalg.svd(triangle)  # roots of v, largest first; rows of `axes` are the directions
    if width == 0.0:
        return _on_sphere(mean, towards, radius)
    spread = width / roots
    own, squares = axes @ mean, spread**2
    slope, below = spread * own, squares[-1] - squares  # the last is the largest
    last = below <= _SAME * squares[-1]
    below[last] = 0.0
    rest = slope[~last] / below[~last]
    if not np.any(slope[last]) and rest @ rest < 1.0:
        u = np.zeros_like(slope)
        u[~last] = rest
        u[last] = _on_sphere(axes[last] @ towards, np.ones(int(last.sum())), float(np.sqrt(1.0 - rest @ rest)))
    else:
        u = slope / (_excess(slope, below) + below)
    return _on_sphere((own + spread * u) @ axes, towards, radius)


def _excess(slope: FloatArray, below: FloatArray) -> float:
    """e > 0 with sum_i (slope_i / (e + below_i))^2 = 1, where below >= 0.

    Newton's method on one over the root of that sum, which is concave: steps from the left never pass the root.
    """
    kept = slope != 0.0
    slope, below = slope[kept], below[kept]
    e = float(np.linalg.norm(slope[below == 0.0]))
    for _ in range(_MOST_STEPS):
        u = slope / (e + below)
        squares = float(u @ u)
        step = (sqrt(squares) - 1.0) * squares / float(u @ (u / (e + below)))
        if not e + step > e:
            break
        e += step
    return e


def _on_sphere(direction: FloatArray, otherwise: FloatArray, radius: float) -> FloatArray:
    """The point of the sphere in this direction; in another one, where it is zero."""
    norm = float(np.linalg.norm(direction))
    if norm == 0.0:
        direction, norm = otherwise, float(np.linalg.norm(otherwise))
    return np.asarray(radius * (direction / norm))
