"""Many small models at several ridges: one bank per cell, evidence that lets the negligible sleep, moments two ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.common.schema import same, sequence
from alexp.estimation.posteriors import CandidateMoments, Component, Score
from alexp.estimation.ridge import _kernels as kernels
from alexp.estimation.ridge.bank import FactorState, RidgeBank
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


@dataclass(frozen=True)
class Fantasies:
    """Some models of a cell with pending rows absorbed; members and rows as bytes."""

    members: bytes
    rows: bytes
    bank: RidgeBank


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
        # Models that forget never sleep: fading would have to be repeated for each missed row.
        self._lazy = may_sleep and forget is None and self.n_models * len(ridges) >= _LAZY
        self.cells = [RidgeBank(columns, offsets, ridge, intercept, forget=forget) for ridge in ridges]
        if self._lazy:
            self._determinants = np.zeros((len(ridges), self.n_models))  # lower bounds for sleeping models
        self._fantasies: dict[int, Fantasies] = {}  # by cell, since its last reward

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""
        return self.cells[0].n_observations

    @property
    def n_constants(self) -> int:
        """One once the constant has had a reward."""
        return min(self._lead, self.n_observations)

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward into every cell; it does not matter which candidate it is of."""
        for cell in range(len(self.cells)):
            self.update_cell(cell, row, y)

    def update_cell(self, cell: int, row: FloatArray, y: float) -> None:
        """Absorb one reward into one cell."""
        self._fantasies.pop(cell, None)
        self.cells[cell].update(row, y)

    # -- evidence ----------------------------------------------------------------------------------------------

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """Log evidence of every component, (cells, M); minus infinity for sleeping ones."""
        if self._lazy:
            return self._lazy_evidence(score, reach)
        return score(self.residuals(), np.array([bank.log_determinants() for bank in self.cells]))

    def residuals(self) -> FloatArray:
        """Penalised residuals of every component, (cells, M); lower bounds for sleeping ones."""
        return np.array([bank.residuals() for bank in self.cells])

    def _lazy_evidence(self, score: Score, reach: float) -> FloatArray:
        """The same; wakes models that may matter and lets negligible ones sleep.

        Residual and determinant of a sleeping model are lower bounds, so that its score is an upper bound.
        """
        for bank, known in zip(self.cells, self._determinants, strict=True):
            known[bank.awake] = bank.log_determinants(bank.awake)
        while True:
            out = score(self.residuals(), self._determinants)
            best = max(float(row[bank.awake].max(initial=-np.inf)) for row, bank in zip(out, self.cells, strict=True))
            if not any(self._wake(g, out[g] > best - reach * _WAKE) for g in range(len(self.cells))):
                break
        for row, bank in zip(out, self.cells, strict=True):
            awake = bank.awake
            tired = awake[row[awake] < best - reach * _SLEEP]
            if awake.size - tired.size < _MOSTLY * self.n_models:  # updating all of them at once is fast
                bank.sleep(tired)
            if bank.is_awake is not None:
                row[~bank.is_awake] = -np.inf
        return out

    def _wake(self, cell: int, close: BoolArray) -> bool:
        """Wake the models of a cell that may be close to the best; whether there were any."""
        bank = self.cells[cell]
        if bank.is_awake is None:
            return False
        stirring = np.flatnonzero(close & ~bank.is_awake)
        bank.wake(stirring)
        self._determinants[cell, stirring] = bank.log_determinants(stirring)
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
        n_active = 0
        for part in parts:
            n_active += part.members.size
        if self._by_coefficients(n_active, table.shape[1]):
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
        self, weights: FloatArray, variances: FloatArray, pending: Pending = NOTHING, least: float = _NEGLIGIBLE
    ) -> list[Part]:
        """The components that matter, with shares that sum to one.

        Fits with fantasies are kept until the next reward: one pending trial more is absorbed alone, to the same bits.
        """
        active, kept = [], 0.0
        for cell, row in enumerate(weights):
            own = np.flatnonzero(row > least)
            kept += float(row[own].sum())
            if own.size:
                active.append((cell, own))
        rows = np.ascontiguousarray(pending.rows) if pending.trials else None
        key = b"" if rows is None else rows.tobytes()
        parts = []
        for cell, own in active:
            bank, members = self.cells[cell], own
            if rows is not None:
                known, chosen = self._fantasies.get(cell), own.tobytes()
                if known is None or known.members != chosen or not key.startswith(known.rows):
                    bank = bank.with_fantasies(rows, own)
                elif known.rows == key:
                    bank = known.bank
                else:
                    bank = known.bank.with_fantasies(rows[len(known.rows) // rows[0].nbytes :])
                self._fantasies[cell] = Fantasies(chosen, key, bank)
                members = np.arange(own.size)
            parts.append(Part(cell, bank, own, members, weights[cell, own] / kept, variances[cell, own]))
        return parts

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
        heaviest, largest = parts[0], -1.0
        for part in parts:
            kernels.add_mean_coefficients(*part.bank.fits()[2:], part.members, part.shares, mean)
            if (top := float(part.shares.max())) > largest:
                heaviest, largest = part, top
        leader = heaviest.members[[int(np.argmax(heaviest.shares))]]
        kernels.add_mean_coefficients(*heaviest.bank.fits()[2:], leader, np.ones(1), reference)
        support = np.flatnonzero(reference)
        for part in parts:
            own = (part.members, part.shares, part.variances)
            kernels.add_second_moments(*part.bank.fits(), *own, reference, support, covariance)
        covariance -= np.outer(mean - reference, mean - reference)
        values, spread = mean[: self.n_columns] @ table, np.empty(table.shape[1])
        kernels.quadratic_forms(table, covariance, self._lead, 0, table.shape[1], spread)
        diagonal = np.diag(covariance)
        constant = diagonal[-1] if self._lead else 0.0
        terms = (diagonal[: self.n_columns, None] * np.square(table)).max(axis=0, initial=constant)
        return values + (mean[-1] if self._lead else 0.0), np.maximum(spread, 0.0), terms

    def n_normals(self, model: int) -> int:
        """One for each coefficient."""
        return int(self._sizes[model])

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices under one draw of a component's coefficients, shape (n,)."""
        return self.cells[cell].draw(model, choices.table, normals, scale)

    def root_width(self, n: int) -> int:
        """One for each coefficient of the largest model."""
        return int(self._sizes.max())

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means (m, n) and square roots (m, n, D) of the covariances of some models."""
        return self.cells[cell].roots(members, choices.table, self.root_width(len(choices)))

    def state(self) -> list[FactorState]:
        """Everything that rewards have changed."""
        return [bank.state() for bank in self.cells]

    def restore(self, state: list[FactorState]) -> None:
        """Continue from `state`."""
        self._fantasies = {}
        for bank, saved in zip(self.cells, sequence("cells", state, len(self.cells)), strict=True):
            bank.restore(saved)
            same("n_observations of a cell", bank.n_observations, self.cells[0].n_observations, "as in the first")
