"""The posterior of one model at several ratios of noise to prior variance, whatever the candidates are."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from math import inf

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.onepass.dual import DualFactor, Expansion, PointFit
from alexp.estimation.onepass.points import Points
from alexp.estimation.onepass.primal import PrimalFactor
from alexp.problem.kernels import Kernel, Linear, Restricted, Scaled, Sum
from alexp.problem.rows import Rows, dense_blocks, take

_DIGITS = 2.0**-42  # share of the largest similarity that rounding may change in sums of some thousand terms
_JITTER = 1e-9  # of the prior variance, added to the variances of joint draws, where rounding may leave none


def lifted(ratios: FloatArray, largest: FloatArray | float) -> FloatArray:
    """Noise variances in units of the prior (cells,), no smaller than the rounding of similarities up to `largest`.

    Below that a Gram matrix plus noise has no Cholesky factor in floating point. The noise stays what it is: it is the
    prior that has at most 2^21 times its standard deviation.
    """
    return np.maximum(ratios, _DIGITS * largest)


def about_level(kernel: Kernel | None, rows: Rows, own: FloatArray) -> FloatArray:
    """Prior variances of n candidates (n, d) less their level, the mean of all, (n,); `own` has k(x, x).

    For linear kernels, and where these are terms of sums: k(x, x) - 2 k(x, m) + k(m, m) at the mean m of all
    candidates. Other kernels are left as they are: most have k(x, x) = 1 and prefer no candidate.
    """
    return np.asarray(np.maximum(own - _of_level(kernel or Linear(), rows), 0.0))


def _of_level(kernel: Kernel, rows: Rows) -> FloatArray | float:
    """2 k(x, m) - k(m, m) of the linear part of a kernel, (n,); zero if it has none."""
    if isinstance(kernel, Sum):
        return sum((_of_level(term, rows) for term in kernel.terms), start=0.0)
    if isinstance(kernel, Scaled):
        return kernel.factor * _of_level(kernel.kernel, rows)
    if isinstance(kernel, Restricted):
        return _of_level(kernel.kernel, take(rows, np.array(kernel.columns)))
    if not isinstance(kernel, Linear):
        return 0.0
    mean = sum(block.sum(axis=0) for block in dense_blocks(rows))[None] / rows.shape[0]
    return np.asarray(2.0 * kernel(mean, rows)[0] - kernel(mean, mean)[0, 0])


@dataclass(frozen=True)
class PointTold:
    """A point that was told or asked about.

    Attributes
    ----------
    row : (d,) its features.
    candidate : its number among the candidates; None if it is none of them.
    similarities : makes k(x, point) for all candidates x, (N,); not called for linear models.
    """

    row: FloatArray
    candidate: int | None
    similarities: Callable[[], FloatArray]


class KernelRegression:
    """A Gaussian process with a kernel on d columns; ``ratios`` (cells,) as in `DualFactor`."""

    limit: float = inf  # number of points from which another form is smaller

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

    def probe(self, at: PointTold) -> PointFit:
        """What is known of a point."""
        return self._dual.probe(self.points, *self._similar(at))

    def tell(self, at: PointTold, y: float, probe: PointFit) -> None:
        """Absorb a reward of a point whose `probe` was just taken."""
        self._dual.count(self.points, probe, y)
        self._dual.tell(self.points, at.row, *self._similar(at), y, at.candidate)

    def believe(self, at: PointTold) -> None:
        """Absorb a reward that is as expected, on a `copy`: variances shrink; means are wrong from then on."""
        self._dual.tell(self.points, at.row, *self._similar(at), 0.0, at.candidate)

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
        points = np.vstack([row, rows])
        own = self._between(points, row[None])[:, 0]
        probe = self.probe(PointTold(row, None, lambda: np.empty(0)))
        if probe.weights.shape[1] == self.points.n and not isinstance(self, LinearRegression):
            taken = probe.weights[0] @ self._between(self.points.rows, rows) if self.points.n else 0.0
            return np.asarray(own[1:] - taken + probe.constant[0])
        return np.asarray(rows @ probe.weights[0] + probe.constant[0])

    def representer(self, cell: int) -> tuple[FloatArray, float]:
        """The mean as a sum of kernels at the D points, weights (D,), plus a constant, in one cell."""
        weights = self._dual.solved(self.points, cell, self.points.means)
        if not self.intercept:
            return weights, 0.0
        counts, ratio = self.points.counts, float(self.ratios[cell])
        values = self._between(self.points.rows, self.points.rows) @ weights + ratio / counts * weights
        return weights, float(np.mean(self.points.means - values))

    def root(self, cell: int, rows: FloatArray) -> FloatArray:
        """A square root of the posterior covariance of n points (n, d) in one cell, in units of the prior, (n, n).

        The Cholesky factor; from eigenvectors, where rounding leaves a variance that is not positive.
        """
        gram = self._between(rows, rows)
        covariance = self._dual.covariance(self.points, cell, self._between(self.points.rows, rows), gram)
        covariance[np.diag_indices(len(rows))] += _JITTER * float(np.trace(gram)) / len(rows)
        try:
            return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(covariance)
            return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def _similar(self, at: PointTold) -> tuple[FloatArray, float]:
        """Similarities of a point to the points told, (D,), and to itself."""
        number, points = self.points.find(at.row), self.points
        if number < points.n:
            both = self._dual.similarities(number, points.n)
            return both, float(both[number])
        if at.candidate is not None and (points.candidates >= 0).all():
            row = at.similarities()
            return row[points.candidates], float(row[at.candidate])
        return self._between(points.rows, at.row[None])[:, 0], float(self._own(at.row[None])[0])

    def _between(self, points: FloatArray, rows: FloatArray) -> FloatArray:
        return self._kernel(points, rows)

    def _own(self, rows: FloatArray) -> FloatArray:
        return self._kernel.diagonal(rows)

    def copy(self) -> KernelRegression:
        """One that may believe."""
        out = copy(self)
        out.points, out._dual = self.points.copy(), self._dual.copy()
        return out


class LinearRegression(KernelRegression):
    """The same for k(x, z) = <x, z>, with d x d factors once there are more points than that.

    The `weights` of its probes are directions, (cells, d): C(x, point) is phi(x)'weights + constant.
    """

    def __init__(self, n_columns: int, ratios: FloatArray, intercept: bool) -> None:
        self.ratios, self.intercept, self.limit = ratios, intercept, n_columns + 2
        self.points, self._dual = Points(n_columns), DualFactor(ratios, intercept)
        self._primal: PrimalFactor | None = None

    @property
    def rank(self) -> int:
        """How large the factors are."""
        return self.points.n if self._primal is None else self.points.rows.shape[1]

    @property
    def residuals(self) -> FloatArray:
        """Penalised residuals, (cells,)."""
        return super().residuals if self._primal is None else self._primal.residuals

    def log_determinants(self) -> FloatArray:
        """log det(V / ridge^2), (cells,); of centred features if there is an intercept."""
        return super().log_determinants() if self._primal is None else self._primal.log_determinants()

    def probe(self, at: PointTold) -> PointFit:
        """What is known of a point."""
        if self._primal is not None:
            return self._primal.probe(at.row)
        probe = super().probe(at)
        return probe._replace(weights=at.row - probe.weights @ self.points.rows)

    def tell(self, at: PointTold, y: float, probe: PointFit) -> None:
        """Absorb a reward of a point whose `probe` was just taken."""
        if self._primal is None:
            super().tell(at, y, probe)
        else:
            self._primal.tell(at.row, y)
            self.points.note(at.row, y, at.candidate)

    def believe(self, at: PointTold) -> None:
        """Absorb a reward that is as expected, on a `copy`."""
        if self._primal is None:
            super().believe(at)
        else:
            self._primal.believe(at.row)

    def note(self, at: PointTold, y: float) -> None:
        """Take note of a reward before a `rebuild`."""
        if self._primal is None and self.points.n < self.limit:
            super().note(at, y)
        else:
            self.points.note(at.row, y, at.candidate)

    def _similar(self, at: PointTold) -> tuple[FloatArray, float]:
        """Inner products with the points told, (D,), and with itself."""
        return self.points.rows @ at.row, float(at.row @ at.row)

    def rebuild(self) -> None:
        """Make the factors anew, d x d ones if they are smaller."""
        if self.points.n < self.limit:
            super().rebuild()
            return
        self._primal = PrimalFactor(self.ratios, self.intercept, self.points)
        self._dual = DualFactor(self.ratios, self.intercept)  # nobody needs it any more

    def moments(self, rows: FloatArray, known: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance at n points (n, d), (cells, n) each."""
        return super().moments(rows) if self._primal is None else self._primal.moments(rows)

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
        """One that may believe."""
        out = copy(self)
        out.points, out._dual = self.points.copy(), self._dual.copy()
        out._primal = None if self._primal is None else self._primal.copy()
        return out
