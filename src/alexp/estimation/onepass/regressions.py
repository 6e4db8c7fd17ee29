"""The posterior of one model at several ratios of noise to prior variance, whatever the candidates are.

All of it is in units of the prior: rewards have noise of variance r_c in cell c, and the function has prior covariance
k. The D distinct points told (`Points`) are all that a Gaussian regression needs: point i was told n_i times, with mean
reward m_i. With K the Gram matrix of these points, cell c keeps the Cholesky factor L of K + r_c diag(1 / n_i)
(`DualFactor`). With k(x) the similarities of x to the points, z_k = L^-1 k and so on,

    mean(x) = z_k'z_m,     C(x, x') = k(x, x') - z_k'z_k'.

An intercept with a flat prior is profiled out: with e all ones, s = z_e'z_e and b = z_e'z_m / s,

    mean(x) = b + z_k'(z_m - b z_e),     C(x, x') = k(x, x') - z_k'z_k' + (1 - z_k'z_e)(1 - z_k''z_e) / s.

Linear models of d features change to d x d factors (`PrimalFactor`) once there are more points than that.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from math import inf, pi, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.ties import first_few, rules
from alexp.estimation.onepass import _kernels as kernels
from alexp.estimation.ridge.bank import CondensedTrials, RidgeBank
from alexp.problem.candidates import PendingBlock
from alexp.problem.kernels import Kernel, Linear, Restricted, Rising, Scaled, Sum
from alexp.problem.rows import Rows, dense_blocks, take


class Points:
    """D distinct points in the order in which they were first told, with what was told of them.

    Attributes
    ----------
    order : (D,) the points by when they were told last.
    candidates : (D,) their numbers among the candidates; -1 for those that are none.
    scatter : sum of squares of the rewards about the means of their points.
    """

    def __init__(self, n_columns: int) -> None:
        self.n, self.n_observations, self.scatter = 0, 0, 0.0
        self.order, self.candidates = np.empty((2, 0), dtype=np.int64)
        self._rows, self._counts, self._means = np.empty((8, n_columns)), np.zeros(8), np.zeros(8)
        self._numbers: dict[bytes, int] = {}

    @property
    def rows(self) -> FloatArray:
        """(D, d) features."""
        return self._rows[: self.n]

    @property
    def counts(self) -> FloatArray:
        """(D,) how often each was told."""
        return self._counts[: self.n]

    @property
    def means(self) -> FloatArray:
        """(D,) their mean rewards."""
        return self._means[: self.n]

    def find(self, row: FloatArray) -> int:
        """The number of the point with features (d,); D if there is none."""
        return self._numbers.get(row.tobytes(), self.n)

    def note(self, row: FloatArray, y: float, candidate: int | None) -> None:
        """Take note of a reward; its point is the last of the `order` from now on."""
        point = self.find(row)
        if point == self.n:
            self._make_room()
            self._rows[point], self._numbers[row.tobytes()] = row, point
            self.candidates = np.append(self.candidates, -1 if candidate is None else candidate)
            self.n += 1
        self.order = np.append(self.order[self.order != point], point)
        n, mean = self._counts[point], self._means[point]
        self.scatter += float(n / (n + 1.0) * (y - mean) ** 2)
        self._means[point] = mean + (y - mean) / (n + 1.0)
        self._counts[point] = n + 1.0
        self.n_observations += 1

    def _make_room(self) -> None:
        more = self._counts.size
        if self.n == more:
            self._counts, self._means = np.pad(self._counts, (0, more)), np.pad(self._means, (0, more))
            self._rows = np.vstack([self._rows, np.empty_like(self._rows)])

    def copy(self) -> Points:
        """An independent copy."""
        out = copy(self)
        out._numbers = self._numbers.copy()  # `order` and `candidates` are never written to
        out._rows, out._counts, out._means = self._rows.copy(), self._counts.copy(), self._means.copy()
        return out


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


PREFERENCE = 0.8  # of the sign of a slope, see `Slope`


class Slope(NamedTuple):
    """A slope that is more likely positive: what that makes of a Gaussian posterior.

    A model f(x) = a + b m(x) + g(x) has a column m with a slope b (`kernels.Rising`). With b ~ N(0, s^2) alone both
    signs are equally likely. Here b has (1 + PREFERENCE) / 2 of its prior weight above zero:

        p(b) = N(b; 0, s^2) (1 + PREFERENCE sign(b)).

    Where rewards are the negatives of what is told, because that is to be made small, or there are several objectives,
    of which the column tells one, PREFERENCE is multiplied by -1 or 0 below. Let b be N(mu, v) and have the covariances
    C(x, b) after some rewards without the preference, and alpha = mu / sqrt(v). With the preference the evidence is
    multiplied by 1 + PREFERENCE (2 Phi(alpha) - 1), and means become

        mean(x) + lambda C(x, b) / sqrt(v),    lambda = 2 PREFERENCE phi(alpha) / (1 + PREFERENCE (2 Phi(alpha) - 1)).

    Variances would fall by at most 64% of C(x, b)^2 / v; they are left as they are. Before the first reward means
    follow the column, in the unit of the prior. Once rewards tell the sign, nothing is left of the preference.

    Numbers are in units of the prior, one for every cell.

    Attributes
    ----------
    mean, variance : (cells,) of b without the preference.
    level, weights : (cells,) and (cells, D): C(x, b) is m(x) - level - weights'k(x), with similarities k(x) (D,).
    """

    mean: FloatArray
    variance: FloatArray
    level: FloatArray
    weights: FloatArray
    preference: float

    def shift(self, scale: FloatArray, column: FloatArray, similarities: FloatArray | None) -> FloatArray:
        """What the preference adds to the means at n points, (cells, n).

        Their `column` is m (n,), their `similarities` to the points told are (D, n), and ``scale`` (cells,) is s.
        """
        covariances = column - self.level[:, None]
        if similarities is not None:
            covariances -= self.weights @ similarities
        alpha, factor = self._alpha(scale)
        density = np.exp(-0.5 * alpha**2) / sqrt(2.0 * pi)
        return np.asarray(
            (2.0 * self.preference * density / factor * scale / np.sqrt(self.variance))[:, None] * covariances
        )

    def log_preference(self, scale: FloatArray) -> FloatArray:
        """Logarithm of what the preference multiplies the evidence by, (cells,)."""
        return np.log(self._alpha(scale)[1])

    def _alpha(self, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """alpha, and 1 + preference (2 Phi(alpha) - 1), (cells,) each."""
        from scipy.special import erf  # slow to import, and needed here only

        alpha = self.mean / (scale * np.sqrt(self.variance))
        return alpha, 1.0 + self.preference * erf(alpha / sqrt(2.0))


def rising_column(kernel: Kernel | None) -> int | None:
    """The number of the column whose slope is more likely positive; None where there is none."""
    if isinstance(kernel, Sum):
        return next((column for term in kernel.terms if (column := rising_column(term)) is not None), None)
    if isinstance(kernel, Restricted):
        return None if rising_column(kernel.kernel) is None else kernel.columns[0]
    return 0 if isinstance(kernel, Rising) else None


class Expansion(NamedTuple):
    """Mean and variance at any x as products, in every cell c, for backends that keep x elsewhere.

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

    def slope(self, points: Points, column: FloatArray, preference: float) -> Slope:
        """What is known of the slope of a column whose values at the points told are (D,)."""
        zero = np.zeros(self.ratios.size)
        if points.n == 0:
            return Slope(zero, 1.0 + zero, zero, np.empty((zero.size, 0)), preference)
        z = self._solved(points, column)
        level = _dots(z[:, 2], z[:, 0]) / self._level(z)[0] if self.intercept else zero
        rest = z[:, 0] - level[:, None] * z[:, 2]
        mean, variance = _dots(rest, z[:, 1]), np.maximum(1.0 - _dots(rest, z[:, 0]), _DIGITS)
        weights = np.empty_like(rest)
        kernels.backward(self._factors, points.n, rest)
        weights[:, points.order] = rest
        return Slope(mean, variance, level, weights, preference)

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
        out = copy(self)
        out._gram, out._factors = self._gram.copy(), self._factors.copy()
        return out


