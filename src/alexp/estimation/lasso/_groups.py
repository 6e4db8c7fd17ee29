"""The pass over all explicit groups: who violates most."""

from __future__ import annotations

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import ZERO, floats
from alexp.estimation.lasso._working import Groups


@compact.leaf
def keep_worst(value: float, group: int, worst: FloatArray, which: IntArray, found: int) -> int:
    """Insert a group into the list of the worst ones, decreasing in value; return how many the list holds."""
    room = worst.size
    if found == room:
        if value <= worst[room - 1]:
            return found
        found -= 1
    place = found
    while place > 0 and worst[place - 1] < value:
        worst[place] = worst[place - 1]
        which[place] = which[place - 1]
        place -= 1
    worst[place] = value
    which[place] = group
    return found + 1


@compact.kernel
def contains(values: IntArray, count: int, value: int) -> bool:
    """Whether value is among values[:count]."""
    for i in range(count):  # noqa: SIM110 (generators do not compile)
        if values[i] == value:
            return True
    return False


@compact.kernel
def worst_groups(
    g: FloatArray, groups: Groups, limit: float, taken: IntArray, n_taken: int, worst: FloatArray, which: IntArray
) -> tuple[float, int]:
    """Return max_j ||g_{S_j}||^2 / w_j^2 and collect the worst groups above ``limit`` outside ``taken``."""
    top = 0.0
    found = ZERO
    columns = groups.columns
    square = floats(g.size)
    for i in range(g.size):
        square[i] = g[i] * g[i]
    for j in range(groups.weights.size):
        total = 0.0
        for e in range(groups.offsets[j], groups.offsets[j + 1]):
            total += square[columns[e]]
        total /= groups.weights[j] * groups.weights[j]
        if total > top:
            top = total
        better = total > limit and (found < worst.size or total > worst[found - 1])
        if better and not contains(taken, n_taken, j):
            found = keep_worst(total, j, worst, which, found)
    return top, found
