"""Eigenvalues that decide whether models are distinguishable: C_min, the restricted eigenvalue, those of explored data.

**Designs.** The paper concatenates all M feature maps. When models share columns, as in its own experiments, the
concatenation has repeated columns, so both C_min and the restricted eigenvalue kappa are zero and the bounds built on
them are trivial. C_min on the distinct columns, and the model-wise max_pi min_j lambda_min(S_jj(pi)) that each ridge
agent needs, remain meaningful. `c_min` reports all three.

**Explored rounds.** Round s explores with probability gamma_s and then plays x ~ pi; S = E_pi f f' is the design's
second moment and Gamma_t = sum_{s <= t} gamma_s. Other rounds only add positive semi-definite terms. The bounds hold
for all t at once; they treat coin and action as one martingale difference, so that the random number of explored
rounds does not enter.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, fraction, non_negative, positive
from alexp.decision.first_order import independent_columns, smallest_eigenvalue
from alexp.decision.semidefinite import block_eigenvalues, e_optimal, load_cvxpy, solve_quietly
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.theory.boundaries import stitched_boundary

_LARGEST_SEARCH = 400  # sets J
_LARGEST_GRAM = 60  # columns in the semidefinite relaxation


@dataclass(frozen=True)
class CMin:
    """C_min three ways; each pair is a certified bracket of the optimum over designs.

    Attributes
    ----------
    concatenated : C_min of the paper's concatenation (phi_1, ..., phi_M); zero if ``repeated`` or of deficient rank.
    distinct, distinct_upper_bound : on the dictionary's independent columns, each taken once.
    model_wise, model_wise_upper_bound : max_pi min_j lambda_min(S_jj(pi)).
    n_columns : P.
    rank : of the dictionary on the domain.
    repeated : how many columns of the concatenation are copies (sum of model sizes minus the columns in use).
    """

    concatenated: float
    distinct: float
    distinct_upper_bound: float
    model_wise: float
    model_wise_upper_bound: float
    n_columns: int
    rank: int
    repeated: int

    def __str__(self) -> str:
        shared = f"{self.repeated} columns of the concatenation are copies" if self.repeated else "no column repeats"
        zero = " (so C_min of the concatenation is 0)" if self.concatenated == 0.0 else ""
        return (
            f"C_min: {shared}{zero}; rank {self.rank} of {self.n_columns} columns; distinct columns "
            f"{self.distinct:.6g} (certified <= {self.distinct_upper_bound:.6g}); model-wise {self.model_wise:.6g} "
            f"(certified <= {self.model_wise_upper_bound:.6g})"
        )


def c_min(models: ModelClass, domain: Domain, tol: float = 1e-6) -> CMin:
    """C_min of a model class on a domain, by semidefinite programming (needs ``pip install alexp[design]``).

    >>> from alexp.problem import Interval
    >>> result = c_min(ModelClass.legendre(degree=3, size=2), Interval(resolution=51))
    >>> result.concatenated, result.repeated, round(float(result.distinct), 3), round(float(result.model_wise), 3)
    (0.0, 8, 0.286, 0.286)
    """
    positive("tol", tol)
    features = models.matrix(domain)
    kept = independent_columns(features)
    distinct = e_optimal(features[:, kept], tol=tol)
    wise = e_optimal(features, list(models.groups), models.scales, tol)
    repeated = int(models.columns_flat.size - np.unique(models.columns_flat).size)
    whole = 0.0
    if repeated == 0:
        stacked, _ = concatenation(models, domain)
        if independent_columns(stacked).size == stacked.shape[1]:
            whole = e_optimal(stacked, tol=tol).value
    return CMin(
        whole,
        distinct.value,
        distinct.upper_bound,
        wise.value,
        wise.upper_bound,
        features.shape[1],
        int(kept.size),
        repeated,
    )


def design_lambda_min(models: ModelClass, domain: Domain, weights: FloatArray) -> tuple[float, float]:
    """lambda_min of a given design (N,): on the independent columns, and the smallest over the models."""
    features = models.matrix(domain)
    mass = np.asarray(weights, dtype=np.float64)
    if mass.shape != (features.shape[0],) or np.any(mass < 0.0) or abs(mass.sum() - 1.0) > 1e-9:
        raise ValueError(f"weights must be {features.shape[0]} probabilities that sum to one")
    distinct = smallest_eigenvalue(features[:, independent_columns(features)], mass)
    return distinct, float(block_eigenvalues(features, mass, list(models.groups), models.scales).min())


def concatenation(models: ModelClass, domain: Domain) -> tuple[FloatArray, list[IntArray]]:
    """The paper's phi(x) = (phi_1(x), ..., phi_M(x)) on all candidates, (N, sum d_j), and each model's coordinates."""
    scale = np.repeat(models.scales, np.diff(models.offsets))
    stacked = models.matrix(domain)[:, models.columns_flat] / scale
    groups = [np.arange(a, b) for a, b in itertools.pairwise(models.offsets)]
    return np.asarray(stacked, dtype=np.float64), groups


@dataclass(frozen=True)
class RestrictedEigenvalue:
    """Certified bracket lower <= kappa^2(Phi, s) <= upper, and where the upper end is attained.

    Attributes
    ----------
    lower, upper : bounds on kappa^2 (not on kappa).
    chosen : the groups J of the best point found.
    witness : that point b, with ||b_J|| = 1 and inside the cone.
    """

    lower: float
    upper: float
    chosen: tuple[int, ...]
    witness: FloatArray


def restricted_eigenvalue(
    features: FloatArray,
    groups: Sequence[IntArray],
    sparsity: int = 2,
    cone: float = 3.0,
    weights: FloatArray | None = None,
    random_state: int = 0,
) -> RestrictedEigenvalue:
    """Bracket kappa^2(Phi, s) = min b'Gb / sum_{j in J} ||b_j||^2, |J| <= s, sum_{not J} ||b_j|| <= cone sum_J ||b_j||.

    G is Phi'Phi / t, or the second moment under ``weights``. Small instances only: every J of size s is visited. The
    upper end comes from projected gradient descent, the lower end from a semidefinite relaxation (or lambda_min(G),
    whichever is larger) whose certificate is recomputed outside the solver.

    Parameters
    ----------
    features : (t, D) rows of the concatenated features.
    groups : coordinates of each model, a partition of 0..D-1.
    sparsity : s.
    cone : constant of the cone, 3 in the paper.
    weights : weights of the rows; 1/t each if None.
    random_state : seed of the descent's random starts.
    """
    size = features.shape[1]
    if sorted(np.concatenate(list(groups)).tolist()) != list(range(size)):
        raise ValueError(
            f"groups must contain each of the {size} columns exactly once; for models that share columns "
            "use concatenation(models, domain)"
        )
    chosen_size = min(count("sparsity", sparsity), len(groups))
    if size > _LARGEST_GRAM or comb(len(groups), chosen_size) > _LARGEST_SEARCH:
        raise ValueError(
            f"restricted_eigenvalue is for small instances (at most {_LARGEST_GRAM} columns and "
            f"{_LARGEST_SEARCH} sets of models), got {size} columns and {len(groups)} models"
        )
    mass = np.full(features.shape[0], 1.0 / features.shape[0]) if weights is None else weights
    gram = features.T @ (mass[:, None] * features)
    gram = 0.5 * (gram + gram.T)
    floor, rng = max(float(np.linalg.eigvalsh(gram)[0]), 0.0), np.random.default_rng(random_state)
    lower, upper = np.inf, np.inf
    chosen: tuple[int, ...] = ()
    witness = np.zeros(size)
    for subset in itertools.combinations(range(len(groups)), chosen_size):
        proposal, relaxed = _propose(gram, groups, subset, positive("cone", cone))
        lower = min(lower, max(floor, certified_lower(gram, groups, subset, cone, proposal)))
        starts = [np.linalg.eigh(relaxed)[1][:, -1], np.linalg.eigh(gram)[1][:, 0], *rng.standard_normal((2, size))]
        for start in starts:
            value, b = descend(gram, groups, subset, cone, start)
            if value < upper:
                upper, chosen, witness = value, subset, b
    return RestrictedEigenvalue(min(lower, upper), upper, chosen, witness)


# -- brackets of kappa^2 for one set J of groups ------------------------------------------------------------------
#
# kappa^2 = min over b of b'Gb / ||b_J||^2 subject to sum_{j not in J} ||b_j|| <= cone sum_{j in J} ||b_j||, not convex.
# Upper bounds are values at feasible b. Lower bounds come from the semidefinite relaxation in B = bb': on the cone with
# ||b_J|| = 1 and |J| = s the blocks satisfy sum ||B_jk||_* <= cone^2 s over j, k not in J, and sum ||B_jk||_* <= cone s
# over j in J, k not in J. Hence for any symmetric U that vanishes on J x J
#
#     kappa^2 >= nu(U) - cone^2 s max_{j,k not in J} ||U_jk|| - 2 cone s max_{j in J, k not in J} ||U_jk||,
#
# where nu(U) is the largest nu with G + U - nu E_J >= 0. The solver proposes U; the bound is recomputed from U.


def _split(groups: Sequence[IntArray], chosen: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Coordinates of the groups in J and of the others."""
    inside = np.concatenate([groups[j] for j in chosen])
    rest = [groups[j] for j in range(len(groups)) if j not in chosen]
    return inside, np.concatenate(rest) if rest else np.empty(0, dtype=np.int64)


