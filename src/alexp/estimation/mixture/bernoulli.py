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

C = R R' is kept as a root: with q = R'x, R -= a (R q) q', a = (1 - sqrt(1 - h v)) / v (Potter), never indefinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.compiling import ieee
from alexp.common.schema import floats, record
from alexp.estimation.arms import ArmColumns, Piece
from alexp.estimation.mixture import optimality
from alexp.estimation.mixture.calibrating import Measure
from alexp.estimation.mixture.mixture import Mixture, quantile, sides
from alexp.estimation.posteriors import CandidateMoments, Component, ComponentValues, Score, dictionary_rows
from alexp.problem.candidates import NOTHING, Choices, Pending

SCALES = (0.3, 1.0, 3.0)  # prior standard deviations of the logit, constants aside
CONSTANT = 5.0  # of constants: rates from 1e-5 up are as good as any
FREE = 100.0  # what practically unpenalised columns are multiplied by, see `PerArm`
PENDING = -1.0  # in place of a reward that has not come: variances shrink, nothing else changes
_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions
_FARTHEST = 60.0  # logits beyond this count as this
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
def row_times(root: FloatArray, i: int, q: FloatArray, width: int) -> float:
    """Row i of a root times q, the first `width` numbers of both."""
    out = 0.0
    for k in range(width):
        out += root[i, k] * q[k]
    return out


@ieee.entry
def absorb(
    rows: FloatArray, sizes: IntArray, y: float, means: FloatArray, roots: FloatArray, evidence: FloatArray
) -> None:
    """Take one reward, or `PENDING`, into C components: means (C, D), roots (C, D, D), log evidence (C,).

    Component c is of model j = c % M, which sees the first sizes[j] numbers of rows[j], (M, D).
    """
    q, step = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    for c in range(means.shape[0]):
        x, root = rows[c % rows.shape[0]], roots[c]
        width = sizes[c % rows.shape[0]]
        m, v = 0.0, 0.0
        for k in range(width):
            m += x[k] * means[c, k]
            q[k] = 0.0
        for i in range(width):
            if x[i] != 0.0:
                for k in range(width):
                    q[k] += root[i, k] * x[i]
        for k in range(width):
            v += q[k] * q[k]
        if v <= 0.0:
            gain, h = 0.0, 0.0
            z = success(m if y > 0.5 else -m, 0.0)[0]
        elif y == PENDING:
            z, first, _ = success(m, v)
            gain, h = 0.0, first / (1.0 + first * v)
        else:
            z, first, second = success(m if y > 0.5 else -m, v)
            gain = first / z
            h = min(max(gain * gain - second / z, 0.0), (1.0 - 1e-12) / v)
            gain = gain if y > 0.5 else -gain
        if y != PENDING:
            evidence[c] += math.log(z)
        if h > 0.0:
            a = (1.0 - math.sqrt(1.0 - h * v)) / v
            for i in range(width):
                step[i] = row_times(root, i, q, width)
            for i in range(width):
                means[c, i] += gain * step[i]
                for k in range(width):
                    root[i, k] -= a * step[i] * q[k]


@ieee.entry
def predict(
    rows: FloatArray,
    sizes: IntArray,
    members: IntArray,
    means: FloatArray,
    roots: FloatArray,
    logits: FloatArray,
    spreads: FloatArray,
) -> None:
    """Means of the logits (m, n), and rows times roots (m, n, D), of m components; models see rows (M, n, D)."""
    for place, c in enumerate(members):
        seen, width = rows[c % rows.shape[0]], sizes[c % rows.shape[0]]
        for i in range(rows.shape[1]):
            m = 0.0
            spreads[place, i, :] = 0.0
            for j in range(width):
                x = seen[i, j]
                if x != 0.0:
                    m += x * means[c, j]
                    for k in range(width):
                        spreads[place, i, k] += x * roots[c, j, k]
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


