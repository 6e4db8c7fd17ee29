"""The interface of the fits of all models.

`Posteriors` are M ridge regressions on groups of columns of one dictionary, fed with the same rewards. Model j has
V_j = Phi_j'Phi_j + ridge_j^2 I, mean mu_j(x) = phi_j(x)' V_j^-1 Phi_j'y and width s_j(x) = ||phi_j(x)||_{V_j^-1}.
Storage is an implementation detail that `factory.posteriors` chooses; other modules use the protocols.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.problem.candidates import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from alexp.problem.candidates import Choices, Pending
    from alexp.problem.kernels import Kernel

    Where: TypeAlias = Choices | FloatArray  # choices, or n dictionary rows (n, P)


class NotFiniteError(FloatingPointError):
    """The fit of a model gives something that is not a finite number.

    Attributes
    ----------
    what : what is not finite, such as "mean".
    model : the number of the model.
    """

    def __init__(self, what: str, model: int) -> None:
        super().__init__(f"the {what} of model {model} is not a finite number")
        self.what, self.model = what, model


def is_finite(values: FloatArray) -> bool:
    """Whether all values are finite numbers; they may be on a device. Those in parts are checked when reduced."""
    if hasattr(values, "without"):
        return True
    return bool(np.isfinite(values.max()) and np.isfinite(values.min()))


class Envelope(NamedTuple):
    """Lower and upper ends (n,), and the model that attains each upper end (n,); -1 where there is none."""

    lower: FloatArray
    upper: FloatArray
    model: IntArray


@dataclass
class CandidateMoments:
    """Weighted moments at n candidates while components are merged in: weight so far, mean, variance in two parts."""

    total: float
    mean: FloatArray
    within: FloatArray
    between: FloatArray

    @classmethod
    def empty(cls, n: int) -> CandidateMoments:
        """Nothing merged yet."""
        return cls(0.0, np.zeros(n), np.zeros(n), np.zeros(n))

    def merge(self, share: float, mean: FloatArray, variance: FloatArray) -> None:
        """Merge one more component with these moments, shapes (n,)."""
        self.total += share
        step = share / self.total
        delta = mean - self.mean
        self.mean = self.mean + step * delta
        self.between = self.between + share * (1.0 - step) * delta**2
        self.within = self.within + share * variance

    def merge_many(self, shares: FloatArray, means: FloatArray, variances: FloatArray) -> None:
        """Merge K components of shares (K,) and moments (K, n) at once: squares are taken about the new mean."""
        before, self.total = self.total, self.total + float(shares.sum())
        mean = self.mean + (shares @ (means - self.mean)) / self.total
        self.between = self.between + before * (self.mean - mean) ** 2 + shares @ (means - mean) ** 2
        self.within = self.within + shares @ variances
        self.mean = mean


def dictionary_rows(where: Where) -> FloatArray:
    """The dictionary at choices, or the rows themselves, (n, P)."""
    return where if isinstance(where, np.ndarray) else where.table.T


def feature_major(choices: Choices | FloatArray) -> FloatArray:
    """The dictionary at choices, or the table itself, (P, n)."""
    return choices if isinstance(choices, np.ndarray) else choices.table


class Component(NamedTuple):
    """One model in one cell of a mixture: its share, and its mean and variance at n candidates (n,)."""

    share: float
    cell: int
    model: int
    mean: FloatArray
    variance: FloatArray

    def check(self) -> None:
        """Raise unless mean and variance are finite."""
        for what, values in (("mean", self.mean), ("variance", self.variance)):
            if not is_finite(values):
                raise NotFiniteError(what, self.model)


class ComponentValues(NamedTuple):
    """K components of a mixture at few candidates: shares (K,), means and variances (K, n), numbers g M + j (K,)."""

    shares: FloatArray
    mean: FloatArray
    variance: FloatArray
    numbers: IntArray


class Posteriors(Protocol):
    """Fits of M models on all rewards so far. Tables are feature-major, (P, n) and C-contiguous."""

    n_models: int
    intercept: bool

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""

    @property
    def counts(self) -> IntArray:
        """Number of rewards that tell of each constant, where there is an intercept: (1,), or one for every arm."""

    def update(self, row: FloatArray, y: float) -> None:
        """Absorb one reward of an action with dictionary row (P,)."""

    def with_fantasies(self, rows: FloatArray, members: IntArray | None = None) -> Posteriors:
        """Other posteriors of all models, or of some, that have absorbed pending rows (k, P) at their own means.

        Means stay, and a pending row p takes (phi_x' V^-1 phi_p)^2 / (1 + phi_p' V^-1 phi_p) from s_j^2(x).
        """

    def argmax_ucb(self, choices: Choices, width: FloatArray | float) -> IntArray:
        """Position of every model's best choice, argmax mu_j + width_j s_j, the first of equal ones, shape (M,)."""

    def argmax_mean(self, choices: Choices) -> IntArray:
        """Position of every model's best choice by its mean, the first of equal ones, shape (M,)."""

    def argmax_draw(self, choices: Choices, rng: np.random.Generator, scale: float) -> IntArray:
        """Position of every model's best choice under one draw of covariance scale^2 V_j^-1, shape (M,)."""

    def mean(self, j: int, features: Where) -> FloatArray:
        """mu_j at choices, or at n dictionary rows (n, P), shape (n,)."""

    def width(self, j: int, features: Where) -> FloatArray:
        """s_j at choices, or at n dictionary rows (n, P), shape (n,)."""

    def at(self, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """mu_j and s_j^2 of every model at one dictionary row (P,), shapes (M,)."""

    def residuals(self) -> FloatArray:
        """F_j = min over theta of RSS + ridge_j^2 ||theta||^2, shape (M,)."""

    def log_determinants(self) -> FloatArray:
        """log det(V_j / ridge_j^2), shape (M,)."""

    def evidence(self, noise: float) -> FloatArray:
        """-F_j / (2 noise^2) - log det(V_j / ridge_j^2) / 2, shape (M,)."""

    def envelope(self, members: IntArray, radii: FloatArray, choices: Choices) -> Envelope:
        """Extremes of mu_j -/+ radius_j s_j over some models."""

    def largest_gaps(
        self, members: IntArray, radii: FloatArray, choices: Choices, reference: int
    ) -> tuple[FloatArray, FloatArray]:
        """By how much some choice can beat the one at `reference`: within the radii, and by the estimates, (K,)."""

    def merge_moments(
        self, into: CandidateMoments, members: IntArray, shares: FloatArray, variances: FloatArray, choices: Choices
    ) -> None:
        """Merge weighted means and variances (variances_j s_j^2) of some models into moments at all candidates."""

    def state(self) -> Packable:
        """Everything that rewards have changed."""

    def restore(self, state: Packable) -> None:
        """Continue from `state` of posteriors with the same models."""


class LinearPosteriors(Posteriors, Protocol):
    """Fits of models that are linear in their columns, coefficients and all."""

    def add_coefficients(self, members: IntArray, shares: FloatArray, out: FloatArray) -> None:
        """Add the weighted coefficients of some models to ``out`` (P,), or (P + 1,) with an intercept, its last entry.

        Constants that every arm has of its own are coefficients of columns.
        """


class Score(Protocol):
    """Log evidence of components, up to a common constant."""

    def __call__(
        self, residuals: FloatArray, determinants: FloatArray, multiples: FloatArray | None = None
    ) -> FloatArray:
        """From F_j and log det(V_j / ridge_j^2) of all cells, (cells, M) each; must not rise in either.

        `multiples` are ridge_j^2 in units of the first cell's where these are learned, and NaN elsewhere.
        """


@runtime_checkable
class KnowsMeans(Protocol):
    """A grid that has means without variances."""

    def largest_means(self, weights: FloatArray, choices: Choices, least: float) -> FloatArray:
        """The largest mean of each component of weight above `least` among some choices, (K,)."""


class PosteriorGrid(Protocol):
    """The same models fitted at several ridges, one cell each."""

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""

    @property
    def n_constants(self) -> int:
        """Degrees of freedom that flat constants have taken: one for each that has had a reward."""

    @property
    def multiples(self) -> FloatArray | None:
        """Squared ridges in units of the first cell's where they are learned, (cells, M), else NaN; None if none is."""

    def residuals_by_arm(self, weights: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """F of every arm's rewards and its number of coefficients, (K,) each, averaged under weights (cells, M).

        None where arms have no coefficients of their own.
        """

    def reweigh(self, score: Score, power: float) -> None:
        """Learn what is learned from the evidence, to a power, of the last reward."""

    def learned_kernel(self, model: int, cell: int) -> Kernel | None:
        """The kernel of a component where it is learned; None elsewhere."""

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward into every cell; `index` is the candidate's, if it is one."""

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """`score` of every component, (cells, M); minus infinity for those far below the best.

        Components within 32 * `reach` of the best are always given; those within 45 * `reach` are never dropped.
        """

    def preference(self, variances: Callable[[], FloatArray]) -> FloatArray | None:
        """Log of what slopes of a preferred sign multiply the evidence by, (cells, M).

        `variances` gives those of the noise, (cells, M). None where no slope has one; see `onepass.regressions.Slope`.
        """

    def residuals(self) -> FloatArray:
        """`Posteriors.residuals` of every cell, (cells, M); lower bounds where the last evidence was -infinity."""

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the reward under weights and noise variances, (cells, M) each, shapes (n,).

        Every component has absorbed the `pending` trials at its own mean, see `Posteriors.with_fantasies`.
        """

    def components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending = NOTHING,
        least: float = 0.0,
    ) -> Iterator[Component]:
        """The components of weight above `least`, one by one, as `moments` merges them; shares sum to one."""

    def values(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> ComponentValues:
        """The same all at once, for few choices and a constant that is known or has something pending."""

    def prefers_few(self, weights: FloatArray, n: int) -> bool:
        """Whether `values` at few choices take far less time than `moments` at n."""

    def n_normals(self, model: int) -> int:
        """How many standard normals a draw of a model takes."""

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices under one draw of a component whose noise is `scale`, (n,), up to a constant."""

    def root_width(self, n: int) -> int | None:
        """D, the width of the `roots` at n choices; None where there are no roots."""

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means (m, n), up to constants, and square roots (m, n, D) of the covariances, noise one, of some models.

        f = mean + noise root z with z ~ N(0, I) is jointly as the posterior says.
        """

    def state(self) -> Packable:
        """Everything that rewards have changed."""

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""


class FixedRidges:
    """A `PosteriorGrid` that learns nothing but coefficients of either sign."""

    multiples: FloatArray | None = None

    def residuals_by_arm(self, weights: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Arms have no coefficients of their own."""
        return None

    def reweigh(self, score: Score, power: float) -> None:
        """Nothing is learned from the evidence."""

    def learned_kernel(self, model: int, cell: int) -> Kernel | None:
        """None is learned."""
        return None

    def preference(self, variances: Callable[[], FloatArray]) -> FloatArray | None:
        """Slopes of either sign are equally likely."""
        return None

    def prefers_few(self, weights: FloatArray, n: int) -> bool:
        """Moments at all candidates are cheap."""
        return False


class MergedGrid(FixedRidges, ABC):
    """A grid that computes all components that matter at once and merges them; a subclass has `_components`."""

    n_models: int
    negligible = 1e-12  # components of smaller weight are left out of predictions

    @abstractmethod
    def _components(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Numbers and shares (K,) of components of weight above `least`, means and variances at the choices (K, n)."""

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        _, shares, means, spreads = self._components(weights, variances, choices, pending, self.negligible)
        merged = CandidateMoments.empty(means.shape[1])
        merged.merge_many(shares, means, spreads)
        return merged.mean, merged.within + merged.between

    def components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending = NOTHING,
        least: float = negligible,
    ) -> Iterator[Component]:
        parts = self._components(weights, variances, choices, pending, least)
        for member, share, mean, spread in zip(*parts, strict=True):
            cell, model = divmod(int(member), self.n_models)
            yield Component(float(share), cell, model, mean, spread)

    def values(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> ComponentValues:
        numbers, shares, mean, variance = self._components(weights, variances, choices, pending, least)
        return ComponentValues(shares, mean, variance, numbers)