def certified_lower(
    gram: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float, u: FloatArray
) -> float:
    """The lower bound above for a given U, computed exactly: nu from a Schur complement."""
    inside, outside = _split(groups, chosen)
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
    outer = max(_spectral_norm(u[np.ix_(groups[j], groups[k])]) for j in others for k in others if j <= k)
    inner = max(_spectral_norm(u[np.ix_(groups[j], groups[k])]) for j in chosen for k in others)
    sparsity = len(chosen)
    return nu - cone**2 * sparsity * outer - 2.0 * cone * sparsity * inner


def _propose(
    gram: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float
) -> tuple[FloatArray, FloatArray]:
    """Best U according to the semidefinite solver, and the dual B whose leading vector suggests a good b."""
    cp = load_cvxpy()
    size, sparsity = gram.shape[0], len(chosen)
    others = [j for j in range(len(groups)) if j not in chosen]
    inside, _ = _split(groups, chosen)
    indicator = np.zeros(size)
    indicator[inside] = 1.0
    u = cp.Variable((size, size), symmetric=True)
    nu, outer, inner = cp.Variable(), cp.Variable(nonneg=True), cp.Variable(nonneg=True)
    definite = gram + u - nu * np.diag(indicator) >> 0
    constraints = [definite, u[np.ix_(inside, inside)] == 0]
    constraints += [cp.sigma_max(u[np.ix_(groups[j], groups[k])]) <= outer for j in others for k in others if j <= k]
    constraints += [cp.sigma_max(u[np.ix_(groups[j], groups[k])]) <= inner for j in chosen for k in others]
    value = nu - cone**2 * sparsity * outer - 2.0 * cone * sparsity * inner
    solve_quietly(cp.Problem(cp.Maximize(value), constraints))
    if u.value is None or definite.dual_value is None:
        return np.zeros((size, size)), np.eye(size)
    return np.asarray(u.value, dtype=np.float64), np.asarray(definite.dual_value, dtype=np.float64)


