"""Exploration designs: how the rounds that only gather information spread over the candidates.

A design is a probability vector pi over the N candidates. With S(pi) = sum_i pi_i f_i f_i', the paper explores with
the maximiser of lambda_min(S(pi)), whose value is C_min: `EOptimal`. `Uniform` costs nothing, `DOptimal` needs no
solver and keeps at least C_min / P of the smallest eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import positive
from alexp.common.warning import caution
from alexp.decision.first_order import (
    d_optimal,
    h_optimal,
    independent_columns,
    inverse_moment_bound,
    mirror_bounds,
    smallest_eigenvalue,
)
from alexp.decision.semidefinite import EOptimalSolution, block_eigenvalues, e_optimal
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

__all__ = [
    "DOptimal",
    "Design",
    "EOptimal",
    "Exploration",
    "HDesign",
    "HOptimal",
    "HasWeights",
    "Uniform",
    "design_features",
    "design_weights",
]


@dataclass(frozen=True)
class Design:
    """Weights over the candidates and what they achieve; the achievements are computed when first asked for.

    If the dictionary's columns are linearly dependent on the domain, C_min over all of them is zero whatever the
    design (``full_rank`` is False), and ``value`` and ``upper_bound`` speak of the independent ``columns``; a
    model-wise design has no such caveat, each model keeps all of its columns.

    Attributes
    ----------
    weights : probability of each candidate, in candidate order, shape (N,).
    criterion : "uniform", "E", "E model-wise" or "D".
    log_determinant : log det S(pi) on the independent columns, D-optimal designs only.
    log_determinant_gap : certified distance to the largest log det, D-optimal designs only.
    """

    weights: FloatArray
    criterion: str
    log_determinant: float | None = None
    log_determinant_gap: float | None = None
    _columns: Callable[[], tuple[IntArray, bool]] = field(kw_only=True, repr=False, compare=False)
    _bracket: Callable[[], tuple[float, float]] = field(kw_only=True, repr=False, compare=False)

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        return self._bracket()

    @cached_property
    def _independent(self) -> tuple[IntArray, bool]:
        return self._columns()

    @property
    def value(self) -> float:
        """lambda_min attained by the weights (for a model-wise design, the smallest over the models)."""
        return self._bounds[0]

    @property
    def upper_bound(self) -> float:
        """Certified: no design has a larger lambda_min. For "E" designs it lies within the tolerance of the value."""
        return max(self._bounds)

    @property
    def gap(self) -> float:
        """upper_bound - value."""
        return self.upper_bound - self.value

    @property
    def columns(self) -> IntArray:
        """Dictionary columns that ``value`` speaks of: all of them, or an independent subset."""
        return self._independent[0]

    @property
    def full_rank(self) -> bool:
        """Whether the dictionary's columns are linearly independent on the domain; if not, C_min is zero."""
        return self._independent[1]


class HasWeights(Protocol):
    """What exploring rounds need of a design."""

    @property
    def weights(self) -> FloatArray:
        """Probability of each candidate, in candidate order, shape (N,)."""


class Exploration(Protocol):
    """Anything that turns models and a domain into weights over the candidates: `Uniform()`, or an object of yours."""

    def design(self, models: ModelClass, domain: Domain) -> HasWeights:
        """Weights over the domain's candidates."""


@dataclass(frozen=True)
class Uniform:
    """Every candidate with the same probability. Looks at no features, so it is free at any size.

    >>> from alexp.problem import Interval, ModelClass
    >>> design = Uniform().design(ModelClass.legendre(degree=2, size=1), Interval(resolution=101))
    >>> round(design.value, 3)
    0.208
    """

    def design(self, models: ModelClass, domain: Domain) -> Design:
        """1/N on each candidate; ``value`` and ``upper_bound`` (first-order, loose) are computed if asked for."""
        weights = np.full(domain.n_candidates, 1.0 / domain.n_candidates)

        def bracket() -> tuple[float, float]:
            features = models.matrix(domain)[:, design.columns]
            return smallest_eigenvalue(features, weights), mirror_bounds(features)[2]

        design = Design(weights, "uniform", _columns=lambda: _columns(models.matrix(domain)), _bracket=bracket)
        return design


