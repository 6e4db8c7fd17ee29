"""H-optimal designs: the least largest variance of a single coefficient (Jang, Zhang and Jun 2022).

minimise over designs pi:  max_i (Q(pi)^-1)_ii,   Q(pi) = sum_a pi_a f_a f_a'.

The value, H^2, is at most 1 / C_min and at best P times less. For l >= 0 that sums to one, phi(pi) = sum_i l_i
(Q(pi)^-1)_ii is convex and homogeneous of degree -1, whence phi(pi)^2 / max_a f_a' Q^-1 diag(l) Q^-1 f_a bounds the
best value from below, whatever pi and l a solver returns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import positive
from alexp.decision.first_order import independent_columns, second_moment, spread_rows
from alexp.decision.semidefinite import load_cvxpy, solve_quietly
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

_ALL_CANDIDATES = 300  # up to here every candidate goes into the first problem
_MOST_COLUMNS = 150  # a semidefinite cone of twice the size beyond this takes minutes
_MOST_ROUNDS = 40


@dataclass(frozen=True)
class HDesign:
    """Weights over the candidates, (N,), and the largest variance of a coefficient they leave.

    Attributes
    ----------
    value : max_i (Q(pi)^-1)_ii over the columns it speaks of, H^2.
    lower_bound : certified: no design has a smaller one.
    columns : independent columns of the dictionary that it speaks of; P stands for the models' constant.
    """

    weights: FloatArray
    value: float
    lower_bound: float
    columns: IntArray


@dataclass(frozen=True)
class HOptimal:
    """The exploratory distribution of PopArt; needs the extra ``pip install alexp[design]`` (cvxpy and Clarabel).

    Attributes
    ----------
    tol : relative width of the certified bracket around H^2.
    """

    tol: float = 1e-4

    def design(self, models: ModelClass, domain: Domain) -> HDesign:
        """Solve by semidefinite programming with cutting planes; warns if columns depend on each other."""
        models.require_linear("HOptimal", "the design is for columns; Uniform() explores with kernels")
        features = design_features(models, domain)
        kept = independent_columns(features)
        if kept.size == 0:
            raise ValueError("all features are zero on the whole domain; no design can learn anything from them")
        if kept.size < features.shape[1]:
            warnings.warn(
                f"the {features.shape[1]} columns have rank {kept.size} on the {features.shape[0]} candidates: the "
                "design is for that many independent ones",
                UserWarning,
                stacklevel=2,
            )
        rows = np.ascontiguousarray(features[:, kept])
        weights, value, bound = _remembered(rows.tobytes(), rows.shape, positive("tol", self.tol))
        return HDesign(weights.copy(), value, bound, kept)


@lru_cache(maxsize=8)
def _remembered(content: bytes, shape: tuple[int, int], tol: float) -> tuple[FloatArray, float, float]:
    """`h_optimal`, solved once for a table: a run that is loaded or mended is constructed again."""
    return h_optimal(np.frombuffer(content).reshape(shape), tol)


def design_features(models: ModelClass, domain: Domain) -> FloatArray:
    """The dictionary on all candidates (N, P), and a column of ones behind it if the models have a constant."""
    features = models.matrix(domain)
    return np.column_stack([features, np.ones(len(features))]) if models.intercept else features


def h_optimal(features: FloatArray, tol: float = 1e-4) -> tuple[FloatArray, float, float]:
    """Weights (N,), the value they attain and a certified lower bound, for rows (N, P) of rank P."""
    n, p = features.shape
    if p > _MOST_COLUMNS:
        raise ValueError(f"HOptimal handles up to {_MOST_COLUMNS} columns, got {p}; use DOptimal() or Uniform()")
    rows = np.arange(n)
    if n > _ALL_CANDIDATES:
        rows = np.union1d(np.linspace(0, n - 1, 4 * p + 40).astype(np.int64), spread_rows(features))
    best, value, bound = np.full(n, 1.0 / n), np.inf, 0.0
    for _ in range(_MOST_ROUNDS):
        weights, shares = _solve_restricted(features, rows)
        inverse = np.linalg.inv(second_moment(features, weights))
        if (largest := float(np.diag(inverse).max())) < value:
            best, value = weights, largest
        pull = (features @ inverse) ** 2 @ shares  # f_a' Q^-1 diag(l) Q^-1 f_a
        phi = float(shares @ np.diag(inverse))
        bound = max(bound, phi**2 / float(pull.max()))
        more = np.setdiff1d(np.flatnonzero(pull > phi * (1.0 + 0.1 * tol)), rows)
        if value <= bound * (1.0 + tol) or more.size == 0:
            break
        rows = np.union1d(rows, more[np.argsort(-pull[more], kind="stable")[: 2 * p + 10]])
    return best, value, bound


def _solve_restricted(features: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """Weights on all N candidates, positive on some of `rows` only, and the multipliers l (P,) of the diagonal.

    T >= Q^-1 is the cone [[Q, I], [I, T]] >= 0. Columns are scaled to a largest entry of one, which divides (Q^-1)_ii
    by the square of the scale: that of T_ii must stay below s times it.
    """
    cp = load_cvxpy()
    p = features.shape[1]
    lengths = np.abs(features[rows]).max(axis=0)
    picked = features[rows] / lengths
    mass, level, inverse = cp.Variable(rows.size, nonneg=True), cp.Variable(), cp.Variable((p, p), symmetric=True)
    products = (picked[:, :, None] * picked[:, None, :]).reshape(rows.size, -1)
    moment = cp.reshape(products.T @ mass, (p, p), order="C")
    below = cp.diag(inverse) <= level * lengths**2 / float((lengths**2).max())
    cone = cp.bmat([[moment, np.eye(p)], [np.eye(p), inverse]]) >> 0
    problem = cp.Problem(cp.Minimize(level), [below, cone, cp.sum(mass) == 1])
    solve_quietly(problem)
    if mass.value is None or below.dual_value is None:
        raise RuntimeError(
            f"the semidefinite program for the H-optimal design ended as {problem.status!r}; use DOptimal() or "
            "Uniform(), or rescale the features"
        )
    weights = np.zeros(len(features))
    weights[rows] = np.where(mass.value > 1e-9 * mass.value.max(), mass.value, 0.0)
    shares = np.maximum(np.asarray(below.dual_value).ravel(), 0.0) * lengths**2
    return weights / weights.sum(), shares / shares.sum()
