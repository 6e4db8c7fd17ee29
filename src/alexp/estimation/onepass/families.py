"""What is kept of one model on all candidates, and the one pass that a reward takes.

Mean and variance at every candidate x, in every cell c, in units of the prior: a reward y at x_t with the posterior
covariance C(x) = C(x, x_t), v = C(x_t) and noise r adds C (y - mean(x_t)) / (v + r) to the mean and takes
C^2 / (v + r) from the variance. What differs between linear models and kernels is how C comes about; all cells share
the pass over the table.

Values drift by a rounding error per reward. They are made anew from the factors once 64 rewards, and twice as many as
the factors are large, have come since the last time: a fixed rule, so that a run that is continued from its log, made
anew where that run last did and carried on from there, has the same bits and takes no longer than the run itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.onepass import _kernels as kernels
from alexp.estimation.onepass.dual import PointFit
from alexp.estimation.onepass.grounds import Ground
from alexp.estimation.onepass.regressions import KernelRegression, LinearRegression, PointTold, lifted
from alexp.problem.kernels import Kernel
from alexp.problem.tables import Block

_REFRESH = 64  # rewards, at least, between two times that values are made anew
MOST_DRAWN = 1000  # candidates that a kernel's draw is made for jointly


class Pass(Protocol):
    """How posterior covariances with one point come about on all candidates."""

    def covariances(self, number: int, probe: PointFit, at: PointTold) -> FloatArray:
        """C(x, point) of all candidates, (cells, N); the `number` of a point told is below D, that of a new one D."""

    def add(self, at: PointTold) -> None:
        """Take note of a point that is new to the regression."""

    def similarities(self, part: slice) -> FloatArray | None:
        """Of the points told to some candidates, (D, n), if they are known."""

    def copy(self) -> Pass:
        """One that may be told what is only believed."""


class LinearPass:
    """C = Phi [directions] + constant: one product for all cells."""

    def __init__(self, block: Block, ground: Ground) -> None:
        self._block, self._ground = block, ground

    def covariances(self, number: int, probe: PointFit, at: PointTold) -> FloatArray:
        """C(x, point) of all candidates, (cells, N)."""
        return self._ground.product(self._block, probe.weights, probe.constant)

    def add(self, at: PointTold) -> None:
        """Points are known to the regression, which has their features."""

    def similarities(self, part: slice) -> None:
        """Nothing is kept."""

    def copy(self) -> LinearPass:
        """Nothing ever changes."""
        return self


class KernelPass:
    """C = k(., point) - weights'K + constant, with the kernel rows K (D, N) of all points told."""

    def __init__(self, n_candidates: int) -> None:
        self._n_candidates = n_candidates
        self._chunks: list[FloatArray] = []  # of kernel rows, (n, N); each as large as all before it
        self._used: list[int] = []  # rows of each chunk

    def covariances(self, number: int, probe: PointFit, at: PointTold) -> FloatArray:
        """C(x, point) of all candidates, (cells, N)."""
        known = number < sum(self._used)
        out = np.add.outer(probe.constant, self._row(number) if known else at.similarities())
        first = 0
        for chunk, used in zip(self._chunks, self._used, strict=True):
            kernels.subtract_products(out, probe.weights[:, first : first + used], chunk)
            first += used
        return out

    def _row(self, number: int) -> FloatArray:
        for chunk, used in zip(self._chunks, self._used, strict=True):
            if number < used:
                return np.asarray(chunk[number])
            number -= used
        raise IndexError("there is no such point")

    def add(self, at: PointTold) -> None:
        """Keep the kernel row of a new point."""
        if not self._chunks or self._used[-1] == len(self._chunks[-1]):
            self._chunks.append(np.empty((max(16, sum(self._used)), self._n_candidates)))
            self._used.append(0)
        self._chunks[-1][self._used[-1]] = at.similarities()
        self._used[-1] += 1

    def similarities(self, part: slice) -> FloatArray:
        """Kernel rows of the points told on some candidates, (D, n)."""
        return np.vstack([chunk[:used, part] for chunk, used in zip(self._chunks, self._used, strict=True)])

    def copy(self) -> KernelPass:
        """One that shares the rows and begins a chunk of its own."""
        out = KernelPass(self._n_candidates)
        out._chunks = [chunk[:used] for chunk, used in zip(self._chunks, self._used, strict=True)]
        out._used = self._used.copy()
        return out


