"""A Gaussian process whose lengthscales, one per input, and noise are integrated over by particles.

Matern 5/2 on inputs divided by their ranges over the candidates. The d lengthscales have a shared prior,

    log l_k = c + e_k,   c ~ N(log(d) / 2 + sqrt(2) - log(2), 1),   e_k ~ N(0, 0.5^2),   log r ~ N(m, 1.5^2),

r the noise variance in units of the prior's, m the mean logarithm of the ratios that other models have. With c
integrated out, log l is Gaussian with covariance 0.25 I + 1 1'. S particles (log l, log r) follow the posterior,
prior x evidence^power, by sequential Monte Carlo (Chopin 2002): each reward multiplies their weights by what it adds to
the evidence. Once the effective number of particles is below 0.6 S they are resampled systematically and moved by six
Metropolis steps that leave the posterior as it is, in turn along the particles' covariance and along one coordinate.
The product of the mean factors estimates the evidence of the model.

Random numbers depend on the number of rewards and on nothing else, so that the particles are a function of the rewards
in their order. Factors, and values at the candidates, are a function of rewards and particles, to the last bit: a run
that is continued needs its rewards and its particles.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import floats, number, record
from alexp.estimation.onepass import _particle_kernels as kernels
from alexp.estimation.onepass._kernels import subtract_products
from alexp.estimation.onepass.regressions import (
    MOST_DRAWN,
    Points,
    PointTold,
    covariance_root,
    lifted,
    likely_best,
)
from alexp.estimation.ridge.bank import CondensedTrials
from alexp.problem.candidates import PendingBlock
from alexp.problem.kernels import ARD, Matern
from alexp.problem.matrices import Block
from alexp.problem.rows import dense

PARTICLES = 32
_LEAST = 0.6  # of the particles that must be effective
_MOVES = 6
_JOINT = 0.7 * 2.38  # of the particles' deviations, divided by the root of the number of coordinates
_SINGLE = 1.5  # deviation of a step along one coordinate
_SHARED, _OWN, _NOISE = 1.0, 0.5, 1.5  # deviations of c, e_k and log r
_AFFORDABLE = 2e7  # multiplications of one factor in a sweep; with more points there are fewer sweeps
_KEY = 7_321  # of the random numbers


class ParticleScore(Protocol):
    """Log evidence of components, up to a constant that all share."""

    def __call__(self, residuals: FloatArray, determinants: FloatArray, multiples: FloatArray) -> FloatArray:
        """From F, log det(V / r) and r in units of the first cell's ratio, (K, 1) each."""


