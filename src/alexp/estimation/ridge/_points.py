"""Many models at a few points: mean, width and draw of every model by one forward substitution in its packed factor.

With R the factor of [1? | Phi_j], z = Q'y its last column and u = R^-T (1?, phi), the posterior mean at phi is u'z, the
quadratic form ||phi||^2_{V_j^-1} is u'u, and a draw of covariance V_j^-1 adds u'n for standard normals n. Rows of R lie
one after the other, and so does what a row takes from the coordinates that are still to come: the loop vectorises within
a model, while the sweeps over candidates vectorise across these.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked


@checked.leaf
def _substitute(packed: FloatArray, moving: FloatArray, unknown: float) -> float:
    """Turn moving (rows,) from (1?, phi, 0) into (u, -u'z), in place; returns u'u.

    A pivot is zero only where a constant has seen no reward: its coordinate is `unknown`, and its row is zero.
    """
    rows = moving.shape[0]
    position = 0
    total = 0.0
    for k in range(rows - 1):
        pivot = packed[position]
        u = moving[k] / pivot if pivot != 0.0 else unknown
        moving[k] = u
        total += u * u
        kept = packed[position + 1 : position + rows - k]
        rest = moving[k + 1 : rows]
        for i in range(kept.shape[0]):
            rest[i] -= u * kept[i]
        position += rows - k
    return total


@checked.entry
def values_at(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    members: IntArray,
    points: FloatArray,
    unknown: float,
    normals: FloatArray,
    mean: FloatArray,
    quadratic: FloatArray,
    noise: FloatArray,
) -> None:
    """Fill mean, quadratic (K, n) and noise of models `members` (K,) at dictionary rows `points` (n, P).

    `normals` (K, widest) holds those of each member first; noise (K, n) = u'n is filled unless `normals` is empty.
    """
    widest = 0
    for k in range(members.shape[0]):
        widest = max(widest, offsets[members[k] + 1] - offsets[members[k]])
    scratch = np.empty(lead + widest + 1)
    for k in range(members.shape[0]):
        j = members[k]
        own = columns[offsets[j] : offsets[j + 1]]
        rows = lead + own.shape[0] + 1
        moving = scratch[:rows]
        for i in range(points.shape[0]):
            moving[0] = 1.0
            for c in range(own.shape[0]):
                moving[lead + c] = points[i, own[c]]
            moving[rows - 1] = 0.0
            quadratic[k, i] = _substitute(factor[starts[j] : starts[j + 1]], moving, unknown)
            mean[k, i] = -moving[rows - 1]
            if normals.shape[0] > 0:
                total = 0.0
                for c in range(rows - 1):
                    total += moving[c] * normals[k, c]
                noise[k, i] = total
