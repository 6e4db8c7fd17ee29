"""Evidence-weighted aggregate of all models' ridge fits, as a regression oracle in place of the group Lasso.

The noise is integrated out: with the conjugate prior theta_j ~ N(0, noise^2 / ridge^2) and 1/noise^2 as prior of the
variance, the evidence of model j on t rewards is proportional to

    F_j^(-t/2) det(V_j / ridge^2)^(-1/2),     F_j = min_theta ||y - Phi_j theta||^2 + ridge^2 ||theta||^2,

so that the oracle needs neither the noise nor the scale of the rewards. Several values of ridge are averaged over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable, State
from alexp.common.schema import same, sequence
from alexp.common.validation import positive
from alexp.estimation.estimate import Estimate
from alexp.estimation.factory import largest_variance, linear_posteriors
from alexp.estimation.mixture.mixture import flat_prior_weights
from alexp.estimation.onepass.regressions import KernelRegression, PointTold, lifted
from alexp.estimation.posteriors import LinearPosteriors
from alexp.estimation.ridge.bank import RidgeBank

if TYPE_CHECKING:
    from alexp.problem.models import ModelClass


@dataclass(frozen=True)
class Evidence:
    """Specification of the oracle: ratios of noise to coefficient size that the prior averages over."""

    ridges: tuple[float, ...] = (0.01, 0.1, 1.0)

    def __post_init__(self) -> None:
        if len(self.ridges) == 0:
            raise ValueError("ridges must hold at least one number")
        object.__setattr__(self, "ridges", tuple(positive("ridges", ridge) for ridge in self.ridges))

    def bind(self, models: ModelClass) -> EvidencePath | KernelEvidencePath:
        """Return an empty data set for these models."""
        if models.kernels is not None:
            return KernelEvidencePath(models, self.ridges)
        cells = [linear_posteriors(models, ridge) for ridge in self.ridges]
        return EvidencePath(models.n_columns, cells)

    def bind_groups(
        self,
        n_columns: int,
        columns: npt.ArrayLike,
        offsets: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        intercept: bool = False,
    ) -> EvidencePath:
        """Return an empty data set for these groups; ``weights`` (M,) divide the features of each group."""
        divisors = np.ones(np.size(offsets) - 1) if weights is None else np.asarray(weights, dtype=np.float64)
        cells = [RidgeBank(columns, offsets, ridge * divisors, intercept) for ridge in self.ridges]
        return EvidencePath(n_columns, cells)


class EvidencePath:
    """The observations so far; :meth:`append` adds one, :meth:`solve` changes nothing."""

    def __init__(self, n_columns: int, cells: Sequence[LinearPosteriors]) -> None:
        self.n_columns, self._cells = n_columns, cells

    @property
    def n_observations(self) -> int:
        return self._cells[0].n_observations

    def append(self, row: npt.ArrayLike, y: float, weight: float = 1.0) -> None:
        """Add the observation y with dictionary row ``row`` (P,); the evidence of weighted rewards is not defined."""
        if weight != 1.0:
            raise ValueError(f"Evidence takes observations of weight 1 only, got {weight!r}")
        for cell in self._cells:
            cell.update(np.asarray(row, dtype=np.float64), y)

    def solve(self, lam: float, start: Estimate | None = None) -> Estimate:
        """Return the aggregate.

        ``groups`` are the models with positive weight and ``magnitudes`` their posterior probabilities; ``lam`` and
        ``start`` are not used.
        """
        if self.n_observations == 0:
            raise ValueError("no observations yet; append one before solving")
        shares = self._weights()
        lead = int(self._cells[0].intercept)
        mean = np.zeros(self.n_columns + lead)
        for cell, share in zip(self._cells, shares, strict=True):
            active = np.flatnonzero(share)
            cell.add_coefficients(active, share[active], mean)
        weights = shares.sum(axis=0)
        groups = np.flatnonzero(weights)
        constant = float(mean[-1]) if lead else 0.0
        return Estimate(mean[: self.n_columns].copy(), constant, groups, weights[groups])

    def read(self, state: State) -> Estimate:
        return Estimate.from_state(state, self.n_columns, self._cells[0].n_models)

    def _weights(self) -> FloatArray:
        """Posterior probability of every (ridge, model), shape (R, M)."""
        losses = np.array([cell.residuals() for cell in self._cells])
        levels = np.array([cell.log_determinants() for cell in self._cells])
        constants = int(np.count_nonzero(self._cells[0].counts)) if self._cells[0].intercept else 0
        return flat_prior_weights(losses, levels, self.n_observations - constants)

    def state(self) -> Packable:
        return [cell.state() for cell in self._cells]

    def restore(self, state: Packable) -> None:
        for cell, saved in zip(self._cells, sequence("cells", state, len(self._cells)), strict=True):
            cell.restore(saved)
            same("n_observations of a cell", cell.n_observations, self.n_observations, "as in the first")


@dataclass(frozen=True, eq=False)
class KernelEstimate(Estimate):
    """intercept + sum over models j and points i of weights_ji k_j(x, x_i); `beta` is zero.

    The kernels are those of `ModelClass.similarity`.

    Attributes
    ----------
    points : (D, P) dictionary rows of the points told.
    weights : (k, D), for the models in `groups`.
    """

    points: FloatArray
    weights: FloatArray
    models: ModelClass

    def state(self) -> State:
        """The fields as a dict of arrays and numbers, without the models."""
        out = super().state()
        del out["models"]
        return out

    def at(self, table: FloatArray) -> FloatArray:
        out = np.full(table.shape[1], self.intercept)
        rows = np.ascontiguousarray(table.T)
        for j, weights in zip(self.groups.tolist(), self.weights, strict=True):
            out += weights @ self.models.similarities(j, self.points, rows)
        return out


class KernelEvidencePath:
    """`EvidencePath` for classes with kernels: one regression per model, at all ridges."""

    def __init__(self, models: ModelClass, ridges: tuple[float, ...]) -> None:
        self._models, self._ridges = models, np.asarray(ridges)
        self._begin()

    def _begin(self) -> None:
        models = self._models
        self._rows: list[FloatArray] = []
        self._rewards: list[float] = []
        self._fits = []
        for j in range(models.n_models):
            ratios = lifted((self._ridges * models.scales[j]) ** 2, largest_variance(models, j))
            self._fits.append(KernelRegression(models.similarity(j), models.groups[j].size, ratios, models.intercept))

    @property
    def n_observations(self) -> int:
        return len(self._rewards)

    def append(self, row: FloatArray, y: float, weight: float = 1.0) -> None:
        """Add the observation y with dictionary row (P,); the evidence of weighted rewards is not defined."""
        if weight != 1.0:
            raise ValueError(f"Evidence takes observations of weight 1 only, got {weight!r}")
        for fit, group in zip(self._fits, self._models.groups, strict=True):
            at = PointTold(np.ascontiguousarray(row[group]), None, lambda: np.empty(0))
            fit.tell(at, y, fit.probe(at))
        self._rows.append(np.array(row, dtype=np.float64))
        self._rewards.append(float(y))

    def solve(self, lam: float, start: Estimate | None = None) -> KernelEstimate:
        """Return the aggregate; ``lam`` and ``start`` are not used."""
        if self.n_observations == 0:
            raise ValueError("no observations yet; append one before solving")
        losses = np.array([fit.residuals for fit in self._fits]).T
        levels = np.array([fit.log_determinants() for fit in self._fits]).T
        shares = flat_prior_weights(losses, levels, self.n_observations - int(self._models.intercept))
        groups = np.flatnonzero(shares.sum(axis=0))
        points = np.unique(np.array(self._rows), axis=0)
        weights, intercept = np.zeros((groups.size, len(points))), 0.0
        for place, j in enumerate(groups.tolist()):
            fit = self._fits[j]
            own = [fit.points.find(np.ascontiguousarray(row[self._models.groups[j]])) for row in points]
            # Points that only other models tell apart are one point of this model: the first of them stands for it.
            numbers, places = np.unique(own, return_index=True)
            for cell in np.flatnonzero(shares[:, j]):
                solved, level = fit.representer(int(cell))
                weights[place, places] += shares[cell, j] * self._models.scales[j] ** 2 * solved[numbers]
                intercept += float(shares[cell, j]) * level
        magnitudes = shares.sum(axis=0)[groups]
        beta = np.zeros(self._models.n_columns)
        return KernelEstimate(beta, intercept, groups, magnitudes, points, weights, self._models)

    def read(self, state: State) -> KernelEstimate:
        arrays = {name: np.asarray(state[name]) for name in ("beta", "groups", "magnitudes", "points", "weights")}
        return KernelEstimate(intercept=float(state["intercept"]), models=self._models, **arrays)

    def state(self) -> Packable:
        """The rewards and where they were measured: all else follows from that, bit for bit."""
        return {"rows": np.array(self._rows), "rewards": np.array(self._rewards)}

    def restore(self, state: Packable) -> None:
        self._begin()
        for row, y in zip(np.asarray(state["rows"]), np.asarray(state["rewards"]).tolist(), strict=True):
            self.append(row, y)
