"""Evidence mixture: the posterior over models, noise levels and scales, and its predictions.

Component c = (j, a, b) says: model j is true, the noise has standard deviation s = a sigma, and the coefficients of
the model's divided features have the prior N(0, (b B)^2 I).  Then V_c = Phi_j'Phi_j + ridge_c^2 I with
ridge_c = s / (b B) is a ridge regression, and the log evidence of t rewards is, up to a constant common to all
components,

    -F_c / (2 s^2) - log det(V_c / ridge_c^2) / 2 - t log a,

with F_c = min_theta ||y - Phi_j theta||^2 + ridge_c^2 ||theta||^2.

With an intercept its flat prior takes one degree of freedom: t - 1 instead of t; if every arm has an intercept, as many
as arms have had a reward.

With `forget` a reward that k later ones have followed has the weight w = forget^k. Its likelihood is raised to that
power, N(y; phi'theta, s^2)^w, while the prior stays as it is: V_c = Phi_j'W Phi_j + ridge_c^2 I, F_c has weighted
squares, and t becomes the sum of the weights. That is a power likelihood, not the evidence of a model of drift: weights
of models never become surer than some 1 / (1 - forget) rewards can make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import expm1, inf, isfinite, lgamma, log, pi, sinh, sqrt
from typing import NamedTuple, TypedDict, Unpack, cast

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.schema import SQUARE, anything, number, record
from alexp.common.ties import first_best
from alexp.estimation.factory import posterior_grid
from alexp.estimation.mixture import optimality
from alexp.estimation.mixture._kernels import add_excesses
from alexp.estimation.mixture.calibrating import Calibration, Measure, Scaling, prior_scales
from alexp.estimation.mixture.spectrum import Spectrum, spectrum
from alexp.estimation.posteriors import Component, ComponentValues, KnowsMeans, NotFiniteError, PosteriorGrid
from alexp.problem.candidates import NOTHING, Choices, Pending
from alexp.problem.kernels import Scaled
from alexp.problem.matrices import ModelOnTable

# Below this ratio of noise to prior scale, variances span so many digits that a quadratic form in coefficients
# would round the small ones away; candidates are then done one component at a time.
_SAFE_NOISE = 1e-4
_NEGLIGIBLE = 1e-12  # weight of models whose noise is not looked into
SHAPE = 1.0  # a0
STEPS: FloatArray = 0.1 ** np.arange(27.0)  # multiply the smallest ratio: noise down to 1e-15 of the rewards
MOST = 64  # models that are decomposed
_TINY = float(np.finfo(np.float64).tiny)
_EDGE, _POINTS = 12.0, 8193  # of tabulated gains: standardised distances up to 80,000 from the incumbent
_REACH = sinh(_EDGE)
_HALVINGS = 50  # of the bracket of a quantile
_NEAR = 16.0  # standardised distances at which gains are tabulated evenly


class StudentEvidence(NamedTuple):
    """The evidence where noise and scale are unknown and integrated out, after some rewards.

    Component c = (j, r) says: model j is true, the coefficients of its divided features have the prior N(0, s^2 I),
    the noise has variance r s^2, and s^2 ~ IG(a0, b0), an inverse gamma distribution. V_c = Phi_j'Phi_j + r I is a
    ridge regression with penalised residual F_c = min_theta ||y - Phi_j theta||^2 + r ||theta||^2. Given s, t rewards
    have the density

        (2 pi r s^2)^(-t/2) det(V_c / r)^(-1/2) exp(-F_c / (2 r s^2)),

    and its integral over the prior of s^2 is, up to a constant common to all components,

        log evidence = -(a0 + t/2) log(b0 + F_c / (2 r)) - (t log r + log det(V_c / r)) / 2,
        s^2 | data ~ IG(a0 + t/2, b0 + F_c / (2 r)).

    The flat prior of an intercept takes one degree of freedom: t - 1 instead of t; if every arm has an intercept, as
    many as arms have had a reward. Predictions are multivariate t with 2 a0 + t degrees of freedom and scale matrices
    E[s^2] r ||phi||^2_{V_c^-1}, where E[s^2] stands for 1 / E[1/s^2] = (b0 + F_c / (2 r)) / (a0 + t/2), since the mean
    itself is infinite before the first reward. a0 = 1 everywhere; `reward_unit` says what b0 is.

    `freedom` is t less what constants take, `unit` is b0. Residuals F and log determinants log det(V / r) have shape
    (R, M), ratios r shape (R, 1), or (R, M) where models have ratios of their own.
    """

    freedom: float
    unit: float

    @property
    def shape(self) -> float:
        """a0 + t/2."""
        return SHAPE + 0.5 * self.freedom

    def log_evidence(self, ratios: FloatArray, residuals: FloatArray, determinants: FloatArray) -> FloatArray:
        """Log evidence of every component, (R, M), up to a constant: b0's logarithm is left out."""
        volumes = self.freedom * np.log(ratios) + determinants
        return np.asarray(-self.shape * np.log1p(self._excess(ratios, residuals)) - 0.5 * volumes)

    def noise_variances(self, ratios: FloatArray, residuals: FloatArray) -> FloatArray:
        """r E[s^2] of every component, (R, M)."""
        return np.asarray(ratios * (self.unit * (1.0 + self._excess(ratios, residuals)) / self.shape))

    def _excess(self, ratios: FloatArray, residuals: FloatArray) -> FloatArray:
        """F / (2 r b0): exactly the same for units of rewards that differ by a power of two."""
        return residuals / self.unit / (2.0 * ratios)


