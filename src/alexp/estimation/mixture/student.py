"""Evidence mixture for rewards of unknown size and noise: the common scale is integrated out.

Component c = (j, r) says: model j is true, the coefficients of its divided features have the prior N(0, s^2 I), the
noise has variance r s^2, and s^2 ~ IG(a0, b0), an inverse gamma distribution. V_c = Phi_j'Phi_j + r I is a ridge
regression; with F_c its penalised residual divided by r and D_c = t log r + log det(V_c / r), up to a constant common
to all components,

    log evidence = -(a0 + t/2) log(b0 + F_c/2) - D_c/2,     s^2 | data ~ IG(a0 + t/2, b0 + F_c/2).

With an intercept its flat prior takes one degree of freedom: t - 1 instead of t. Predictions are multivariate t with
scale matrices of E[s^2] r ||phi||^2_{V_c^-1}, where E[s^2] stands for 1 / E[1/s^2] = (b0 + F_c/2) / (a0 + t/2), since
the mean itself is infinite before the first reward.

a0 = 1 and b0 is the variance of the rewards so far, so that their unit drops out and, with an intercept, their level.
Where the variance is zero, b0 is the square of the one value that was seen; if that is zero too, or nothing was seen,
b0 = 1 and nothing depends on it but the unit of predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.schema import SQUARE, anything, number, record
from alexp.common.validation import VANISHING
from alexp.estimation.mixture.calibrating import CalibratingGrid
from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.mixture.small_noise import MOST, STEPS, Spectrum, spectrum
from alexp.problem.candidates import Choices
from alexp.problem.kernel_models import varying_part
from alexp.problem.kernels import Scaled
from alexp.problem.rows import dense, spread
from alexp.problem.tables import ModelOnTable

_SHAPE = 1.0  # a0
_NEGLIGIBLE = 1e-12  # weight of models whose noise is not looked into
_MOST = 300  # candidates between which the similarity under a kernel is averaged


class StudentMixture(Mixture):
    """`Mixture` over a grid of ratios r of noise to prior variance, with the scale of both integrated out.

    Parameters as for `Mixture`, with ``ratio_grid`` in place of noise, bound and their grids. ``divisors`` should make
    the mean of ||phi_j||^2 over the candidates one, see `trace_divisors`: then s^2 is the variance of the rewards.
    """

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        divisors: FloatArray,
        intercept: bool,
        *,
        ratio_grid: Sequence[float],
        **settings: Any,
    ) -> None:
        super().__init__(
            n_columns,
            columns,
            offsets,
            divisors,
            intercept,
            noise_std=1.0,  # its own unit
            norm_bound=1.0,
            scale_grid=prior_scales(ratio_grid),
            **settings,
        )
        self.ratios = np.asarray(ratio_grid, dtype=np.float64)
        self._mean, self._squares = 0.0, 0.0  # of the rewards; sum of squares about the mean

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one observation."""
        super().update(row, y, index)
        delta = y - self._mean
        self._mean += delta / self.mass
        self._squares = (1.0 if self.forget is None else self.forget) * self._squares + delta * (y - self._mean)

    @property
    def _unit(self) -> float:
        """b0."""
        if self._squares > 0.0:
            return _SHAPE * self._squares / self.mass
        return _SHAPE * self._mean**2 or 1.0

    @property
    def _shape(self) -> float:
        """a0 + t/2."""
        return _SHAPE + 0.5 * self._freedom

    def _excess(self, residuals: FloatArray) -> FloatArray:
        """F_c / (2 b0), shape (cells, M): exactly the same for units of rewards that differ by a power of two."""
        return self._excess_at(self.ratios, residuals)

    def _excess_at(self, ratios: FloatArray, residuals: FloatArray) -> FloatArray:
        return residuals / self._unit / (2.0 * ratios[:, None])

    def _score(self, residuals: FloatArray, determinants: FloatArray) -> FloatArray:
        """Log evidence from penalised residuals and log determinants, (cells, M) each; b0's logarithm is left out."""
        return self._score_at(self.ratios, residuals, determinants)

    def _score_at(self, ratios: FloatArray, residuals: FloatArray, determinants: FloatArray) -> FloatArray:
        """The same at other ratios (R,), from (R, M) each."""
        volumes = self._freedom * np.log(ratios)[:, None] + determinants
        return np.asarray(-self._shape * np.log1p(self._excess_at(ratios, residuals)) - 0.5 * volumes)

    def _scales(self) -> FloatArray:
        """E[s^2] of every component, shape (cells, M)."""
        return self._scales_at(self.ratios, self.grid.residuals())

    def _scales_at(self, ratios: FloatArray, residuals: FloatArray) -> FloatArray:
        return self._unit * (1.0 + self._excess_at(ratios, residuals)) / self._shape

    def noise_variances(self) -> FloatArray:
        """Variance r E[s^2] of the noise in every component, shape (cells, M)."""
        return self.ratios[:, None] * self._scales()

    def noise_variance(self, weights: FloatArray) -> float:
        """Posterior mean of the noise variance under weights (cells, M)."""
        return float(np.sum(weights * self.noise_variances()))

    def estimated_noise(self, weights: FloatArray, rows: FloatArray, rewards: FloatArray) -> float:
        """Posterior mean of the noise variance, with smaller ratios where the smallest of the grid leaves them open.

        In place of its smallest ratio, a model has that ratio divided by 1, 10, 100, ..., together of the same prior
        weight, and weighed by their evidence. Decisions are not made on these.
        """
        smallest = int(np.argmin(self.ratios))
        ratios, rest = self.ratios[smallest] * STEPS, weights.copy()
        logs, found = [np.zeros(0)], [np.zeros(0)]
        likeliest = np.argsort(-weights[smallest], kind="stable")[:MOST] if self._weighs_alike and len(rewards) else ()
        for j in (int(j) for j in likeliest if weights[smallest, j] > _NEGLIGIBLE):
            if (own := self._spectrum(j, rows, rewards)) is not None:
                residuals, determinants = (values[:, None] for values in own.at(ratios))
                scores = self.power * self._score_at(ratios, residuals, determinants)[:, 0]
                logs.append(np.log(weights[smallest, j] / scores.size) + scores - scores[0])
                found.append(ratios * self._scales_at(ratios, residuals)[:, 0])
                rest[smallest, j] = 0.0
        exponents = np.concatenate(logs)
        top = float(exponents.max(initial=0.0))
        shares, others = np.exp(exponents - top), np.exp(-top) * rest
        total = float(shares @ np.concatenate(found)) + float(np.sum(others * self.noise_variances()))
        return total / float(shares.sum() + others.sum())

    def _spectrum(self, j: int, rows: FloatArray, rewards: FloatArray) -> Spectrum | None:
        """Of the divided features of model j, or of its kernel."""
        own = np.ascontiguousarray(rows[:, self._columns[self._offsets[j] : self._offsets[j + 1]]])
        divisors = self.grid.divisors if isinstance(self.grid, CalibratingGrid) else self._divisors
        model = None if self._tables is None else self._tables[j]
        if model is not None and model.kernel is not None:
            return spectrum(Scaled.of(model.kernel, float(divisors[j]) ** -2), own, rewards, self._intercept)
        own = own if model is None or model.origin is None else own - model.origin
        return spectrum(None, own / divisors[j], rewards, self._intercept)

    def draw(self, cell: int, model: int, rng: np.random.Generator, choices: Choices) -> FloatArray:
        """Rewards at the choices under one draw of a component's scale and function, shape (n,)."""
        normals = rng.standard_normal(self.grid.n_normals(model))
        noise = self.noise_variances()[cell, model] * self._shape / rng.standard_gamma(self._shape)
        return self.grid.draw(cell, model, choices, normals, float(np.sqrt(noise)))

    def _stretches(self, rng: np.random.Generator, n: int) -> FloatArray:
        return np.asarray(np.sqrt(self._shape / rng.standard_gamma(self._shape, n)))

    @property
    def freedom(self) -> float:
        """Degrees of freedom 2 a0 + t of a component's predictions, which are t-distributed."""
        return 2.0 * self._shape

    def state(self) -> Packable:
        """Everything that observations have changed."""
        return {"grid": super().state(), "mean": self._mean, "squares": self._squares}

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""
        known = record("mixture", state, {"grid": anything, "mean": number(), "squares": number(0.0, SQUARE)})
        super().restore(known["grid"])
        self._mean, self._squares = known["mean"], known["squares"]