@dataclass(frozen=True)
class EOptimal:
    """The paper's exploratory distribution: maximises lambda_min(S(pi)), with a certificate of optimality.

    Needs the extra ``pip install alexp[design]`` (cvxpy and Clarabel). The value is C_min of the dictionary's
    columns, each taken once however many models share it.

    Attributes
    ----------
    tol : width of the certified bracket, relative to the trivial bound max ||f||^2 / P.
    model_wise : maximise the smallest lambda_min over the models, max_pi min_j lambda_min(S_jj(pi)), instead.
        That stays positive when columns depend on each other across models, and it is what the ridge agents need.
    """

    tol: float = 1e-6
    model_wise: bool = False

    def design(self, models: ModelClass, domain: Domain) -> Design:
        """Solve by semidefinite programming with cutting planes; warns if dependent columns make C_min zero."""
        models.require_linear("EOptimal", "the design is for columns; Uniform() explores with kernels")
        tol = positive("tol", self.tol)
        features = models.matrix(domain)
        if self.model_wise:
            solution = e_optimal(features, list(models.groups), models.scales, tol)
            if solution.upper_bound == 0.0 or solution.value <= 1e-12 * solution.upper_bound:
                caution(_degenerate_model(features, models), UserWarning)
        else:
            kept, full_rank = _columns(features)
            if not full_rank:
                caution(_dependent(kept.size, features.shape), UserWarning)
            rows = np.ascontiguousarray(features[:, kept])
            solution = _remembered(rows.tobytes(), rows.shape, tol)
        return Design(
            solution.weights.copy(),
            "E model-wise" if self.model_wise else "E",
            _columns=lambda: _columns(features),
            _bracket=lambda: (solution.value, solution.upper_bound),
        )


@lru_cache(maxsize=8)
def _remembered(content: bytes, shape: tuple[int, int], tol: float) -> EOptimalSolution:
    """`e_optimal`, solved once for a table: a run that is loaded or amended is constructed again."""
    return e_optimal(np.frombuffer(content).reshape(shape), tol=tol)


@dataclass(frozen=True)
class DOptimal:
    """Maximises log det S(pi); needs no extra. Its lambda_min is at least C_min / P.

    Attributes
    ----------
    tol : stop when max_i f_i'S^-1f_i <= P (1 + tol), which leaves log det within P log(1 + tol) of the best.
    """

    tol: float = 1e-4

    def design(self, models: ModelClass, domain: Domain) -> Design:
        """Frank-Wolfe with away steps; warns if dependent columns make C_min zero."""
        models.require_linear("DOptimal", "the design is for columns; Uniform() explores with kernels")
        tol = positive("tol", self.tol)
        features = models.matrix(domain)
        kept, full_rank = _columns(features)
        if not full_rank:
            caution(_dependent(kept.size, features.shape), UserWarning)
        rows = features[:, kept]
        solution = d_optimal(rows, tol)

        def bracket() -> tuple[float, float]:
            value = smallest_eigenvalue(rows, solution.weights)
            return value, min(inverse_moment_bound(rows, solution.weights), mirror_bounds(rows)[2])

        return Design(
            solution.weights,
            "D",
            solution.log_determinant,
            solution.log_determinant_gap,
            _columns=lambda: (kept, full_rank),
            _bracket=bracket,
        )


@dataclass(frozen=True)
class HDesign:
    """Weights over the candidates, (N,), and the largest variance of a coefficient they leave.

    Attributes
    ----------
    value : max_i (S(pi)^-1)_ii over the columns it speaks of, H^2.
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
            caution(
                f"the {features.shape[1]} columns have rank {kept.size} on the {features.shape[0]} candidates: the "
                "design is for that many independent ones",
                UserWarning,
            )
        weights, value, bound = h_optimal(features[:, kept], positive("tol", self.tol))
        return HDesign(weights, value, bound, kept)


def design_features(models: ModelClass, domain: Domain) -> FloatArray:
    """The dictionary on all candidates (N, P), and a column of ones behind it if the models have a constant."""
    features = models.matrix(domain)
    return np.column_stack([features, np.ones(len(features))]) if models.intercept else features


def design_weights(exploration: Exploration, models: ModelClass, domain: Domain) -> FloatArray | None:
    """Weights over the candidates, (N,); None for contextual rounds, which explore evenly on what they offer."""
    if not models.is_contextual:
        return exploration.design(models, domain).weights
    if not isinstance(exploration, Uniform):
        raise ValueError(
            f"exploration={type(exploration).__name__} designs for a table of candidates, and contextual rounds have "
            "none: Uniform(), the default, explores evenly on what a round offers"
        )
    return None


def _columns(features: FloatArray) -> tuple[IntArray, bool]:
    kept = independent_columns(features)
    if kept.size == 0:
        raise ValueError("all features are zero on the whole domain; no design can learn anything from them")
    return kept, bool(kept.size == features.shape[1])


def _dependent(rank: int, shape: tuple[int, ...]) -> str:
    return (
        f"the {shape[1]} columns of the dictionary have rank {rank} on the {shape[0]} candidates, so C_min = 0 for "
        f"every design; designing for {rank} independent columns instead (EOptimal(model_wise=True) designs for "
        "each model with all of its columns)"
    )


def _degenerate_model(features: FloatArray, models: ModelClass) -> str:
    uniform = np.full(features.shape[0], 1.0 / features.shape[0])
    values = block_eigenvalues(features, uniform, list(models.groups), models.scales)
    worst = models.names[int(np.argmin(values))]
    return (
        f"the columns of model {worst!r} are linearly dependent on the candidates, so no design can identify its "
        "coefficients and the model-wise lambda_min is zero"
    )
