"""Certificates from the shape of the noise: rewards are phi_j(x)'theta + N(0, sigma^2), theta and sigma unknown.

Let q_s be a density of reward s given the actions up to s and the rewards before s, fixed before reward s is seen. The
first t0 rewards fix units; the others, s = t0 + 1, ..., t, are n. Let

    A_t = product of q_s(y_s) over the n rewards,
    RSS_j(theta) = sum over the n rewards of (y_s - phi_j(x_s)'theta)^2, plus w times that over the first t0,

with a fixed weight w < 1. Suppose that model j is true with coefficients theta and noise sigma. The factor
q_s(y_s) / N(y_s; phi_j(x_s)'theta, sigma^2) of each of the n rewards has mean one given what was known when x_s was
chosen: integrate q_s over y_s. So has sqrt(1 - w) exp(w e_s^2 / (2 sigma^2)) of each of the first, e_s ~ N(0, sigma^2)
being its noise. The product of all of them,

    E_j(t; theta, sigma) = A_t (1 - w)^(t0/2) (2 pi sigma^2)^(n/2) exp(RSS_j(theta) / (2 sigma^2)),

is a non-negative martingale that starts at one, however actions are chosen as long as x_s is fixed before y_s. By
Ville's inequality it ever exceeds 1/delta with probability at most delta. Neither theta nor sigma is known; the
smallest value over sigma is A_t (1 - w)^(t0/2) (2 pi e RSS_j(theta) / n)^(n/2), and E_j(t), the smallest over theta,
has least squares in it. So at all times at once, with probability 1 - delta:

* the true model j has E_j(t) <= 1/delta: a model that ever exceeds it is ruled out;
* the true theta has RSS_j(theta) <= c_t = n / (2 pi e) (delta A_t (1 - w)^(t0/2))^(-2/n), which is weighted least
  squares plus and minus sqrt(c_t - RSS_j) ||phi||_{V^-1}, V the weighted sum of phi phi', for any phi in the span of
  the features told.

A smaller A_t, or fewer looks, make statements weaker and no less valid. The weight costs -t0/2 log(1 - w), here 1.8,
in the logarithm, and pays as soon as models have several coefficients: t rewards instead of n then hold them.

Where rewards are known to lie in a range, that bounds theta as well: see `LeastSquares`.

Delta is not split over models: only the true one can be lost. Nothing is said of a model while t is not larger than the
number of its coefficients. The order of s is the order of tells. The noise of a reward that comes late must not depend
on when it comes: then x_s was chosen before y_s was seen, and that is all that is used.

The predictions q_s are a mixture of two parts, in which the scale s^2 of signal and noise is integrated out under
IG(1, 1) in units of the first t0 rewards, see `StudentEvidence`. The larger part is the mixture of all models: the
coefficients of the d columns of a model, each in units of its spread, have variance s^2 / d, noise has variance r s^2
for each of `RATIOS`, and the constant of an intercept is flat. The other, `FreeProcesses`, needs no model to be true:
it sounds the alarm. Both have learned the first t0 rewards before they predict another.
"""

from __future__ import annotations

from itertools import product
from math import e, exp, inf, lgamma, log, pi
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.estimation._shape_kernels import add_products, least_squares, penalised
from alexp.estimation.checking import Alternative, Following, next_look
from alexp.estimation.mixture.mixture import StudentEvidence
from alexp.problem.candidates import Choices
from alexp.problem.models import ModelClass
from alexp.problem.rows import spread