def _feasible_value(
    gram: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float, b: FloatArray
) -> tuple[float, FloatArray]:
    """b'Gb / ||b_J||^2 after shrinking the part of b outside J into the cone, and the b that attains it."""
    inside, outside = _split(groups, chosen)
    b = b / np.linalg.norm(b[inside])
    reach = sum(float(np.linalg.norm(b[groups[j]])) for j in range(len(groups)) if j not in chosen)
    allowed = cone * sum(float(np.linalg.norm(b[groups[j]])) for j in chosen)
    if reach > allowed:
        b[outside] *= allowed / reach * (1.0 - 1e-12)
    return max(float(b @ gram @ b), 0.0), b


def descend(
    gram: FloatArray, groups: Sequence[IntArray], chosen: Sequence[int], cone: float, start: FloatArray
) -> tuple[float, FloatArray]:
    """200 steps of projected gradient from ``start``: the smallest feasible value met, and where."""
    inside, _ = _split(groups, chosen)
    step = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-300)
    best, best_b = _feasible_value(gram, groups, chosen, cone, start)
    b = best_b.copy()
    for _ in range(200):
        value = float(b @ gram @ b)
        slope = gram @ b
        slope[inside] -= value * b[inside]  # the part along b_J only rescales
        value, b = _feasible_value(gram, groups, chosen, cone, _shrink(b - step * slope, groups, chosen, cone))
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


def _spectral_norm(block: FloatArray) -> float:
    return float(np.linalg.norm(block, 2))


# -- data of explored rounds -------------------------------------------------------------------------------------


def expected_explorations(horizon: int, gamma: float) -> FloatArray:
    """Gamma_t = sum_{s <= t} min(1, gamma s^(-1/4)) for t = 1..horizon, shape (horizon,)."""
    rates = np.minimum(1.0, non_negative("gamma", gamma) * np.arange(1, count("horizon", horizon) + 1) ** -0.25)
    return np.cumsum(rates)


def covariance_entries_radius(n_samples: ArrayLike, n_columns: int, entry_bound: float, delta: float) -> FloatArray:
    """Radius r with max_ij |S_hat_ij - S_ij| <= r at every number of samples from pi at once, w.p. 1 - delta.

    Entries f_i f_j lie in [-L^2, L^2] for features |f_i| <= L = entry_bound; P (P + 1) / 2 distinct entries, two sides.
    The printed lemma takes a union over too few entries.
    """
    samples, square = np.asarray(n_samples, dtype=np.float64), positive("entry_bound", entry_bound) ** 2
    share = fraction("delta", delta) / (count("n_columns", n_columns) * (n_columns + 1))
    return np.asarray(square * stitched_boundary(samples, share) / samples, dtype=np.float64)


