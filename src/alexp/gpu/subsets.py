"""All subsets of one size as models, enumerated and never listed: on a GPU, or slowly on the CPU.

Every subset's posterior follows from sums that all of them share, a P x P matrix and P products with the rewards. One
reward changes these alone; a decision makes each subset's small posterior anew, in registers, and keeps none of them.
Mean and covariance of the coefficients under the mixture of all subsets are a vector (P,) and a matrix (P, P), summed
pair by pair of columns in a fixed order; predictions at candidates need nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from math import comb, log
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypedDict

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.backends import NoDeviceError, check_device
from alexp.common.codec import Packable
from alexp.common.schema import SQUARE, floats, number, record, whole
from alexp.decision.suggestions import Suggestions
from alexp.decision.weights import in_memory
from alexp.estimation.posteriors import dictionary_rows
from alexp.gpu.cpu_engine import CpuEngine
from alexp.problem.candidates import NOTHING, Choices, Pending
from alexp.problem.groups import MOST_NUMBERED, AllSubsets
from alexp.problem.models import ANYWHERE

if TYPE_CHECKING:
    from alexp.estimation.posteriors import Where
    from alexp.problem.candidates import CandidateTable
    from alexp.problem.models import ModelClass

SIZES = (2, 6)  # columns of a subset, from and to: each size is compiled by itself
_SHAPE = 1.0  # a0 of unknown noise, as in `StudentEvidence`
_LEAST = 1e-5  # ratio of noise to what coefficients contribute; widths are right to five digits at it, to three below
_BLOCK = 8192  # weights on a device that are summed before one is drawn


class SumsState(TypedDict):
    """What rewards have changed."""

    gram: FloatArray
    cross: FloatArray
    mean: FloatArray
    total: float
    level: float
    squares: float
    n_observations: int


class SharedSums:
    """gram = Phi'Phi (P, P), cross = Phi'y (P,) and total = y'y of all rewards; about their means, with an intercept.

    Arrays belong to ``xp``, NumPy or CuPy. Every operation is one sum or product per element, rounded by itself, so
    that both have the same bits.
    """

    def __init__(self, xp: ModuleType, n_columns: int, intercept: bool) -> None:
        self.xp, self.n_columns, self.intercept = xp, n_columns, intercept
        self.gram, self.cross = xp.zeros((n_columns, n_columns)), xp.zeros(n_columns)
        self.mean = xp.zeros(n_columns)  # of the rows; zero without an intercept
        self.level, self.squares = 0.0, 0.0  # mean of the rewards, and their squares about it
        self.total, self.n_observations = 0.0, 0

    @property
    def diagonal(self) -> FloatArray:
        """Squared norms of the columns, (P,)."""
        return self.xp.ascontiguousarray(self.xp.diagonal(self.gram))  # type: ignore[no-any-return]

    def update(self, row: FloatArray, y: float) -> None:
        """Absorb the reward y at a dictionary row (P,)."""
        row = self.xp.asarray(row)
        self.n_observations += 1
        n = self.n_observations
        excess = y - self.level
        self.level += excess / n
        self.squares += excess * (y - self.level)
        deviation, root = row, 1.0
        if self.intercept:
            deviation, root = row - self.mean, ((n - 1) / n) ** 0.5
            self.mean = self.mean + deviation / n
        deviation, reward = root * deviation, root * (excess if self.intercept else y)
        self.gram = self.gram + deviation[:, None] * deviation[None, :]
        self.cross = self.cross + deviation * reward
        self.total += reward**2

    def with_fantasies(self, rows: FloatArray) -> SharedSums:
        """The sums once pending rows (k, P) are in, for what does not depend on rewards: gram and mean."""
        out = SharedSums(self.xp, self.n_columns, self.intercept)
        out.gram, out.mean, out.n_observations = self.gram, self.mean, self.n_observations
        for row in rows:
            out.update(row, 0.0)
        return out

    def about(self, rows: FloatArray, candidates: bool) -> FloatArray:
        """Rows (n, P) less the mean of those so far; candidates before any reward, with an intercept, less theirs."""
        if not (candidates and self.intercept) or self.n_observations or len(rows) < 2:
            return rows - self.mean  # type: ignore[no-any-return]
        host = self.xp.asnumpy(rows) if hasattr(self.xp, "asnumpy") else rows
        level = self.xp.asarray(host.mean(axis=0))  # a sum of NumPy, wherever the rows are
        return rows - level  # type: ignore[no-any-return]

    @property
    def base(self) -> float:
        """Variance of the constant, in units of the noise's: 1/t; left out before any reward, and without intercept."""
        return 1.0 / self.n_observations if self.intercept and self.n_observations else 0.0

    def state(self) -> SumsState:
        """Everything that rewards have changed, in NumPy's arrays."""
        host = self.xp.asnumpy if hasattr(self.xp, "asnumpy") else np.array
        return {
            "gram": host(self.gram), "cross": host(self.cross), "mean": host(self.mean),
            "total": self.total, "level": self.level, "squares": self.squares, "n_observations": self.n_observations,
        }  # fmt: skip

    def restore(self, state: SumsState) -> None:
        """Continue from `state`, wherever it was made."""
        p = self.n_columns
        checks = {
            "gram": floats(p, p), "cross": floats(p), "mean": floats(p), "total": number(0.0, SQUARE),
            "level": number(), "squares": number(0.0, SQUARE), "n_observations": whole(),
        }  # fmt: skip
        known = record("state", dict(state), checks)
        if np.any(np.diagonal(known["gram"]) < 0.0) or not np.array_equal(known["gram"], known["gram"].T):
            raise ValueError("state['gram'] must be symmetric with a diagonal of squares: it is damaged")
        self.gram, self.cross, self.mean = (self.xp.asarray(known[name]) for name in ("gram", "cross", "mean"))
        self.total, self.level, self.squares = known["total"], known["level"], known["squares"]
        self.n_observations = known["n_observations"]


