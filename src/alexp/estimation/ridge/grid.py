"""Many small models at several ridges: one bank per cell, evidence that lets the negligible sleep, moments two ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.posteriors import CandidateMoments
from alexp.estimation.ridge import _moments as moments
from alexp.estimation.ridge.bank import RidgeBank
from alexp.estimation.ridge.factors import FactorState
from alexp.estimation.ridge.sleeping import SleepingBank

_LAZY = 20_000  # components from which it pays to let the negligible ones sleep
_SLEEP, _WAKE = 45.0, 32.0  # how far below the best log evidence they fall asleep, and how close they may come
_MOSTLY = 0.25  # share of a cell's components that may be awake once any of them sleeps
_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions


@dataclass(frozen=True)
class Part:
    """What one cell contributes to a mixture: some models with their shares, and the noise variance."""

    bank: RidgeBank
    members: IntArray
    shares: FloatArray
    variance: float

    def believing(self, rows: FloatArray) -> Part:
        """The same models once they have absorbed rows (k, P) at their own means."""
        own = np.arange(self.members.size)
        return replace(self, bank=self.bank.believing(rows, self.members), members=own)


class RidgeGrid:
    """A `PosteriorGrid` of packed factors.

    Parameters
    ----------
    n_columns : P, columns of the dictionary.
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows.
    ridges : (M,) for each cell, the square roots of the penalties.
    intercept : whether every model has an unpenalised constant.
    precise : never take moments through the coefficients, whose quadratic forms would round small variances away.
    may_sleep : let models of negligible evidence sleep if there are very many.
    """

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        ridges: Sequence[FloatArray],
        intercept: bool,
        precise: bool = False,
        may_sleep: bool = True,
    ) -> None:
        self.n_models, self.n_columns, self._lead = len(offsets) - 1, n_columns, int(intercept)
        self._mean_size = len(columns) / self.n_models
        self._precise = precise
        kind = SleepingBank if may_sleep and self.n_models * len(ridges) >= _LAZY else RidgeBank
        self._banks = [kind(columns, offsets, ridge, intercept) for ridge in ridges]
        self._bounds = np.zeros((len(ridges), self.n_models))  # evidence without shift, an upper bound if asleep

    @property
    def cells(self) -> list[RidgeBank]:
        """The bank of every cell; those that sleep are not up to date, see `whole`."""
        return self._banks

    def update(self, row: FloatArray, y: float) -> None:
        """Absorb one reward into every cell."""
        for bank in self._banks:
            bank.update(row, y)

    def whole(self, cell: int) -> RidgeBank:
        """The fits of all models in one cell, none of them asleep."""
        bank = self._banks[cell]
        if isinstance(bank, SleepingBank):
            bank.wake_all()
        return bank

    # -- evidence ----------------------------------------------------------------------------------------------

    def evidence(self, noise: FloatArray, shifts: FloatArray) -> FloatArray:
        """Log evidence of every component plus its cell's shift, (cells, M); minus infinity for those asleep."""
        sleepers = [bank for bank in self._banks if isinstance(bank, SleepingBank)]
        if sleepers:
            return self._lazy_evidence(sleepers, noise, shifts)
        return np.array([bank.evidence(s) + d for bank, s, d in zip(self._banks, noise, shifts, strict=True)])

    def _lazy_evidence(self, banks: list[SleepingBank], noise: FloatArray, shifts: FloatArray) -> FloatArray:
        """The same; wakes and sends to sleep whoever has to."""
        for g, bank in enumerate(banks):
            own = slice(None) if bank.all_awake else bank.awake
            self._bounds[g, own] = bank.member_evidence(bank.awake, noise[g])
        while True:
            best = [self._bounds[g][bank.is_awake].max(initial=-np.inf) for g, bank in enumerate(banks)]
            top = float(np.max(best + shifts))
            if not any(self._wake(g, bank, noise[g], top - _WAKE - shifts[g]) for g, bank in enumerate(banks)):
                break
        out = self._bounds + shifts[:, None]
        for g, bank in enumerate(banks):
            tired = np.flatnonzero((out[g] < top - _SLEEP) & bank.is_awake)
            if bank.awake.size - tired.size < _MOSTLY * self.n_models:  # updating all of them at once is fast
                bank.sleep(tired)
            if not bank.all_awake:
                out[g, ~bank.is_awake] = -np.inf
        return out

    def _wake(self, cell: int, bank: SleepingBank, noise: float, level: float) -> bool:
        """Wake the models of a cell whose evidence may exceed a level; whether there were any."""
        if bank.all_awake:
            return False
        stirring = np.flatnonzero((self._bounds[cell] > level) & ~bank.is_awake)
        bank.wake(stirring)
        self._bounds[cell, stirring] = bank.member_evidence(stirring, noise)
        return bool(stirring.size)

    # -- moments -----------------------------------------------------------------------------------------------

    def moments(
        self, weights: FloatArray, variances: FloatArray, table: FloatArray, pending: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and total variance (within plus between components) at the candidates of ``table`` (P, n), shapes (n,).

        ``weights`` (cells, M) sum to one; ``variances`` (cells,) are those of the noise. ``pending`` rows (k, P) shrink
        the variances within components; what these disagree on, weights and means, stays.
        """
        parts = self._parts(weights, variances)
        if pending is not None and len(pending):
            parts = [part.believing(pending) for part in parts]
        if self._by_coefficients(sum(part.members.size for part in parts), table.shape[1]):
            return self._through_coefficients(parts, table)
        merged = CandidateMoments.empty(table.shape[1])
        for part in parts:
            part.bank.merge_moments(merged, part.members, part.shares, part.variance, table)
        return merged.mean, merged.within + merged.between

    def _parts(self, weights: FloatArray, variances: FloatArray) -> list[Part]:
        """The components that matter, with shares that sum to one."""
        active = [np.flatnonzero(row > _NEGLIGIBLE) for row in weights]
        kept = sum(float(row[own].sum()) for row, own in zip(weights, active, strict=True))
        return [
            Part(bank, own, row[own] / kept, float(variance))
            for bank, own, row, variance in zip(self._banks, active, weights, variances, strict=True)
            if own.size
        ]

    def _by_coefficients(self, n_active: int, n_candidates: int) -> bool:
        """Whether the route over coefficients is safe and takes fewer operations."""
        if self._precise:
            return False
        d, q = self._mean_size + self._lead, self.n_columns + self._lead
        through_coefficients = n_active * (2 * d * d + d**3 / 2 + 20) + (n_candidates + 4) * q * q / 2
        return through_coefficients < n_active * n_candidates * (d * d / 2 + 2 * d + 3)

    def _through_coefficients(self, parts: list[Part], table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the coefficient vector, then one quadratic form per candidate.

        Second moments are taken about the heaviest component, not about zero, before the squared mean is subtracted:
        that component is part of the mixture, so with weight w it keeps the variance above w times what is subtracted.
        """
        mean, reference = np.zeros((2, self.n_columns + self._lead))
        covariance = np.zeros((mean.size, mean.size))
        heaviest = max(parts, key=lambda part: float(part.shares.max()))
        leader = heaviest.members[[int(np.argmax(heaviest.shares))]]
        heaviest.bank.add_coefficients(leader, np.ones(1), reference)
        for part in parts:
            part.bank.add_coefficients(part.members, part.shares, mean)
        support = np.flatnonzero(reference)
        for part in parts:
            part.bank.add_second_moments(part.members, part.shares, part.variance, reference, support, covariance)
        covariance -= np.outer(mean - reference, mean - reference)
        values, spread = mean[: self.n_columns] @ table, np.empty(table.shape[1])
        moments.quadratic_forms(table, covariance, self._lead, 0, table.shape[1], spread)
        return values + (mean[-1] if self._lead else 0.0), np.maximum(spread, 0.0)

    def state(self) -> list[FactorState]:
        """Everything that rewards have changed."""
        return [bank.state() for bank in self._banks]

    def restore(self, state: list[FactorState]) -> None:
        """Continue from `state`."""
        for bank, saved in zip(self._banks, state, strict=True):
            bank.restore(saved)