def explored_entries_radius(expected: ArrayLike, n_columns: int, entry_bound: float, delta: float) -> FloatArray:
    """Radius r with |sum_{explored s <= t} f_i f_j - Gamma_t S_ij| <= r for all entries and all t, w.p. 1 - delta.

    Bernstein with variance Gamma_t L^4 and differences below 2 L^2, so O(sqrt(Gamma_t)) = O(t^(3/8)).
    """
    gamma, square = np.asarray(expected, dtype=np.float64), positive("entry_bound", entry_bound) ** 2
    share = fraction("delta", delta) / (count("n_columns", n_columns) * (n_columns + 1))
    return np.asarray(square * stitched_boundary(gamma, share, c=2.0 / 3.0), dtype=np.float64)


def kappa_lower_bound(
    t: ArrayLike,
    expected: ArrayLike,
    kappa_design: float,
    n_columns: int,
    dimension: int,
    entry_bound: float,
    delta: float,
    sparsity: int = 2,
) -> FloatArray:
    """Lower bound on kappa^2(Phi_t, s), not below zero, for all t at once with probability 1 - delta.

    kappa^2(Phi_t, s) >= ( Gamma_t kappa~(S, s) - 16 s d r_t ) / t with r_t from `explored_entries_radius`: for b in the
    cone, ||b||_1 <= sqrt(d) sum_j ||b_j|| <= 4 sqrt(s d) ||b_J||. The printed lemma forgets the d. ``kappa_design`` is
    kappa~(S, s) or a lower bound, e.g. C_min.
    """
    slack = 16.0 * count("sparsity", sparsity) * count("dimension", dimension)
    radius = explored_entries_radius(expected, n_columns, entry_bound, delta)
    signal = np.asarray(expected, dtype=np.float64) * non_negative("kappa_design", kappa_design)
    return np.asarray(np.maximum(signal - slack * radius, 0.0) / np.asarray(t, dtype=np.float64), dtype=np.float64)


def explored_lambda_min_bound(
    expected: ArrayLike,
    lambda_min: float,
    lambda_max: float,
    n_columns: int,
    feature_bound: float,
    delta: float,
    n_models: int = 1,
) -> FloatArray:
    """Lower bound on lambda_min(Phi_t'Phi_t), not below zero, for all t (and all models) at once w.p. 1 - delta.

    Gamma_t lambda_min(S) minus `explored_lambda_min_slack`. Sharper than going through the entries unless L^2 grows
    with the number of models.

    Parameters
    ----------
    expected : Gamma_t.
    lambda_min : smallest eigenvalue of the design's second moment S (the least over the models if several).
    lambda_max : largest eigenvalue of S, at most ``feature_bound``^2.
    n_columns : size of S, the largest over the models.
    feature_bound : max_x ||f(x)||_2.
    delta : probability of failure.
    n_models : number of models the bound must hold for at the same time.
    """
    slack = explored_lambda_min_slack(expected, lambda_max, n_columns, feature_bound, delta, n_models)
    signal = np.asarray(expected, dtype=np.float64) * non_negative("lambda_min", lambda_min)
    return np.asarray(np.maximum(signal - slack, 0.0), dtype=np.float64)


def explored_lambda_min_slack(
    expected: ArrayLike, lambda_max: float, n_columns: int, feature_bound: float, delta: float, n_models: int = 1
) -> FloatArray:
    """How far lambda_min of the explored rows can fall below Gamma_t lambda_min(S), for all t at once w.p. 1 - delta.

    The sub-Gaussian stitched boundary at variance Gamma_t L^2 lambda_max(S) and level delta / (n_columns n_models): a
    matrix supermartingale, since e^{-lA} <= I - lA + l^2 A^2 / 2 for positive semi-definite A and E (ff')^2 <= L^2 S.
    """
    variance = positive("feature_bound", feature_bound) ** 2 * positive("lambda_max", lambda_max)
    share = fraction("delta", delta) / (count("n_columns", n_columns) * count("n_models", n_models))
    return np.asarray(np.sqrt(variance) * stitched_boundary(expected, share), dtype=np.float64)


def burn_in(lower_bounds: FloatArray) -> int | None:
    """First t (counted from 1) at which a sequence of lower bounds is positive, or None.

    >>> burn_in(np.array([0.0, 0.0, 0.2]))
    3
    """
    positive_at = np.flatnonzero(lower_bounds > 0.0)
    return int(positive_at[0]) + 1 if positive_at.size else None
