"""Who violates: passes over all groups, and the arithmetic of the class of all subsets of one size.

Groups come in two forms. Explicit groups are CSR arrays (columns, offsets). The class of all size-s subsets of P
columns has no arrays: group j is the j-th subset in lexicographic order, and since the largest ||g_S|| over it is
the norm of the s largest |g_i|, no pass ever touches its C(P, s) members.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from alexp.estimation._lasso_linalg import floats, integers, kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Groups(NamedTuple):
    """All groups of the problem, as plain arrays."""

    columns: IntArray  # (nnz,), or (0,) for the class of all subsets
    offsets: IntArray  # (M + 1,), or (0,)
    weights: FloatArray  # (M,), or (1,) for the class of all subsets
    binomial: IntArray  # (P + 1, s + 1) with C(n, k), or (0, s)
    size: int  # s for the class of all subsets, else 0


def binomial_table(n: int, size: int) -> IntArray:
    """Return C(i, k) for i <= n, k <= size as int64, shape (n + 1, size + 1)."""
    if math.comb(n, size) > np.iinfo(np.int64).max:
        raise ValueError(f"subset_size={size} of n_columns={n} gives more than 2**63 groups; use a smaller size")
    return np.array([[min(math.comb(i, k), 2**63 - 1) for k in range(size + 1)] for i in range(n + 1)], dtype=np.int64)


@kernel
def rank_subset(subset: IntArray, binomial: IntArray, size: int) -> int:
    """Return the lexicographic index of an increasing subset of range(n)."""
    n = binomial.shape[0] - 1
    after = 0
    for i in range(size):
        after += binomial[n - 1 - subset[i], size - i]
    return binomial[n, size] - 1 - after


@njit(cache=True, nogil=True, error_model="numpy")
def unrank_subset(rank: int, binomial: IntArray, size: int, subset: IntArray) -> None:
    """Write the subset with this lexicographic index into ``subset`` (s,)."""
    n = binomial.shape[0] - 1
    left = binomial[n, size] - 1 - rank
    column = 0
    for i in range(size):
        while binomial[n - 1 - column, size - i] > left:
            column += 1
        subset[i] = column
        left -= binomial[n - 1 - column, size - i]
        column += 1


@kernel
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


@kernel
def contains(values: IntArray, count: int, value: int) -> bool:
    """Whether value is among values[:count]."""
    for i in range(count):  # noqa: SIM110 (generators do not compile)
        if values[i] == value:
            return True
    return False


@kernel
def exchange(order: IntArray, size: int, out: int, runner: int, subset: IntArray) -> None:
    """Write the first ``size`` entries of ``order``, the one at ``out`` replaced by that at ``runner``, increasing."""
    for i in range(size):
        value = order[runner] if i == out else order[i]
        place = i
        while place > 0 and subset[place - 1] > value:
            subset[place] = subset[place - 1]
            place -= 1
        subset[place] = value


@kernel
def worst_explicit(
    g: FloatArray, groups: Groups, limit: float, taken: IntArray, n_taken: int, worst: FloatArray, which: IntArray
) -> tuple[float, int]:
    """Return max_j ||g_{S_j}||^2 / w_j^2 and collect the worst groups above ``limit`` outside ``taken``."""
    top = 0.0
    found = 0
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


@kernel
def worst_subsets(
    g: FloatArray, groups: Groups, limit: float, taken: IntArray, n_taken: int, worst: FloatArray, which: IntArray
) -> tuple[float, int]:
    """The same for all subsets: the s largest |g_i|, and the exchanges of one of them for a runner-up."""
    size = groups.size
    scale = 1.0 / (groups.weights[0] * groups.weights[0])
    listed = min(g.size, size + worst.size)
    square = floats(listed)
    order = integers(listed)
    count = 0
    for i in range(g.size):
        count = keep_worst(g[i] * g[i], i, square, order, count)
    top = 0.0
    for i in range(size):
        top += square[i]
    found = 0
    subset = integers(size)
    for out in range(size - 1, -1, -1):
        for runner in range(size - 1 if out == size - 1 else size, listed):
            total = (top - square[out] + square[runner]) * scale
            if total <= limit or (found == worst.size and total <= worst[found - 1]):
                break
            exchange(order, size, out, runner, subset)
            rank = rank_subset(subset, groups.binomial, size)
            if not contains(taken, n_taken, rank):
                found = keep_worst(total, rank, worst, which, found)
    return top * scale, found


@kernel
def worst_groups(
    g: FloatArray, groups: Groups, limit: float, taken: IntArray, n_taken: int, worst: FloatArray, which: IntArray
) -> tuple[float, int]:
    """Dispatch on the form of the groups; see :func:`worst_explicit`."""
    if groups.size > 0:
        return worst_subsets(g, groups, limit, taken, n_taken, worst, which)
    return worst_explicit(g, groups, limit, taken, n_taken, worst, which)