class Family:
    """One model at several ratios of noise to prior variance, on N candidates.

    Parameters
    ----------
    block : the model's columns on all candidates, in the domain's order.
    kernel : None for linear models.
    ratios : (cells,) noise variances in units of the prior, `lifted` if they are too small for its variances.
    intercept : whether there is a constant with a flat prior.
    ground : where values are.

    Attributes
    ----------
    mean, variance : (cells, N), in the domain's order. Before the first reward a flat constant is left out of both, and
        variances are those of the differences to the mean of all candidates, see `about_level`.
    """

    def __init__(
        self, block: Block, kernel: Kernel | None, ratios: FloatArray, intercept: bool, ground: Ground
    ) -> None:
        self.mean, self.variance = ground.prior(block, kernel, ratios.size)
        self._block, self._intercept, self._ground = block, intercept, ground
        self.ratios = ratios = lifted(ratios, ground.largest(self.variance))
        if intercept:
            self.variance = ground.levelled(block, kernel, self.variance)
        self._pass: Pass
        if kernel is None:
            self.regression: KernelRegression = LinearRegression(block.n_columns, ratios, intercept)
            self._pass = LinearPass(block, ground)
        else:
            self.regression = KernelRegression(kernel, block.n_columns, ratios, intercept)
            self._pass = KernelPass(block.n_rows)
        self._since = 0  # rewards since values were made anew
        self._roots: dict[
            tuple[int, bytes], FloatArray
        ] = {}  # of covariances that were drawn from since the last reward

    def update(self, at: PointTold, y: float) -> None:
        """Absorb a reward of a point."""
        self._roots.clear()
        points, probe = self.regression.points, self.regression.probe(at)
        number, is_first = points.find(at.row), points.n_observations == 0
        is_new = number == points.n
        covariances = None if is_first and self._intercept else self._pass.covariances(number, probe, at)
        self.regression.tell(at, y, probe)
        if is_new:
            self._pass.add(at)
        self._since += 1
        if covariances is None or _is_due(self._since, points.n, self.regression.limit, is_new):
            self._refresh()
            return
        total = probe.variance + self.ratios
        gain = (y - probe.mean) / total
        self.mean, self.variance = self._ground.move(self.mean, self.variance, covariances, gain, total)
        if at.candidate is not None:  # exactly, where products in single precision would cancel
            exact = probe.mean + gain * probe.variance, probe.variance * (self.ratios / total)
            self._ground.put(self.mean, self.variance, at.candidate, exact)

    def _refresh(self) -> None:
        """Make factors and values anew."""
        self.regression.rebuild()
        self._since = 0
        self.mean, self.variance = self._ground.made(self.regression, self._pass, self._block)

    def last_refresh(self, rows: Iterable[FloatArray]) -> int:
        """After how many rewards of points (d,) values were made anew for the last time."""
        return _last_due(rows, self.regression.limit, self._intercept)

    def recall(self, at: PointTold, y: float, is_last: bool) -> None:
        """Take in a reward of a run before its last refresh; values are right once the last of these is in."""
        if self.regression.points.find(at.row) == self.regression.points.n:
            self._pass.add(at)
        self.regression.note(at, y)
        if is_last:
            self._refresh()

    @property
    def n_normals(self) -> int:
        """How many standard normals a draw takes."""
        if isinstance(self.regression, LinearRegression):
            return self.regression.n_normals
        return min(MOST_DRAWN, int(self._block.n_rows))

    def draw(self, cell: int, indices: IntArray, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at some candidates under one draw of the function, with noise of size `scale`, (n,).

        Exact for linear models. Under a kernel the MOST_DRAWN candidates of largest mean + 2 std are drawn jointly, and
        the others stay at their means: they hardly ever are the best.
        """
        unit = scale / float(np.sqrt(self.ratios[cell]))
        mean = self._ground.taken(self.mean[cell, :], indices)
        if isinstance(self.regression, LinearRegression):
            drawn = self._ground.product(self._block, self.regression.direction(cell, normals)[None])[0, :]
            return mean + unit * self._ground.taken(drawn, indices)
        chosen = np.arange(indices.size)
        if indices.size > MOST_DRAWN:
            upper = mean + 2.0 * unit * np.sqrt(self.variance[cell][indices])
            chosen = np.sort(np.argpartition(-upper, MOST_DRAWN)[:MOST_DRAWN])
        key = (cell, indices[chosen].tobytes())
        if key not in self._roots:
            self._roots[key] = self.regression.root(cell, self._block.taken(indices[chosen]))
        mean[chosen] += unit * (self._roots[key] @ normals[: chosen.size])
        return mean

    def belief(self) -> Believed:
        """What variances will be once pending rewards are in: none yet."""
        return Believed(self.regression, self._pass, self._block, self.variance, self._ground)

    def at(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at any points (n, d), (cells, n) each."""
        return self.regression.moments(rows)


class Believed:
    """The variances of a family, some of them after rewards that are pending; means are no others."""

    def __init__(
        self, regression: KernelRegression, over: Pass, block: Block, variance: FloatArray, ground: Ground
    ) -> None:
        self._regression, self._pass, self._block, self.variance = regression, over, block, variance
        self._ground = ground

    def believing(self, at: PointTold) -> Believed:
        """The same once a reward of a point is in."""
        probe, regression, over = self._regression.probe(at), self._regression.copy(), self._pass.copy()
        number, is_first = regression.points.find(at.row), regression.points.n == 0 and regression.intercept
        if number == regression.points.n:
            over.add(at)
        regression.believe(at)
        if is_first:  # what it takes from the constant's variance cannot be said, because that is infinite
            variance = self._ground.made(regression, over, self._block)[1]
        else:
            covariances = self._pass.covariances(number, probe, at)
            variance = self._ground.shrunk(self.variance, covariances, probe.variance + regression.ratios)
        return Believed(regression, over, self._block, variance, self._ground)


def _is_due(since: int, n_points: int, limit: float, is_new: bool) -> bool:
    """Whether values are to be made anew, `since` rewards after the last time: or the factors take another form."""
    return since >= max(_REFRESH, 2 * min(n_points, limit)) or (is_new and n_points == limit)


def _last_due(rows: Iterable[FloatArray], limit: float, intercept: bool) -> int:
    """After how many rewards of these points (d,) values were made anew for the last time."""
    last, known = 0, set[bytes]()
    for t, row in enumerate(rows, 1):
        is_new = row.tobytes() not in known
        known.add(row.tobytes())
        if (t == 1 and intercept) or _is_due(t - last, len(known), limit, is_new):
            last = t
    return last