class LogitGrid:
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
    """

    n_constants = 0  # priors of constants are proper

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
    ) -> None:
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
            own = columns[offsets[j] : offsets[j + 1]]
            self._places[j, self._lead : self._lead + size] = own
            spread = np.asarray(scales)[:, None] / divisors[j]
            is_free = np.isin(own, np.empty(0) if free is None else free)
            prior[:, j, self._lead : self._lead + size] = np.where(is_free, CONSTANT / FREE, spread)
        prior[:, :, : self._lead] = CONSTANT
        blocks, n = 1 if self._arms is None else self._arms.n_arms, self._cells * self.n_models
        self._means = np.zeros((blocks, n, width))
        self._roots = np.tile(prior.reshape(n, width)[None, :, :, None] * np.eye(width), (blocks, 1, 1, 1))
        self._evidence = np.zeros(n)
        self._counts = np.zeros(2)  # rewards, and those that were 1
        self._fantasies: tuple[Pending, FloatArray, FloatArray] | None = None
        self._last: tuple[Choices, list[tuple[Piece, FloatArray]]] | None = None

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
        self._take_in(row, y, self._means, self._roots)
        self._counts += (1.0, y)
        self._fantasies = None

    def _take_in(self, row: FloatArray, y: float, means: FloatArray, roots: FloatArray) -> None:
        arm = 0 if self._arms is None else self._arms.arm(row)
        own = row if self._arms is None else self._arms.block(arm, row)
        absorb(self._extended(own[None])[:, 0], self._widths, y, means[arm], roots[arm], self._evidence)

    def _extended(self, rows: FloatArray) -> FloatArray:
        """What every model sees of rows (n, P) of one block, (M, n, D)."""
        padded = np.concatenate([rows, np.ones((len(rows), 1)), np.zeros((len(rows), 1))], axis=1)
        return np.ascontiguousarray(np.swapaxes(padded[:, self._places], 0, 1))

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """Log evidence of every component, (cells, M); it is no function of residuals, and `score` is not asked."""
        return self._evidence.reshape(self._cells, self.n_models).copy()

    def residuals(self) -> FloatArray:
        """Twice the negative log evidence: what penalised residuals are elsewhere, (cells, M)."""
        return -2.0 * self._evidence.reshape(self._cells, self.n_models)

    # -- predictions ---------------------------------------------------------------------------------------------

    def _pieces(self, choices: Choices) -> list[tuple[Piece, FloatArray]]:
        """Choices by arm, with what every model sees of them; those of the last round of arms are kept."""
        if self._arms is None:
            rows = dictionary_rows(choices)
            return [(Piece(0, np.arange(len(choices)), rows), self._extended(rows))]
        if self._last is None or self._last[0] is not choices:
            pieces = self._arms.pieces(choices)
            self._last = choices, [(piece, self._extended(piece.features)) for piece in pieces]
        return self._last[1]

    def _logits(
        self, members: IntArray, choices: Choices, pending: Pending = NOTHING
    ) -> Iterator[tuple[Piece, FloatArray, FloatArray]]:
        """Of each arm's choices: means of the logits (m, n) and roots (m, n, D) of their covariances."""
        means, roots = self._with_pending(pending)
        for piece, rows in self._pieces(choices):
            logits, spreads = np.empty((members.size, rows.shape[1])), np.empty((members.size, *rows.shape[1:]))
            predict(rows, self._widths, members, means[piece.arm], roots[piece.arm], logits, spreads)
            yield piece, logits, spreads

    def _with_pending(self, pending: Pending) -> tuple[FloatArray, FloatArray]:
        """Means and roots once pending rows were taken in; kept until the next reward, and added to."""
        if not pending:
            return self._means, self._roots
        known, means, roots = self._fantasies or (NOTHING, self._means, self._roots)
        if not pending.begins_with(known):
            known, means, roots = NOTHING, self._means, self._roots
        if not known:
            means, roots = means.copy(), roots.copy()
        for row in pending.rows[len(known) :]:
            self._take_in(row, PENDING, means, roots)
        self._fantasies = pending, means, roots
        return means, roots

    def _components(
        self, weights: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Numbers and shares (K,) of the components that matter, means and variances of their probabilities (K, n)."""
        members = np.flatnonzero(weights.ravel() > least)
        shares = weights.ravel()[members]
        mean, variance = np.empty((2, members.size, len(choices)))
        for piece, logits, spreads in self._logits(members, choices, pending):
            found = probabilities(logits, np.einsum("cnd,cnd->cn", spreads, spreads))
            mean[:, piece.places], variance[:, piece.places] = found
        return members, shares / shares.sum(), mean, variance

    def logits(self, weights: FloatArray, choices: Choices) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares (K,) of the components that matter, means and deviations of their logits (K, n)."""
        members = np.flatnonzero(weights.ravel() > _NEGLIGIBLE)
        shares = weights.ravel()[members]
        mean, deviation = np.empty((2, members.size, len(choices)))
        for piece, logits, spreads in self._logits(members, choices):
            mean[:, piece.places], deviation[:, piece.places] = logits, np.sqrt((spreads**2).sum(axis=2))
        return shares / shares.sum(), mean, deviation

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the probability of a reward, within plus between components, shapes (n,)."""
        _, shares, means, spreads = self._components(weights, choices, pending, _NEGLIGIBLE)
        merged = CandidateMoments.empty(means.shape[1])
        merged.merge_many(shares, means, spreads)
        return merged.mean, merged.within + merged.between

    def components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending = NOTHING,
        least: float = _NEGLIGIBLE,
    ) -> Iterator[Component]:
        """The components of weight above `least`, one by one."""
        for member, share, mean, spread in zip(*self._components(weights, choices, pending, least), strict=True):
            cell, model = divmod(int(member), self.n_models)
            yield Component(float(share), cell, model, mean, spread)

    def values(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> ComponentValues:
        """The same all at once."""
        members, shares, means, variances = self._components(weights, choices, pending, least)
        return ComponentValues(shares, means, variances, members)

    def n_normals(self, model: int) -> int:
        """One for each coefficient of each arm, those that a model does not have included."""
        return int(self._means.shape[0] * self._means.shape[2])

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Probabilities of a reward at the choices under one draw of a component's coefficients, (n,)."""
        out, each = np.empty(len(choices)), normals.reshape(self._means.shape[0], -1)
        for piece, logits, spreads in self._logits(np.array([cell * self.n_models + model]), choices):
            out[piece.places] = logits[0] + scale * (spreads[0] @ each[piece.arm])
        return sigmoid(out)

    def root_width(self, n: int) -> int:
        """Without arms one for each coefficient; with them one for each choice, as in `ArmGrid`."""
        return int(self._means.shape[2]) if self._arms is None else n

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means of the logits (m, n), and square roots (m, n, D) of their covariances: the best logit is the best."""
        n = len(choices)
        mean, out = np.empty((members.size, n)), np.zeros((members.size, n, self.root_width(n)))
        for piece, logits, spreads in self._logits(cell * self.n_models + members, choices):
            mean[:, piece.places] = logits
            if self._arms is None:
                out[:, piece.places] = spreads
            elif piece.places.size == 1:
                out[:, piece.places[0], piece.places[0]] = np.sqrt((spreads[:, 0] ** 2).sum(axis=1))
            else:  # rotated into as many dimensions as the arm has choices
                triangles = np.asarray(np.linalg.qr(np.swapaxes(spreads, 1, 2), mode="r"))
                places = piece.places[: triangles.shape[1]]
                out[np.ix_(np.arange(members.size), piece.places, places)] = np.swapaxes(triangles, 1, 2)
        return mean, out

    # -- state ---------------------------------------------------------------------------------------------------

    def state(self) -> Packable:
        """Everything that rewards have changed."""
        return {"means": self._means, "roots": self._roots, "evidence": self._evidence, "counts": self._counts}

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""
        checks = {name: floats(*shape) for name, shape in self._shapes().items()}
        known = record("grid", state, checks)
        self._means, self._roots = known["means"].copy(), known["roots"].copy()
        self._evidence, self._counts = known["evidence"].copy(), known["counts"].copy()
        self._fantasies = None

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            "means": self._means.shape, "roots": self._roots.shape, "evidence": self._evidence.shape, "counts": (2,),
        }  # fmt: skip


class BernoulliMixture(Mixture):
    """`Mixture` over models and prior scales of the logit, for rewards that are 0 or 1; see this module.

    Means and variances are those of the probability of a reward. Parameters as for `Mixture` and `LogitGrid`.
    """

    grid: LogitGrid

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        divisors: FloatArray,
        intercept: bool,
        *,
        scale_grid: Sequence[float],
        free: IntArray | None = None,
        power: float = 1.0,
        log_prior: FloatArray | None = None,
        arm_blocks: tuple[int, int] | None = None,
        units: FloatArray | None = None,
        calibrate: Measure | None = None,
    ) -> None:
        self._free = free
        super().__init__(
            n_columns,
            columns,
            offsets,
            divisors,
            intercept,
            noise_std=1.0,
            norm_bound=1.0,
            scale_grid=scale_grid,
            power=power,
            log_prior=log_prior,
            arm_blocks=arm_blocks,
            units=units,
            calibrate=calibrate,
        )

    def _new_grid(self, divisors: FloatArray) -> LogitGrid:
        groups = (self.n_columns, self._columns, self._offsets, divisors)
        return LogitGrid(*groups, self.scales.tolist(), self._intercept, self._arm_blocks, self._free)

    def interval(self, weights: FloatArray, choices: Choices, level: float) -> tuple[FloatArray, FloatArray]:
        """Quantiles of the probability of a reward: those of the logit, which is a mixture of Gaussians."""
        where = choices if self._units is None else self._divided(choices)[0]
        shares, centres, scales = self.grid.logits(weights, where)
        low, high = (quantile(share, shares, centres, scales, inf) for share in sides(level))
        return sigmoid(low), sigmoid(high)

    def _chances(
        self, weights: FloatArray, choices: Choices, rng: np.random.Generator, width: float, price: FloatArray | None
    ) -> FloatArray:
        """The best logit is the best, unless there is a price: then shares of draws of probabilities less the price."""
        if price is None:
            return super()._chances(weights, choices, rng, width, price)
        out, where = np.zeros(len(choices)), choices if self._units is None else self._divided(choices)[0]
        counts = optimality.evenly(weights.ravel(), optimality.LINES, rng.random()).reshape(weights.shape)
        for cell, row in enumerate(counts):
            members = np.flatnonzero(row)
            for number, mean, root in zip(row[members], *self.grid.roots(cell, members, where), strict=True):
                logits = mean + width * rng.standard_normal((number, root.shape[1])) @ root.T
                best = np.argmax(sigmoid(logits) - price, axis=1)
                out += np.bincount(best, minlength=out.size) / optimality.LINES
        return out

    def noise_variance(self, weights: FloatArray) -> float:
        """Variance of a reward at the mean rate so far."""
        return self.grid.rate * (1.0 - self.grid.rate)
