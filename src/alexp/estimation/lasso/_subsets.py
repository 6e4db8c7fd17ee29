"""The class of all size-s subsets of P columns: ranks, and the decomposition of d into subsets.

Over all subsets the eta_j act only through d_i = sum of eta_j over the subsets with column i and tau = sum of all
eta_j, and exactly the d with 0 <= d_i <= tau and sum_i d_i <= s tau can be reached (a cone over the hypersimplex;
the penalty is the k-support norm of Argyriou, Foygel and Srebro 2012). The problem thus has P variables, not C(P, s).
"""

from __future__ import annotations

import math

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._linalg import ZERO, floats, integers


def binomial_table(n: int, size: int) -> IntArray:
    """Return C(i, k) for i <= n, k <= size as int64, shape (n + 1, size + 1)."""
    if math.comb(n, size) >= 2**63:
        raise ValueError(f"subset_size={size} of n_columns={n} gives more than 2**63 groups; use a smaller size")
    return np.array([[min(math.comb(i, k), 2**63 - 1) for k in range(size + 1)] for i in range(n + 1)], dtype=np.int64)


@compact.leaf
def rank_subset(subset: IntArray, binomial: IntArray, size: int) -> int:
    """Return the lexicographic index of an increasing subset of range(n)."""
    n = binomial.shape[0] - 1
    rank = binomial[n, size] - 1
    for i in range(size):
        rank -= binomial[n - 1 - subset[i], size - i]
    return int(rank)


@compact.leaf
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


@compact.entry
def subset_of(rank: int, binomial: IntArray, size: int, subset: IntArray) -> None:
    """``unrank_subset`` for Python."""
    unrank_subset(rank, binomial, size, subset)


@compact.kernel
def spread(
    groups: IntArray,
    eta: FloatArray,
    scale: float,
    binomial: IntArray,
    d: FloatArray,
    which: IntArray,
    values: FloatArray,
) -> int:
    """Write d (P,) for these subsets; list the columns with d > 0 and their d; return how many."""
    size = binomial.shape[1] - 1
    subset = integers(size)
    for i in range(d.size):
        d[i] = 0.0
    for a in range(groups.size):
        unrank_subset(groups[a], binomial, size, subset)
        for i in subset:
            d[i] += scale * eta[a]
    count = ZERO
    for i in range(d.size):
        if d[i] > 0.0:
            which[count] = i
            values[count] = d[i]
            count += 1
    return count


@compact.leaf
def least_total(d: FloatArray, count: int, size: int) -> float:
    """Return tau = max(max_i d_i, sum_i d_i / s), the least sum of eta with this d."""
    largest = 0.0
    total = 0.0
    for i in range(count):
        largest = max(largest, d[i])
        total += d[i]
    return max(largest, total / size)


@compact.leaf
def fill_up(d: FloatArray, count: int, tau: float, size: int) -> None:
    """Raise entries of d[:count] up to tau, those in use first, until they sum to s tau (or all are at tau)."""
    missing = size * tau
    for i in range(count):
        missing -= d[i]
    for turn in range(2):
        for i in range(count):
            if missing > 1e-13 * tau and (d[i] > 0.0 or turn == 1):
                more = min(missing, tau - d[i])
                d[i] += more
                missing -= more


@compact.kernel
def decompose(d: FloatArray, tau: float, binomial: IntArray) -> tuple[IntArray, FloatArray]:
    """Return subsets, in increasing order, and eta > 0 that add up to d and tau (systematic sampling).

    Lay intervals of length d_i end to end; the subset at u in [0, tau) holds the columns found at u, u + tau, ...
    It changes only where an interval ends, so there are at most as many subsets as columns.
    """
    size = binomial.shape[1] - 1
    n = d.size
    ends = floats(n)
    cuts = floats(n + 1)
    reached = 0.0
    count = ZERO
    for i in range(n):
        reached += d[i]
        ends[i] = reached
        if d[i] > 0.0:
            cut = reached - tau * math.floor(reached / tau)
            place = count
            while place > 0 and cuts[place - 1] > cut:
                cuts[place] = cuts[place - 1]
                place -= 1
            cuts[place] = cut
            count += 1
    cuts[count] = tau
    ids = integers(count + 1)
    eta = floats(count + 1)
    subset = integers(size)
    found = ZERO
    before = 0.0
    for a in range(count + 1):
        width = cuts[a] - before
        if width > 1e-15 * tau:
            column = 0
            for i in range(size):
                u = before + 0.5 * width + i * tau
                while column < n - 1 and (ends[column] <= u or d[column] == 0.0):
                    column += 1
                subset[i] = min(column, n - size + i)
                column += 1
            found = insert(ids, eta, found, rank_subset(subset, binomial, size), width)
            before = cuts[a]
    return ids[:found], eta[:found]


@compact.leaf
def insert(ids: IntArray, eta: FloatArray, count: int, new: int, value: float) -> int:
    """Add ``value`` to the eta of a group in a list kept in increasing order; return the length of the list."""
    place = count
    while place > 0 and ids[place - 1] > new:
        place -= 1
    if place > 0 and ids[place - 1] == new:
        eta[place - 1] += value
        return count
    for i in range(count, place, -1):
        ids[i] = ids[i - 1]
        eta[i] = eta[i - 1]
    ids[place] = new
    eta[place] = value
    return count + 1
