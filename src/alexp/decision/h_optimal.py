"""H-optimal designs: the least largest variance of a single coefficient (Jang, Zhang and Jun 2022).

minimise over designs pi:  max_i (Q(pi)^-1)_ii,   Q(pi) = sum_a pi_a f_a f_a'.

The value, H^2, is at most 1 / C_min and at best P times less. For l >= 0 that sums to one, phi(pi) = sum_i l_i
(Q(pi)^-1)_ii is convex and homogeneous of degree -1, whence phi(pi)^2 / max_a f_a' Q^-1 diag(l) Q^-1 f_a bounds the
best value from below, whatever pi and l a solver returns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import positive
from alexp.decision.first_order import independent_columns, second_moment
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

_MOST_STEPS = 20_000


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
    """The exploratory distribution of PopArt: the least largest variance of a coefficient. Needs no extra.

    Attributes
    ----------
    tol : relative width of the certified bracket around H^2.
    """

    tol: float = 1e-3

    def design(self, models: ModelClass, domain: Domain) -> HDesign:
        """Weights within `tol` of the best; warns if columns depend on each other."""
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
        weights, value, bound = h_optimal(features[:, kept], positive("tol", self.tol))
        return HDesign(weights, value, bound, kept)


def design_features(models: ModelClass, domain: Domain) -> FloatArray:
    """The dictionary on all candidates (N, P), and a column of ones behind it if the models have a constant."""
    features = models.matrix(domain)
    return np.column_stack([features, np.ones(len(features))]) if models.intercept else features


def h_optimal(features: FloatArray, tol: float = 1e-3) -> tuple[FloatArray, float, float]:
    """Weights (N,), the value they attain and a certified lower bound, for rows (N, P) of rank P.

    Multiplicative steps to the saddle point: pi_a grows with the square root of pull_a = f_a' Q^-1 diag(l) Q^-1 f_a, as
    for the A-optimal design with weights l (Torsney 1983), and l_i with the variance of coefficient i. They stop
    when the bracket is closed to `tol`, mostly after some hundred steps, or after 20,000.
    """
    lengths = np.abs(features).max(axis=0)
    rows = features / lengths  # so that units do not upset the inverse
    weights, shares = np.full(len(rows), 1.0 / len(rows)), np.full(lengths.size, 1.0 / lengths.size)
    best, value, bound = weights, np.inf, 0.0
    for _ in range(_MOST_STEPS):
        inverse = np.linalg.inv(second_moment(rows, weights))
        variances = np.diagonal(inverse) / lengths**2
        if (largest := float(variances.max())) < value:
            best, value = weights, largest
        pull, phi = (rows @ inverse / lengths) ** 2 @ shares, float(shares @ variances)
        bound = max(bound, phi**2 / float(pull.max()))
        if value <= bound * (1.0 + tol):
            break
        weights = weights * np.sqrt(pull / phi)
        weights /= weights.sum()
        shares = shares * variances
        shares /= shares.sum()
    return best, value, bound