RATIOS = 10.0 ** np.arange(-5.0, 1.0)  # of noise to prior variance
RIVAL = 0.1  # share of the rival in the mixture
FIRST, FIRST_WEIGHT = 7, 0.4  # t0, later where the first rewards are all the same; w
COLLINEAR = 1e-11  # squared share of a column beside others below which it counts as their combination
_ROUNDING = 1e-13  # of the sum of squares: residuals below are not looked into
_TINY = float(np.finfo(np.float64).tiny)
_LOOKS_APART, _RIVAL_FROM = 1.2, 12  # ratio of the numbers of rewards at which models are looked at; the rival
_LEFT_OUT = 0.01  # share of the mixture that components may have which are left out between looks
# The rival: squared lengthscales of functions of single columns, and of all, in units of their spread; variance of the
# linear part; how many columns have functions of their own; ratios of noise, and of own effects.
_LENGTHS, _LINEAR, _MOST_BENT = (0.4, 0.5), 3.0, 64
_RIVAL_RATIOS, _EFFECTS = (1e-3, 3e-2, 1.0), (0.0, 0.3)
_SHARES = (0.03, 0.3, 3.0)  # weights of a bound on rewards, as multiples of c / B^2
_OUTSIDE = 1e-8  # squared share of features outside the span of those told


def student_log_density(n: int, ratios: FloatArray | float, residuals: FloatArray, volumes: FloatArray) -> FloatArray:
    """Log density of n rewards under components with IG(1, 1) for s^2: their evidence with its constant."""
    known = StudentEvidence(n, 1.0)
    return known.log_evidence(np.asarray(ratios), residuals, volumes) + lgamma(known.shape) - 0.5 * n * log(2.0 * pi)


class Components(NamedTuple):
    """Parts of the mixture of models: model, ratio of noise and logarithm of its share, (k,) each."""

    model: IntArray
    ratio: FloatArray
    log_share: FloatArray

    def without_small(self, logs: FloatArray) -> Components:
        """Those that matter, given all densities (k,): the others have a small share of the sum together."""
        shares = np.exp(logs - logs.max())
        kept = shares >= _LEFT_OUT / shares.size * shares.sum()
        return Components(*(part[kept] for part in self))


def log_sum(logs: FloatArray) -> float:
    """Logarithm of the sum of exponentials."""
    largest = float(logs.max())
    return largest + log(float(np.exp(logs - largest).sum()))


class Sums:
    """Weighted sums of products of P columns and the reward, (P + 1, P + 1); about their means if centred."""

    def __init__(self, size: int, centred: bool) -> None:
        self.weight, self.centred = 0.0, centred
        self.mean, self.products = np.zeros(size), np.zeros((size, size))

    def add(self, values: FloatArray, weight: float = 1.0) -> None:
        """Take in the columns and the reward of one action, (P + 1,)."""
        add_products(self.products, self.mean, values, self.weight, weight, self.centred)
        self.weight += weight


class FreeProcesses(Alternative):
    """Predictions that need no model to be true: Gaussian processes on all columns, of unknown scale.

    Linear in all columns, with a sum of smooth functions of single columns, or with a smooth function of all together;
    with or without what belongs to a candidate alone.
    """

    def __init__(self, columns: FloatArray) -> None:
        grid = np.array(list(product(range(2), _RIVAL_RATIOS, _EFFECTS)))
        self._which = grid[:, 0].astype(np.int64)
        self._squares, self._volumes, self._n = np.zeros(len(grid)), np.zeros(len(grid)), 0
        self._begin(columns, True, np.ones(len(grid)), grid[:, 1], grid[:, 2])
        self._bent = spread(len(columns), _MOST_BENT)

    def _count(self, k: int, squares: FloatArray, log_volumes: FloatArray) -> None:
        self._n += k
        self._squares += squares
        self._volumes += log_volumes
        logs = student_log_density(self._n, 1.0, self._squares, self._volumes)
        self.log_density = float(np.logaddexp.reduce(logs)) - log(logs.size)

    def _similarities(self, rows: FloatArray, x: FloatArray) -> FloatArray:
        linear = rows @ (self._weights * x).T
        squares = np.square(rows) @ self._weights, np.square(x) @ self._weights
        apart = np.maximum(squares[0][:, None] + squares[1] - 2.0 * linear, 0.0)
        precisions = self._weights[self._bent] * np.count_nonzero(self._weights)
        differences = rows[:, None, self._bent] - x[:, self._bent]
        bent = np.exp(-0.5 / _LENGTHS[0] * precisions * np.square(differences)).mean(axis=2)
        smooth = np.exp(-0.5 / _LENGTHS[1] * apart)
        return np.asarray((_LINEAR * linear + np.stack([bent, smooth]) + 1.0)[self._which])