@dataclass(frozen=True)
class CellTerms:
    """What a decision weighs components by, after some rewards.

    Cell c of a subset has V = gram + ridge_c^2 u I, where u is the sum of ``units`` (P,) over its columns, a penalised
    residual F and a log determinant D = log det(V / (ridge_c^2 u)). Rows of ``cells`` are (ridge^2, alpha, kappa, nu):

        log weight = power (kappa - alpha F - D / 2),                        noise variance nu;
        log weight = power (kappa - shape log(1 + alpha F) - D / 2),         nu (1 + alpha F) where shape > 0.
    """

    cells: FloatArray
    units: FloatArray
    power: float
    shape: float


class EvidenceRule(Protocol):
    """Says how components are weighed, given the sums."""

    def terms(self, sums: SharedSums) -> CellTerms:
        """After the rewards in these sums."""


def _freedom(sums: SharedSums) -> int:
    return max(sums.n_observations - int(sums.intercept), 0)


@dataclass(frozen=True)
class KnownNoise:
    """Cells of noise_std x factor and coefficients' deviation ``bound`` x scale: `mixture.mixture` has the formulas."""

    noise_std: float
    bound: float
    pairs: tuple[tuple[float, float], ...]
    units: FloatArray
    power: float

    def terms(self, sums: SharedSums) -> CellTerms:
        """alpha = 1 / (2 noise^2), kappa = -t log(factor), nu = noise^2."""
        freedom, rows = _freedom(sums), []
        for factor, scale in self.pairs:
            noise = factor * self.noise_std
            ridge = noise / (scale * self.bound)
            rows.append((ridge**2, 0.5 / noise**2, -freedom * log(factor), noise**2))
        return CellTerms(np.array(rows), self.units, self.power, 0.0)


@dataclass(frozen=True)
class UnknownNoise:
    """Cells of ratios of noise to prior variance, their common scale integrated out: see `StudentEvidence`."""

    ratios: Sequence[float]
    units: FloatArray
    power: float

    def terms(self, sums: SharedSums) -> CellTerms:
        """alpha = 1 / (2 r b0), kappa = -t log(r) / 2, nu = r b0 / shape, with b0 the variance of the rewards."""
        t, freedom = sums.n_observations, _freedom(sums)
        shape = _SHAPE + 0.5 * freedom
        unit = _SHAPE * sums.squares / t if sums.squares > 0.0 else _SHAPE * sums.level**2 or 1.0
        rows = [(r, 0.5 / (r * unit), -0.5 * freedom * log(r), r * unit / shape) for r in self.ratios]
        return CellTerms(np.array(rows), self.units, self.power, shape)


