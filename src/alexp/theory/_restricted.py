"""Brackets of the restricted eigenvalue for one set J of groups, from both sides.

kappa^2 = min over b of b'Gb / ||b_J||^2 subject to sum_{j not in J} ||b_j|| <= cone sum_{j in J} ||b_j||, not convex.
Upper bounds are values at feasible b. Lower bounds come from the semidefinite relaxation in B = bb': on the cone with
||b_J|| = 1 and |J| = s the blocks satisfy sum ||B_jk||_* <= cone^2 s over j, k not in J, and sum ||B_jk||_* <= cone s
over j in J, k not in J. Hence for any symmetric U that vanishes on J x J

    kappa^2 >= nu(U) - cone^2 s max_{j,k not in J} ||U_jk|| - 2 cone s max_{j in J, k not in J} ||U_jk||,

where nu(U) is the largest nu with G + U - nu E_J >= 0. The solver proposes U; the bound is recomputed from U.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.semidefinite import load_cvxpy, solve_quietly


def split(groups: Sequence[IntArray], chosen: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Coordinates of the groups in J and of the others."""
    inside = np.concatenate([groups[j] for j in chosen])
    rest = [groups[j] for j in range(len(groups)) if j not in chosen]
    return inside, np.concatenate(rest) if rest else np.empty(0, dtype=np.int64)


def certified_lower(
    gram: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float, u: FloatArray
) -> float:
    """The bound at the top of this file for a given U, made exact: blocks measured, nu from a Schur complement."""
    inside, outside = split(groups, chosen)
    others = [j for j in range(len(groups)) if j not in chosen]
    u = 0.5 * (u + u.T)
    u[np.ix_(inside, inside)] = 0.0
    if outside.size == 0:
        return float(np.linalg.eigvalsh(gram[np.ix_(inside, inside)])[0])
    corner = gram + u
    lowest = float(np.linalg.eigvalsh(corner[np.ix_(outside, outside)])[0])
    lift = max(0.0, -lowest) + 1e-9 * float(np.trace(gram))  # keeps the outer corner safely invertible
    u[outside, outside] += lift
    corner = gram + u
    cross = corner[np.ix_(inside, outside)]
    schur = corner[np.ix_(inside, inside)] - cross @ np.linalg.solve(corner[np.ix_(outside, outside)], cross.T)
    nu = float(np.linalg.eigvalsh(0.5 * (schur + schur.T))[0])
    outer = max(_norm(u[np.ix_(groups[j], groups[k])]) for j in others for k in others if j <= k)
    inner = max(_norm(u[np.ix_(groups[j], groups[k])]) for j in chosen for k in others)
    sparsity = len(chosen)
    return nu - cone**2 * sparsity * outer - 2.0 * cone * sparsity * inner


def propose(
    gram: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float
) -> tuple[FloatArray, FloatArray]:
    """Best U according to the semidefinite solver, and the dual B whose leading vector suggests a good b."""
    cp = load_cvxpy()
    size, sparsity = gram.shape[0], len(chosen)
    others = [j for j in range(len(groups)) if j not in chosen]
    inside, _ = split(groups, chosen)
    indicator = np.zeros(size)
    indicator[inside] = 1.0
    u = cp.Variable((size, size), symmetric=True)
    nu, outer, inner = cp.Variable(), cp.Variable(nonneg=True), cp.Variable(nonneg=True)
    positive = gram + u - nu * np.diag(indicator) >> 0
    constraints = [positive, u[np.ix_(inside, inside)] == 0]
    constraints += [cp.sigma_max(u[np.ix_(groups[j], groups[k])]) <= outer for j in others for k in others if j <= k]
    constraints += [cp.sigma_max(u[np.ix_(groups[j], groups[k])]) <= inner for j in chosen for k in others]
    value = nu - cone**2 * sparsity * outer - 2.0 * cone * sparsity * inner
    solve_quietly(cp.Problem(cp.Maximize(value), constraints))
    if u.value is None or positive.dual_value is None:
        return np.zeros((size, size)), np.eye(size)
    return np.asarray(u.value, dtype=np.float64), np.asarray(positive.dual_value, dtype=np.float64)


def feasible_value(
    gram: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float, b: FloatArray
) -> tuple[float, FloatArray]:
    """b'Gb / ||b_J||^2 after shrinking the part of b outside J into the cone, and the b that attains it."""
    inside, outside = split(groups, chosen)
    b = b / np.linalg.norm(b[inside])
    reach = sum(float(np.linalg.norm(b[groups[j]])) for j in range(len(groups)) if j not in chosen)
    allowed = cone * sum(float(np.linalg.norm(b[groups[j]])) for j in chosen)
    if reach > allowed:
        b[outside] *= allowed / reach * (1.0 - 1e-12)
    return max(float(b @ gram @ b), 0.0), b


def descend(
    gram: FloatArray,
    groups: Sequence[IntArray],
    chosen: Sequence[int],
    cone: float,
    start: FloatArray,
    rounds: int = 200,
) -> tuple[float, FloatArray]:
    """Projected gradient from ``start``: the smallest feasible value met, and where."""
    inside, _ = split(groups, chosen)
    step = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-300)
    best, best_b = feasible_value(gram, groups, chosen, cone, start)
    b = best_b.copy()
    for _ in range(rounds):
        value = float(b @ gram @ b)
        slope = gram @ b
        slope[inside] -= value * b[inside]  # the part along b_J only rescales
        value, b = feasible_value(gram, groups, chosen, cone, _shrink(b - step * slope, groups, chosen, cone))
        if value < best:
            best, best_b = value, b.copy()
    return best, best_b


def _shrink(b: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float) -> FloatArray:
    """Nearest b whose groups outside J have norms summing to at most cone sum_J ||b_j|| (soft thresholding)."""
    others = [j for j in range(len(groups)) if j not in chosen]
    norms = np.array([np.linalg.norm(b[groups[j]]) for j in others])
    allowed = cone * sum(float(np.linalg.norm(b[groups[j]])) for j in chosen)
    if norms.sum() <= allowed:
        return b
    ordered = np.sort(norms)[::-1]
    cuts = (np.cumsum(ordered) - allowed) / np.arange(1, ordered.size + 1)
    cut = cuts[np.flatnonzero(ordered > cuts)[-1]]
    out = b.copy()
    for j, norm in zip(others, norms, strict=True):
        out[groups[j]] *= max(1.0 - cut / norm, 0.0) if norm > 0.0 else 0.0
    return out


def _norm(block: FloatArray) -> float:
    return float(np.linalg.norm(block, 2))
