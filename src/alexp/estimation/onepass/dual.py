"""Gaussian process regression on the distinct points told so far, at several ratios of noise to prior variance.

Point i was told n_i times, with mean reward m_i. With K the Gram matrix of the D points, cell c keeps the Cholesky
factor L of K + r_c diag(1 / n_i). With k(x) the similarities of x to them, z_k = L^-1 k and so on,

    mean(x) = z_k'z_m,     C(x, x') = k(x, x') - z_k'z_k'.

An intercept with a flat prior is profiled out: with e all ones, s = z_e'z_e and b = z_e'z_m / s,

    mean(x) = b + z_k'(z_m - b z_e),     C(x, x') = k(x, x') - z_k'z_k' + (1 - z_k'z_e)(1 - z_k''z_e) / s.

All of it is in units of the prior: rewards have noise of variance r_c and the function has prior covariance k.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from alexp.common.arrays import FloatArray
from alexp.estimation.onepass import _kernels as kernels
from alexp.estimation.onepass.points import Points


class PointFit(NamedTuple):
    """What the data say of one point, in every cell, and how a reward there would act on all others.

    Attributes
    ----------
    mean, variance : (cells,), posterior at the point.
    weights : (cells, D), what the points told take from its covariance with any x: C(x, point) is
        k(x, point) - weights'k(x) + constant.
    constant : (cells,).
    """

    mean: FloatArray
    variance: FloatArray
    weights: FloatArray
    constant: FloatArray


class Expansion(NamedTuple):
    """Mean and variance at any x as products, in every cell c, for whoever has x elsewhere.

    With s = points phi(x), or phi(x) itself, and z_c = roots_c s + shifts_c,

        mean_c(x) = slopes_c's + levels_c,
        variance_c(x) = own ||phi(x)||^2 + signs_c ||z_c||^2 + shares_c (1 - shared_c's)^2.

    Attributes
    ----------
    points : (k, d); None where s is phi(x), k = d.
    roots, shifts : (cells, m, k) and (cells, m).
    slopes, shared : (cells, k) each.
    levels, signs, shares : (cells,) each.
    """

    points: FloatArray | None
    roots: FloatArray
    shifts: FloatArray
    slopes: FloatArray
    levels: FloatArray
    own: float
    signs: FloatArray
    shared: FloatArray
    shares: FloatArray

    @property
    def width(self) -> int:
        """The largest number of numbers that come of one x."""
        return int(max(self.roots.shape[1:]))


class DualFactor:
    """The regressions of all cells, D^2 numbers each; ``ratios`` (cells,) are the noise variances r_c."""

    def __init__(self, ratios: FloatArray, intercept: bool) -> None:
        self.ratios, self.intercept = ratios, intercept
        self.residuals, self._determinants = np.zeros((2, ratios.size))  # as `Posteriors` has them
        self._gram, self._factors = np.zeros((8, 8)), np.zeros((ratios.size, 8, 8))  # rows of factors by `order`

    def probe(self, points: Points, similarities: FloatArray, own: float) -> PointFit:
        """What is known of a point with these similarities (D,) to the points told, and to itself."""
        n, cells = points.n, self.ratios.size
        numbers, weights = np.zeros((3, cells)), np.empty((cells, n))
        if n == 0:
            numbers[1] = own
        else:
            work = np.empty((3, n))
            known = (points.order, points.means, similarities, own, self.intercept)
            kernels.fit_point(self._factors, *known, work, numbers, weights)
        return PointFit(numbers[0], numbers[1], weights, numbers[2])

    def _solved(self, points: Points, similarities: FloatArray) -> FloatArray:
        """z_k, z_m and z_e, shape (cells, 3, D)."""
        sides = np.stack([similarities[points.order], points.means[points.order], np.ones(points.n)])
        z = np.repeat(sides[None], self.ratios.size, axis=0)
        kernels.forward(self._factors, points.n, z)
        return z

    def _level(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s and the intercept b, shapes (cells,); one and zero without an intercept."""
        if not self.intercept:
            return np.ones(len(z)), np.zeros(len(z))
        s = _dots(z[:, 2], z[:, 2])
        return s, _dots(z[:, 2], z[:, 1]) / s

    def tell(
        self, points: Points, row: FloatArray, similarities: FloatArray, own: float, y: float, candidate: int | None
    ) -> None:
        """Absorb a reward y of the point with features (d,), here and among the `points`."""
        number = points.find(row)
        if number < points.n:
            kernels.drop(self._factors, points.n, int(np.flatnonzero(points.order == number)[0]))
        else:
            self.add_similarities(number, similarities, own)
        points.note(row, y, candidate)
        noise = self.ratios / points.counts[number]
        kernels.append(self._factors, points.order[:-1], self._gram, number, noise)

    def count(self, points: Points, probe: PointFit, y: float) -> None:
        """Add a reward to the evidence, before it is told; the first one fixes the level, whatever it is."""
        if not self.intercept or points.n_observations:
            self.residuals = self.residuals + (y - probe.mean) ** 2 * self.ratios / (probe.variance + self.ratios)
            self._determinants = self._determinants + np.log1p(probe.variance / self.ratios)

    def log_determinants(self, n_observations: int) -> FloatArray:
        """log det(I + K_tt / r), (cells,), K_tt of all rewards; that of centred features if there is an intercept."""
        return self._determinants - (np.log(n_observations) if self.intercept and n_observations else 0.0)

    def add_similarities(self, number: int, similarities: FloatArray, own: float) -> None:
        """Take note of the similarities (D,) of a new point."""
        more = len(self._gram)
        if number == more:
            self._gram = np.pad(self._gram, (0, more))
            self._factors = np.pad(self._factors, ((0, 0), (0, more), (0, more)))
        self._gram[number, :number] = self._gram[:number, number] = similarities
        self._gram[number, number] = own

    def similarities(self, number: int, n: int) -> FloatArray:
        """Similarities of a told point to the first n points, (n,)."""
        return self._gram[number, :n]

    def rebuild(self, points: Points) -> None:
        """Make the factors anew from the points, which leaves the rounding errors of updates behind."""
        n, order = points.n, points.order
        counts, gram = points.counts[order], self._gram[np.ix_(points.order, points.order)]
        for c, ratio in enumerate(self.ratios):
            try:
                self._factors[c, :n, :n] = np.linalg.cholesky(gram + np.diag(ratio / counts))
            except np.linalg.LinAlgError:  # noise of the order of rounding: no less than it stays on the diagonal
                for k, number in enumerate(order.tolist()):
                    noise = np.array([ratio / counts[k]])
                    kernels.append(self._factors[c : c + 1], order[:k], self._gram, number, noise)
        z = self._solved(points, np.zeros(n))
        s, level = self._level(z)
        rest = z[:, 1] - level[:, None] * z[:, 2]
        self.residuals = points.scatter + self.ratios * _dots(rest, rest)
        diagonals = np.log(np.einsum("ckk->ck", self._factors[:, :n, :n])).sum(axis=1)
        self._determinants = 2.0 * diagonals - np.log(self.ratios[:, None] / counts).sum(axis=1)
        if self.intercept:
            self._determinants += np.log(self.ratios * s)

    def moments(self, points: Points, similarities: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance at n points, (cells, n) each; similarities (D, n) to the points told."""
        shape = (self.ratios.size, own.size)
        mean, variance = np.zeros(shape), np.broadcast_to(own, shape).copy()
        if points.n == 0:
            return mean, variance
        fixed = self._solved(points, np.zeros(points.n))
        s, level = self._level(fixed)
        ordered = similarities[points.order]
        for c in range(shape[0]):
            z = solve_triangular(self._factors[c, : points.n, : points.n], ordered, lower=True, check_finite=False)
            mean[c] = (fixed[c, 1] - level[c] * fixed[c, 2]) @ z + level[c]
            variance[c] -= np.einsum("kn,kn->n", z, z)
            if self.intercept:
                variance[c] += (1.0 - fixed[c, 2] @ z) ** 2 / s[c]
        return mean, np.maximum(variance, 0.0)

    def expansion(self, points: Points) -> Expansion:
        """Mean and variance of linear models as products with the rows of the points told."""
        n, cells = points.n, self.ratios.size
        fixed = self._solved(points, np.zeros(n))
        s, level = self._level(fixed)
        roots = np.empty((cells, n, n))
        for c in range(cells):
            roots[c] = solve_triangular(self._factors[c, :n, :n], np.eye(n), lower=True, check_finite=False)
        rest = fixed[:, 1] - level[:, None] * fixed[:, 2]
        slopes, shared = (np.einsum("ck,ckm->cm", z, roots) for z in (rest, fixed[:, 2]))
        shares = 1.0 / s if self.intercept else np.zeros(cells)
        zero = np.zeros((cells, n))
        return Expansion(points.rows[points.order], roots, zero, slopes, level, 1.0, -np.ones(cells), shared, shares)

    def solved(self, points: Points, cell: int, right: FloatArray) -> FloatArray:
        """(K + R)^-1 (right - b) in one cell, (D,), b the level that an intercept takes from the right-hand side."""
        n, sides = points.n, np.stack([right[points.order], np.ones(points.n)])
        kernels.forward(self._factors[cell : cell + 1], n, sides[None])
        rest = sides[:1] - ((sides[0] @ sides[1]) / (sides[1] @ sides[1]) * sides[1] if self.intercept else 0.0)
        kernels.backward(self._factors[cell : cell + 1], n, rest)
        out = np.empty(n)
        out[points.order] = rest[0]
        return out

    def covariance(self, points: Points, cell: int, similarities: FloatArray, gram: FloatArray) -> FloatArray:
        """Posterior covariance of n points in one cell, (n, n); similarities (D, n), and among themselves (n, n)."""
        if points.n == 0:
            return gram
        factor, sides = self._factors[cell, : points.n, : points.n], similarities[points.order]
        z = solve_triangular(factor, sides, lower=True, check_finite=False)
        out = gram - z.T @ z
        if self.intercept:
            e = solve_triangular(factor, np.ones(points.n), lower=True, check_finite=False)
            surprise = 1.0 - e @ z
            out += np.outer(surprise, surprise / (e @ e))
        return np.asarray(out)

    def copy(self) -> DualFactor:
        """One that may be told what is only believed."""
        out = copy(self)
        out._gram, out._factors = self._gram.copy(), self._factors.copy()
        return out


def _dots(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ck,ck->c", left, right))
