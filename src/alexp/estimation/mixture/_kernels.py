"""Compiled kernel of expected excesses: what a component expects above each of many levels."""

from __future__ import annotations

import math

from alexp.common.arrays import FloatArray
from alexp.common.compiling import ieee


@ieee.entry
def add_excesses(
    out: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    share: float,
    levels: FloatArray,
    near: float,
    logarithms: FloatArray,
    far: float,
    far_logarithms: FloatArray,
) -> None:
    """out (L, n) += share E[max(mean + std T - level, 0)] for a standard variable T.

    log E[max(z + T, 0)] is tabulated at even points of z up to `near` in size, and of arcsinh(z) up to `far`.
    """
    steps, far_steps = logarithms.size - 1, far_logarithms.size - 1
    slope, far_slope = steps / (2.0 * near), far_steps / (2.0 * far)
    reach = math.sinh(far)
    for i in range(mean.size):
        for k in range(levels.size):
            above = mean[i] - levels[k]
            z = above / std[i]
            if abs(z) < near:
                place = slope * (z + near)
                left = int(place)
                low = logarithms[left]
                rise = logarithms[left + 1] - low
            else:
                place = far_slope * (math.asinh(min(max(z, -reach), reach)) + far)
                left = min(int(place), far_steps - 1)
                low = far_logarithms[left]
                rise = far_logarithms[left + 1] - low
            out[k, i] += share * max(std[i] * math.exp(low + (place - left) * rise), above)
