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
from alexp.estimation.factory import linear_posteriors
from alexp.estimation.mixture.kernel_evidence import KernelEvidencePath
from alexp.estimation.mixture.weighing import unknown_noise_weights
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
        """Number of rewards so far, t."""
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
        """Invert ``Estimate.state``."""
        return Estimate.from_state(state, self.n_columns, self._cells[0].n_models)

    def _weights(self) -> FloatArray:
        """Posterior probability of every (ridge, model), shape (R, M)."""
        losses = np.array([cell.residuals() for cell in self._cells])
        levels = np.array([cell.log_determinants() for cell in self._cells])
        constants = int(np.count_nonzero(self._cells[0].counts)) if self._cells[0].intercept else 0
        return unknown_noise_weights(losses, levels, self.n_observations - constants)

    def state(self) -> Packable:
        """Return everything needed to continue bit for bit."""
        return [cell.state() for cell in self._cells]

    def restore(self, state: Packable) -> None:
        """Continue from :meth:`state` of a path bound to the same groups."""
        for cell, saved in zip(self._cells, sequence("cells", state, len(self._cells)), strict=True):
            cell.restore(saved)
            same("n_observations of a cell", cell.n_observations, self.n_observations, "as in the first")
