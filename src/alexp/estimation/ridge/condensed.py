"""Many pending trials: blocks of their rows are condensed to one factor each, which outlives rewards.

Fantasies change V_j by Phi_j'Phi_j of the pending rows, and so does the R-factor of [1? | Phi_j], which has d_j + 1
rows however many trials there are. A reward takes a trial out of one block. The factors of the others are kept, and are
the same for all cells of a grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.candidates import PendingBlock

if TYPE_CHECKING:
    from alexp.estimation.ridge.bank import RidgeBank


class CondensedTrials:
    """Factors of the older blocks of pending trials, for the models of one bank."""

    def __init__(self) -> None:
        self._members = np.empty(0, dtype=np.int64)
        self._blocks: dict[PendingBlock, RidgeBank] = {}
        self._sum: RidgeBank | None = None  # of all blocks

    def prepare(self, bank: RidgeBank, blocks: tuple[PendingBlock, ...], members: IntArray) -> None:
        """Have the factors of these blocks for `members` (K,) of the bank's models, ascending."""
        if not np.isin(members, self._members, assume_unique=True).all():
            self._members, self._blocks = np.union1d(self._members, members), {}
        known = self._blocks
        self._blocks = {block: known.get(block) or bank.gathered(block.rows, self._members) for block in blocks}
        self._sum = bank.gathered(np.empty((0, 0)), self._members)
        for own in self._blocks.values():
            self._sum.stack(own.layout()[0], believe_means=False)

    def factors(self, members: IntArray) -> FloatArray:
        """Of the rows of all blocks, one model after the other, as `RidgeBank.stack` takes them."""
        assert self._sum is not None
        return self._sum.factors_of(np.searchsorted(self._members, members))
