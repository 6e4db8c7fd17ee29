"""The constants that decide whether models can be told apart: C_min and the restricted eigenvalue kappa.

The paper concatenates all M feature maps. When models share columns, as in its own experiments, the concatenation
has repeated columns, so both C_min and kappa are zero and the bounds built on them say nothing. What still makes sense
is C_min on the distinct columns, and the model-wise quantity max_pi min_j lambda_min(S_jj(pi)) that each ridge agent
needs. `c_min` reports all three.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, positive
from alexp.decision.first_order import independent_columns, smallest_eigenvalue
from alexp.decision.semidefinite import block_eigenvalues, e_optimal
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.theory import _restricted

__all__ = ["CMin", "RestrictedEigenvalue", "c_min", "concatenation", "design_lambda_min", "restricted_eigenvalue"]


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
        proposal, relaxed = _restricted.propose(gram, groups, subset, positive("cone", cone))
        lower = min(lower, max(floor, _restricted.certified_lower(gram, groups, subset, cone, proposal)))
        starts = [np.linalg.eigh(relaxed)[1][:, -1], np.linalg.eigh(gram)[1][:, 0], *rng.standard_normal((2, size))]
        for start in starts:
            value, b = _restricted.descend(gram, groups, subset, cone, start)
            if value < upper:
                upper, chosen, witness = value, subset, b
    return RestrictedEigenvalue(min(lower, upper), upper, chosen, witness)