class ParticleFamily:
    """One model with S particles for cells, on N candidates; otherwise as `Family`.

    Parameters
    ----------
    block : the model's columns on all candidates, in the domain's order.
    kernel : fitted; says what inputs are divided by.
    ratios : (cells,) those that other models have.
    intercept : whether there is a constant with a flat prior.
    """

    def __init__(self, block: Block, kernel: ARD, ratios: FloatArray, intercept: bool) -> None:
        self._weights = kernel.input_weights  # (d,) zero for columns that are constant
        self._active = np.flatnonzero(self._weights)
        self._block, self._intercept, self._cells, self._unit = block, intercept, ratios.size, float(ratios[0])
        self._table = np.ascontiguousarray(self._scaled(dense(block.rows)).T)  # (d, N)
        d, s = self._active.size, PARTICLES
        self._prior_mean = np.append(np.full(d, log(kernel.median(d))), np.mean(np.log(ratios)))
        covariance = np.zeros((d + 1, d + 1))
        covariance[:d, :d] = _SHARED**2 + _OWN**2 * np.eye(d)
        covariance[d, d] = _NOISE**2
        self._prior_root = np.linalg.cholesky(covariance)
        self.theta = self._prior_mean + _stratified(np.random.default_rng(_KEY), s, d + 1) @ self._prior_root.T
        self.points = Points(block.n_columns)
        self._log_weights, self._scores, self._total = np.full(s, -log(s)), np.zeros(s), 0.0
        self._factors, self._sides = np.zeros((s, 0, 0)), np.zeros((s, 2, 0))
        self._built = 0  # rows of the factors that are right
        self._valued, self._summed = np.zeros((2, s), dtype=np.int64)  # rows of z that are right, and those in sums
        self._z, self._sums = np.empty((s, 0, block.n_rows)), np.zeros((s, 3, block.n_rows))
        self._moments: tuple[FloatArray, FloatArray] | None = None

    def _scaled(self, rows: FloatArray) -> FloatArray:
        """Inputs in units of their ranges; constant ones are left out."""
        return rows[:, self._active] * self._weights[self._active]

    @property
    def ratios(self) -> FloatArray:
        """(S,) noise variances in units of the prior."""
        return lifted(np.exp(self.theta[:, -1]), 1.0)

    @property
    def multiples(self) -> FloatArray:
        """The same in units of the first ratio of other models."""
        return self.ratios / self._unit

    def kernel(self, particle: int) -> Matern:
        """The kernel of a particle, on the model's columns."""
        scales = np.zeros(self._weights.size)
        scales[self._active] = np.exp(self.theta[particle, :-1]) / self._weights[self._active]
        return Matern(2.5, lengthscale=1.0, unit=1.0, scales=tuple(scales.tolist()))

    # -- rewards -----------------------------------------------------------------------------------------------------

    def update(self, at: PointTold, y: float) -> None:
        """Take note of a reward of a point; `reweigh` does the rest."""
        number = self.points.find(at.row)
        self.points.note(at.row, y, at.candidate)
        self._built, self._valued = min(self._built, number), np.minimum(self._valued, number)
        self._moments = None

    def _build(self) -> None:
        """Factors, and the solutions for means and ones, of all points."""
        n, first = self.points.n, self._built
        if first == n:
            return
        if self._factors.shape[1] < n:
            more = max(16, n, self._factors.shape[1] // 2)
            self._factors = np.pad(self._factors, ((0, 0), (0, more), (0, more)))
            self._sides = np.pad(self._sides, ((0, 0), (0, 0), (0, more)))
        self._fill(self.theta, self._factors, self._sides, first)
        self._built = n

    def _fill(self, theta: FloatArray, factors: FloatArray, sides: FloatArray, first: int) -> None:
        """Rows `first`, ... of the factors and solutions at some coordinates (S, d + 1), in place."""
        n, scaled = self.points.n, self._scaled(self.points.rows)
        ratios = lifted(np.exp(theta[:, -1]), 1.0)
        for p, own in enumerate(np.exp(-theta[:, :-1])):
            kernels.factorise(scaled * own, ratios[p] / self.points.counts, factors[p], first)
            sides[p, 0, first:n], sides[p, 1, first:n] = self.points.means[first:], 1.0
            kernels.solve(factors[p], first, sides[p, :, :n])

    def _levels(self, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s = z_e'z_e and the intercept b of every particle, (S,); one and zero without an intercept."""
        means, ones = sides[:, 0, : self.points.n], sides[:, 1, : self.points.n]
        if not self._intercept or not self.points.n:
            return np.ones(len(sides)), np.zeros(len(sides))
        s = np.einsum("pk,pk->p", ones, ones)
        return s, np.einsum("pk,pk->p", ones, means) / s

    def _misfits(self, ratios: FloatArray, factors: FloatArray, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F and log det(V / r) of every particle, (S,), as `DualFactor` has them."""
        n, counts = self.points.n, self.points.counts
        if n == 0:
            return np.zeros(ratios.size), np.zeros(ratios.size)
        s, level = self._levels(sides)
        rest = sides[:, 0, :n] - level[:, None] * sides[:, 1, :n]
        residuals = self.points.scatter + ratios * np.einsum("pk,pk->p", rest, rest)
        determinants = 2.0 * np.log(np.einsum("pkk->pk", factors[:, :n, :n])).sum(axis=1)
        determinants -= np.log(ratios[:, None] / counts).sum(axis=1)
        if self._intercept:
            determinants += np.log(ratios * s) - log(self.points.n_observations)
        return residuals, determinants

    @property
    def residuals(self) -> FloatArray:
        """Penalised residuals, (S,)."""
        self._build()
        return self._misfits(self.ratios, self._factors, self._sides)[0]

    def log_determinants(self) -> FloatArray:
        """log det(I + K / r), (S,); of centred features if there is an intercept."""
        self._build()
        return self._misfits(self.ratios, self._factors, self._sides)[1]

    # -- particles ---------------------------------------------------------------------------------------------------

    def evidence(self, reach: float) -> FloatArray:
        """Log evidence of every particle, (S,); to the power 1 / reach it is the model's times a particle's weight.

        Other models have their evidence in each of their cells, so that this one has it as often.
        """
        return reach * (self._total + self._log_weights + log(self._cells))

    def reweigh(self, score: ParticleScore, power: float) -> None:
        """Multiply the weights by what the last reward added to the evidence; resample and move where these are few."""
        self._build()
        scores = self._score(score, self.theta, self._factors, self._sides)
        logs = self._log_weights + power * (scores - self._scores)
        gain = float(np.logaddexp.reduce(logs))
        self._total, self._log_weights, self._scores = self._total + gain, logs - gain, scores
        weights = np.exp(self._log_weights)
        if 1.0 / float(weights @ weights) < _LEAST * weights.size:
            rng = np.random.default_rng((_KEY, self.points.n_observations))
            covariance = np.cov(self.theta.T, aweights=weights, ddof=0)
            self._resample(weights, rng.random())
            self._move(score, power, np.atleast_2d(covariance), rng)
            self._moments = None

    def _score(self, score: ParticleScore, theta: FloatArray, factors: FloatArray, sides: FloatArray) -> FloatArray:
        ratios = lifted(np.exp(theta[:, -1]), 1.0)
        residuals, determinants = self._misfits(ratios, factors, sides)
        return score(residuals[:, None], determinants[:, None], (ratios / self._unit)[:, None])[:, 0]

    def _resample(self, weights: FloatArray, offset: float) -> None:
        """Systematic resampling; a particle that survives stays where it is, and copies take the place of others."""
        s = weights.size
        edges = np.minimum(np.cumsum(weights) * (s / weights.sum()), s)
        edges[-1] = s
        counts = np.diff(np.ceil(edges - offset).astype(np.int64), prepend=0)
        sources = np.arange(s)
        sources[counts == 0] = np.repeat(np.arange(s), np.maximum(counts - 1, 0))
        self.theta, self._scores = self.theta[sources], self._scores[sources]
        self._factors, self._sides = self._factors[sources], self._sides[sources]
        self._valued[counts == 0] = 0
        self._log_weights = np.full(s, -log(s))

    def _move(self, score: ParticleScore, power: float, covariance: FloatArray, rng: np.random.Generator) -> None:
        s, k = self.theta.shape
        root = np.linalg.cholesky(covariance + 1e-6 * np.eye(k)) * (_JOINT / sqrt(k))
        sweeps = int(np.clip(_AFFORDABLE / max(self.points.n, 1) ** 3, 1, _MOVES))
        for sweep in range(sweeps):
            normals, coordinates, uniforms = rng.standard_normal((s, k)), rng.integers(k, size=s), rng.random(s)
            if sweep % 2 == 0:
                proposed = self.theta + normals @ root.T
            else:
                proposed = self.theta.copy()
                proposed[np.arange(s), coordinates] += _SINGLE * normals[:, 0]
            factors, sides = np.empty_like(self._factors), np.empty_like(self._sides)
            self._fill(proposed, factors, sides, 0)
            scores = self._score(score, proposed, factors, sides)
            odds = power * (scores - self._scores) + self._log_prior(proposed) - self._log_prior(self.theta)
            taken = np.log(uniforms) < odds
            self.theta[taken], self._scores[taken] = proposed[taken], scores[taken]
            self._factors[taken], self._sides[taken] = factors[taken], sides[taken]
            self._valued[taken] = 0

    def _log_prior(self, theta: FloatArray) -> FloatArray:
        """Log density of the prior up to a constant, (S,)."""
        z = np.linalg.solve(self._prior_root, (theta - self._prior_mean).T)
        return np.asarray(-0.5 * (z**2).sum(axis=0))

    # -- values ------------------------------------------------------------------------------------------------------

    @property
    def mean(self) -> FloatArray:
        """(S, N), in the domain's order; without the constant before the first reward."""
        return self._values()[0]

    @property
    def variance(self) -> FloatArray:
        """(S, N), in units of the prior."""
        return self._values()[1]

    def _values(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of all candidates; only rows that are new, or of particles that moved, are computed."""
        if self._moments is None:
            self._build()
            n, scaled = self.points.n, self._scaled(self.points.rows)
            if self._z.shape[1] < n:
                grown = np.empty((PARTICLES, max(32, n + n // 2), self._block.n_rows))
                grown[:, : self._z.shape[1]] = self._z
                self._z = grown
            for p, own in enumerate(np.exp(-self.theta[:, :-1])):
                first, summed = int(self._valued[p]), int(self._summed[p])
                if first < n:
                    kernels.extend(self._factors[p], scaled * own, self._table * own[:, None], self._z[p], first)
                    if first < summed:
                        self._sums[p], summed = 0.0, 0
                    kernels.accumulate(self._z[p], self._sides[p, :, :n], summed, self._sums[p])
            self._valued[:] = self._summed[:] = n
            self._moments = self._from_sums(self._sums, *self._levels(self._sides))
        return self._moments

    def _from_sums(self, sums: FloatArray, s: FloatArray, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance from the sums (S, 3, n) of z^2, z z_m and z z_e, (S, n) each."""
        squares, means, ones = sums[:, 0], sums[:, 1], sums[:, 2]
        mean, variance = means + level[:, None] * (1.0 - ones), 1.0 - squares
        if not self._intercept:
            mean = means
        elif self.points.n:
            variance += (1.0 - ones) ** 2 / s[:, None]
        return mean, np.maximum(variance, 0.0)

    def at(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at any points (n, d), (S, n) each."""
        self._build()
        n, scaled, table = self.points.n, self._scaled(self.points.rows), self._scaled(rows).T
        z, sums = np.empty((n, len(rows))), np.zeros((PARTICLES, 3, len(rows)))
        for p, own in enumerate(np.exp(-self.theta[:, :-1])):
            kernels.extend(self._factors[p], scaled * own, table * own[:, None], z, 0)
            kernels.accumulate(z, self._sides[p, :, :n], 0, sums[p])
        return self._from_sums(sums, *self._levels(self._sides))

    @property
    def n_normals(self) -> int:
        return min(MOST_DRAWN, int(self._block.n_rows))

    def draw(self, cell: int, indices: IntArray, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at some candidates under one draw of a particle's function, as `Family.draw` has them, (n,)."""
        unit, mean = scale / sqrt(float(self.ratios[cell])), self.mean[cell, indices]
        chosen = likely_best(mean, self.variance[cell, indices], unit)
        mean[chosen] += unit * (self._root(cell, indices[chosen]) @ normals[: chosen.size])
        return np.asarray(mean)

    def _root(self, cell: int, indices: IntArray) -> FloatArray:
        """A square root of a particle's covariance of n candidates, (n, n)."""
        own, n = np.exp(-self.theta[cell, :-1]), self.points.n
        x, z, ones = (
            (self._table[:, indices] * own[:, None]).T,
            self._z[cell, :n, indices].T,
            self._sums[cell, 2, indices],
        )
        out = Matern(relative=False)(x, x) - z.T @ z
        if self._intercept and n:
            out += np.outer(1.0 - ones, 1.0 - ones) / self._levels(self._sides)[0][cell]
        return covariance_root(out, 1.0)

    def without_fantasies(self) -> ParticleFantasies:
        return ParticleFantasies(self)

    # -- storage -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """The particles and their weights; points come from the rewards."""
        return {
            "theta": self.theta, "log_weights": self._log_weights, "scores": self._scores, "total": self._total
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Continue with the particles of `state`, once all its rewards are in."""
        s, k = self.theta.shape
        checks = {"theta": floats(s, k), "log_weights": floats(s), "scores": floats(s), "total": number()}
        known = record("particles", state, checks)
        self.theta, self._log_weights, self._scores = (known[key] for key in ("theta", "log_weights", "scores"))
        self._total, self._built, self._moments = known["total"], 0, None
        self._valued[:] = 0


class ParticleFantasies:
    """The variances of a `ParticleFamily` once rewards of pending trials are in; means stay as they are.

    A pending trial is one more row of the factors and of z.
    """

    def __init__(self, family: ParticleFamily) -> None:
        self.variance = family.variance
        n = family.points.n
        self._family, self._n, self._scales = family, n, np.exp(-family.theta[:, :-1])
        self._factors, self._ones = family._factors[:, :n, :n].copy(), family._sides[:, 1, :n].copy()
        self._points = family._scaled(family.points.rows)
        self._rows: list[FloatArray] = []  # of z, (S, N) each
        self._squares, self._shared = family._sums[:, 0].copy(), family._sums[:, 2].copy()

    def absorb_blocks(self, condensed: CondensedTrials, blocks: tuple[PendingBlock, ...]) -> bool:
        """Pending trials are taken in one by one."""
        return False

    def absorb(self, at: PointTold) -> None:
        """Take in that a reward of a point will come."""
        family, n = self._family, len(self._points)
        self._points = np.vstack([self._points, family._scaled(at.row[None])])
        self._factors = np.pad(self._factors, ((0, 0), (0, 1), (0, 1)))
        self._ones = np.pad(self._ones, ((0, 0), (0, 1)), constant_values=1.0)
        new, noise = np.empty((PARTICLES, family._table.shape[1])), family.ratios
        for p, own in enumerate(self._scales):
            points = self._points * own
            kernels.factorise(points, np.full(n + 1, noise[p]), self._factors[p], n)
            kernels.solve(self._factors[p], n, self._ones[p][None])
            row = self._factors[p, n]
            z = Matern(relative=False)(points[n:], (family._table * own[:, None]).T)
            subtract_products(z, row[None, : self._n], family._z[p])
            for k, before in enumerate(self._rows, self._n):
                z[0] -= row[k] * before[p]
            new[p] = z[0] / row[n]
        self._rows.append(new)
        self._squares += new**2
        self._shared += new * self._ones[:, n:]
        variance = 1.0 - self._squares
        if family._intercept:
            variance += (1.0 - self._shared) ** 2 / np.einsum("pk,pk->p", self._ones, self._ones)[:, None]
        self.variance = np.maximum(variance, 0.0)


def _stratified(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """n points whose d coordinates are normal, one in each of n quantiles (a Latin hypercube), (n, d)."""
    from scipy.special import ndtri  # slow to import, and needed here only

    places = rng.permuted(np.tile(np.arange(n)[:, None], d), axis=0)
    return np.asarray(ndtri((places + rng.random((n, d))) / n))
