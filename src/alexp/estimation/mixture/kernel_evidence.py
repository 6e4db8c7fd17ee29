"""The evidence oracle for kernels: the same weights, and an estimate that is a sum of kernels at the points told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable, State
from alexp.estimation.estimate import Estimate
from alexp.estimation.factory import largest_variance
from alexp.estimation.mixture.weighing import unknown_noise_weights
from alexp.estimation.onepass.regressions import KernelRegression, PointTold, lifted

if TYPE_CHECKING:
    from alexp.problem.models import ModelClass


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
        """Estimated rewards of n candidates, table (P, n), shape (n,)."""
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
        """Number of rewards so far, t."""
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
        shares = unknown_noise_weights(losses, levels, self.n_observations - int(self._models.intercept))
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
        """Invert ``KernelEstimate.state``."""
        arrays = {name: np.asarray(state[name]) for name in ("beta", "groups", "magnitudes", "points", "weights")}
        return KernelEstimate(intercept=float(state["intercept"]), models=self._models, **arrays)

    def state(self) -> Packable:
        """The rewards and where they were measured: all else follows from that, bit for bit."""
        return {"rows": np.array(self._rows), "rewards": np.array(self._rewards)}

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""
        self._begin()
        for row, y in zip(np.asarray(state["rows"]), np.asarray(state["rewards"]).tolist(), strict=True):
            self.append(row, y)
