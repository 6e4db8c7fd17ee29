"""Means and square roots of covariances at a few candidates, for joint draws of several models."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked
from alexp.estimation.ridge._kernels import model_coefficients


@checked.entry
def covariance_roots(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    members: IntArray,
    table: FloatArray,
    means: FloatArray,
    roots: FloatArray,
) -> None:
    """Fill means (m, n) and roots (m, n, D) of some models at candidates (P, n); the intercept is left out.

    Row i of roots[k] is R^-T phi(x_i), padded with zeros, so that roots[k] roots[k]' = Phi V^-1 Phi'.
    """
    n = table.shape[1]
    theta = np.empty(roots.shape[2])
    for place in range(members.shape[0]):
        j = members[place]
        packed = factor[starts[j] : starts[j + 1]]
        own = columns[offsets[j] : offsets[j + 1]]
        size = own.shape[0]
        rows = lead + size + 1
        model_coefficients(packed, rows, lead, theta[:size])
        for i in range(n):
            root = roots[place, i]
            mean = 0.0
            for k in range(size):
                root[k] = table[own[k], i]
                mean += theta[k] * root[k]
            means[place, i] = mean
            for k in range(size, root.shape[0]):
                root[k] = 0.0
            position = lead * rows  # R'u = phi by rows of R: what is known of u leaves the later equations
            for k in range(size):
                root[k] /= packed[position]
                for m in range(1, size - k):
                    root[k + m] -= root[k] * packed[position + m]
                position += rows - lead - k
