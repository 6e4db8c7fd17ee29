"""Rewards that are 0 or 1: logistic regressions, one Gaussian posterior of coefficients per component.

Component c = (model j, prior scale) says: a reward is 1 with probability s(eta) = 1 / (1 + exp(-eta)), eta = x'theta,
theta ~ N(0, diag(prior^2)). A reward changes theta along one direction only. With eta ~ N(m, v) before it, the
posterior of eta has one dimension; its mean and variance are kept, and it counts as Gaussian again (assumed density
filtering, one pass, exact in both moments at every step):

    Z = E[s(eta)],   g = Z' / Z,   h = g^2 - Z'' / Z,   mean += g C x,   C -= h (C x)(C x)',

derivatives by m, for a reward of 1; a reward of 0 is one of 1 at -eta. The evidence of a component is the product of
its Z. All of it is in closed form, because s(x) = sum_k P_k Phi(S_k x) to 2e-9 (Monahan and Stefanski 1992), so that
with s_k = S_k / sqrt(1 + S_k^2 v) and u_k = s_k m

    Z = sum P_k Phi(u_k),   Z' = sum P_k s_k phi(u_k),   Z'' = -sum P_k s_k^2 u_k phi(u_k).

The probability of a reward has mean Z, and variance Z - Z' - Z^2, since s' = s (1 - s).

C = U D U' is kept, U upper triangular with ones on its diagonal, D diagonal. With f = U'x the variance is v = f'D f,
and C - h (C x)(C x)' is one pass over U (Bierman 1977), never indefinite. Columns before the first number of x that is
not zero stay as they are: columns are kept in reverse order, because rows of correlated arms end in zeros (`PerArm`).

A component that is `BEHIND` in log evidence is left alone from then on: it learns no more, and counts as being as much
behind. Under the mixture itself the weight w of a component is a martingale, and reaches 1/2 with probability 2 w at
most, 6e-7 here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import inf
from typing import Unpack

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.compiling import ieee
from alexp.common.schema import floats, record
from alexp.common.ties import first_best_in_rows
from alexp.estimation.arms import ArmColumns, Piece
from alexp.estimation.mixture import optimality
from alexp.estimation.mixture.mixture import Groups, Mixture, UnstatedSettings, quantile, sides
from alexp.estimation.posteriors import MergedGrid, Score, dictionary_rows
from alexp.problem.candidates import NOTHING, Choices, Pending

SCALES = (0.3, 1.0, 3.0)  # prior standard deviations of the logit, constants aside
CONSTANT = 5.0  # of constants: rates from 1e-5 up are as good as any
FREE = 100.0  # what practically unpenalised columns are multiplied by, see `PerArm`
PENDING = -1.0  # in place of a reward that has not come: variances shrink, nothing else changes
BEHIND = 15.0  # in log evidence behind the best component, times 1 / power: a weight of 3e-7
_KEPT = 10**6  # numbers that are kept of a round
_FARTHEST = 60.0  # logits beyond this count as this
_Coefficients = tuple[FloatArray, FloatArray, FloatArray]  # means, D and U
_P = (
    0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
    0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354,
)  # fmt: skip
_S = (
    1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
    0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306,
)  # fmt: skip


@ieee.leaf
def success(m: float, v: float) -> tuple[float, float, float]:
    """Z, Z' and Z'' of a logit with mean m and variance v."""
    m = min(max(m, -_FARTHEST), _FARTHEST)
    z, first, second = 0.0, 0.0, 0.0
    for k in range(8):
        slope = _S[k] / math.sqrt(1.0 + _S[k] * _S[k] * v)
        u = slope * m
        density = _P[k] * slope * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        z += _P[k] * 0.5 * math.erfc(-u * math.sqrt(0.5))
        first += density
        second -= density * slope * u
    return z, first, second


@ieee.loose_leaf
def product(one: FloatArray, other: FloatArray) -> float:
    """Sum of products of n numbers each; slices, so that the compiler knows their ends."""
    out = 0.0
    for i in range(one.shape[0]):
        out += one[i] * other[i]
    return out