def _dots(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ck,ck->c", left, right))


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
        rows = np.empty((max(n, lead + 1) + d, lead + d + 1))
        rows[:n, :lead], rows[:n, lead:-1], rows[:n, -1] = 1.0, points.rows, points.means
        rows[:n] *= np.sqrt(points.counts)[:, None]
        factors = []
        for ratio in ratios:
            rows[n:] = 0.0
            rows[n + np.arange(d), lead + np.arange(d)] = np.sqrt(ratio)
            triangle = np.array(np.linalg.qr(rows, mode="r"))
            triangle *= np.where(np.diag(triangle) < 0.0, -1.0, 1.0)[:, None]
            triangle[-1, -1] = np.sqrt(triangle[-1, -1] ** 2 + points.scatter)
            factors.append(triangle[np.triu_indices(len(triangle))])
        cells = ratios.size
        self._bank = RidgeBank(np.tile(np.arange(d), cells), d * np.arange(cells + 1), np.sqrt(ratios), intercept)
        if n:
            self._bank.restore({"factor": np.concatenate(factors), "n_observations": points.n_observations})

    @property
    def residuals(self) -> FloatArray:
        return self._bank.residuals()

    def log_determinants(self) -> FloatArray:
        """log det(V / ridge^2), (cells,); of centred features if there is an intercept."""
        return self._bank.log_determinants()

    def probe(self, row: FloatArray) -> PointFit:
        """What is known of the point with features (d,); its weights are directions, see `LinearRegression`."""
        own = np.append(1.0, row) if self.intercept else row
        solutions = np.array([self._bank.solve(c, own) for c in range(self.ratios.size)]) * self.ratios[:, None]
        variance = np.maximum(solutions @ own, 0.0)
        theta, constants = self.coefficients()
        constant = solutions[:, 0] if self.intercept else np.zeros(self.ratios.size)
        return PointFit(theta @ row + constants, variance, solutions[:, int(self.intercept) :], constant)

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Posterior means (cells, d), and constants (cells,)."""
        theta, constants = self._bank.coefficients()
        return theta.reshape(self.ratios.size, -1), constants

    def direction(self, cell: int, normals: FloatArray) -> FloatArray:
        """Draw of the coefficients less their mean, (d,), in one cell and units of the prior."""
        theta = self.coefficients()[0]
        given = np.zeros_like(theta)
        given[cell] = normals
        drawn = self._bank.sample(given.ravel(), np.sqrt(self.ratios)).reshape(theta.shape)
        return np.asarray(drawn[cell] - theta[cell])

    def tell(self, row: FloatArray, y: float) -> None:
        self._bank.update(row, y)

    def fantasise(self, row: FloatArray) -> None:
        self._bank = self._bank.with_fantasies(row[None])

    def fantasise_blocks(self, condensed: CondensedTrials, blocks: tuple[PendingBlock, ...]) -> None:
        """Absorb rewards of many points that are as expected."""
        condensed.prepare(self._bank, blocks, _FIRST)
        factor = np.tile(condensed.factors(_FIRST), self.ratios.size)
        self._bank = self._bank.with_fantasies(np.empty((0, 0)), older=factor)

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance at n points (n, d), (cells, n) each."""
        theta, constants = self.coefficients()
        mean, variance = theta @ features.T + constants[:, None], np.empty((self.ratios.size, len(features)))
        points = features.T if not self.intercept else np.vstack([np.ones(len(features)), features.T])
        for c in range(self.ratios.size):
            z = solve_triangular(self._bank.triangle(c), points, trans="T")
            variance[c] = self.ratios[c] * np.einsum("kn,kn->n", z, z)
        return mean, variance

    def expansion(self) -> Expansion:
        """The same as products with the features."""
        theta, constants = self.coefficients()
        cells, d, lead = self.ratios.size, theta.shape[1], int(self.intercept)
        roots, shifts = np.empty((cells, lead + d, d)), np.zeros((cells, lead + d))
        for c in range(cells):
            inverse = solve_triangular(self._bank.triangle(c), np.eye(lead + d), trans="T")
            roots[c] = inverse[:, lead:]
            shifts[c] = inverse[:, 0] if lead else 0.0
        nothing = np.zeros(cells)
        return Expansion(None, roots, shifts, theta, constants, 0.0, self.ratios, np.zeros_like(theta), nothing)

    def copy(self) -> PrimalFactor:
        out = copy(self)
        out._bank = self._bank.with_fantasies(np.empty((0, 0)))
        return out


_FIRST = np.zeros(1, dtype=np.int64)  # pending rows are the same in all cells
_DIGITS = 2.0**-42  # share of the largest similarity that rounding may change in sums of some thousand terms
MOST_DRAWN = 1000  # candidates that a kernel's draw is made for jointly
_JITTER = 1e-9  # of the prior variance, added to the variances of joint draws, where rounding may leave none


def lifted(ratios: FloatArray, largest: FloatArray | float) -> FloatArray:
    """Noise variances in units of the prior (cells,), no smaller than the rounding of similarities up to `largest`.

    Below that a Gram matrix plus noise has no Cholesky factor in floating point. The noise stays what it is: it is the
    prior that has at most 2^21 times its standard deviation.
    """
    return np.maximum(ratios, _DIGITS * largest)


def about_level(kernel: Kernel | None, rows: Rows, own: FloatArray, mean: FloatArray | None = None) -> FloatArray:
    """Prior variances of n candidates (n, d) less their level, the mean of all, (n,); `own` has k(x, x).

    `mean` (d,) is that of all candidates, where the rows are only some of them.

    For linear kernels, and where these are terms of sums: k(x, x) - 2 k(x, m) + k(m, m) at the mean m of all
    candidates. Other kernels are left as they are: most have k(x, x) = 1 and prefer no candidate.
    """
    return np.asarray(np.maximum(own - _of_level(kernel or Linear(), rows, mean), 0.0))


def _of_level(kernel: Kernel, rows: Rows, known: FloatArray | None) -> FloatArray | float:
    """2 k(x, m) - k(m, m) of the linear part of a kernel, (n,); zero if it has none."""
    if isinstance(kernel, Sum):
        return sum((_of_level(term, rows, known) for term in kernel.terms), start=0.0)
    if isinstance(kernel, Scaled):
        return kernel.factor * _of_level(kernel.kernel, rows, known)
    if isinstance(kernel, Restricted):
        columns = np.array(kernel.columns)
        return _of_level(kernel.kernel, take(rows, columns), None if known is None else known[columns])
    if not isinstance(kernel, Linear):
        return 0.0
    if known is None:
        known = sum(block.sum(axis=0) for block in dense_blocks(rows)) / rows.shape[0]
    mean = known[None]
    return np.asarray(2.0 * kernel(mean, rows)[0] - kernel(mean, mean)[0, 0])


@dataclass(frozen=True)
class PointTold:
    """A point that was told or asked about.

    Attributes
    ----------
    row : (d,) its features.
    candidate : its number among the candidates; None if it is none of them.
    similarities : makes k(x, point) for all candidates x, (N,); None for linear models, and where they are in parts.
    """

    row: FloatArray
    candidate: int | None
    similarities: Callable[[], FloatArray] | None = None


def covariance_root(covariance: FloatArray, level: float) -> FloatArray:
    """A square root (n, n) of a covariance, to which a little of the prior variance `level` is added in place.

    The Cholesky factor; from eigenvectors, where rounding leaves a variance that is not positive.
    """
    covariance[np.diag_indices(len(covariance))] += _JITTER * level
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def likely_best(mean: FloatArray, variance: FloatArray, unit: float) -> IntArray:
    """The MOST_DRAWN of n candidates with the largest mean + 2 std, in order; all if there are no more."""
    if mean.size <= MOST_DRAWN:
        return np.arange(mean.size)
    upper = mean + 2.0 * unit * np.sqrt(variance)
    if not rules.tie:  # of those that tie version 1.0.0 took some
        return np.sort(np.argpartition(-upper, MOST_DRAWN)[:MOST_DRAWN])
    return first_few(upper, MOST_DRAWN)


class KernelRegression:
    """A Gaussian process with a kernel on d columns; ``ratios`` (cells,) as in `DualFactor`."""

    limit: float = inf  # number of points from which another form is smaller
    sign: ClassVar[float] = 1.0  # of what the weights of a `probe` take off covariances

    def __init__(self, kernel: Kernel, n_columns: int, ratios: FloatArray, intercept: bool) -> None:
        self._kernel, self.ratios, self.intercept = kernel, ratios, intercept
        self.points, self._dual = Points(n_columns), DualFactor(ratios, intercept)

    @property
    def rank(self) -> int:
        """How large the factors are."""
        return self.points.n

    @property
    def residuals(self) -> FloatArray:
        """Penalised residuals, (cells,)."""
        return self._dual.residuals

    def log_determinants(self) -> FloatArray:
        """log det(I + K / r), (cells,); of centred features if there is an intercept."""
        return self._dual.log_determinants(self.points.n_observations)

    def probe(self, at: PointTold, similar: FloatArray | None = None) -> PointFit:
        """What the data say of a point; `similar` (D,) are its similarities to the points told, if they are known."""
        known = self._similar(at) if similar is None else (similar, float(self._own(at.row[None])[0]))
        return self._dual.probe(self.points, *known)

    def tell(self, at: PointTold, y: float, probe: PointFit) -> None:
        """Absorb a reward of a point whose `probe` was just taken."""
        self._dual.count(self.points, probe, y)
        self._dual.tell(self.points, at.row, *self._similar(at), y, at.candidate)

    def fantasise(self, at: PointTold) -> None:
        """Absorb a reward that is as expected, on a `copy`: variances shrink; means are wrong from then on."""
        self._dual.tell(self.points, at.row, *self._similar(at), 0.0, at.candidate)

    def fantasise_blocks(self, condensed: CondensedTrials, blocks: tuple[PendingBlock, ...]) -> bool:
        """Absorb many rewards that are as expected, on a `copy`, if they can be condensed; whether they were."""
        return False

    def note(self, at: PointTold, y: float) -> None:
        """Take note of a reward before a `rebuild`."""
        number = self.points.find(at.row)
        if number == self.points.n:
            self._dual.add_similarities(number, *self._similar(at))
        self.points.note(at.row, y, at.candidate)

    def rebuild(self) -> None:
        """Make the factors anew from the points."""
        self._dual.rebuild(self.points)

    def moments(self, rows: FloatArray, known: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance at n points (n, d), (cells, n) each; `known` similarities (D, n), if they are."""
        similarities = self._between(self.points.rows, rows) if known is None else known
        return self._dual.moments(self.points, similarities, self._own(rows))

    def covariances(self, rows: FloatArray, row: FloatArray) -> FloatArray:
        """Posterior covariances of n points (n, d) with one, in the first cell and units of the prior, shape (n,)."""
        probe = self.probe(PointTold(row, None))
        prior = self._between(np.vstack([row, rows]), row[None])[1:, 0]
        taken = probe.weights[0] @ self._between(self.points.rows, rows) if self.points.n else 0.0
        return np.asarray(prior - taken + probe.constant[0])

    def prior_covariances(self, points: FloatArray, rows: FloatArray) -> FloatArray:
        """What posterior covariances of k points (k, d) with n others (n, d) begin with, (k, n).

        C(point, x) is that - sign weights'known(x) + constant with the point's `probe`; known(x) are similarities of x
        to the points told, or its features for linear models.
        """
        return self._between(points, rows)

    def slope(self, column: int, preference: float) -> Slope:
        """What is known of the slope of a column, see `Slope`."""
        return self._dual.slope(self.points, self.points.rows[:, column], preference)

    def similarities(self, rows: FloatArray) -> FloatArray | None:
        """Of the points told to n others (n, d), (D, n); None before the first."""
        return self._between(self.points.rows, rows) if self.points.n else None

    def representer(self, cell: int) -> tuple[FloatArray, float]:
        """The mean as a sum of kernels at the D points, weights (D,), plus a constant, in one cell."""
        weights = self._dual.solved(self.points, cell, self.points.means)
        if not self.intercept:
            return weights, 0.0
        counts, ratio = self.points.counts, float(self.ratios[cell])
        values = self._between(self.points.rows, self.points.rows) @ weights + ratio / counts * weights
        return weights, float(np.mean(self.points.means - values))

    def root(self, cell: int, rows: FloatArray) -> FloatArray:
        """A square root of the posterior covariance of n points (n, d) in one cell, in units of the prior, (n, n)."""
        gram = self._between(rows, rows)
        covariance = self._dual.covariance(self.points, cell, self._between(self.points.rows, rows), gram)
        return covariance_root(covariance, float(np.trace(gram)) / len(rows))

    def _similar(self, at: PointTold) -> tuple[FloatArray, float]:
        """Similarities of a point to the points told, (D,), and to itself."""
        number, points = self.points.find(at.row), self.points
        if number < points.n:
            both = self._dual.similarities(number, points.n)
            return both, float(both[number])
        if at.candidate is not None and at.similarities is not None and (points.candidates >= 0).all():
            row = at.similarities()
            return row[points.candidates], float(row[at.candidate])
        return self._between(points.rows, at.row[None])[:, 0], float(self._own(at.row[None])[0])

    def _between(self, points: FloatArray, rows: FloatArray) -> FloatArray:
        return self._kernel(points, rows)

    def _own(self, rows: FloatArray) -> FloatArray:
        return self._kernel.diagonal(rows)

    def copy(self) -> KernelRegression:
        """A copy that may absorb fantasies."""
        out = copy(self)
        out.points, out._dual = self.points.copy(), self._dual.copy()
        return out


class LinearRegression(KernelRegression):
    """The same for k(x, z) = <x, z>, with d x d factors once there are more points than that.

    The `weights` of its probes are directions, (cells, d): C(x, point) is phi(x)'weights + constant.
    """

    sign: ClassVar[float] = -1.0

    def __init__(self, n_columns: int, ratios: FloatArray, intercept: bool) -> None:
        self.ratios, self.intercept, self.limit = ratios, intercept, n_columns + 2
        self.points, self._dual = Points(n_columns), DualFactor(ratios, intercept)
        self._primal: PrimalFactor | None = None

    @property
    def rank(self) -> int:
        return self.points.n if self._primal is None else self.points.rows.shape[1]

    @property
    def residuals(self) -> FloatArray:
        return super().residuals if self._primal is None else self._primal.residuals

    def log_determinants(self) -> FloatArray:
        return super().log_determinants() if self._primal is None else self._primal.log_determinants()

    def probe(self, at: PointTold, similar: FloatArray | None = None) -> PointFit:
        if self._primal is not None:
            return self._primal.probe(at.row)
        probe = super().probe(at)
        return probe._replace(weights=at.row - probe.weights @ self.points.rows)

    def tell(self, at: PointTold, y: float, probe: PointFit) -> None:
        if self._primal is None:
            super().tell(at, y, probe)
        else:
            self._primal.tell(at.row, y)
            self.points.note(at.row, y, at.candidate)

    def fantasise(self, at: PointTold) -> None:
        if self._primal is None:
            super().fantasise(at)
        else:
            self._primal.fantasise(at.row)

    def fantasise_blocks(self, condensed: CondensedTrials, blocks: tuple[PendingBlock, ...]) -> bool:
        """Absorb many rewards that are as expected, on a `copy`, if d x d factors are smaller; whether they were."""
        if self._primal is None:
            if self.points.n + sum(map(len, blocks)) < self.limit:
                return False
            self._primal = PrimalFactor(self.ratios, self.intercept, self.points)
        self._primal.fantasise_blocks(condensed, blocks)
        return True

    def note(self, at: PointTold, y: float) -> None:
        if self._primal is None and self.points.n < self.limit:
            super().note(at, y)
        else:
            self.points.note(at.row, y, at.candidate)

    def _similar(self, at: PointTold) -> tuple[FloatArray, float]:
        return self.points.rows @ at.row, float(at.row @ at.row)

    def rebuild(self) -> None:
        """Make the factors anew, d x d ones if they are smaller."""
        if self.points.n < self.limit:
            super().rebuild()
            return
        self._primal = PrimalFactor(self.ratios, self.intercept, self.points)
        self._dual = DualFactor(self.ratios, self.intercept)  # no longer needed

    def moments(self, rows: FloatArray, known: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        return super().moments(rows) if self._primal is None else self._primal.moments(rows)

    def covariances(self, rows: FloatArray, row: FloatArray) -> FloatArray:
        probe = self.probe(PointTold(row, None))
        return np.asarray(rows @ probe.weights[0] + probe.constant[0])

    def prior_covariances(self, points: FloatArray, rows: FloatArray) -> FloatArray:
        """Nothing: C(point, x) is the point's weights'phi(x) + constant."""
        return np.zeros((len(points), len(rows)))

    def expansion(self) -> Expansion:
        """Mean and variance at any x as products."""
        return self._dual.expansion(self.points) if self._primal is None else self._primal.expansion()

    @property
    def n_normals(self) -> int:
        """How many standard normals `direction` takes."""
        d = int(self.points.rows.shape[1])
        return d + self.points.n if self._primal is None else d

    def direction(self, cell: int, normals: FloatArray) -> FloatArray:
        """Draw of the coefficients less their mean, (d,), in one cell and units of the prior.

        With few points, a draw w of the prior and rewards of it with noise give what is left of w when these are told.
        """
        if self._primal is not None:
            return self._primal.direction(cell, normals)
        d = self.points.rows.shape[1]
        if self.points.n == 0:
            return normals[:d]
        noise = np.sqrt(self.ratios[cell] / self.points.counts) * normals[d:]
        told = self.points.rows @ normals[:d] + noise
        return np.asarray(normals[:d] - self._dual.solved(self.points, cell, told) @ self.points.rows)

    def _between(self, points: FloatArray, rows: FloatArray) -> FloatArray:
        return points @ rows.T

    def _own(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("nd,nd->n", rows, rows))

    def copy(self) -> LinearRegression:
        out = copy(self)
        out.points, out._dual = self.points.copy(), self._dual.copy()
        out._primal = None if self._primal is None else self._primal.copy()
        return out
