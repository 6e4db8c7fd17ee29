"""Compiled kernels on some members of a bank of packed R-factors; see `_kernels` for their layout."""

from __future__ import annotations

import math

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked
from alexp.estimation.ridge._kernels import absorb, posterior_means


@checked.entry
def absorb_members(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    rows: FloatArray,
    rewards: FloatArray,
    members: IntArray,
    seen: IntArray,
    last: int,
) -> None:
    """Absorb observations seen_k..last-1 (rows (T, P), rewards (T,)) into model members_k, in order."""
    for k in range(members.shape[0]):
        for t in range(seen[k], last):
            absorb(factor, starts, columns, offsets, lead, rows[t], rewards[t], members[k], members[k] + 1)


@checked.entry
def member_determinants(
    factor: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    ridge: FloatArray,
    members: IntArray,
    out: FloatArray,
) -> None:
    """2 sum_i log(R_ii / ridge_j) over the feature coordinates of some models, shape (K,)."""
    for k in range(members.shape[0]):
        j = members[k]
        rows = lead + offsets[j + 1] - offsets[j] + 1
        position = starts[j]
        total = 0.0
        for i in range(rows - 1):
            if i >= lead:
                total += math.log(factor[position] / ridge[j])
            position += rows - i
        out[k] = 2.0 * total


@checked.entry
def member_means(
    factor: FloatArray,
    starts: IntArray,
    offsets: IntArray,
    lead: int,
    members: IntArray,
    coefficients: FloatArray,
    intercepts: FloatArray,
) -> None:
    """Fill the entries of some models in coefficients (nnz,) and intercepts (M,)."""
    for k in range(members.shape[0]):
        posterior_means(factor, starts, offsets, lead, members[k], members[k] + 1, coefficients, intercepts)