def prior_scales(ratios: Sequence[float]) -> tuple[float, ...]:
    """Prior standard deviations of the coefficients, in units of the noise: r^(-1/2)."""
    return tuple(float(ratio) ** -0.5 for ratio in ratios)


def trace_divisors(table: FloatArray, columns: IntArray, offsets: IntArray, centred: bool) -> FloatArray:
    """What makes the mean over candidates of ||phi_j||^2 equal one, shape (M,); one for models that are zero there.

    ``table`` (P, N) holds the columns on all candidates; ``centred`` takes their means off first, as an intercept does.
    """
    squares = np.array([_mean_square(column, centred) for column in table])
    traces = np.add.reduceat(squares[columns], offsets[:-1])
    return np.asarray(np.sqrt(np.where(traces > VANISHING**2, traces, 1.0)))


def prior_divisors(tables: Sequence[ModelOnTable], centred: bool) -> FloatArray:
    """The same for models on tables, shape (M,), kernels among them."""
    traces = np.array([_trace(model, centred) for model in tables])
    return np.asarray(np.sqrt(np.where(traces > VANISHING**2, traces, 1.0)))


def _trace(model: ModelOnTable, centred: bool) -> float:
    """Mean over candidates of the prior variance; of what is left of it beside an intercept, if centred.

    Functions of a kernel with a long lengthscale are nearly constant, and the intercept is the constant: what they vary
    by, mean k(x, x) - mean k(x, z), must be as large as it is for a short one, or they would explain noise only.
    """
    if model.kernel is None:
        return model.block.mean_square(centred)
    whole = float(np.mean(model.kernel.diagonal(model.block.rows)))
    if not centred:
        return whole
    some = dense(model.block.rows[spread(model.block.rows.shape[0], _MOST)])
    return varying_part(model.kernel, some, whole)


def _mean_square(column: FloatArray, centred: bool) -> float:
    whole = float(column @ column) / column.size
    if not centred:
        return whole
    rest = column - column.mean()
    varying = float(rest @ rest) / column.size
    return varying if varying > 1e-28 * whole else 0.0  # a constant leaves nothing but the rounding of its mean