class Engine(Protocol):
    """Kernels over all subsets of ``size`` columns. Arrays go in and come out in those of ``xp``."""

    xp: ModuleType
    size: int

    def host(self, values: FloatArray) -> FloatArray:
        """An array of ``xp`` as one of NumPy."""

    def best_of_pairs(self, sums: SharedSums, terms: CellTerms) -> FloatArray:
        """The largest level of the subsets whose two smallest columns are a < b, (P, P); -1.7e308 elsewhere.

        The level of a subset is the logarithm of its components' summed weights.
        """

    def sums_of_pairs(self, sums: SharedSums, terms: CellTerms, reference: float, later: SharedSums) -> FloatArray:
        """Sums over the subsets with columns a and b, (7, P, P): see `gather`."""

    def levels_of_ranks(self, sums: SharedSums, terms: CellTerms, ranks: IntArray) -> FloatArray:
        """Levels of the subsets of some ranks, (K,)."""

    def sweep(
        self, sums: SharedSums, later: SharedSums, rho: float, width: float, points: FloatArray, first: int, n: int
    ) -> IntArray:
        """First position of the largest mean + width s among points (n, P), of the n subsets from rank `first` on."""


def engine_for(device: str, n_columns: int, size: int) -> Engine:
    """The kernels on a device, "cpu" or "cuda", or a sentence that says why there are none; `ANYWHERE` takes both."""
    if not SIZES[0] <= size <= SIZES[1]:
        raise ValueError(f"subsets that are not listed must have {SIZES[0]} to {SIZES[1]} columns, got {size}")
    if comb(n_columns, size) > MOST_NUMBERED:
        raise ValueError(f"subsets of {size} out of {n_columns} columns are more than 2**63; use a smaller size")
    if device != ANYWHERE and check_device(device) == "cpu":
        return CpuEngine(n_columns, size)
    from alexp.gpu.cupy_backend import CupyEngine

    try:
        return CupyEngine(n_columns, size, "cuda" if device == ANYWHERE else device)
    except NoDeviceError:
        if device != ANYWHERE:
            raise
        return CpuEngine(n_columns, size)


def enumerating_card(device: str) -> str | None:
    """The name of the card that subsets are enumerated on; None where there is none."""
    from alexp.gpu.cupy_backend import name_of_card

    try:
        return name_of_card("cuda" if device == ANYWHERE else device)
    except NoDeviceError:
        return None


class KeptRows:
    """Rows of the last table of candidates as arrays of ``xp``; those of a table that cannot change are kept."""

    def __init__(self, xp: ModuleType) -> None:
        self._xp = xp
        self._last: tuple[FloatArray, FloatArray] | None = None  # the table, and its rows

    def of(self, table: FloatArray) -> FloatArray:
        """Rows (n, P) of a table (P, n)."""
        if self._last is None or self._last[0] is not table or table.flags.writeable:
            self._last = table, self._xp.asarray(np.ascontiguousarray(table.T))
        return self._last[1]


@dataclass(frozen=True)
class Gathered:
    """What a decision needs of all subsets; arrays are those of the engine.

    Attributes
    ----------
    total : summed weights, relative to exp(reference).
    noise : posterior mean of the noise's variance.
    inclusion : (P,) probability that a column is in the model.
    coefficients : (P,) posterior mean.
    within, between : (P, P) covariance of the coefficients, within subsets and between them.
    """

    total: float
    noise: float
    inclusion: FloatArray
    coefficients: FloatArray
    within: FloatArray
    between: FloatArray


def gather(engine: Engine, sums: SharedSums, terms: CellTerms, reference: float, later: SharedSums) -> Gathered:
    """One pass over all subsets. ``later`` has pending rows as well, which shrink the variances within subsets.

    A subset of s columns comes once with each of its s (s - 1) / 2 pairs, and with s - 1 pairs for each of its columns.
    """
    xp, size = engine.xp, engine.size
    weights, noises, theta, squares, products, own, shared = engine.sums_of_pairs(sums, terms, reference, later)
    total = float(weights.sum()) / (size * (size - 1))
    each, diagonal = total * (size - 1), xp.arange(sums.n_columns)
    mean = theta.sum(axis=1) / each
    within, between = shared / total, products / total
    within[diagonal, diagonal] = own.sum(axis=1) / each
    between[diagonal, diagonal] = squares.sum(axis=1) / each
    between = between - mean[:, None] * mean[None, :]
    noise = float(noises.sum()) / (size * (size - 1) * total)
    return Gathered(total, noise, weights.sum(axis=1) / each, mean, within, between)


