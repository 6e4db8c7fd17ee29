"""Ridge regressions of one map at several ridges, once there are more distinct points than features."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from scipy.linalg import solve_triangular

from alexp.common.arrays import FloatArray
from alexp.estimation.onepass.dual import Expansion, PointFit
from alexp.estimation.onepass.points import Points
from alexp.estimation.ridge.factors import PackedFactors


class PrimalFactor:
    """R-factors of [1? | Phi | y] on the ridge rows, one per cell; the units are those of `DualFactor`.

    Parameters
    ----------
    ratios : (cells,), the squares of the ridges.
    points : what was told so far.
    """

    def __init__(self, ratios: FloatArray, intercept: bool, points: Points) -> None:
        self.ratios, self.intercept = ratios, intercept
        n, d, lead = points.n, points.rows.shape[1], int(intercept)
        rows = np.empty((n + d, lead + d + 1))
        rows[:n, :lead], rows[:n, lead:-1], rows[:n, -1] = 1.0, points.rows, points.means
        rows[:n] *= np.sqrt(points.counts)[:, None]
        self._cells: list[PackedFactors] = []
        for ratio in ratios:
            rows[n:] = 0.0
            rows[n + np.arange(d), lead + np.arange(d)] = np.sqrt(ratio)
            triangle = np.array(np.linalg.qr(rows, mode="r"))
            triangle *= np.where(np.diag(triangle) < 0.0, -1.0, 1.0)[:, None]
            triangle[-1, -1] = np.sqrt(triangle[-1, -1] ** 2 + points.scatter)
            cell = PackedFactors(np.arange(d), np.array([0, d]), float(np.sqrt(ratio)), intercept)
            cell.restore({"factor": triangle[np.triu_indices(len(triangle))], "n_observations": points.n_observations})
            self._cells.append(cell)

    @property
    def residuals(self) -> FloatArray:
        """Penalised residuals, (cells,)."""
        return np.array([cell.residuals()[0] for cell in self._cells])

    def log_determinants(self) -> FloatArray:
        """log det(V / ridge^2), (cells,); of centred features if there is an intercept."""
        return np.array([cell.log_determinants()[0] for cell in self._cells])

    def probe(self, row: FloatArray) -> PointFit:
        """What is known of the point with features (d,); its weights are directions, see `LinearRegression`."""
        own = np.append(1.0, row) if self.intercept else row
        solutions = np.array([cell.solve(0, own) for cell in self._cells]) * self.ratios[:, None]
        variance = np.maximum(solutions @ own, 0.0)
        theta, constants = self.coefficients()
        constant = solutions[:, 0] if self.intercept else np.zeros(self.ratios.size)
        return PointFit(theta @ row + constants, variance, solutions[:, int(self.intercept) :], constant)

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Posterior means (cells, d), and constants (cells,)."""
        both = [cell.coefficients() for cell in self._cells]
        return np.array([theta for theta, _ in both]), np.array([float(constant[0]) for _, constant in both])

    def direction(self, cell: int, normals: FloatArray) -> FloatArray:
        """Draw of the coefficients less their mean, (d,), in one cell and units of the prior."""
        own = self._cells[cell]
        return own.sample(normals, float(np.sqrt(self.ratios[cell]))) - own.coefficients()[0]

    def tell(self, row: FloatArray, y: float) -> None:
        """Absorb a reward."""
        for cell in self._cells:
            cell.update(row, y)

    def believe(self, row: FloatArray) -> None:
        """Absorb a reward that is as expected."""
        for cell in self._cells:
            cell.believe(row[None])

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance at n points (n, d), (cells, n) each."""
        theta, constants = self.coefficients()
        mean, variance = theta @ features.T + constants[:, None], np.empty((self.ratios.size, len(features)))
        points = features.T if not self.intercept else np.vstack([np.ones(len(features)), features.T])
        for c, cell in enumerate(self._cells):
            z = solve_triangular(cell.triangle(0), points, trans="T")
            variance[c] = self.ratios[c] * np.einsum("kn,kn->n", z, z)
        return mean, variance

    def expansion(self) -> Expansion:
        """The same as products with the features."""
        theta, constants = self.coefficients()
        cells, d, lead = self.ratios.size, theta.shape[1], int(self.intercept)
        roots, shifts = np.empty((cells, lead + d, d)), np.zeros((cells, lead + d))
        for c, cell in enumerate(self._cells):
            inverse = solve_triangular(cell.triangle(0), np.eye(lead + d), trans="T")
            roots[c] = inverse[:, lead:]
            shifts[c] = inverse[:, 0] if lead else 0.0
        nothing = np.zeros(cells)
        return Expansion(None, roots, shifts, theta, constants, 0.0, self.ratios, np.zeros_like(theta), nothing)

    def copy(self) -> PrimalFactor:
        """One that may believe."""
        return deepcopy(self)
