"""E-optimal designs by semidefinite programming, with a certificate that does not trust the solver.

maximise over designs pi:  min_j lambda_min( S_j(pi) ),   S_j(pi) = sum_i pi_i f_ij f_ij' / scale_j^2,

where block j keeps the columns of group j. One block with all columns is the paper's C_min; one block per model is
the model-wise quantity. The dual is the minimum over Z_j >= 0 with sum_j tr Z_j = 1 of
max_i sum_j f_ij' Z_j f_ij / scale_j^2, so every pair (pi, Z) brackets the optimum.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.first_order import lowest_eigenvalues, spread_rows, trivial_bound

_ALL_CANDIDATES = 300  # up to here every candidate goes into the first problem
_ALL_ENTRIES = 600  # and up to this many matrix entries (sum of d_j^2) every block
_MOST_ROUNDS = 60  # of cutting planes
_LARGEST_BLOCK = 300  # a dense semidefinite cone beyond this takes minutes and gigabytes


@dataclass(frozen=True)
class EOptimalSolution:
    """Weights (N,), the value they attain, and a certified upper bound on what any weights can attain."""

    weights: FloatArray
    value: float
    upper_bound: float
    rounds: int


def e_optimal(
    features: FloatArray,
    groups: Sequence[IntArray] | None = None,
    scales: FloatArray | None = None,
    tol: float = 1e-6,
) -> EOptimalSolution:
    """Solve the problem at the top of this file on feature rows (N, P).

    Cutting planes on both sides: a semidefinite program over few candidates and few blocks, then the candidates
    where the dual is violated and the blocks that fall below the value are added, until the bracket is closed to
    ``tol`` times the smallest `trivial_bound` of any block.

    Parameters
    ----------
    features : candidate features (N, P).
    groups : column indices of each block; all columns in one block if None.
    scales : what block j is divided by, shape (M,); ones if None.
    tol : relative width of the final bracket.
    """
    columns = [np.arange(features.shape[1])] if groups is None else [np.asarray(g, dtype=np.int64) for g in groups]
    divisors = np.ones(len(columns)) if scales is None else np.asarray(scales, dtype=np.float64)
    largest = max(group.size for group in columns)
    if largest > _LARGEST_BLOCK:
        raise ValueError(
            f"EOptimal handles up to {_LARGEST_BLOCK} columns in one block, got {largest}; use "
            "EOptimal(model_wise=True), DOptimal() or Uniform()"
        )
    unit = min(trivial_bound(features[:, g]) / s**2 for g, s in zip(columns, divisors, strict=True))
    uniform = np.full(features.shape[0], 1.0 / features.shape[0])
    if unit == 0.0:
        return EOptimalSolution(uniform, 0.0, 0.0, 0)
    divisors = divisors * np.sqrt(unit)  # from here on every value lies in [0, 1]
    best = EOptimalSolution(uniform, float(block_eigenvalues(features, uniform, columns, divisors).min()), 1.0, 0)
    rows, blocks = _first_candidates(features), _first_blocks(features, uniform, columns, divisors)
    for number in range(1, _MOST_ROUNDS + 1):
        weights, duals = _solve_restricted(features, rows, [(columns[j], divisors[j]) for j in blocks])
        values = block_eigenvalues(features, weights, columns, divisors)
        dual = dual_profile(features, duals, [columns[j] for j in blocks], divisors[blocks])
        if values.min() > best.value:
            best = EOptimalSolution(weights, float(values.min()), best.upper_bound, number)
        best = EOptimalSolution(best.weights, best.value, min(best.upper_bound, float(dual.max())), number)
        more_rows = _violated(-dual, rows, -best.value - 0.1 * tol, 2 * largest + 10)
        more_blocks = _violated(values, blocks, float(values[blocks].min()) - 0.1 * tol, 16)
        if best.upper_bound - best.value <= tol or more_rows.size + more_blocks.size == 0:
            break
        rows, blocks = np.union1d(rows, more_rows), np.union1d(blocks, more_blocks)
    return EOptimalSolution(best.weights, best.value * unit, best.upper_bound * unit, best.rounds)


def block_eigenvalues(
    features: FloatArray, weights: FloatArray, columns: Sequence[IntArray], divisors: FloatArray
) -> FloatArray:
    """lambda_min(S_j(pi)) of every block, not below zero, shape (M,); blocks of one size are done together."""
    support = np.flatnonzero(weights > 0.0)
    rows, mass = features[support], weights[support]
    sizes = np.array([group.size for group in columns])
    out = np.empty(len(columns))
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        for chunk in np.array_split(members, 1 + members.size * support.size * int(size) // 2_000_000):
            picked = rows[:, np.stack([columns[j] for j in chunk])].transpose(1, 0, 2)
            moments = picked.transpose(0, 2, 1) @ (mass[None, :, None] * picked)
            out[chunk] = lowest_eigenvalues(moments) / divisors[chunk] ** 2
    return out


def dual_profile(
    features: FloatArray, duals: Sequence[FloatArray], columns: Sequence[IntArray], divisors: FloatArray
) -> FloatArray:
    """sum_j f_ij' Z_j f_ij / scale_j^2 of every candidate, shape (N,), once the Z_j are made feasible.

    Feasible means symmetric, positive semi-definite and of total trace one; the solver only promises nearly so.
    """
    fixed, total = [], 0.0
    for matrix in duals:
        eigenvalues, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        eigenvalues = np.maximum(eigenvalues, 0.0)
        total += float(eigenvalues.sum())
        fixed.append(vectors * np.sqrt(eigenvalues))
    profile = np.zeros(features.shape[0])
    for root, group, divisor in zip(fixed, columns, divisors, strict=True):
        profile += ((features[:, group] @ root) ** 2).sum(axis=1) / divisor**2
    return np.asarray(profile / total, dtype=np.float64)


def _first_candidates(features: FloatArray) -> IntArray:
    n_candidates, n_columns = features.shape
    if n_candidates <= _ALL_CANDIDATES:
        return np.arange(n_candidates)
    even = np.linspace(0, n_candidates - 1, min(n_candidates, max(4 * min(n_columns, 100), 40))).astype(np.int64)
    return np.union1d(even, spread_rows(features)) if n_columns <= n_candidates else even


def _first_blocks(
    features: FloatArray, weights: FloatArray, columns: Sequence[IntArray], divisors: FloatArray
) -> IntArray:
    if sum(group.size**2 for group in columns) <= _ALL_ENTRIES:
        return np.arange(len(columns))
    return np.sort(np.argsort(block_eigenvalues(features, weights, columns, divisors))[:12]).astype(np.int64)


def _violated(values: FloatArray, known: IntArray, threshold: float, limit: int) -> IntArray:
    """Up to ``limit`` indices outside ``known`` with the smallest values below ``threshold``."""
    fresh = np.setdiff1d(np.flatnonzero(values < threshold), known, assume_unique=True)
    return np.asarray(fresh[np.argsort(values[fresh], kind="stable")[:limit]], dtype=np.int64)


def _solve_restricted(
    features: FloatArray, rows: IntArray, blocks: Sequence[tuple[IntArray, float]]
) -> tuple[FloatArray, list[FloatArray]]:
    """Semidefinite program over the given candidates and blocks: weights on all N candidates, and one Z per block.

    Columns are scaled to a largest entry of one, S - sI >= 0 becoming C^-1 S C^-1 - s C^-2 >= 0, so that units do not
    upset the solver; Z = C^-1 Z' C^-1 undoes it.
    """
    cp = load_cvxpy()
    mass, level = cp.Variable(rows.size, nonneg=True), cp.Variable()
    cones, lengths = [], []
    for group, divisor in blocks:
        picked = features[np.ix_(rows, group)] / divisor
        length = np.maximum(np.abs(picked).max(axis=0), 1.0)  # values are at most one, so shorter columns may stay
        picked /= length
        products = (picked[:, :, None] * picked[:, None, :]).reshape(rows.size, -1)
        moment = cp.reshape(products.T @ mass, (group.size, group.size), order="C")
        cones.append(moment - level * np.diag(length**-2.0) >> 0)
        lengths.append(length)
    problem = cp.Problem(cp.Maximize(level), [*cones, cp.sum(mass) == 1])
    solve_quietly(problem)
    if mass.value is None or any(cone.dual_value is None for cone in cones):
        raise RuntimeError(
            f"the semidefinite program for the E-optimal design ended as {problem.status!r}; use "
            "DOptimal() or Uniform(), or rescale the features"
        )
    weights = np.zeros(features.shape[0])
    weights[rows] = np.where(mass.value > 1e-9 * mass.value.max(), mass.value, 0.0)
    duals = [cone.dual_value / (c[:, None] * c) for cone, c in zip(cones, lengths, strict=True)]
    return weights / weights.sum(), duals


def solve_quietly(problem: Any) -> None:
    """Run Clarabel. An inaccurate end is harmless: values and bounds are recomputed from whatever came back."""
    with warnings.catch_warnings(), contextlib.suppress(load_cvxpy().error.SolverError):
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver="CLARABEL")


def load_cvxpy() -> Any:
    """cvxpy, or an ImportError that says what to install."""
    try:
        import clarabel  # noqa: F401
        import cvxpy
    except ImportError as error:
        raise ImportError(
            "E-optimal designs and restricted eigenvalues need cvxpy and clarabel: pip install "
            "alexp[design]. DOptimal() and Uniform() work without them."
        ) from error
    return cvxpy
