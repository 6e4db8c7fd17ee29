"""How components of a mixture are weighed: one formula for noise that is known and noise that is integrated out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.device.subsets.sums import SharedSums

_SHAPE = 1.0  # a0 of unknown noise, as in `mixture.student`


@dataclass(frozen=True)
class CellTerms:
    """What a decision weighs components by, after some rewards.

    Cell c of a subset has V = gram + ridge_c^2 u I, where u is the sum of ``units`` (P,) over its columns, a penalised
    residual F and a log determinant D = log det(V / (ridge_c^2 u)). Rows of ``cells`` are (ridge^2, alpha, kappa, nu):

        log weight = power (kappa - alpha F - D / 2),                        noise variance nu;
        log weight = power (kappa - shape log(1 + alpha F) - D / 2),         nu (1 + alpha F) where shape > 0.
    """

    cells: FloatArray
    units: FloatArray
    power: float
    shape: float


class Law(Protocol):
    """Says how components are weighed, given the sums."""

    @property
    def n_cells(self) -> int:
        """Cells of the grid that every subset has a component in."""

    def terms(self, sums: SharedSums) -> CellTerms:
        """After the rewards in these sums."""


def _freedom(sums: SharedSums) -> int:
    return max(sums.n_observations - int(sums.intercept), 0)


@dataclass(frozen=True)
class KnownNoise:
    """Cells of noise_std x factor and coefficients' deviation ``bound`` x scale: `mixture.mixture` has the formulas."""

    noise_std: float
    bound: float
    pairs: tuple[tuple[float, float], ...]
    units: FloatArray
    power: float

    @property
    def n_cells(self) -> int:
        """One for each pair of a noise level and a scale."""
        return len(self.pairs)

    def terms(self, sums: SharedSums) -> CellTerms:
        """alpha = 1 / (2 noise^2), kappa = -t log(factor), nu = noise^2."""
        freedom, rows = _freedom(sums), []
        for factor, scale in self.pairs:
            noise = factor * self.noise_std
            ridge = noise / (scale * self.bound)
            rows.append((ridge**2, 0.5 / noise**2, -freedom * log(factor), noise**2))
        return CellTerms(np.array(rows), self.units, self.power, 0.0)


@dataclass(frozen=True)
class UnknownNoise:
    """Cells of ratios of noise to prior variance, their common scale integrated out: see `mixture.student`."""

    ratios: Sequence[float]
    units: FloatArray
    power: float

    @property
    def n_cells(self) -> int:
        """One for each ratio."""
        return len(self.ratios)

    def terms(self, sums: SharedSums) -> CellTerms:
        """alpha = 1 / (2 r b0), kappa = -t log(r) / 2, nu = r b0 / shape, with b0 the variance of the rewards."""
        t, freedom = sums.n_observations, _freedom(sums)
        shape = _SHAPE + 0.5 * freedom
        unit = _SHAPE * sums.squares / t if sums.squares > 0.0 else _SHAPE * sums.level**2 or 1.0
        rows = [(r, 0.5 / (r * unit), -0.5 * freedom * log(r), r * unit / shape) for r in self.ratios]
        return CellTerms(np.array(rows), self.units, self.power, shape)
