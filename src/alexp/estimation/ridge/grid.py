"""Many small models at several ridges: one bank per cell, evidence that lets the negligible sleep, moments two ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.common.schema import same, sequence
from alexp.estimation.posteriors import CandidateMoments, Component, Score
from alexp.estimation.ridge import _moments as moments
from alexp.estimation.ridge.bank import RidgeBank
from alexp.estimation.ridge.factors import FactorState
from alexp.estimation.ridge.sleeping import SleepingBank
from alexp.problem.candidates import NOTHING, Choices, Pending

_LAZY = 20_000  # components from which it pays to let the negligible ones sleep
_SLEEP, _WAKE = 45.0, 32.0  # how far below the best log evidence they fall asleep, and how close they may come
_MOSTLY = 0.25  # share of a cell's components that may be awake once any of them sleeps
_CANCELLED = 1e-10  # share of the largest term of a quadratic form below which too few digits of it are left
_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions


@dataclass(frozen=True)
class Part:
    """What one cell contributes to a mixture: some models with their shares and noise variances.

    `numbers` are those of the models, `members` their places in the bank.
    """

    cell: int
    bank: RidgeBank
    numbers: IntArray
    members: IntArray
    shares: FloatArray
    variances: FloatArray

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
    forget : weight of a reward for each one that came after it.
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
        forget: float | None = None,
    ) -> None:
        self.n_models, self.n_columns, self._lead = len(offsets) - 1, n_columns, int(intercept)
        self._sizes, self._mean_size = np.diff(offsets), len(columns) / self.n_models
        self._precise = precise
        lazy = may_sleep and forget is None and self.n_models * len(ridges) >= _LAZY  # who fades must not sleep
        self._banks = [
            SleepingBank(columns, offsets, ridge, intercept)
            if lazy
            else RidgeBank(columns, offsets, ridge, intercept, forget=forget)
            for ridge in ridges
        ]
        self._determinants = np.zeros((len(ridges), self.n_models))  # of banks that sleep; lower bounds if asleep

    @property
    def cells(self) -> list[RidgeBank]:
        """The bank of every cell; those that sleep are not up to date, see `whole`."""
        return self._banks

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""
        return self._banks[0].n_observations

    @property
    def n_constants(self) -> int:
        """One once the constant has had a reward."""
        return min(self._lead, self.n_observations)

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward into every cell; it does not matter which candidate it is of."""
        for bank in self._banks:
            bank.update(row, y)

    def whole(self, cell: int) -> RidgeBank:
        """The fits of all models in one cell, none of them asleep."""
        bank = self._banks[cell]
        if isinstance(bank, SleepingBank):
            bank.wake_all()
        return bank

    # -- evidence ----------------------------------------------------------------------------------------------

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """Log evidence of every component, (cells, M); minus infinity for those asleep."""
        sleepers = [bank for bank in self._banks if isinstance(bank, SleepingBank)]
        if sleepers:
            return self._lazy_evidence(sleepers, score, reach)
        return score(self.residuals(), np.array([bank.log_determinants() for bank in self._banks]))

    def residuals(self) -> FloatArray:
        """Penalised residuals of every component, (cells, M); lower bounds for those asleep."""
        return np.array([bank.residuals() for bank in self._banks])

    def _lazy_evidence(self, banks: list[SleepingBank], score: Score, reach: float) -> FloatArray:
        """The same; wakes and sends to sleep whoever has to.

        What a sleeper has of residual and determinant are lower bounds, so that its score is an upper bound.
        """
        for bank, known in zip(banks, self._determinants, strict=True):
            known[bank.awake] = bank.member_determinants(bank.awake)
        while True:
            out = score(self.residuals(), self._determinants)
            best = max(float(row[bank.is_awake].max(initial=-np.inf)) for row, bank in zip(out, banks, strict=True))
            if not any(self._wake(g, bank, out[g] > best - reach * _WAKE) for g, bank in enumerate(banks)):
                break
        for row, bank in zip(out, banks, strict=True):
            tired = np.flatnonzero((row < best - reach * _SLEEP) & bank.is_awake)
            if bank.awake.size - tired.size < _MOSTLY * self.n_models:  # updating all of them at once is fast
                bank.sleep(tired)
            if not bank.all_awake:
                row[~bank.is_awake] = -np.inf
        return out

    def _wake(self, cell: int, bank: SleepingBank, close: BoolArray) -> bool:
        """Wake the models of a cell that may be close to the best; whether there were any."""
        if bank.all_awake:
            return False
        stirring = np.flatnonzero(close & ~bank.is_awake)
        bank.wake(stirring)
        self._determinants[cell, stirring] = bank.member_determinants(stirring)
        return bool(stirring.size)

    # -- moments -----------------------------------------------------------------------------------------------

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and total variance (within plus between components) at the choices, shapes (n,).

        ``weights`` (cells, M) sum to one; ``variances`` (cells, M) are those of the components' noise. ``pending``
        trials shrink the variances within components; what these disagree on, weights and means, stays.
        """
        parts = self._parts(weights, variances, pending)
        table = parts[0].bank.levelled(choices)
        if self._by_coefficients(sum(part.members.size for part in parts), table.shape[1]):
            mean, variance, terms = self._through_coefficients(parts, table)
            if np.all(variance >= _CANCELLED * terms):
                return mean, variance
        merged = CandidateMoments.empty(table.shape[1])
        for part in parts:
            part.bank.merge_moments(merged, part.members, part.shares, part.variances, table)
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
        for part in self._parts(weights, variances, pending, least):
            for place, j in enumerate(part.members):
                mean, width = part.bank.mean(int(j), choices), part.bank.width(int(j), choices)
                yield Component(
                    float(part.shares[place]),
                    part.cell,
                    int(part.numbers[place]),
                    mean,
                    part.variances[place] * width**2,
                )

    def _parts(
        self,
        weights: FloatArray,
        variances: FloatArray,
        pending: Pending = NOTHING,
        least: float = _NEGLIGIBLE,
    ) -> list[Part]:
        """The components that matter, with shares that sum to one."""
        active = [np.flatnonzero(row > least) for row in weights]
        kept = sum(float(row[own].sum()) for row, own in zip(weights, active, strict=True))
        parts = [
            Part(cell, self._banks[cell], own, own, weights[cell, own] / kept, variances[cell, own])
            for cell, own in enumerate(active)
            if own.size
        ]
        return [part.believing(pending.rows) for part in parts] if pending else parts

    def _by_coefficients(self, n_active: int, n_candidates: int) -> bool:
        """Whether the route over coefficients is safe and takes fewer operations."""
        if self._precise:
            return False
        d, q = self._mean_size + self._lead, self.n_columns + self._lead
        through_coefficients = n_active * (2 * d * d + d**3 / 2 + 20) + (n_candidates + 4) * q * q / 2
        return through_coefficients < n_active * n_candidates * (d * d / 2 + 2 * d + 3)

    def _through_coefficients(self, parts: list[Part], table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and covariance of the coefficient vector, then one quadratic form per candidate, and its largest term.

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
            part.bank.add_second_moments(part.members, part.shares, part.variances, reference, support, covariance)
        covariance -= np.outer(mean - reference, mean - reference)
        values, spread = mean[: self.n_columns] @ table, np.empty(table.shape[1])
        moments.quadratic_forms(table, covariance, self._lead, 0, table.shape[1], spread)
        own = np.diag(covariance)
        terms = (own[: self.n_columns, None] * np.square(table)).max(axis=0, initial=own[-1] if self._lead else 0.0)
        return values + (mean[-1] if self._lead else 0.0), np.maximum(spread, 0.0), terms

    def n_normals(self, model: int) -> int:
        """One for each coefficient."""
        return int(self._sizes[model])

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices under one draw of a component's coefficients, shape (n,)."""
        return self._banks[cell].draw(model, choices.table, normals, scale)

    def root_width(self, n: int) -> int:
        """One for each coefficient of the largest model."""
        return int(self._sizes.max())

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means (m, n) and square roots (m, n, D) of the covariances of some models."""
        return self._banks[cell].roots(members, choices.table, self.root_width(len(choices)))

    def state(self) -> list[FactorState]:
        """Everything that rewards have changed."""
        return [bank.state() for bank in self._banks]

    def restore(self, state: list[FactorState]) -> None:
        """Continue from `state`."""
        for bank, saved in zip(self._banks, sequence("cells", state, len(self._banks)), strict=True):
            bank.restore(saved)
            same("n_observations of a cell", bank.n_observations, self._banks[0].n_observations, "as in the first")