def predict(
    engine: Engine, gathered: Gathered, sums: SharedSums, later: SharedSums, rows: FloatArray, candidates: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the reward at dictionary rows (n, P), which are the engine's; shapes (n,), NumPy's.

    With an intercept rows are taken about the mean of those so far, see `SharedSums.about`; the constant's own
    variance is the noise's over t.
    """
    now, then = rows - sums.mean, later.about(rows, candidates)
    mean = (sums.level if sums.intercept else 0.0) + now @ gathered.coefficients
    within = ((then @ gathered.within) * then).sum(axis=1) + later.base * gathered.noise
    between = ((now @ gathered.between) * now).sum(axis=1)
    return engine.host(mean), engine.host(engine.xp.maximum(within + between, 0.0))


@dataclass(frozen=True)
class Posterior:
    """The posterior over all subsets after some rewards.

    Attributes
    ----------
    best : (P, P), the engine's: the largest level of the subsets whose two smallest columns are a < b.
    reference : the largest of them.
    gathered : sums over all subsets, with nothing pending.
    """

    best: FloatArray
    reference: float
    gathered: Gathered

    @property
    def log_total(self) -> float:
        """Logarithm of all weights' sum; a subset's probability is exp(level - log_total)."""
        return self.reference + log(self.gathered.total)


class SubsetMixture:
    """Bayesian average over all C(P, s) subsets of s columns and the cells of a grid.

    What `mixture.Mixture` is for models that are listed, with a `Posterior` in place of an array of weights. One reward
    takes O(P^2), a decision O(cells s^2 C(P, s)) operations and O(P^2) memory.

    Parameters
    ----------
    engine : computes over all subsets.
    rule : how components are weighed.
    n_columns : P.
    intercept : whether every subset has an unpenalised constant.
    """

    def __init__(self, engine: Engine, rule: EvidenceRule, n_columns: int, intercept: bool) -> None:
        self.engine, self.rule, self.n_columns, self.intercept = engine, rule, n_columns, intercept
        self.n_models = comb(n_columns, engine.size)
        self.sums = SharedSums(engine.xp, n_columns, intercept)
        self._rows = KeptRows(engine.xp)

    @property
    def n_observations(self) -> int:
        return self.sums.n_observations

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        self.sums.update(row, y)

    def weights(self) -> Posterior:
        """The posterior over subsets and cells."""
        terms = self.rule.terms(self.sums)
        best = self.engine.best_of_pairs(self.sums, terms)
        reference = float(best.max())
        return Posterior(best, reference, gather(self.engine, self.sums, terms, reference, self.sums))

    def noise_variance(self, weights: Posterior) -> float:
        return weights.gathered.noise

    def estimated_noise(self, weights: Posterior, rows: FloatArray, rewards: FloatArray) -> float:
        """The same: no smaller ratios are looked into."""
        return weights.gathered.noise

    def prefers_few(self, weights: FloatArray, n: int) -> bool:
        """Moments at all candidates are all there is."""
        return False

    def moments(
        self, weights: Posterior, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        gathered, later = weights.gathered, self.sums
        if pending:
            later = self.sums.with_fantasies(pending.rows)
            terms = self.rule.terms(self.sums)
            gathered = gather(self.engine, self.sums, terms, weights.reference, later)
        is_listed = choices.indices is not None
        return predict(self.engine, gathered, self.sums, later, self._rows.of(choices.table), is_listed)

    def likeliest(self, weights: Posterior, n: int) -> tuple[IntArray, FloatArray]:
        """Numbers of the n most probable subsets, in lexicographic order of all subsets, and their probabilities.

        The n best have their two smallest columns among the n pairs with the largest `best`.
        """
        best = self.engine.host(weights.best)
        pairs = np.argsort(-best, axis=None, kind="stable")[: min(n, comb(self.n_columns, 2))]
        numbers = np.unique(np.concatenate([self._with_smallest(*divmod(int(k), self.n_columns)) for k in pairs]))
        levels = self.engine.host(self.engine.levels_of_ranks(self.sums, self.rule.terms(self.sums), numbers))
        first = np.argsort(-levels, kind="stable")[:n]
        return numbers[first], np.exp(levels[first] - weights.log_total)

    def _with_smallest(self, a: int, b: int) -> IntArray:
        """Numbers of the subsets whose two smallest columns are a < b; there may be none."""
        if b <= a:
            return np.empty(0, dtype=np.int64)
        others = combinations(range(b + 1, self.n_columns), self.engine.size - 2)
        return np.array([rank_of((a, b, *rest), self.n_columns) for rest in others], dtype=np.int64)

    def leader(self, weights: Posterior) -> int:
        return int(self.likeliest(weights, 1)[0][0])

    def probabilities(self, weights: Posterior) -> FloatArray:
        numbers = np.arange(self.n_models)
        levels = self.engine.host(self.engine.levels_of_ranks(self.sums, self.rule.terms(self.sums), numbers))
        return np.asarray(np.exp(levels - weights.log_total))

    def column_probabilities(self, weights: Posterior) -> FloatArray:
        return self.engine.host(weights.gathered.inclusion)

    def state(self) -> Packable:
        return self.sums.state()

    def restore(self, state: Packable) -> None:
        """Continue from `state`, wherever it was made."""
        self.sums.restore(state)


def rank_of(subset: tuple[int, ...], n_columns: int) -> int:
    """Number of an increasing subset of range(P) in lexicographic order.

    >>> rank_of((0, 1, 3), 11)
    1
    """
    s = len(subset)
    return comb(n_columns, s) - 1 - sum(comb(n_columns - 1 - column, s - i) for i, column in enumerate(subset))


def ratio_subsets(
    models: ModelClass,
    candidates: CandidateTable | None,
    ratios: Sequence[float],
    noise_std: float | None,
    power: float,
    forget: float | None,
) -> SubsetMixture:
    """`mixture.making.ratio_mixture` of subsets that are enumerated."""
    table = _table(candidates, forget)
    units = _mean_squares(table, models.intercept)
    _check_digits(min(ratios) ** 0.5)
    pairs = tuple((1.0, ratio**-0.5) for ratio in ratios)
    rule = UnknownNoise(tuple(ratios), units, power)
    return _mixture(models, rule if noise_std is None else KnownNoise(noise_std, noise_std, pairs, units, power))


def level_subsets(
    models: ModelClass,
    candidates: CandidateTable | None,
    noise_std: float,
    norm_bound: float,
    noise_grid: Sequence[float],
    scale_grid: Sequence[float],
    power: float,
    forget: float | None,
) -> SubsetMixture:
    """`mixture.making.level_mixture` of subsets that are enumerated."""
    table = _table(candidates, forget)
    pairs = tuple((float(a), float(b)) for a in noise_grid for b in scale_grid)
    largest = float(_mean_squares(table, models.intercept).max()) ** 0.5 or 1.0
    _check_digits(min(a * noise_std / (b * norm_bound) for a, b in pairs) / largest)
    return _mixture(models, KnownNoise(noise_std, norm_bound, pairs, np.ones(models.n_columns), power))


def _mixture(models: ModelClass, rule: EvidenceRule) -> SubsetMixture:
    assert models.enumerated_on is not None
    engine = engine_for(models.enumerated_on, models.n_columns, models.dimension)
    return SubsetMixture(engine, rule, models.n_columns, models.intercept)


def _check_digits(least: float) -> None:
    if least < _LEAST:
        raise ValueError(
            f"subsets that are enumerated take noise of at least {_LEAST:g} times what coefficients of the prior's "
            f"size contribute, got {least:.2g}; sums of squares have too few digits for less: state a larger "
            "noise_std, or list the models by leaving out device"
        )


def _table(candidates: CandidateTable | None, forget: float | None) -> FloatArray:
    if forget is not None:
        raise ValueError("forget is for models that are listed: leave it out, or leave out device")
    if candidates is None:
        raise ValueError("subsets that are enumerated need a table of candidates: contextual rounds have none")
    return candidates.table


def _mean_squares(table: FloatArray, centred: bool) -> FloatArray:
    """Mean squares of the columns (P, N) over the candidates, about their means if centred; zero for constants."""
    whole = np.einsum("pn,pn->p", table, table) / table.shape[1]
    if not centred:
        return np.asarray(whole)
    rest = table - table.mean(axis=1, keepdims=True)
    varying = np.einsum("pn,pn->p", rest, rest) / table.shape[1]
    return np.where(varying > 1e-28 * whole, varying, 0.0)


class SubsetPosteriors:
    """What agents need of `Posteriors`, for subsets that are enumerated; winners are arrays of the engine.

    Parameters
    ----------
    engine : computes over all subsets.
    n_columns : P.
    ridge : the square root of the penalty, the same for all subsets.
    intercept : whether every subset has an unpenalised constant.
    """

    def __init__(self, engine: Engine, n_columns: int, ridge: float, intercept: bool) -> None:
        self.engine, self.ridge, self.intercept = engine, ridge, intercept
        self.xp = engine.xp  # what arrays with an entry per subset belong to
        self.n_models = comb(n_columns, engine.size)
        self.sums = SharedSums(engine.xp, n_columns, intercept)
        self._later: SharedSums | None = None  # once pending rows are in
        self._groups = AllSubsets(n_columns, engine.size)
        self._rows = KeptRows(engine.xp)

    @property
    def n_observations(self) -> int:
        return self.sums.n_observations

    @property
    def counts(self) -> IntArray:
        return np.array([self.n_observations])

    def update(self, row: FloatArray, y: float) -> None:
        self.sums.update(row, y)

    def with_fantasies(self, rows: FloatArray) -> SubsetPosteriors:
        out = copy(self)
        out._later = (self._later or self.sums).with_fantasies(rows)
        return out

    def argmax_ucb(self, choices: Choices, width: float) -> IntArray:
        later = self._later or self.sums
        points = later.about(self._rows.of(choices.table), choices.indices is not None)
        return self.engine.sweep(self.sums, later, self.ridge**2, width, points, 0, self.n_models)

    def argmax_mean(self, choices: Choices) -> IntArray:
        return self.engine.sweep(
            self.sums, self.sums, self.ridge**2, 0.0, self._rows.of(choices.table), 0, self.n_models
        )

    def mean(self, j: int, features: Where) -> FloatArray:
        own = self._groups[j]
        xp, sums = self.engine.xp, self.sums
        at, rows = xp.asarray(own), dictionary_rows(features)[:, own]
        inverse = np.linalg.inv(self.engine.host(sums.gram[at[:, None], at]) + self.ridge**2 * np.eye(own.size))
        theta = inverse @ self.engine.host(sums.cross[at])
        level = sums.level if self.intercept else 0.0
        return np.asarray(level + (rows - self.engine.host(sums.mean[at])) @ theta)

    def state(self) -> Packable:
        return self.sums.state()

    def restore(self, state: Packable) -> None:
        """Continue from `state`, wherever it was made."""
        self.sums.restore(state)


def subset_posteriors(models: ModelClass, ridge: float) -> SubsetPosteriors:
    """Fits of all subsets of a class, for agents that sweep."""
    assert models.enumerated_on is not None
    engine = engine_for(models.enumerated_on, models.n_columns, models.dimension)
    return SubsetPosteriors(engine, models.n_columns, ridge, models.intercept)


class DeviceSuggestions(Suggestions):
    """One position per agent in an array on a device, where everything with M entries stays.

    Attributes
    ----------
    positions : (M,) what each agent plays.
    share : what of it is spread evenly over all candidates.
    """

    def __init__(self, positions: IntArray, n_candidates: int, share: float) -> None:
        self.positions, self.share, self.n_candidates = positions, share, n_candidates

    def expectation(self, values: FloatArray) -> FloatArray:
        """E_{x ~ p_j} values(x) for every agent, shape (M,), on the device."""
        expected = (1.0 - self.share) * values + self.share * values.mean()
        return np.asarray(expected, like=self.positions)[self.positions]

    def mass(self, position: int) -> FloatArray:
        """p_j(x) of one candidate for every agent, shape (M,), on the device."""
        hits: FloatArray = (1.0 - self.share) * (self.positions == position)
        return hits + self.share / self.n_candidates

    def draw(self, j: int, rng: np.random.Generator) -> int:
        if self.share > 0.0 and rng.random() < self.share:
            return int(rng.integers(self.n_candidates))
        return int(self.positions[j])


def draw_on_device(weights: FloatArray, rng: np.random.Generator) -> int:
    """`draw_index` of weights on a device, by one random number: the block it falls into, then the weight.

    Sums of blocks are always taken in the same order, which a running sum of all weights would not be.
    """
    whole = weights.size // _BLOCK * _BLOCK
    blocks = in_memory(weights[:whole].reshape(-1, _BLOCK).sum(axis=1))
    ends = np.cumsum(np.append(blocks, float(weights[whole:].sum())))
    point = rng.random() * ends[-1]
    block = min(int(np.searchsorted(ends, point, side="right")), int(np.searchsorted(ends, ends[-1])))
    own = np.cumsum(in_memory(weights[block * _BLOCK : (block + 1) * _BLOCK]))
    place = np.searchsorted(own, point - (ends[block - 1] if block else 0.0), side="right")
    return block * _BLOCK + int(min(place, own.size - 1))