class LedgerUnits(NamedTuple):
    """What the first rewards fix: a centre and a size for every column and, last, for the reward, (P + 1,)."""

    centre: FloatArray
    size: FloatArray

    def of(self, row: FloatArray, y: float) -> FloatArray:
        """The columns and the reward of an action in these units."""
        values = np.empty(row.size + 1)
        values[:-1], values[-1] = row, y
        return np.asarray((values - self.centre) / self.size)


class ShapeLedger(Following):
    """The e-processes E_j of all models, and least squares of the rewards, the first of them with a weight.

    Parameters
    ----------
    models : M models that are linear in their columns.
    typical : (P, k) the columns on typical candidates, or None where only the rows told show them.
    size : bounds how far rewards of these candidates lie from a constant, or from zero where models have none; None
        where no bound is known.
    """

    def __init__(self, models: ModelClass, typical: FloatArray | None, size: float | None = None) -> None:
        self._models, self._typical, self._size = models, typical, size if typical is not None else None
        numbers, shares = np.arange(models.n_models), models.log_prior - log(RATIOS.size)
        self._components = Components(
            np.tile(numbers, RATIOS.size), np.repeat(RATIOS, numbers.size), np.tile(shares, RATIOS.size)
        )
        sizes = np.diff(models.offsets)
        # A priori the rewards of a model have variance one.
        self._penalties = np.repeat(sizes, sizes).astype(np.float64)
        super().__init__()

    def restart(self) -> None:
        """Forget all rewards."""
        m = self._models.n_models
        self._early: list[tuple[int, float, FloatArray]] = []
        self._waiting: list[tuple[int, FloatArray]] = []  # what the rival has not seen yet
        self.units: LedgerUnits | None = None
        self.log_density = 0.0  # log of A_t times (1 - w)^(t0 / 2)
        self.n_told = self.n_first = 0  # rewards since units are fixed, and the first of them: t and t0
        self.residuals, self.ranks = np.zeros(m), np.zeros(m, dtype=np.int64)
        self.largest = self.lasting = np.full(m, -np.inf)  # max over times of log E_j, and over those of the schedule
        self.history: list[tuple[int, float]] = []  # times of the schedule, min_j max_s<=t log E_j(s)
        self.next_look, self._rival_next, self._looked_at = 1, _RIVAL_FROM, (0, 0.0)
        self._weighty = self._components  # what the mixture has between looks
        self.doubt = -inf  # log odds of the rival against the models, at the last look that has both

    @property
    def n_counted(self) -> int:
        """n, the number of rewards that are predicted."""
        return self.n_told - self.n_first

    def _see(self, t: int, index: int, y: float, row: FloatArray) -> None:
        if self.units is None:
            self._early.append((index, y, row))
            rewards = [reward for _, reward, _ in self._early]
            if t >= FIRST and min(rewards) < max(rewards):
                self._fix_units(np.array([row for _, _, row in self._early]), np.array(rewards))
            return
        self._take(index, y, row, 1.0)
        if t >= self.next_look:
            self.next_look, rival = next_look(t, FIRST, _LOOKS_APART), -inf
            densities = self._log_densities(self._components)
            models = log_sum(densities) - self._before[0]
            if t >= self._rival_next:
                self._rival_next, rival = self.next_look + 1, self._rival_log_density() - self._before[1]
                self.doubt = rival - models + log(RIVAL / (1.0 - RIVAL))
            self._weighty = self._components.without_small(densities)
            self._look(np.arange(self._models.n_models), models, rival)
            self.lasting = self.largest
            self.history.append((t, float(self.largest.min())))

    def _fix_units(self, rows: FloatArray, rewards: FloatArray) -> None:
        centred = self._models.intercept
        known = rows.T if self._typical is None else self._typical
        centre = np.append(known.mean(axis=1), rewards.mean()) if centred else np.zeros(len(known) + 1)
        sizes, largest = np.sqrt(np.mean(np.square(known - centre[:-1, None]), axis=1)), np.abs(known).max(axis=1)
        # A column that is constant so far may vary later: it has a unit, too.
        sizes = np.where(sizes > 1e-14 * largest, sizes, np.where(largest > 0.0, largest, 1.0))
        unit = float(np.sqrt(np.mean(np.square(rewards - centre[-1]))))
        self.units = LedgerUnits(centre, np.append(sizes, unit))
        size = self._models.n_columns + 1
        self._all, self.weighted = Sums(size, centred), Sums(size, centred)
        scaled = (known - centre[:-1, None]) / sizes[:, None]
        self._rival = FreeProcesses(scaled)
        self.spread = np.zeros((size, size))  # K of `LeastSquares`, zero for the reward
        self.spread[:-1, :-1] = scaled @ scaled.T / known.shape[1]
        for index, y, row in self._early:
            self._take(index, y, row, FIRST_WEIGHT)
        self._before = log_sum(self._log_densities(self._components)), self._rival_log_density()
        self.n_first, self._early = self.n_told, []

    def _take(self, index: int, y: float, row: FloatArray, weight: float) -> None:
        assert self.units is not None
        values = self.units.of(row, y)
        self.n_told += 1
        self._all.add(values)
        self._waiting.append((index, values))
        self.weighted.add(values, weight)

    def _log_densities(self, parts: Components) -> FloatArray:
        """Of all rewards, the first included, under parts of the mixture of models, times their shares, (k,)."""
        t, lead = self.n_told, int(self._models.intercept)
        residuals, volumes = np.empty((2, parts.ratio.size))
        groups = self._models.columns_flat, self._models.offsets, self._penalties
        penalised(self._all.products, parts.model, *groups, parts.ratio, residuals, volumes)
        logs = student_log_density(t - lead, parts.ratio, residuals, volumes)  # of a flat constant sqrt(t) is left
        return np.asarray(logs - 0.5 * lead * log(t) + parts.log_share)

    def _rival_log_density(self) -> float:
        """Of all rewards, under processes that need no model; its constant is about the mean of the first rewards."""
        if self._waiting:
            values = np.array([values for _, values in self._waiting])
            self._rival.absorb(values[:, :-1], np.array([index for index, _ in self._waiting]), values[:, -1])
            self._waiting = []
        return self._rival.log_density

    def look(self, delta: float) -> None:
        """Bring log A_t, and least squares and e-values of models not ruled out at level delta, up to the last reward.

        Every run is looked at on the same schedule. A look between leaves no trace: statements depend on the rewards
        alone, not on when one asked. It leaves out the rival and what had little weight at the last look of the
        schedule, which makes A_t smaller and the statement no less valid.
        """
        if self.n_counted and self._looked_at not in ((self.n_told, 0.0), (self.n_told, delta)):
            self._look(self.plausible(delta), log_sum(self._log_densities(self._weighty)) - self._before[0], -inf)
            self._looked_at = self.n_told, delta

    def _look(self, members: IntArray, models: float, rival: float) -> None:
        self._looked_at = self.n_told, 0.0
        self.log_density = float(np.logaddexp(models + log(1.0 - RIVAL), rival + log(RIVAL)))
        self.log_density += 0.5 * self.n_first * log(1.0 - FIRST_WEIGHT)
        residuals, ranks = self._least_squares(members, self.weighted.products)
        ranks += int(self._models.intercept)
        residuals = np.maximum(residuals, _ROUNDING * max(float(self.weighted.products[-1, -1]), _TINY))
        self.residuals[members], self.ranks[members], n = residuals, ranks, self.n_counted
        least = self._bounded_residuals(members, np.where(self.n_told > ranks, residuals, 0.0))
        with np.errstate(divide="ignore"):
            now = self.log_density + 0.5 * n * np.log(2.0 * pi * e / n * least)
        self.largest = self.lasting.copy()
        self.largest[members] = np.maximum(self.largest[members], now)

    def _least_squares(self, members: IntArray, products: FloatArray) -> tuple[FloatArray, IntArray]:
        """Smallest sums of squares and ranks of some of the models, (k,) each."""
        residuals, ranks = np.empty(members.size), np.empty(members.size, dtype=np.int64)
        groups = self._models.columns_flat, self._models.offsets
        least_squares(products, members, *groups, COLLINEAR, residuals, ranks)
        return residuals, ranks

    def _bounded_residuals(self, members: IntArray, least: FloatArray) -> FloatArray:
        """Lower bounds on the sums of squares (k,) over coefficients that keep the bound on rewards, if there is one.

        min RSS over theta'K theta <= B^2 is at least min (RSS + r theta'K theta) - r B^2, for every r.
        """
        for weight in self.weights(1.0)[1:]:
            bounded, _ = self._least_squares(members, self.weighted.products + weight * self.spread)
            least = np.maximum(least, bounded - weight * self.bound)
        return least

    @property
    def bound(self) -> float:
        """B^2 in the ledger's unit of rewards."""
        assert self.units is not None
        return inf if self._size is None else (self._size / float(self.units.size[-1])) ** 2

    def weights(self, delta: float) -> list[float]:
        """Weights r of the bound that are looked at; only zero where there is none."""
        return [0.0] if self._size is None else [0.0, *(share * self.limit(delta) / self.bound for share in _SHARES)]

    def plausible(self, delta: float) -> IntArray:
        """Positions of the models that no look of the schedule has ruled out at level delta."""
        return np.flatnonzero(self.lasting <= log(1.0 / delta))

    def radii(self, members: IntArray, delta: float) -> FloatArray:
        """sqrt(c_t - RSS_j) of some models, in the ledger's unit of rewards."""
        return np.asarray(np.sqrt(np.maximum(self.limit(delta) - self.residuals[members], 0.0)))

    def limit(self, delta: float) -> float:
        """c_t: the true coefficients leave no larger sum of squares."""
        n = self.n_counted
        exponent = -(2.0 / n) * (log(delta) + self.log_density) + log(n / (2.0 * pi * e))
        return exp(min(exponent, 700.0))

    def contradicted_at(self, delta: float) -> int | None:
        """Number of rewards after which every model was ruled out at level delta; None if one is left."""
        return next((t for t, smallest in self.history if smallest > log(1.0 / delta)), None)

    def fits(self, delta: float) -> LeastSquares:
        """Least squares of every model."""
        return LeastSquares(self._models, self, delta)