@ieee.loose_leaf
def turn(column: FloatArray, step: FloatArray, slope: float, weight: float) -> None:
    """A column of U += slope * step, and step += weight * the column before, n numbers each."""
    for i in range(column.shape[0]):
        u = column[i]
        column[i] = u + slope * step[i]
        step[i] += weight * u


@ieee.leaf
def project(factor: FloatArray, start: int, x: FloatArray, width: int, out: FloatArray) -> int:
    """U'x in `out`, and how many zeros that begins with. Column j of U begins at start + j (j - 1) / 2."""
    first, last = 0, width
    while first < width and x[first] == 0.0:
        out[first] = 0.0
        first += 1
    while last > first and x[last - 1] == 0.0:
        last -= 1
    for j in range(first, width):
        begin, end = start + j * (j - 1) // 2, min(j, last)
        out[j] = x[j] + product(factor[begin + first : begin + end], x[first:end])
    return first


@ieee.entry
def absorb(
    rows: FloatArray,
    sizes: IntArray,
    starts: IntArray,
    y: float,
    means: FloatArray,
    diagonals: FloatArray,
    factor: FloatArray,
    evidence: FloatArray,
) -> None:
    """Take one reward, or `PENDING`, into C components: means (C, D), D (C, D), U in `factor`, log evidence (C,).

    Component c is of model j = c % M, which sees the first sizes[j] numbers of rows[j], (M, D), and has its U from
    number starts[c] on. Those of evidence minus infinity are left alone.
    """
    f, step = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    for c in range(means.shape[0]):
        if evidence[c] == -math.inf:
            continue
        x, width, start = rows[c % rows.shape[0]], sizes[c % rows.shape[0]], starts[c]
        first = project(factor, start, x, width, f)
        m, v = 0.0, 0.0
        for k in range(width):
            m += x[k] * means[c, k]
            v += f[k] * f[k] * diagonals[c, k]
        if v <= 0.0:
            gain, h = 0.0, 0.0
            z = success(m if y > 0.5 else -m, 0.0)[0]
        elif y == PENDING:
            z, slope, _ = success(m, v)
            gain, h = 0.0, slope / (1.0 + slope * v)
        else:
            z, slope, second = success(m if y > 0.5 else -m, v)
            gain = slope / z
            h = min(max(gain * gain - second / z, 0.0), (1.0 - 1e-12) / v)
            gain = gain if y > 0.5 else -gain
        if y != PENDING:
            evidence[c] += math.log(z)
        if h > 0.0:
            total = 1.0 / h - v  # noise that the reward has in a linear model, and then v on top
            step[:first] = 0.0
            for j in range(first, width):
                weight = diagonals[c, j] * f[j]
                diagonals[c, j] *= total / (total + f[j] * weight)
                begin = start + j * (j - 1) // 2
                turn(factor[begin : begin + j], step[:j], -f[j] / total, weight)
                step[j] = weight
                total += f[j] * weight
            for j in range(width):
                means[c, j] += gain * step[j]


@ieee.entry
def predict(
    rows: FloatArray,
    sizes: IntArray,
    starts: IntArray,
    members: IntArray,
    means: FloatArray,
    diagonals: FloatArray,
    factor: FloatArray,
    logits: FloatArray,
    spreads: FloatArray,
) -> None:
    """Means of the logits (m, n), and sqrt(D) U'x, (m, n, D), of m components; models see rows (M, n, D)."""
    for place, c in enumerate(members):
        seen, width = rows[c % rows.shape[0]], sizes[c % rows.shape[0]]
        spreads[place, :, width:] = 0.0
        for i in range(rows.shape[1]):
            project(factor, starts[c], seen[i], width, spreads[place, i])
            m = 0.0
            for k in range(width):
                m += seen[i, k] * means[c, k]
                spreads[place, i, k] *= math.sqrt(diagonals[c, k])
            logits[place, i] = m


@ieee.entry
def probabilities(logits: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the probability of a reward, from those of the logit, (C, n) each."""
    mean, variance = np.empty(logits.shape), np.empty(logits.shape)
    for c in range(logits.shape[0]):
        for i in range(logits.shape[1]):
            z, first, _ = success(logits[c, i], variances[c, i])
            mean[c, i] = z
            variance[c, i] = max(z - first - z * z, 0.0)
    return mean, variance


def sigmoid(eta: FloatArray) -> FloatArray:
    """1 / (1 + exp(-eta)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * eta)))


