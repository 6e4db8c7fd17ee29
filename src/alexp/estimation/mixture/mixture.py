"""Evidence mixture: the posterior over models, noise levels and scales, and its predictions.

Component c = (j, a, b) says: model j is true, the noise has standard deviation s = a sigma, and the coefficients of
the model's divided features have the prior N(0, (b B)^2 I).  Then V_c = Phi_j'Phi_j + ridge_c^2 I with
ridge_c = s / (b B) is a ridge regression, and the log evidence of t rewards is, up to a constant common to all
components,

    -F_c / (2 s^2) - log det(V_c / ridge_c^2) / 2 - t log a,

with F_c = min_theta ||y - Phi_j theta||^2 + ridge_c^2 ||theta||^2.

With an intercept its flat prior takes one degree of freedom: t - 1 instead of t.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.ridge import _kernels as kernels
from alexp.estimation.ridge import _moments as mixing
from alexp.estimation.ridge.bank import RidgeBank, _pool
from alexp.estimation.ridge.sleeping import SleepingBank

_LAZY = 20_000  # components from which it pays to let the negligible ones sleep
_SLEEP, _WAKE = 45.0, 32.0  # how far below the best log evidence they fall asleep, and how close they may come
_MOSTLY = 0.25  # share of a cell's components that may be awake once any of them sleeps
_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions
_THREADED = 2_000_000  # candidates times factor entries from which threads pay
# Below this ratio of noise to prior scale, variances span so many digits that a quadratic form in coefficients
# would round the small ones away; candidates are then done one component at a time.
_SAFE_NOISE = 1e-4


class Mixture:
    """Bayesian model average of ridge regressions over a grid of noise levels and prior scales.

    Parameters
    ----------
    n_columns : P, columns of the dictionary.
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows.
    divisors : (M,) what the features of each model are divided by.
    intercept : whether every model has an unpenalised constant.
    noise_std : sigma; noise level g is noise_grid[g] * sigma.
    reward_bound : B; prior standard deviation h is scale_grid[h] * B.

    Cells of the grid are numbered noise-major; weights have shape (cells, M).
    """

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        divisors: FloatArray,
        intercept: bool,
        *,
        noise_std: float,
        reward_bound: float,
        noise_grid: Sequence[float] = (1.0,),
        scale_grid: Sequence[float] = (1.0,),
    ) -> None:
        cells = [(float(a), float(b)) for a in noise_grid for b in scale_grid]
        self.n_models, self.n_columns, self._lead = len(offsets) - 1, n_columns, int(intercept)
        self._columns, self._offsets = columns, offsets
        self.factors, self.scales = np.array([a for a, _ in cells]), np.array([b for _, b in cells])
        self.noise = self.factors * noise_std
        self.ridges = np.array([a * noise_std / (b * reward_bound) for a, b in cells])
        kind = SleepingBank if self.n_models * len(cells) >= _LAZY else RidgeBank
        self.banks = [kind(columns, offsets, ridge * divisors, intercept) for ridge in self.ridges]
        self._bounds = np.zeros((len(cells), self.n_models))  # evidence without noise term, an upper bound if asleep
        largest = float(self.scales.max()) * reward_bound
        self._precise = bool(self.noise.min() < _SAFE_NOISE * largest)

    @property
    def n_observations(self) -> int:
        """Number of rewards taken in so far, t."""
        return self.banks[0].n_observations

    def update(self, row: FloatArray, y: float, index: int = 0) -> None:
        """Absorb one observation; ``row`` (P,) is the dictionary at the action taken, its ``index`` does not matter."""
        for bank in self.banks:
            bank.update(row, y)

    def log_evidence(self) -> FloatArray:
        """Log evidence of every component up to a common constant, shape (cells, M)."""
        freedom = max(self.n_observations - self._lead, 0)
        shifts = -freedom * np.log(self.factors)
        if isinstance(self.banks[0], SleepingBank):
            return self._lazy_evidence(shifts)
        out = np.empty((len(self.banks), self.n_models))
        for g, bank in enumerate(self.banks):
            fit = bank.residuals() / (2.0 * self.noise[g] ** 2)
            out[g] = -fit - 0.5 * bank.log_determinants() + shifts[g]
        return out

    def _lazy_evidence(self, shifts: FloatArray) -> FloatArray:
        """The same, minus infinity for components that sleep; wakes and sends to sleep whoever has to."""
        banks = [bank for bank in self.banks if isinstance(bank, SleepingBank)]
        for g, bank in enumerate(banks):
            own = slice(None) if bank.all_awake else bank.awake
            self._bounds[g, own] = bank.evidence(bank.awake, self.noise[g])
        while True:
            best = [self._bounds[g][bank.is_awake].max(initial=-np.inf) for g, bank in enumerate(banks)]
            top = float(np.max(best + shifts))
            if not any(self._wake(g, bank, top - _WAKE - shifts[g]) for g, bank in enumerate(banks)):
                break
        out = self._bounds + shifts[:, None]
        for g, bank in enumerate(banks):
            tired = np.flatnonzero((out[g] < top - _SLEEP) & bank.is_awake)
            if bank.awake.size - tired.size < _MOSTLY * self.n_models:  # updating all of them at once is fast
                bank.sleep(tired)
            if not bank.all_awake:
                out[g, ~bank.is_awake] = -np.inf
        return out

    def _wake(self, cell: int, bank: SleepingBank, level: float) -> bool:
        """Wake the models of a cell whose evidence may exceed a level; whether there were any."""
        if bank.all_awake:
            return False
        stirring = np.flatnonzero((self._bounds[cell] > level) & ~bank.is_awake)
        bank.wake(stirring)
        self._bounds[cell, stirring] = bank.evidence(stirring, self.noise[cell])
        return bool(stirring.size)

    def weights(self) -> FloatArray:
        """Posterior probability of every component, shape (cells, M); uniform prior."""
        scores = self.log_evidence()
        weights = np.exp(scores - scores.max())
        return np.asarray(weights / weights.sum())

    def moments(
        self, weights: FloatArray, table: FloatArray, indices: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and total variance (within plus between components) at the candidates, shapes (n,).

        ``weights`` (cells, M) as returned by :meth:`weights`, ``table`` (P, n) feature-major; ``indices`` (n,), which
        candidates these are, does not matter here.
        """
        active = [np.flatnonzero(row > _NEGLIGIBLE) for row in weights]
        parts = [
            (bank, own, weights[g, own], float(self.noise[g] ** 2))
            for g, (bank, own) in enumerate(zip(self.banks, active, strict=True))
            if own.size
        ]
        kept = sum(float(part[2].sum()) for part in parts)
        parts = [(bank, own, share / kept, variance) for bank, own, share, variance in parts]
        if self._by_coefficients(sum(own.size for own in active), table.shape[1]):
            return self._through_coefficients(parts, table)
        return self._through_candidates(parts, table)

    def _by_coefficients(self, n_active: int, n_candidates: int) -> bool:
        """Whether the route over coefficients is safe and takes fewer operations."""
        if self._precise:
            return False
        d, q = len(self._columns) / self.n_models + self._lead, self.n_columns + self._lead
        through_coefficients = n_active * (2 * d * d + d**3 / 2 + 20) + (n_candidates + 4) * q * q / 2
        return through_coefficients < n_active * n_candidates * (d * d / 2 + 2 * d + 3)

    def _through_coefficients(self, parts: list[Any], table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the coefficient vector, then one quadratic form per candidate.

        Second moments are taken about the heaviest component, not about zero, before the squared mean is subtracted:
        that component is part of the mixture, so with weight w it keeps the variance above w times what is subtracted.
        """
        mean, reference = np.zeros((2, self.n_columns + self._lead))
        covariance = np.zeros((mean.size, mean.size))
        fits = [bank.coefficients() for bank, *_ in parts]
        heaviest = max(range(len(parts)), key=lambda k: float(parts[k][2].max()))
        leader = parts[heaviest][1][[int(np.argmax(parts[heaviest][2]))]]
        grouping = (self._columns, self._offsets, self._lead)
        theta, constants = fits[heaviest]
        mixing.add_mean_coefficients(*grouping, theta, constants, leader, np.ones(1), reference)
        for (_, own, share, _), (theta, constants) in zip(parts, fits, strict=True):
            mixing.add_mean_coefficients(*grouping, theta, constants, own, share, mean)
        support = np.flatnonzero(reference)
        for (bank, own, share, variance), (theta, constants) in zip(parts, fits, strict=True):
            mixing.add_second_moments(
                *self._layout(bank), theta, constants, own, share, variance, reference, support, covariance
            )
        covariance -= np.outer(mean - reference, mean - reference)
        values, spread = mean[: self.n_columns] @ table, np.empty(table.shape[1])
        mixing.quadratic_forms(table, covariance, self._lead, 0, table.shape[1], spread)
        return values + (mean[-1] if self._lead else 0.0), np.maximum(spread, 0.0)

    def _through_candidates(self, parts: list[Any], table: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = table.shape[1]
        mean, within, between = np.zeros(n), np.zeros(n), np.zeros(n)
        total = 0.0
        for bank, own, share, variance in parts:
            components = (*self._layout(bank), *bank.coefficients(), own, share, variance, table)
            merged = (total, mean, within, between)
            task = partial(_merge_candidates, components, merged)
            split_candidates(task, n, own.size * n * 8, bank._threads)
            total += float(share.sum())
        return mean, within + between

    def draw(
        self, cell: int, model: int, rng: np.random.Generator, table: FloatArray, indices: IntArray | None = None
    ) -> FloatArray:
        """Rewards at the candidates under one draw of the coefficients of a component, shape (n,).

        The constant of an intercept, common to all candidates, is left out.
        """
        bank = self.banks[cell]
        packed = bank._factor[bank._starts[model] : bank._starts[model + 1]]
        own = self._columns[self._offsets[model] : self._offsets[model + 1]]
        rows = self._lead + own.size + 1
        theta, noise = np.empty(own.size), rng.standard_normal(own.size)
        kernels.back_substitute(packed, rows, self._lead, noise)
        kernels.model_coefficients(packed, rows, self._lead, theta)
        return np.asarray((theta + self.noise[cell] * noise) @ table[own])

    def whole_bank(self, cell: int) -> RidgeBank:
        """The ridge fits of all models in one cell, none of them asleep."""
        bank = self.banks[cell]
        if isinstance(bank, SleepingBank):
            bank.wake_all()
        return bank

    def nominal_cell(self) -> int:
        """The cell closest to the stated noise and, among those, to the stated scale."""
        return int(np.lexsort((np.abs(np.log(self.scales)), np.abs(np.log(self.factors))))[0])

    def _layout(self, bank: RidgeBank) -> tuple[FloatArray, IntArray, IntArray, IntArray, int]:
        return bank._factor, bank._starts, self._columns, self._offsets, self._lead

    def state(self) -> list[dict[str, Any]]:
        """Everything that observations have changed."""
        return [bank.state() for bank in self.banks]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Continue from `state`."""
        for bank, saved in zip(self.banks, state, strict=True):
            bank.restore(saved)


def _merge_candidates(components: tuple[Any, ...], merged: tuple[Any, ...], low: int, high: int) -> None:
    mixing.add_candidate_moments(*components, low, high, *merged)  # type: ignore[call-arg]


def split_candidates(task: Any, n_candidates: int, work: int, threads: int) -> None:
    """Run task(low, high) over all candidates, in parallel when there is enough work."""
    parts = threads if work > _THREADED else 1
    cuts = [n_candidates * part // parts for part in range(parts + 1)]
    if parts == 1:
        task(0, n_candidates)
        return
    for job in [_pool(parts).submit(task, low, high) for low, high in pairwise(cuts)]:
        job.result()