class Solved(NamedTuple):
    """One model: coefficients (d,), a root (d, k) of the inverse of its sums of products, its span (d, k), and RSS."""

    coefficients: FloatArray
    root: FloatArray
    span: FloatArray
    rest: float


class LeastSquares:
    """Means and widths ||phi||_{(Phi'Phi)^-1} of every model by least squares, from sums of products.

    Where rewards of the candidates are known to lie within B of a constant, their mean square is at most B^2:
    theta'K theta <= B^2, K the mean product of the columns on typical candidates. With RSS_j(theta) <= c follows

        RSS_j(theta) + r theta'K theta <= c + r B^2     for every r,

    an ellipsoid that is bounded in directions that no reward speaks of, too. Bands are the intersection of those for
    r = 0 and a few multiples of c / B^2.
    """

    def __init__(self, models: ModelClass, ledger: ShapeLedger, delta: float) -> None:
        assert ledger.units is not None
        self._models, self._sums, self._units = models, ledger.weighted, ledger.units
        weights, products = ledger.weights(delta), ledger.weighted.products
        self._more = [0.0 if r == 0.0 else r * ledger.bound for r in weights]
        self._products = [products if r == 0.0 else products + r * ledger.spread for r in weights]
        self._mean = self._units.centre + self._units.size * self._sums.mean
        self._solved: dict[tuple[int, int], Solved] = {}

    def _solve(self, j: int, k: int = 0) -> Solved:
        """Model j with weight number k, in the ledger's units."""
        if (j, k) not in self._solved:
            own, products = self._models.groups[j], self._products[k]
            scale = np.sqrt(np.diagonal(products)[own])
            scale = np.where(scale > 0.0, scale, np.inf)
            values, vectors = np.linalg.eigh(products[np.ix_(own, own)] / np.outer(scale, scale))
            kept = values > COLLINEAR * max(float(values.max(initial=0.0)), 1e-300)
            span = vectors[:, kept] / scale[:, None]
            root = span / np.sqrt(values[kept])
            explained = root.T @ products[own, -1]
            rest = float(products[-1, -1]) - float(explained @ explained)
            self._solved[j, k] = Solved(root @ explained, root, span, rest)
        return self._solved[j, k]

    def _features(self, j: int, table: FloatArray, origin: FloatArray) -> FloatArray:
        """Features of model j less those of the origin (P,), in the ledger's units, (d, n)."""
        own = self._models.groups[j]
        return np.asarray((table[own] - origin[own][:, None]) / self._units.size[own][:, None])

    def _inside(self, j: int, k: int, features: FloatArray) -> BoolArray:
        """Whether features (d, n) lie in the span of those told, (n,)."""
        own, products = self._models.groups[j], self._products[k]
        scale = np.sqrt(np.diagonal(products)[own])
        scale = np.where(scale > 0.0, scale, 1e-6)[:, None]  # small: what was never told is far outside
        whole = np.square(features / scale).sum(axis=0)
        beyond = whole - np.square(self._solve(j, k).span.T @ features).sum(axis=0)
        return np.asarray(beyond <= _OUTSIDE * np.maximum(whole, 1.0))

    def _ends(self, j: int, radius: float, features: FloatArray, constant: float) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value of features (d, n) within the radius; `constant` adds to the squared widths."""
        ends = []
        for k, more in enumerate(self._more):
            solved = self._solve(j, k)
            more = more + self._solve(j).rest - solved.rest
            size = np.sqrt(max(radius**2 + more, 0.0))
            width = size * np.sqrt(np.square(solved.root.T @ features).sum(axis=0) + constant)
            mean, width = solved.coefficients @ features, np.where(self._inside(j, k, features), width, np.inf)
            ends.append((mean - width, mean + width))
        lower, upper = np.array(ends).transpose(1, 0, 2)
        return np.asarray(lower.max(axis=0)), np.asarray(upper.min(axis=0))

    def at(self, j: int, table: FloatArray, radius: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest reward under model j, (n,) each, on a feature-major table (P, n)."""
        lead, unit = self._models.intercept, float(self._units.size[-1])
        origin = self._mean if lead else np.zeros_like(self._mean)
        level = float(self._mean[-1]) if lead else 0.0
        constant = 1.0 / self._sums.weight if lead else 0.0
        lower, upper = self._ends(j, radius, self._features(j, table, origin), constant)
        return level + unit * lower, level + unit * upper

    def envelope(self, members: IntArray, radii: FloatArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest reward over some models, (n,) each."""
        lower, upper = np.full(len(choices), np.inf), np.full(len(choices), -np.inf)
        for j, radius in zip(members.tolist(), radii.tolist(), strict=True):
            ends = self.at(j, choices.table, radius)
            lower, upper = np.minimum(lower, ends[0]), np.maximum(upper, ends[1])
        return lower, upper

    def largest_gaps(
        self, members: IntArray, radii: FloatArray, choices: Choices, reference: int
    ) -> tuple[FloatArray, FloatArray]:
        """By how much some choice can beat the one at `reference`: within the radii, and by the estimates, (K,)."""
        gaps, estimates = np.zeros(members.size), np.zeros(members.size)
        table, unit = choices.table, float(self._units.size[-1])
        origin = table[:, reference]
        for k, (j, radius) in enumerate(zip(members.tolist(), radii.tolist(), strict=True)):
            features = self._features(j, table, origin)
            gaps[k] = unit * float(self._ends(j, radius, features, 0.0)[1].max())
            estimates[k] = unit * float((self._solve(j).coefficients @ features).max())
        return np.maximum(gaps, 0.0), estimates