def reward_unit(squares: float, mean: float, mass: float) -> float:
    """b0: the variance of the rewards so far, so that their unit drops out and, with an intercept, their level.

    `squares` is the sum of squares about the `mean`, `mass` the sum of the rewards' weights. Where the variance is
    zero, b0 is the square of the one value that was seen; if that is zero too, or nothing was seen, b0 = 1 and nothing
    depends on it but the unit of predictions.
    """
    if squares > 0.0:
        return SHAPE * squares / mass
    return SHAPE * mean**2 or 1.0


def flat_prior_weights(residuals: FloatArray, determinants: FloatArray, freedom: int) -> FloatArray:
    """Posterior probability of every (ridge, model), (R, M), in the limit a0 = b0 = 0: F^(-t/2) det(V / r)^(-1/2).

    The powers of r in the formula cancel. A perfect fit has infinite evidence; it counts as one that leaves the square
    root of the rounding unit.
    """
    positive = residuals[residuals > 0.0]
    if positive.size == 0:
        logs = np.zeros_like(residuals)
    else:  # ratios first: their logarithms do not depend on the unit of the rewards
        smallest = float(positive.min()) if np.all(residuals > 0.0) else 1e-16 * float(positive.min())
        logs = np.log(np.maximum(residuals, smallest) / smallest)
    scores = -0.5 * freedom * logs - 0.5 * determinants
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


