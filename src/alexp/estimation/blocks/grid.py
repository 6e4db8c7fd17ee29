"""Per-arm models at several ridges: all components of a mixture side by side in one bank per arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.estimation.blocks.banks import ArmBanks
from alexp.estimation.blocks.layout import ArmColumns
from alexp.estimation.posteriors import CandidateMoments, Component, Score
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import NOTHING

if TYPE_CHECKING:
    from alexp.problem.candidates import Choices, Pending

_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions


class ArmGrid:
    """A `PosteriorGrid` of `ArmBanks`.

    Parameters
    ----------
    blocks : (K, p), arms and columns of each.
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows of all K p columns.
    ridges : (M,) for each cell, the square roots of the penalties.
    intercept : whether the first column of a block is its arm's unpenalised constant.
    forget : weight of a reward for each one that came after it.
    """

    def __init__(
        self,
        blocks: tuple[int, int],
        columns: IntArray,
        offsets: IntArray,
        ridges: Sequence[FloatArray],
        intercept: bool,
        forget: float | None = None,
    ) -> None:
        self.n_models, self._cells = len(offsets) - 1, len(ridges)
        groups = ArmColumns(blocks, columns, offsets, intercept)
        self._banks = ArmBanks(groups.repeated(self._cells), np.concatenate(ridges), forget)
        self._believed: dict[int, tuple[bytes, RidgeBank]] = {}  # by arm: pending rows, and the fits with them

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""
        return self._banks.n_observations

    @property
    def n_constants(self) -> int:
        """How many flat constants have had a reward: each takes a degree of freedom."""
        return self._banks.n_constants

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward into every cell; it does not matter which candidate it is of."""
        arm = self._banks.columns.arm(row)
        self._banks.update(row, y)
        if self._banks.forget is None:
            self._believed.pop(arm, None)
        else:
            self._believed = {}

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """`score` of every component, (cells, M)."""
        return score(self.residuals(), self._by_cell(self._banks.log_determinants()))

    def residuals(self) -> FloatArray:
        """Penalised residuals of every component, (cells, M)."""
        return self._by_cell(self._banks.residuals())

    def _by_cell(self, values: FloatArray) -> FloatArray:
        return values.reshape(self._cells, self.n_models)

    # -- predictions -------------------------------------------------------------------------------------------

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and total variance (within plus between components) at the choices, shapes (n,)."""
        _, shares, means, spreads = self._components(weights, variances, choices, pending, _NEGLIGIBLE)
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
        for number, share, mean, spread in zip(
            *self._components(weights, variances, choices, pending, least), strict=True
        ):
            cell, model = divmod(int(number), self.n_models)
            yield Component(float(share), cell, model, mean, spread)

    def _components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending,
        least: float,
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Numbers and shares (K,) of the components that matter, their means and variances at the choices (K, n)."""
        members = np.flatnonzero(weights.ravel() > least)
        shares = weights.ravel()[members]
        mean, squares, _ = self._banks.values(choices, members, believed=self._believing(pending))
        return members, shares / shares.sum(), mean, variances.ravel()[members, None] * squares

    def _believing(self, pending: Pending) -> dict[int, RidgeBank]:
        """The banks of arms with pending trials once they have absorbed these at their own means.

        They are kept until the arm has a reward or a trial less; a trial more is absorbed alone, to the same bits.
        """
        rows = self._banks.pending(pending.rows) if pending else {}
        kept, self._believed = self._believed, {}
        for arm, features in rows.items():
            own, key = self._banks.banks[arm], features.tobytes()
            known, bank = kept.get(arm, (b"", own))
            if key[: len(known)] != known:
                known, bank = b"", own
            new = features[len(known) // features[:1].nbytes :]
            self._believed[arm] = key, bank.believing(new) if len(new) else bank
        return {arm: bank for arm, (_, bank) in self._believed.items()}

    def n_normals(self, model: int) -> int:
        """One for each coefficient of each arm."""
        return self._banks.n_normals(model)

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices under one draw of a component's coefficients, constants included, shape (n,)."""
        member = np.array([cell * self.n_models + model])
        mean, _, deviations = self._banks.values(choices, member, self._banks.spread([normals]))
        return np.asarray(mean[0] + scale * deviations[0])

    def root_width(self, n: int) -> int:
        """D = n: choices of different arms have a dimension each, and those of one arm need no more."""
        return n

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means (m, n), constants included, and square roots (m, n, n) of the covariances of some models."""
        return self._banks.roots(choices, cell * self.n_models + members)

    def state(self) -> Packable:
        """Everything that rewards have changed."""
        return self._banks.state()

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""
        self._banks.restore(state)
        self._believed = {}
