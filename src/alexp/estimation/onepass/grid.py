"""Few wide models or kernels at several ridges: values are kept on all candidates, and a reward takes one pass.

Mean and variance at every candidate x, in every cell c, in units of the prior: a reward y at x_t with the posterior
covariance C(x) = C(x, x_t), v = C(x_t) and noise r adds C (y - mean(x_t)) / (v + r) to the mean and takes
C^2 / (v + r) from the variance. What differs between linear models and kernels is how C comes about; all cells share
the pass over the table.

Values drift by a rounding error per reward. They are made anew from the factors once 64 rewards, and twice as many as
the factors are large, have come since the last time: a fixed rule, so that a run that is continued from its log, made
anew where that run last did and carried on from there, has the same bits and takes no longer than the run itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.schema import sequence
from alexp.estimation.onepass.backends import ArrayBackend, HostBackend, ModelMoments, ToldValue
from alexp.estimation.onepass.fantasies import FamilyFantasies, FewVariances
from alexp.estimation.onepass.particles import ParticleFamily, ParticleFantasies
from alexp.estimation.onepass.regressions import (
    MOST_DRAWN,
    PREFERENCE,
    KernelRegression,
    LinearRegression,
    PointTold,
    Slope,
    lifted,
    likely_best,
    rising_column,
)
from alexp.estimation.posteriors import CandidateMoments, Component, ComponentValues, Score
from alexp.estimation.ridge.bank import CondensedTrials
from alexp.problem.candidates import NOTHING, Choices, Pending, PendingBlock
from alexp.problem.kernels import ARD, Kernel
from alexp.problem.matrices import Block, ModelOnTable
from alexp.problem.rows import dense
from alexp.problem.shared_kernels import SharedKernels

Fantasies: TypeAlias = FamilyFantasies | ParticleFantasies | FewVariances
_REFRESH = 64  # rewards, at least, between two times that values are made anew
_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions


class Family:
    """One model at several ratios of noise to prior variance, on N candidates.

    Parameters
    ----------
    block : the model's columns on all candidates, in the domain's order.
    kernel : None for linear models.
    ratios : (cells,) noise variances in units of the prior, `lifted` if they are too small for its variances.
    intercept : whether there is a constant with a flat prior.
    backend : where values are.

    Attributes
    ----------
    values : (2, cells, N) means and variances, in the domain's order. Before the first reward a flat constant is left
        out of both, and variances are those of the differences to the mean of all candidates, see `about_level`.
    rising, preference : the number of the column whose slope has a preferred sign, see `Slope`, and how much it is
        preferred; None where there is none. Values are those without a preference, `expected` has the means with it.
    """

    def __init__(
        self, block: Block, kernel: Kernel | None, ratios: FloatArray, intercept: bool, backend: ArrayBackend
    ) -> None:
        self.values, largest = backend.prior(block, kernel, ratios.size, intercept)
        self._block, self._intercept, self._backend = block, intercept, backend
        self.ratios = ratios = lifted(ratios, largest)
        self._pass = backend.over(block, kernel)
        self.regression: KernelRegression
        if kernel is None:
            self.regression = LinearRegression(block.n_columns, ratios, intercept)
        else:
            self.regression = KernelRegression(kernel, block.n_columns, ratios, intercept)
        self.rising, self.preference = rising_column(kernel), 0.0
        self._slope: Slope | None = None  # since the last reward
        self._expected: tuple[bytes, FloatArray] | None = None
        self._since = 0  # rewards since values were made anew
        self._roots: dict[
            tuple[int, bytes], FloatArray
        ] = {}  # of covariances that were drawn from since the last reward

    @property
    def mean(self) -> FloatArray:
        """(cells, N)."""
        return self.values[0, :, :]

    @property
    def variance(self) -> FloatArray:
        """(cells, N)."""
        return self.values[1, :, :]

    @property
    def residuals(self) -> FloatArray:
        """Penalised residuals, (cells,)."""
        return self.regression.residuals

    def log_determinants(self) -> FloatArray:
        """log det(V / ridge^2), (cells,)."""
        return self.regression.log_determinants()

    def update(self, at: PointTold, y: float) -> None:
        """Absorb a reward of a point."""
        self._roots.clear()
        self._slope = self._expected = None
        points, probe = self.regression.points, self.regression.probe(at)
        number, is_first = points.find(at.row), points.n_observations == 0
        is_new = number == points.n
        moves = self._backend.keeps_values and not (is_first and self._intercept)
        covariances = self._pass.covariances(number, probe, at) if moves else None
        self.regression.tell(at, y, probe)
        if is_new:
            self._pass.add(at)
        self._since += 1
        if (is_first and self._intercept) or _is_due(self._since, points.n, self.regression.limit, is_new):
            self._refresh()
            return
        if covariances is None:  # nothing is kept that could be moved
            self.values = self._backend.made(self.regression, self._pass, self._block)
            return
        total, told = probe.variance + self.ratios, None
        gain = (y - probe.mean) / total
        if at.candidate is not None:  # exactly, where products in single precision would cancel
            exact = probe.mean + gain * probe.variance, probe.variance * (self.ratios / total)
            told = ToldValue(at.candidate, *exact)
        self.values = self._backend.move(self.values, covariances, gain, total, told)

    def _refresh(self) -> None:
        """Make factors and values anew."""
        self.regression.rebuild()
        self._since = 0
        self.values = self._backend.made(self.regression, self._pass, self._block)

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
        mean = self._backend.taken(self.expected(scale / np.sqrt(self.ratios))[cell, :], indices)
        if isinstance(self.regression, LinearRegression):
            drawn = self._backend.product(self._block, self.regression.direction(cell, normals)[None])[0, :]
            return mean + unit * self._backend.taken(drawn, indices)
        mean = np.asarray(mean)
        chosen = likely_best(mean, np.asarray(self._backend.taken(self.variance[cell, :], indices)), unit)
        key = (cell, indices[chosen].tobytes())
        if key not in self._roots:
            self._roots[key] = self.regression.root(cell, self._block.taken(indices[chosen]))
        mean[chosen] += unit * (self._roots[key] @ normals[: chosen.size])
        return mean

    def without_fantasies(self) -> FamilyFantasies:
        """What variances will be once pending rewards are in: none yet."""
        copies = self.regression.copy(), self._pass.copy()
        return FamilyFantasies(*copies, self._block, self.variance, self._backend)

    @property
    def slope(self) -> Slope:
        """What is known of the slope of the column that is `rising`."""
        if self._slope is None:
            assert self.rising is not None
            self._slope = self.regression.slope(self.rising, self.preference)
        return self._slope

    def expected(self, scale: FloatArray) -> FloatArray:
        """Means at all candidates, (cells, N), with the preference for a sign; ``scale`` (cells,) is the prior's s."""
        if self.rising is None:
            return self.mean
        if self._expected is None or self._expected[0] != scale.tobytes():
            column = self._block.dense(slice(0, self._block.n_rows))[:, self.rising]
            known = self._pass.similarities(slice(None)) if self.regression.points.n else None
            self._expected = scale.tobytes(), self.mean + self.slope.shift(scale, column, known)
        return self._expected[1]

    def shift(self, rows: FloatArray, scale: FloatArray) -> FloatArray:
        """What the preference for a sign adds to the means at any points (n, d), (cells, n)."""
        assert self.rising is not None
        return self.slope.shift(scale, rows[:, self.rising], self.regression.similarities(rows))

    def at(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at any points (n, d), (cells, n) each, without a preference."""
        return self.regression.moments(rows)


def _spread(family: Family | ParticleFamily, fantasies: Fantasies | None) -> FloatArray:
    """Variances at all candidates, (cells, N)."""
    return family.variance if fantasies is None or isinstance(fantasies, FewVariances) else fantasies.variance


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


class KernelRows:
    """k_j(x, all candidates) of the models on one table, made at once and kept for the last point asked for."""

    def __init__(self, specs: Mapping[int, ModelOnTable]) -> None:
        first = next(iter(specs.values()))
        self.models, self._rows, self._columns = list(specs), first.table.rows, first.table.columns
        self._kernels = SharedKernels([spec.kernel for spec in specs.values()], [spec.local for spec in specs.values()])
        self._last: tuple[bytes, FloatArray] = (b"", np.empty(0))

    def at(self, row: FloatArray) -> FloatArray:
        """Kernel rows of all these models at a dictionary row (P,), shape (models, N)."""
        own = row[self._columns]
        if self._last[0] != (key := own.tobytes()):
            self._last = key, self._kernels(own, self._rows)
        return self._last[1]


class OnePassGrid:
    """A `PosteriorGrid` in which a reward takes one pass over the table of each model.

    Parameters
    ----------
    models : M models on tables of all candidates.
    ridges : (M,) for each cell, the square roots of the penalties.
    intercept : whether every model has an unpenalised constant.
    """

    def __init__(self, models: Sequence[ModelOnTable], ridges: Sequence[FloatArray], intercept: bool) -> None:
        self._models, self.intercept, self.n_models, self._sign = models, intercept, len(models), 0.0
        self._wanted = np.array(ridges) ** 2  # (cells, M)
        rows = models[0].block.on_device
        self._backend: ArrayBackend = HostBackend() if rows is None else rows.array_backend()
        self._shared = self._share()
        self._begin()

    def _begin(self) -> None:
        """No rewards yet."""
        self.families = [
            self._family(model, ratios) for model, ratios in zip(self._models, self._wanted.T, strict=True)
        ]
        self._learning = {j: family for j, family in enumerate(self.families) if isinstance(family, ParticleFamily)}
        some = {j: family for j, family in enumerate(self.families) if isinstance(family, Family)}
        self._rising = {j: family for j, family in some.items() if family.rising is not None}
        self.prefer(self._sign)
        self._n_cells = max(len(family.ratios) for family in self.families)
        self._rewards: list[float] = []
        self._indices: list[int] = []  # of the candidates; -1 for other points
        self._elsewhere: list[FloatArray] = []  # dictionary rows of those
        self._older: dict[int, CondensedTrials] = {}  # of many pending trials, by model
        self._own_blocks: dict[PendingBlock, dict[int, PendingBlock]] = {}  # the same in a model's columns
        self._drop_fantasies()

    def _family(self, model: ModelOnTable, ratios: FloatArray) -> Family | ParticleFamily:
        if isinstance(model.kernel, ARD):
            if model.block.on_device is not None:
                raise ValueError(
                    "kernels.ARD learns its lengthscales on all candidates in one memory, and these are on a device or "
                    'in parts: use kernels.Matern() or kernels="auto"'
                )
            return ParticleFamily(model.block, model.kernel, ratios, self.intercept)
        return Family(model.block, model.kernel, ratios, self.intercept, self._backend)

    def _stacked(self, values: Sequence[FloatArray], fill: float) -> FloatArray:
        """Values of every component, (cells, M), from those of each model; `fill` in cells that a model lacks."""
        out = np.full((self._n_cells, len(values)), fill)
        for j, own in enumerate(values):
            out[: own.size, j] = own
        return out

    @property
    def _ratios(self) -> FloatArray:
        """Noise variances in units of the prior, (cells, M)."""
        return self._stacked([family.ratios for family in self.families], 1.0)

    @property
    def multiples(self) -> FloatArray | None:
        """Ratios of the particles in units of the first cell's, (cells, M), NaN for other models; None without any."""
        if not self._learning:
            return None
        missing = np.full(self._wanted.shape[0], np.nan)
        own = [f.multiples if isinstance(f, ParticleFamily) else missing for f in self.families]
        return self._stacked(own, np.nan)

    def reweigh(self, score: Score, power: float) -> None:
        for family in self._learning.values():
            family.reweigh(score, power)

    def residuals_by_arm(self, weights: FloatArray) -> None:
        """Arms have no coefficients of their own."""
        return

    def learned_kernel(self, model: int, cell: int) -> Kernel | None:
        return self._learning[model].kernel(cell) if model in self._learning else None

    def _share(self) -> dict[int, tuple[KernelRows, int]]:
        """Where the kernel rows of each model come from: those on one table are made together."""
        tables: dict[int, dict[int, ModelOnTable]] = {}
        for j, model in enumerate(self._models):
            if model.kernel is not None and model.block.on_device is None and not isinstance(model.kernel, ARD):
                tables.setdefault(id(model.table), {})[j] = model
        shared = [KernelRows(specs) for specs in tables.values()]
        return {j: (rows, place) for rows in shared for place, j in enumerate(rows.models)}

    def _told(self, j: int, row: FloatArray, index: int | None) -> PointTold:
        """A point as model j sees it."""
        own = self._own(j, row)
        if j not in self._shared:
            return PointTold(own, index)
        rows, place = self._shared[j]
        return PointTold(own, index, lambda: np.asarray(rows.at(row)[place]))

    def _own(self, j: int, rows: FloatArray) -> FloatArray:
        """The columns of model j in dictionary rows (..., P), less what was taken off its block."""
        model = self._models[j]
        own = rows[..., model.group]
        return own if model.origin is None else own - model.origin

    @property
    def n_observations(self) -> int:
        return len(self._rewards)

    @property
    def n_constants(self) -> int:
        return min(int(self.intercept), self.n_observations)

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        for j, family in enumerate(self.families):
            family.update(self._told(j, row, index), y)
        self._log(row, y, index)

    def _log(self, row: FloatArray, y: float, index: int | None) -> None:
        self._rewards.append(y)
        self._indices.append(-1 if index is None else index)
        if index is None:
            self._elsewhere.append(np.array(row))
        self._drop_fantasies()

    def _drop_fantasies(self) -> None:
        # What pending trials leave, at all candidates and (True) at a few.
        self._fantasies: dict[bool, tuple[Pending, dict[int, Fantasies]]] = {}

    # -- evidence ----------------------------------------------------------------------------------------------

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """`score` of every component, (cells, M); minus infinity in cells that a model lacks."""
        if not self._learning:
            return score(self.residuals(), self.log_determinants())
        out = score(self.residuals(), self.log_determinants(), self.multiples)
        out[self._wanted.shape[0] :] = -np.inf
        for j, family in self._learning.items():
            out[:, j] = family.evidence(reach)
        return out

    def prefer(self, sign: float) -> None:
        """Prefer slopes of this sign where one is preferred, 1 or -1; 0 for none."""
        self._sign = sign
        for family in self._rising.values():
            family.preference, family._slope, family._expected = sign * PREFERENCE, None, None

    def preference(self, variances: Callable[[], FloatArray]) -> FloatArray | None:
        if not self._rising:
            return None
        noise = variances()
        out = np.zeros_like(noise)
        for j, family in self._rising.items():
            out[: family.ratios.size, j] = family.slope.log_preference(self._scale(j, noise))
        return out

    def _scale(self, j: int, variances: FloatArray) -> FloatArray:
        """Prior deviations s of model j, (cells,), under noise `variances` (cells, M)."""
        ratios = self.families[j].ratios
        return np.sqrt(variances[: ratios.size, j] / ratios)

    def _means(self, j: int, variances: FloatArray) -> FloatArray:
        """Means of model j at all candidates, (cells, N)."""
        if j in self._rising:
            return self._rising[j].expected(self._scale(j, variances))
        return self.families[j].mean

    def residuals(self) -> FloatArray:
        return self._stacked([family.residuals for family in self.families], 0.0)

    def log_determinants(self) -> FloatArray:
        """log det(V / ridge^2) of every component, (cells, M)."""
        return self._stacked([family.log_determinants() for family in self.families], 0.0)

    # -- moments -----------------------------------------------------------------------------------------------

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        if choices.indices is None:
            merged = CandidateMoments.empty(len(choices))
            for part in self.components(weights, variances, choices):
                merged.merge(part.share, part.mean, part.variance)
            return merged.mean, merged.within + merged.between
        matters = weights > _NEGLIGIBLE
        kept, fantasies, ratios = float(weights[matters].sum()), self._with_fantasies(pending, matters), self._ratios
        mixed = list[ModelMoments]()
        for j in np.flatnonzero(matters.any(axis=0)).tolist():
            family, cells = self.families[j], np.flatnonzero(matters[:, j])
            shares, scales = weights[cells, j] / kept, variances[cells, j] / ratios[cells, j]
            spread = _spread(family, fantasies.get(j))
            mixed.append(ModelMoments(self._means(j, variances), spread, cells, shares, scales))
        both = self._backend.mixed(mixed)
        return self._backend.taken(both[0, :], choices.indices), self._backend.taken(both[1, :], choices.indices)

    def components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending = NOTHING,
        least: float = _NEGLIGIBLE,
    ) -> Iterator[Component]:
        kept = float(weights[weights > least].sum())
        fantasies, ratios = self._with_fantasies(pending, weights > least), self._ratios
        for j, family in enumerate(self.families):
            active = np.flatnonzero(weights[:, j] > least)
            if active.size == 0:
                continue
            if choices.indices is None:
                rows = np.ascontiguousarray(self._own(j, choices.table.T))
                mean, variance = family.at(rows)
                if j in self._rising:
                    mean = mean + self._rising[j].shift(rows, self._scale(j, variances))
            else:
                mean, variance = self._means(j, variances), _spread(family, fantasies.get(j))
            for c in active:
                scale = variances[c, j] / ratios[c, j]
                own = (mean[int(c), :], variance[int(c), :])
                if choices.indices is not None:
                    own = self._backend.taken(own[0], choices.indices), self._backend.taken(own[1], choices.indices)
                values, spread = own
                yield Component(float(weights[c, j]) / kept, int(c), j, values, scale * spread)

    def values(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> ComponentValues:
        """The same all at once; in this memory nothing is computed at other candidates, once a constant is known."""
        is_known = self.n_observations > 0 or not self.intercept
        if self.prefers_few() and is_known and choices.indices is not None:
            return self._few_values(weights, variances, choices.indices, pending, least)
        parts = list(self.components(weights, variances, choices, pending, least))
        both = np.array([part.mean for part in parts]), np.array([part.variance for part in parts])
        numbers = np.array([part.cell * weights.shape[1] + part.model for part in parts])
        return ComponentValues(np.array([part.share for part in parts]), *both, numbers)

    def prefers_few(self, weights: FloatArray | None = None, n: int = 0) -> bool:
        """In this memory, whatever the weights and the number of candidates, if no lengthscale is learned."""
        return isinstance(self._backend, HostBackend) and not self._learning

    def _few_values(
        self, weights: FloatArray, variances: FloatArray, indices: IntArray, pending: Pending, least: float
    ) -> ComponentValues:
        matters, ratios = weights > least, self._ratios
        kept, fantasies = float(weights[matters].sum()), self._with_fantasies(pending, matters, few=True)
        found = list[tuple[FloatArray, FloatArray, FloatArray, IntArray]]()
        for j in np.flatnonzero(matters.any(axis=0)).tolist():
            cells, family, own = np.flatnonzero(matters[:, j]), self.families[j], fantasies.get(j)
            spread = own.at(indices) if isinstance(own, FewVariances) else family.variance[:, indices]
            scales = variances[cells, j] / ratios[cells, j]
            values = self._means(j, variances)[:, indices][cells], scales[:, None] * spread[cells]
            found.append((weights[cells, j] / kept, *values, cells * weights.shape[1] + j))
        shares, mean, variance, numbers = (np.concatenate(column) for column in zip(*found, strict=True))
        return ComponentValues(shares, mean, variance, numbers)

    def n_normals(self, model: int) -> int:
        return self.families[model].n_normals

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices, which must be candidates, under one draw of a component's function, (n,)."""
        if choices.indices is None:
            raise ValueError("functions are drawn at candidates only, where values are kept")
        return self.families[model].draw(cell, choices.indices, normals, scale)

    def _with_fantasies(self, pending: Pending, matters: BoolArray, few: bool = False) -> dict[int, Fantasies]:
        """Beliefs of the families with a component that `matters` (cells, M), after pending trials; none without.

        They are at all candidates, or at a `few` that will be named. They are kept until the next reward: one trial
        more is absorbed alone, to the same bits.
        """
        if not pending:
            return {}
        members = np.flatnonzero(matters.any(axis=0)).tolist()
        known, fantasies = self._fantasies.pop(few, (NOTHING, {}))  # not kept as long as they are changed
        begins = pending.begins_with(known) and pending.older == known.older
        if not begins or any(j not in fantasies for j in members):
            known, fantasies = NOTHING, {j: self._without_fantasies(j, few) for j in members}
        condensed = set[int]()
        if pending.older and known is NOTHING:
            self._own_blocks = {block: self._own_blocks.get(block, {}) for block in pending.older}
            condensed = {j for j, own in fantasies.items() if own.absorb_blocks(*self._condensed(j, pending))}
        n = pending.n_older
        first = n if len(condensed) == len(fantasies) else len(known)
        rows = pending.rows[first:] if first < n else pending.newest[first - n :]
        for place, (row, index) in enumerate(zip(rows, pending.indices[first:].tolist(), strict=True), first):
            for j, own in fantasies.items():
                if place >= n or j not in condensed:
                    own.absorb(self._told(j, row, index))
        self._fantasies[few] = (pending, fantasies)
        return fantasies

    def _without_fantasies(self, j: int, few: bool) -> Fantasies:
        own = self.families[j].without_fantasies()
        return FewVariances(own, self._models[j].block) if few and isinstance(own, FamilyFantasies) else own

    def _condensed(self, j: int, pending: Pending) -> tuple[CondensedTrials, tuple[PendingBlock, ...]]:
        """The older pending trials in the columns of model j, and what was condensed of them."""
        blocks = []
        for block in pending.older:
            own = self._own_blocks[block]
            if j not in own:
                own[j] = PendingBlock(block.trials, np.asarray(block.indices), self._own(j, block.rows))
            blocks.append(own[j])
        return self._older.setdefault(j, CondensedTrials()), tuple(blocks)

    # -- storage -----------------------------------------------------------------------------------------------

    def root_width(self, n: int) -> None:
        """There are no roots: draws stand in for them."""

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """There are none."""
        raise NotImplementedError("one pass keeps no square roots of covariances; use draw")

    def state(self) -> Packable:
        """The rewards, where they were measured, and particles: all else follows from that, bit for bit."""
        own = {"rewards": np.array(self._rewards), "indices": np.array(self._indices, dtype=np.int64)}
        own |= {"elsewhere": np.array(self._elsewhere)}
        return own | ({"particles": [f.state() for f in self._learning.values()]} if self._learning else {})

    def restore(self, state: Packable) -> None:
        """Continue from `state` of a grid with the same models, whatever this one has seen."""
        rewards, indices = np.asarray(state["rewards"]).tolist(), np.asarray(state["indices"]).tolist()
        elsewhere = np.asarray(state["elsewhere"])
        places = np.cumsum(np.asarray(indices) < 0) - 1  # among the rows of other points

        def row(k: int) -> FloatArray:
            return self._row(indices[k]) if indices[k] >= 0 else np.asarray(elsewhere[places[k]])

        self._begin()
        anew = [
            family.last_refresh(self._own(j, row(k)) for k in range(len(rewards))) if isinstance(family, Family) else 0
            for j, family in enumerate(self.families)
        ]
        for k, y in enumerate(rewards):
            full, index = row(k), indices[k] if indices[k] >= 0 else None
            for j, family in enumerate(self.families):
                at = self._told(j, full, index)
                if k < anew[j] and isinstance(family, Family):
                    family.recall(at, y, k == anew[j] - 1)
                else:
                    family.update(at, y)
            self._log(full, y, index)
        if self._learning:
            stored = sequence("particles", state.get("particles"), len(self._learning))
            for family, own in zip(self._learning.values(), stored, strict=True):
                family.restore(own)

    def _row(self, index: int) -> FloatArray:
        """The dictionary at a candidate, as far as models use it, shape (P,)."""
        tables = {id(model.table): model.table for model in self._models}.values()
        out = np.zeros(1 + max(int(table.columns[-1]) for table in tables))
        for table in tables:
            out[table.columns] = dense(table.rows[index : index + 1])[0]
        return out


def keeps_values(state: Packable) -> bool:
    """Whether a state is that of an `OnePassGrid`."""
    return isinstance(state, dict) and {"rewards", "indices", "elsewhere"} == set(state) - {"particles"}