def _narrowed(roots: FloatArray) -> FloatArray:
    """Roots (m, n, D) of covariances (m, n, n), rotated into n dimensions where these are fewer."""
    if roots.shape[1] == 1:
        return np.asarray(np.sqrt(np.einsum("cnd,cnd->cn", roots, roots))[:, :, None])
    if roots.shape[1] >= roots.shape[2]:
        return roots
    return np.asarray(np.swapaxes(np.linalg.qr(np.swapaxes(roots, 1, 2), mode="r"), 1, 2))


class LogitGrid(MergedGrid):
    """A `PosteriorGrid` of logistic regressions.

    Parameters
    ----------
    n_columns : P.
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows.
    divisors : (M,) what the features of each model are divided by.
    scales : prior standard deviations of divided features' coefficients, one cell each.
    intercept : whether every model has a constant, or every arm.
    arm_blocks : (K, p) where every arm has p columns of its own.
    free : columns that have the prior of a constant, see `FREE`.
    behind : log evidence behind the best at which components are left alone.
    """

    n_constants = 0  # priors of constants are proper
    negligible = 1e-6  # more than components have that are left behind

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        divisors: FloatArray,
        scales: Sequence[float],
        intercept: bool,
        arm_blocks: tuple[int, int] | None = None,
        free: IntArray | None = None,
        behind: float = BEHIND,
    ) -> None:
        self._behind = behind
        self.n_models, self._cells, self._lead = offsets.size - 1, len(scales), int(intercept)
        self._arms = None if arm_blocks is None else ArmColumns(arm_blocks, columns, offsets, intercept)
        if self._arms is not None:
            n_columns, columns, offsets = self._arms.size, self._arms.columns, self._arms.offsets
        sizes = np.diff(offsets)
        self._widths = self._lead + sizes
        width = int(self._widths.max())
        self._places = np.full((self.n_models, width), n_columns + 1)  # a column of zeros
        self._places[:, : self._lead] = n_columns  # a column of ones
        prior = np.zeros((self._cells, self.n_models, width))
        for j, size in enumerate(sizes):
            own = columns[offsets[j] : offsets[j + 1]][::-1]
            self._places[j, self._lead : self._lead + size] = own
            spread = np.asarray(scales)[:, None] / divisors[j]
            is_free = np.isin(own, np.empty(0) if free is None else free)
            prior[:, j, self._lead : self._lead + size] = np.where(is_free, CONSTANT / FREE, spread)
        prior[:, :, : self._lead] = CONSTANT
        blocks, n = 1 if self._arms is None else self._arms.n_arms, self._cells * self.n_models
        lengths = np.tile(self._widths * (self._widths - 1) // 2, self._cells)
        self._starts = np.cumsum(lengths) - lengths
        self._means, self._factors = np.zeros((blocks, n, width)), np.zeros((blocks, int(lengths.sum())))
        self._diagonals = np.tile(prior.reshape(n, width) ** 2, (blocks, 1, 1))
        self._evidence = np.zeros(n)
        self._counts = np.zeros(2)  # rewards, and those that were 1
        self._fantasies: tuple[Pending, _Coefficients] | None = None
        self._last: tuple[Choices, Pending, list[tuple[IntArray, FloatArray, FloatArray]]] | None = None

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""
        return int(self._counts[0])

    @property
    def rate(self) -> float:
        """Share of rewards that were 1, with half a reward of either kind added."""
        return float((self._counts[1] + 0.5) / (self._counts[0] + 1.0))

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward, 0 or 1, into every component."""
        self._take_in(row, y, self._coefficients)
        self._counts += (1.0, y)
        self._evidence[self._evidence < self._evidence.max() - self._behind] = -inf
        self._fantasies = self._last = None

    @property
    def _coefficients(self) -> _Coefficients:
        """Means, D and U of all blocks."""
        return self._means, self._diagonals, self._factors

    def _take_in(self, row: FloatArray, y: float, into: _Coefficients) -> None:
        arm = 0 if self._arms is None else self._arms.arm(row)
        own = row if self._arms is None else self._arms.block(arm, row)
        seen = np.ascontiguousarray(self._extended(own[None])[:, 0])
        means, diagonals, factors = into
        absorb(seen, self._widths, self._starts, y, means[arm], diagonals[arm], factors[arm], self._evidence)

    def _extended(self, rows: FloatArray) -> FloatArray:
        """What every model sees of rows (n, P) of one block, (M, n, D)."""
        padded = np.concatenate([rows, np.ones((len(rows), 1)), np.zeros((len(rows), 1))], axis=1)
        return np.ascontiguousarray(np.swapaxes(padded[:, self._places], 0, 1))

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """Log evidence of every component, (cells, M); it is no function of residuals, and `score` is not asked."""
        return np.asarray(-0.5 * self.residuals())

    def residuals(self) -> FloatArray:
        """Twice the negative log evidence: what penalised residuals are elsewhere, (cells, M)."""
        known = np.maximum(self._evidence, self._evidence.max() - self._behind)
        return np.asarray(-2.0 * known.reshape(self._cells, self.n_models))

    # -- predictions ---------------------------------------------------------------------------------------------

    def _pieces(self, choices: Choices) -> list[Piece]:
        """Choices by arm."""
        if self._arms is not None:
            return self._arms.pieces(choices)
        return [Piece(0, np.arange(len(choices)), dictionary_rows(choices))]

    def _logits(
        self, members: IntArray, choices: Choices, pending: Pending = NOTHING
    ) -> list[tuple[IntArray, FloatArray, FloatArray]]:
        """Of each arm's choices: their places (n,), means of the logits (m, n), roots (m, n, r) of their covariances.

        Those of all components that still learn are kept for the last choices, if these are few.
        """
        learning = self._evidence > -inf
        if self._last is None or self._last[0] is not choices or self._last[1] is not pending:
            kept = np.flatnonzero(learning)
            few = kept.size * len(choices) * self._means.shape[2] <= _KEPT
            self._last = (choices, pending, self._computed(kept, choices, pending)) if few else None
        if self._last is None or not learning[members].all():
            return self._computed(members, choices, pending)
        some = np.cumsum(learning)[members] - 1
        return [(places, logits[some], roots[some]) for places, logits, roots in self._last[2]]

    def _computed(
        self, members: IntArray, choices: Choices, pending: Pending
    ) -> list[tuple[IntArray, FloatArray, FloatArray]]:
        (means, diagonals, factors), out = self._with_pending(pending), []
        for arm, places, features in self._pieces(choices):
            rows = self._extended(features)
            logits, spreads = np.empty((members.size, rows.shape[1])), np.empty((members.size, *rows.shape[1:]))
            known = (means[arm], diagonals[arm], factors[arm])
            predict(rows, self._widths, self._starts, members, *known, logits, spreads)
            out.append((places, logits, _narrowed(spreads)))
        return out

    def _with_pending(self, pending: Pending) -> _Coefficients:
        """Coefficients once pending rows were taken in; kept until the next reward, and added to."""
        if not pending:
            return self._coefficients
        known, out = self._fantasies or (NOTHING, self._coefficients)
        if not pending.begins_with(known):
            known, out = NOTHING, self._coefficients
        if not known:
            out = self._means.copy(), self._diagonals.copy(), self._factors.copy()
        for row in pending.rows[len(known) :]:
            self._take_in(row, PENDING, out)
        self._fantasies = pending, out
        return out

    def _components(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """As for other grids, of the probability of a reward."""
        members, shares, mean, variance = self.logits(weights, choices, pending, least)
        return members, shares, *probabilities(mean, variance)

    def logits(
        self, weights: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """The same of the logit."""
        members = np.flatnonzero(weights.ravel() > least)
        shares = weights.ravel()[members]
        mean, variance = np.empty((2, members.size, len(choices)))
        for places, logits, roots in self._logits(members, choices, pending):
            mean[:, places], variance[:, places] = logits, np.einsum("cnd,cnd->cn", roots, roots)
        return members, shares / shares.sum(), mean, variance

    def n_normals(self, model: int) -> int:
        """One for each coefficient of each arm, those that a model does not have included."""
        return int(self._means.shape[0] * self._means.shape[2])

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Probabilities of a reward at the choices under one draw of a component's coefficients, (n,)."""
        mean, roots = self.roots(cell, np.array([model]), choices)
        return sigmoid(mean[0] + scale * (roots[0] @ normals[: roots.shape[2]]))

    def root_width(self, n: int) -> int:
        """One for each choice, as in `ArmGrid`, or for each coefficient where these are fewer and there are no arms."""
        return n if self._arms is not None else min(n, int(self._means.shape[2]))

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means of the logits (m, n), and square roots (m, n, D) of their covariances: the best logit is the best."""
        n = len(choices)
        mean, out = np.empty((members.size, n)), np.zeros((members.size, n, self.root_width(n)))
        for places, logits, roots in self._logits(cell * self.n_models + members, choices):
            mean[:, places] = logits
            out[:, places[:, None], places[: roots.shape[2]]] = roots
        return mean, out

    # -- state ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, FloatArray]:
        """Everything that rewards have changed; a component that is left behind has evidence 1."""
        known = np.where(self._evidence == -inf, 1.0, self._evidence)
        own = {"means": self._means, "diagonals": self._diagonals, "factors": self._factors}
        return own | {"evidence": known, "counts": self._counts}

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""
        known = record("grid", state, {name: floats(*value.shape) for name, value in self.state().items()})
        self._means, self._diagonals = known["means"].copy(), known["diagonals"].copy()
        self._factors, self._counts = known["factors"].copy(), known["counts"].copy()
        self._evidence = np.where(known["evidence"] > 0.0, -inf, known["evidence"])
        self._fantasies = self._last = None


class BernoulliMixture(Mixture):
    """`Mixture` over models and prior scales of the logit, for rewards that are 0 or 1; see this module.

    Means and variances are those of the probability of a reward. Parameters as for `Mixture`; `free` as in `LogitGrid`.
    """

    grid: LogitGrid

    def __init__(
        self,
        *groups: *Groups,
        scale_grid: Sequence[float],
        free: IntArray | None = None,
        **settings: Unpack[UnstatedSettings],
    ) -> None:
        self._free = free
        super().__init__(*groups, noise_std=1.0, norm_bound=1.0, scale_grid=scale_grid, **settings)

    def _new_grid(self, divisors: FloatArray) -> LogitGrid:
        groups = (self.n_columns, self._columns, self._offsets, divisors)
        behind = BEHIND / self.power
        return LogitGrid(*groups, self.scales.tolist(), self._intercept, self._arm_blocks, self._free, behind)

    def interval(self, weights: FloatArray, choices: Choices, level: float) -> tuple[FloatArray, FloatArray]:
        """Quantiles of the probability of a reward: those of the logit, which is a mixture of Gaussians."""
        parts = self.grid.logits(weights, *self._divided(choices), self.grid.negligible)
        _, shares, centres, variances = parts
        low, high = (quantile(share, shares, centres, np.sqrt(variances), inf) for share in sides(level))
        return sigmoid(low), sigmoid(high)

    def _chances(
        self, weights: FloatArray, choices: Choices, rng: np.random.Generator, price: FloatArray | None
    ) -> FloatArray:
        """The best logit is the best, unless there is a price: then shares of draws of probabilities less the price."""
        if price is None:
            return super()._chances(weights, choices, rng, price)
        where, _ = self._divided(choices)
        counts = optimality.evenly(weights.ravel(), optimality.LINES, rng.random())
        mean, roots = self.grid.roots(0, members := np.flatnonzero(counts), where)  # counted through all cells
        which = np.repeat(np.arange(members.size), counts[members])
        normals = rng.standard_normal((optimality.LINES, roots.shape[2]))
        logits = mean[which] + np.einsum("snd,sd->sn", roots[which], normals)
        best = first_best_in_rows(sigmoid(logits) - price)
        return np.asarray(np.bincount(best, minlength=len(choices)) / optimality.LINES)

    def noise_variance(self, weights: FloatArray) -> float:
        """Variance of a reward at the mean rate so far."""
        return self.grid.rate * (1.0 - self.grid.rate)
