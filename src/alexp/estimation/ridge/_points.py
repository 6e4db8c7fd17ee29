"""Many models at a few points: mean, width and draw of every model by one forward substitution in its packed factor.

With R the factor of [1? | Phi_j], z = Q'y its last column and u = R^-T (1?, phi), the posterior mean at phi is u'z, the
quadratic form ||phi||^2_{V_j^-1} is u'u, and a draw of covariance V_j^-1 adds u'n for standard normals n. Rows of R lie
one after the other, and so does what a row takes from the coordinates that are still to come: the loop vectorises
within a model, while the sweeps over candidates vectorise across these.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked
from alexp.estimation.ridge._blocks import ZERO


@checked.leaf
def _substitute(packed: FloatArray, moving: FloatArray) -> float:
    """Turn moving (rows,) from (1?, phi, 0) into (u, -u'z), in place; returns u'u.

    Four rows of R at a time, so that what is still to come is loaded and stored a quarter as often. A pivot is zero
    only where a constant, the first column, has seen no reward: its row is zero, and its coordinate is left out.
    """
    rows = moving.shape[0]
    k, first = ZERO, ZERO
    total = 0.0
    while k + 4 < rows:
        second = first + rows - k
        third = second + rows - k - 1
        fourth = third + rows - k - 2
        v0 = 1.0 / packed[first] if packed[first] != 0.0 else 0.0
        v1, v2, v3 = 1.0 / packed[second], 1.0 / packed[third], 1.0 / packed[fourth]  # none waits for another
        u0 = moving[k] * v0
        u1 = (moving[k + 1] - u0 * packed[first + 1]) * v1
        u2 = ((moving[k + 2] - u0 * packed[first + 2]) - u1 * packed[second + 1]) * v2
        u3 = ((moving[k + 3] - u0 * packed[first + 3]) - u1 * packed[second + 2]) - u2 * packed[third + 1]
        u3 = u3 * v3
        moving[k], moving[k + 1], moving[k + 2], moving[k + 3] = u0, u1, u2, u3
        total += (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3)
        rest = moving[k + 4 : rows]
        n = rest.shape[0]
        r0, r1 = packed[first + 4 : first + 4 + n], packed[second + 3 : second + 3 + n]
        r2, r3 = packed[third + 2 : third + 2 + n], packed[fourth + 1 : fourth + 1 + n]
        for i in range(n):
            rest[i] = (((rest[i] - u0 * r0[i]) - u1 * r1[i]) - u2 * r2[i]) - u3 * r3[i]
        first = fourth + rows - k - 3
        k += 4
    while k < rows - 1:
        u = moving[k] / packed[first] if packed[first] != 0.0 else 0.0
        moving[k] = u
        total += u * u
        for i in range(k + 1, rows):
            moving[i] -= u * packed[first + i - k]
        first += rows - k
        k += 1
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
    `unknown` is the coordinate of a constant that has seen no reward.
    """
    widest = 0
    for k in range(members.shape[0]):
        widest = max(widest, offsets[members[k] + 1] - offsets[members[k]])
    scratch = np.empty(lead + widest + 1)
    for k in range(members.shape[0]):
        j = members[k]
        own, packed = columns[offsets[j] : offsets[j + 1]], factor[starts[j] : starts[j + 1]]
        absent = lead == 1 and packed[0] == 0.0
        rows = lead + own.shape[0] + 1
        moving = scratch[:rows]
        for i in range(points.shape[0]):
            moving[0] = 1.0
            for c in range(own.shape[0]):
                moving[lead + c] = points[i, own[c]]
            moving[rows - 1] = 0.0
            quadratic[k, i] = _substitute(packed, moving)
            mean[k, i] = 0.0 - moving[rows - 1]  # no negative zeros
            if absent:
                moving[0] = unknown
                quadratic[k, i] += unknown * unknown
            if normals.shape[0] > 0:
                total = 0.0
                for c in range(rows - 1):
                    total += moving[c] * normals[k, c]
                noise[k, i] = total