class Mixture:
    """Bayesian model average of ridge regressions over a grid of noise levels and prior scales.

    Parameters
    ----------
    n_columns : P, columns of the dictionary.
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows.
    divisors : (M,) what the features of each model are divided by.
    intercept : whether every model has an unpenalised constant.
    noise_std : sigma; noise level g is noise_grid[g] * sigma.
    norm_bound : B; prior standard deviation h is scale_grid[h] * B.
    power : weights are proportional to the evidence to this power; below one they trust adaptively chosen data less.
        The prior is no evidence and is not raised to it.
    log_prior : (M,) logarithms of the models' prior weights; equal by default.
    tables : the models on all candidates, where values there are kept, see `factory.takes_one_pass`.
    arm_blocks : (K, p) where every arm has p columns of its own, see `estimation.blocks`.
    units : (P,) what columns are divided by before that, see `set_units`; None for nothing.
    calibrate : gives units and divisors for rows told, which then replace those given; see `Calibration`.
    forget : weight of a reward for each one that came after it; see below.

    Cells of the grid are numbered noise-major; weights have shape (cells, M).
    """

    grid: PosteriorGrid

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        divisors: FloatArray,
        intercept: bool,
        *,
        noise_std: float,
        norm_bound: float,
        noise_grid: Sequence[float] = (1.0,),
        scale_grid: Sequence[float] = (1.0,),
        power: float = 1.0,
        log_prior: FloatArray | None = None,
        tables: Sequence[ModelOnTable] | None = None,
        arm_blocks: tuple[int, int] | None = None,
        units: FloatArray | None = None,
        calibrate: Measure | None = None,
        forget: float | None = None,
    ) -> None:
        self.forget = forget
        self.power, self.log_prior = power, log_prior
        pairs = [(float(a), float(b)) for a in noise_grid for b in scale_grid]
        self.n_columns, self._columns, self._sizes = n_columns, columns, np.diff(offsets)
        self._offsets, self._divisors, self._intercept, self._tables = offsets, divisors, intercept, tables
        self._weighs_alike = forget is None and arm_blocks is None  # whether rewards have one weight and one constant
        self.factors, self.scales = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
        self.noise = self.factors * noise_std
        self.ridges = np.array([a * noise_std / (b * norm_bound) for a, b in pairs])
        self._precise = bool(self.noise.min() < _SAFE_NOISE * float(self.scales.max()) * norm_bound)
        self._arm_blocks = arm_blocks
        self._units = units
        self._calibration: Calibration | None = None
        if calibrate is not None:
            divisors = np.ones(self._sizes.size)
            self._calibration = Calibration(self._new_grid, calibrate, Scaling(divisors, units), n_columns)
        self.grid = self._new_grid(divisors)
        self._last: tuple[Choices, Choices] | None = None  # choices as they came, and with columns in their units

    def _new_grid(self, divisors: FloatArray) -> PosteriorGrid:
        """The empty fits of all components, with given divisors (M,)."""
        ridges = [ridge * divisors for ridge in self.ridges]
        groups = (self.n_columns, self._columns, self._offsets, ridges, self._intercept)
        return posterior_grid(*groups, self._precise, self._tables, self._arm_blocks, self.forget)

    @property
    def n_observations(self) -> int:
        """Number of rewards taken in so far, t."""
        return self.grid.n_observations

    @property
    def scaling(self) -> Scaling:
        """What columns and features are divided by."""
        return Scaling(self._divisors, self._units) if self._calibration is None else self._calibration.scaling

    def _divided(self, choices: Choices, pending: Pending = NOTHING) -> tuple[Choices, Pending]:
        """Choices and pending trials with columns in their units; the choices of the last call are kept."""
        if self._units is None:
            return choices, pending
        if self._last is None or self._last[0] is not choices:
            self._last = choices, Choices(choices.indices, choices.table / self._units[:, None])
        if pending:
            pending = Pending(pending.trials, pending.indices, pending.rows / self._units)
        return self._last[1], pending

    def _forget_computed(self) -> None:
        """Drop what was computed from the rewards so far."""
        self._last = None
        vars(self).pop("noise_variances", None)
        vars(self).pop("_evidence", None)

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one observation; ``row`` (P,) is the dictionary at the action taken, ``index`` its candidate's."""
        self._forget_computed()
        self.grid.update(row if self._units is None else row / self._units, y, index)
        if self._calibration is not None:
            self.grid = self._calibration.after(self.grid, row, y)
            self._units = self._calibration.scaling.units
        self._count(y)
        if self.grid.multiples is not None:
            self.grid.reweigh(self._score, self.power)

    def _count(self, y: float) -> None:
        """Take a reward into the statistics of all rewards."""

    def log_evidence(self) -> FloatArray:
        """Log evidence of every component up to a common constant, shape (cells, M); minus infinity if negligible."""
        vars(self).pop("noise_variances", None)  # models that wake have other residuals
        out = self.grid.evidence(self._score, 1.0 / self.power)
        preference = None if self._tables is None else self.grid.preference(lambda: self.noise_variances)
        return out if preference is None else out + preference

    @property
    def mass(self) -> float:
        """Sum of the rewards' weights: t, or (1 - forget^t) / (1 - forget)."""
        t = self.grid.n_observations
        return t if self.forget is None else -expm1(t * log(self.forget)) / (1.0 - self.forget)

    @property
    def _freedom(self) -> float:
        """The mass, less the degree of freedom that the flat prior of an intercept takes, or of each arm's."""
        return max(self.mass - self.grid.n_constants, 0)

    def _score(
        self, residuals: FloatArray, determinants: FloatArray, multiples: FloatArray | None = None
    ) -> FloatArray:
        """Log evidence from penalised residuals and log determinants, (cells, M) each; see `Score`."""
        noise, factors = self._levels(self.noise, multiples), self._levels(self.factors, multiples)
        return np.asarray(-residuals / (2.0 * noise**2) - 0.5 * determinants + -self._freedom * np.log(factors))

    def _levels(self, levels: FloatArray, multiples: FloatArray | None) -> FloatArray:
        """Noise levels of all components, (cells, 1) or (cells, M), from those of the cells (cells,).

        Where ridges are learned the noise is the stated one; if several levels are considered, the prior's scale is.
        """
        if multiples is None:
            return levels[:, None]
        own = np.sqrt(multiples) if np.ptp(self.factors) > 0.0 else np.where(np.isnan(multiples), np.nan, 1.0)
        return _of_components(levels, own)

    def log_weights(self) -> FloatArray:
        """Logarithms of the components' weights up to a constant: power x log evidence + log prior, (cells, M)."""
        scores = self.power * self.log_evidence()
        return scores if self.log_prior is None else scores + self.log_prior

    def weights(self) -> FloatArray:
        """Posterior probability of every component, shape (cells, M)."""
        power, prior = self.power, self.log_prior
        with np.errstate(over="ignore", invalid="ignore"):  # minus infinity: rewards beyond 1e150 times the noise
            scores = self.log_evidence() if prior is None else self.log_weights()
        top = float(scores.max())
        if not isfinite(top):
            scores, top = self._finite_scores(scores), 0.0
            scores = scores if prior is None else power * scores + prior
        weights = np.exp((power if prior is None else 1.0) * (scores - top))
        return np.asarray(weights / weights.sum())

    def _finite_scores(self, scores: FloatArray) -> FloatArray:
        """What scores (cells, M) are relative to the best one where all are minus infinity; raises where one is not.

        Beside residuals of more than 1e150 times the noise nothing else counts, and differences of squares are
        products: a^2 - b^2 = (a - b) (a + b).
        """
        wrong = np.argwhere(~(scores < np.inf))
        if wrong.size:
            raise NotFiniteError("evidence", int(wrong[0, 1]))
        sizes = np.sqrt(self.grid.residuals()) / self._levels(self.noise, self.grid.multiples)
        with np.errstate(over="ignore"):
            return np.asarray(-0.5 * (sizes - sizes.min()) * (sizes + sizes.min()))

    def probabilities(self, weights: FloatArray) -> FloatArray:
        """Posterior probability of every model under weights (cells, M), shape (M,)."""
        summed = weights.sum(axis=0)
        return np.asarray(summed / summed.sum())

    def n_coefficients(self, weights: FloatArray) -> float:
        """Number of columns of a model, constant included, under weights (cells, M)."""
        return float(self.probabilities(weights) @ self._sizes) + float(self._intercept)

    def leader(self, weights: FloatArray) -> int:
        """Number of the most probable model."""
        return first_best(weights.sum(axis=0))

    def likeliest(self, weights: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
        """Numbers of the n most probable models, and their probabilities."""
        shares = self.probabilities(weights)
        first = np.argsort(-shares, kind="stable")[:n]
        return first, shares[first]

    def column_probabilities(self, weights: FloatArray) -> FloatArray:
        """Probability that each column is in the model, shape (P,)."""
        shares = np.repeat(self.probabilities(weights), self._sizes)
        return np.asarray(np.bincount(self._columns, shares, minlength=self.n_columns), dtype=np.float64)

    @cached_property
    def noise_variances(self) -> FloatArray:
        """Variance of the noise in every component, shape (cells, M); kept until the next reward, not to be written."""
        noise = self._levels(self.noise, self.grid.multiples)
        return np.broadcast_to(noise**2, (len(noise), self._sizes.size)).copy()

    def noise_variance(self, weights: FloatArray) -> float:
        """Posterior mean of the noise variance under weights (cells, M)."""
        if self.grid.multiples is None:
            return float(weights.sum(axis=1) @ self.noise**2)
        return float(np.sum(weights * self.noise_variances))

    def estimated_noise(self, weights: FloatArray, rows: FloatArray, rewards: FloatArray) -> float:
        """The noise variance as users are told it, from weights (cells, M) and all rewards (t,) with rows (t, P)."""
        return self.noise_variance(weights)

    def moments(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and total variance (within plus between components) at the choices, shapes (n,).

        ``weights`` (cells, M) as :meth:`weights` has them; ``pending`` trials shrink the variances within components.
        """
        where = (choices, pending) if self._units is None else self._divided(choices, pending)  # once in every ask
        mean, variance = self.grid.moments(weights, self.noise_variances, *where)
        if hasattr(mean, "without"):  # values in parts, which are checked when they are reduced
            return mean, variance
        if not np.isfinite([mean.min(), mean.max(), variance.min(), variance.max()]).all():
            for part in self.components(weights, choices, pending):
                part.check()
            raise NotFiniteError("mean", self.leader(weights))
        return mean, variance

    def components(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING, least: float = 1e-12
    ) -> Iterator[Component]:
        """The components of weight above ``least`` one by one; shares sum to one."""
        return self.grid.components(weights, self.noise_variances, *self._divided(choices, pending), least)

    def values(self, weights: FloatArray, choices: Choices, pending: Pending, least: float) -> ComponentValues:
        """The same all at once, for few choices, which have something pending or a reward."""
        out = self.grid.values(weights, self.noise_variances, *self._divided(choices, pending), least)
        if not (np.isfinite(out.mean).all() and np.isfinite(out.variance).all()):
            for part in self.components(weights, choices, pending, least):
                part.check()
        return out

    def prefers_few(self, weights: FloatArray, n: int) -> bool:
        """Whether `values` at few choices take far less time than `moments` at n."""
        return self.grid.prefers_few(weights, n)

    def largest_means(self, weights: FloatArray, choices: Choices, least: float) -> FloatArray:
        """The largest mean of each component of weight above ``least`` among some choices, (K,)."""
        if isinstance(self.grid, KnowsMeans):
            return self.grid.largest_means(weights, choices, least)
        return np.asarray(self.values(weights, choices, NOTHING, least).mean.max(axis=1))

    def interval(self, weights: FloatArray, choices: Choices, level: float) -> tuple[FloatArray, FloatArray]:
        """Quantiles (1 -/+ level) / 2 of the reward at the choices, noise aside, shapes (n,)."""
        parts = [part for part in self.components(weights, choices) if part.check() is None]
        centres, scales = np.array([part.mean for part in parts]), np.sqrt([part.variance for part in parts])
        shares = np.array([part.share for part in parts])
        low, high = (quantile(share, shares, centres, scales, self.freedom) for share in sides(level))
        return low, high

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a component's predictions: infinitely many, because they are Gaussian."""
        return inf

    def draw(self, cell: int, model: int, rng: np.random.Generator, choices: Choices) -> FloatArray:
        """Rewards at the choices under one draw of a component's function, shape (n,).

        The constant of an intercept, common to all candidates, is left out.
        """
        normals = rng.standard_normal(self.grid.n_normals(model))
        where, _ = self._divided(choices)
        return self.grid.draw(cell, model, where, normals, float(np.sqrt(self.noise_variances[cell, model])))

    def chances(
        self, weights: FloatArray, choices: Choices, rng: np.random.Generator, price: FloatArray | None = None
    ) -> FloatArray:
        """Probability that each choice is the best under the posterior, shape (n,), see `optimality`.

        A `price` (n,) is taken off the rewards. Of more than 200 choices only the most promising have any. Kernels and
        one pass: shares of 64 draws.
        """
        if len(choices) <= optimality.MOST:
            return self._chances(weights, choices, rng, price)
        mean, variance = self.moments(weights, choices)
        some = optimality.promising(mean if price is None else mean - price, variance)
        out = np.zeros(len(choices))
        indices = None if choices.indices is None else choices.indices[some]
        narrow = Choices(indices, lambda: np.ascontiguousarray(choices.table[:, some]))
        out[some] = self._chances(weights, narrow, rng, None if price is None else price[some])
        return out

    def _chances(
        self, weights: FloatArray, choices: Choices, rng: np.random.Generator, price: FloatArray | None
    ) -> FloatArray:
        if (dimension := self.grid.root_width(len(choices))) is None:
            return self._shares_of_draws(weights, choices, rng, price)
        offset, stretches = rng.random(), self._stretches(rng, optimality.LINES)
        normals = rng.standard_normal((optimality.LINES, dimension))
        deviations = np.sqrt(self.noise_variances)
        where, _ = self._divided(choices)
        return optimality.by_lines(self.grid, weights, deviations, where, normals, stretches, offset, price)

    def _stretches(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draws of what deviations are multiplied by, shape (n,)."""
        return np.ones(n)

    def _shares_of_draws(
        self, weights: FloatArray, choices: Choices, rng: np.random.Generator, price: FloatArray | None
    ) -> FloatArray:
        out = np.zeros(len(choices))
        counts = optimality.evenly(weights.ravel(), optimality.DRAWS, rng.random())
        for component in np.repeat(np.arange(counts.size), counts):
            cell, model = divmod(int(component), weights.shape[1])
            drawn = self.draw(cell, model, rng, choices)
            out[first_best(drawn if price is None else drawn - price)] += 1.0 / optimality.DRAWS
        return out

    def state(self) -> Packable:
        """Everything that observations have changed."""
        return self.grid.state() if self._calibration is None else self._calibration.state(self.grid)

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""
        self._forget_computed()
        if self._calibration is None:
            self.grid.restore(state)
        else:
            self.grid = self._calibration.restored(state)
            self._units = self._calibration.scaling.units


def _of_components(levels: FloatArray, multiples: FloatArray) -> FloatArray:
    """Levels of the cells (cells,) for all components, (cells or more, M): multiples of the first where it is known."""
    own = np.full(len(multiples), levels[0])
    own[: levels.size] = levels[: own.size]
    return np.where(np.isnan(multiples), own[:, None], levels[0] * multiples)


Groups = tuple[int, IntArray, IntArray, FloatArray, bool]  # the first arguments of `Mixture`


class UnstatedSettings(TypedDict, total=False):
    """Keywords of `Mixture` that mixtures without stated noise take."""

    power: float
    log_prior: FloatArray | None
    tables: Sequence[ModelOnTable] | None
    arm_blocks: tuple[int, int] | None
    units: FloatArray | None
    calibrate: Measure | None
    forget: float | None


class StudentMixture(Mixture):
    """`Mixture` over a grid of ratios r of noise to prior variance, with the scale of both integrated out.

    `StudentEvidence` has the formulas.

    Parameters as for `Mixture`, with ``ratio_grid`` in place of noise, bound and their grids. ``divisors`` should make
    the mean of ||phi_j||^2 over the candidates one, see `trace_divisors`: then s^2 is the variance of the rewards.
    """

    def __init__(self, *groups: *Groups, ratio_grid: Sequence[float], **settings: Unpack[UnstatedSettings]) -> None:
        scales = prior_scales(ratio_grid)  # in a unit of its own
        super().__init__(*groups, noise_std=1.0, norm_bound=1.0, scale_grid=scales, **settings)
        self.ratios = np.asarray(ratio_grid, dtype=np.float64)
        self._mean, self._squares = 0.0, 0.0  # of the rewards; sum of squares about the mean
        self.unit: float | None = None  # b0 where it is fixed; by default it follows the rewards

    def _count(self, y: float) -> None:
        delta = y - self._mean
        self._mean += delta / self.mass
        self._squares = (1.0 if self.forget is None else self.forget) * self._squares + delta * (y - self._mean)

    @cached_property
    def _evidence(self) -> StudentEvidence:
        """The formulas with the rewards so far."""
        unit = reward_unit(self._squares, self._mean, self.mass) if self.unit is None else self.unit
        return StudentEvidence(self._freedom, unit)

    def _score(
        self, residuals: FloatArray, determinants: FloatArray, multiples: FloatArray | None = None
    ) -> FloatArray:
        return self._evidence.log_evidence(self._levels(self.ratios, multiples), residuals, determinants)

    def _levels(self, levels: FloatArray, multiples: FloatArray | None) -> FloatArray:
        """Ratios of all components, (cells, 1) or (cells, M), from those of the cells (cells,)."""
        return levels[:, None] if multiples is None else _of_components(levels, multiples)

    @cached_property
    def noise_variances(self) -> FloatArray:
        return self._evidence.noise_variances(self._levels(self.ratios, self.grid.multiples), self.grid.residuals())

    def noise_variance(self, weights: FloatArray) -> float:
        return float(np.sum(weights * self.noise_variances))

    def estimated_noise(self, weights: FloatArray, rows: FloatArray, rewards: FloatArray) -> float:
        """Posterior mean of the noise variance, with smaller ratios where the smallest of the grid leaves them open.

        In place of its smallest ratio, a model has that ratio divided by 1, 10, 100, ..., together of the same prior
        weight, and weighed by their evidence. Decisions are not made on these.
        """
        evidence, rest = self._evidence, weights.copy()
        logs, found = [np.zeros(0)], [np.zeros(0)]
        for j, cells, largest in self._open_ratios(weights) if self._weighs_alike and len(rewards) else ():
            weight, ratios = float(weights[cells, j].sum()), np.asarray(largest * STEPS)
            if weight > _NEGLIGIBLE and (own := self._spectrum(j, cells, rows, rewards)) is not None:
                residuals, determinants = (values[:, None] for values in own.at(ratios))
                scores = self.power * evidence.log_evidence(ratios[:, None], residuals, determinants)[:, 0]
                logs.append(np.log(weight / scores.size) + scores - scores[0])
                found.append(evidence.noise_variances(ratios[:, None], residuals)[:, 0])
                rest[cells, j] = 0.0
        exponents = np.concatenate(logs)
        top = float(exponents.max(initial=0.0))
        shares, others = np.exp(exponents - top), np.exp(-top) * rest
        total = float(shares @ np.concatenate(found)) + float(np.sum(others * self.noise_variances))
        return total / float(shares.sum() + others.sum())

    def _open_ratios(self, weights: FloatArray) -> Iterator[tuple[int, list[int], float]]:
        """Models whose noise may be below what they consider: their number, the cells in question and a ratio there.

        The cell of the smallest ratio; where ratios are learned all cells, first the likeliest, whose ratio it is.
        """
        smallest, multiples = int(np.argmin(self.ratios)), self.grid.multiples
        learned = np.zeros(weights.shape[1], dtype=bool) if multiples is None else ~np.isnan(multiples[0])
        for j in np.argsort(-np.where(learned, weights.sum(axis=0), weights[smallest]), kind="stable")[:MOST].tolist():
            if multiples is None or not learned[j]:
                yield j, [smallest], float(self.ratios[smallest])
            else:
                cells = np.argsort(-weights[:, j], kind="stable").tolist()
                yield j, cells, float(self.ratios[0] * multiples[cells[0], j])

    def _spectrum(self, j: int, cells: Sequence[int], rows: FloatArray, rewards: FloatArray) -> Spectrum | None:
        """Of the divided features of model j, or of its kernel in the first of some cells."""
        columns, (divisors, units) = self._columns[self._offsets[j] : self._offsets[j + 1]], self.scaling
        own = np.ascontiguousarray(rows[:, columns])
        own = own if units is None else own / units[columns]
        model = None if self._tables is None else self._tables[j]
        if model is not None and model.kernel is not None:
            kernel = self.grid.learned_kernel(j, cells[0]) or model.kernel
            return spectrum(Scaled.of(kernel, float(divisors[j]) ** -2), own, rewards, self._intercept)
        own = own if model is None or model.origin is None else own - model.origin
        return spectrum(None, own / divisors[j], rewards, self._intercept)

    def draw(self, cell: int, model: int, rng: np.random.Generator, choices: Choices) -> FloatArray:
        normals = rng.standard_normal(self.grid.n_normals(model))
        shape = self._evidence.shape
        noise = self.noise_variances[cell, model] * shape / rng.standard_gamma(shape)
        where, _ = self._divided(choices)
        return self.grid.draw(cell, model, where, normals, float(np.sqrt(noise)))

    def _stretches(self, rng: np.random.Generator, n: int) -> FloatArray:
        shape = self._evidence.shape
        return np.asarray(np.sqrt(shape / rng.standard_gamma(shape, n)))

    @property
    def freedom(self) -> float:
        """Degrees of freedom 2 a0 + t of a component's predictions, which are t-distributed."""
        return 2.0 * self._evidence.shape

    def state(self) -> Packable:
        return {"grid": super().state(), "mean": self._mean, "squares": self._squares}

    def restore(self, state: Packable) -> None:
        known = record("mixture", state, {"grid": anything, "mean": number(), "squares": number(0.0, SQUARE)})
        super().restore(known["grid"])
        self._mean, self._squares = known["mean"], known["squares"]


def sides(level: float) -> tuple[float, float]:
    """What lies below the ends of an interval with equal tails."""
    return 0.5 * (1.0 - level), 0.5 * (1.0 + level)


def quantile(share: float, shares: FloatArray, centres: FloatArray, scales: FloatArray, freedom: float) -> FloatArray:
    """Where a share of the mixture of K t-distributions lies below, (n,), by bisection; centres, scales (K, n)."""
    from scipy.special import ndtr, ndtri, stdtr, stdtrit  # slow to import, and needed here only

    reach = ndtri(share) if freedom == inf else stdtrit(freedom, share)
    ends = centres + reach * scales
    low, high = ends.min(axis=0), ends.max(axis=0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        z = (middle - centres) / np.maximum(scales, _TINY)
        below = shares @ (ndtr(z) if freedom == inf else stdtr(freedom, z)) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def expected_improvement(
    components: Iterable[Component], n: int, incumbents: Iterable[float], freedom: float, width: float = 1.0
) -> FloatArray:
    """E[max(f(x) - incumbent, 0)] under a mixture, shape (n,): the components' own, by their shares.

    Every component has its own incumbent; deviations are multiplied by `width`. A component's f(x) has a t-distribution
    with `freedom` degrees of freedom, a normal one if they are infinite; what it calls variance is the square of that
    distribution's scale.
    """
    out: FloatArray | float = 0.0
    for part, incumbent in zip(components, incumbents, strict=False):  # one incumbent may stand for all
        part.check()
        out = out + part.share * improvements(part.mean - incumbent, part.variance, freedom, width)
    return out if not isinstance(out, float) else np.zeros(n)


def expected_excesses(
    components: Iterable[Component], n: int, levels: FloatArray, freedom: float, width: float = 1.0
) -> FloatArray:
    """E[max(f(x) - level, 0)] under a mixture at L levels, shape (L, n); otherwise as `expected_improvement`."""
    out, near, (_, far) = np.zeros((levels.size, n)), _near_gains(freedom), _gain_table(freedom)
    for part in components:
        part.check()
        mean, std = np.asarray(part.mean), np.maximum(width * np.sqrt(np.asarray(part.variance)), _TINY)
        add_excesses(out, mean, std, float(part.share), levels, _NEAR, near, _EDGE, far)
    return out


def improvements(above: FloatArray, variance: FloatArray, freedom: float, width: float) -> FloatArray:
    """Expected improvements where a mean lies so far `above` the incumbent, of the shape of both."""
    slope, logarithms = _gain_table(freedom)
    std = np.maximum(width * np.sqrt(variance), _TINY)
    with np.errstate(over="ignore"):  # what is certain is infinitely far from the incumbent
        place = slope * (np.arcsinh(np.clip(above / std, -_REACH, _REACH)) + _EDGE)
    left = np.minimum(place.astype(np.int64), logarithms.size - 2)
    low = entries(logarithms, left)
    gains = std * np.exp(low + (place - left) * (entries(logarithms, left + 1) - low))
    return cast(FloatArray, np.maximum(gains, above))  # what lies beyond the table is certain


def entries(table: FloatArray, indices: IntArray) -> FloatArray:
    """Entries of a table (k,) by indices of any shape, computed where these are: NumPy does not dispatch on indices."""
    entries_of = getattr(indices, "entries_of", None)
    return np.asarray(table[indices]) if entries_of is None else cast(FloatArray, entries_of(table))


@lru_cache(maxsize=4)
def _gain_table(freedom: float) -> tuple[float, FloatArray]:
    """log E[max(z + T, 0)] for a standard variable T, at points that are even in arcsinh(z), and points per unit of it.

    A distribution function for every candidate and component would take ten times as long. Interpolated, the logarithm
    is right to 1e-5 where z > -4.
    """
    points = np.linspace(-_EDGE, _EDGE, _POINTS)
    gains = expected_excess(np.sinh(points), freedom)
    return (_POINTS - 1) / (2.0 * _EDGE), np.log(np.maximum(gains, _TINY))


@lru_cache(maxsize=4)
def _near_gains(freedom: float) -> FloatArray:
    """log E[max(z + T, 0)] at even points of z: without arcsinh, which would take most of the time of a kernel."""
    return np.log(np.maximum(expected_excess(np.linspace(-_NEAR, _NEAR, 4 * _POINTS), freedom), _TINY))


def expected_excess(z: FloatArray, freedom: float) -> FloatArray:
    """E[max(z + T, 0)] for a variable T with a standard t-distribution, or normal where `freedom` is infinite."""
    from scipy.special import ndtr, stdtr  # slow to import, and needed here only

    if freedom == inf:
        return np.asarray(np.maximum(z * ndtr(z) + np.exp(-0.5 * z**2) / sqrt(2.0 * pi), 0.0))
    tail = np.exp(_log_peak(freedom) - 0.5 * (freedom - 1.0) * np.log1p(z**2 / freedom))
    return np.asarray(np.maximum(z * stdtr(freedom, z) + freedom / (freedom - 1.0) * tail, 0.0))


def _log_peak(freedom: float) -> float:
    """Logarithm of the t-density at zero."""
    return lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom) - 0.5 * log(freedom * pi)
