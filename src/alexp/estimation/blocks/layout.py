"""Per-arm columns: which arm a dictionary row is of, and the groups of columns within one arm's block.

P = K p columns, arm-major: arm a has columns a p .. (a + 1) p - 1, and a row is zero outside the block of its arm.
Every model uses the same columns of each block. With an intercept the first column of a block is the constant 1 of its
arm, which every model has and none penalises.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.blocks._kernels import block_of
from alexp.estimation.posteriors import dictionary_rows

if TYPE_CHECKING:
    from alexp.estimation.posteriors import Where

_MOST_ROWS = 1024  # rows of one arm that are looked at together


class Piece(NamedTuple):
    """Rows of one arm: where they are among all rows (m,), and their features in the arm's block (m, p)."""

    arm: int
    places: IntArray
    features: FloatArray


class ArmColumns:
    """Groups of per-arm columns.

    Parameters
    ----------
    blocks : (K, p).
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows, numbered in all K p columns.
    intercept : whether the first column of a block is its arm's unpenalised constant.

    Attributes
    ----------
    columns, offsets : the same groups within one block, the constant left out.
    """

    def __init__(self, blocks: tuple[int, int], columns: IntArray, offsets: IntArray, intercept: bool) -> None:
        self.n_arms, self.size = blocks
        self.intercept, self.lead = bool(intercept), int(intercept)
        self._last: tuple[Where, list[Piece]] | None = None
        sizes = np.diff(offsets)
        owner = np.repeat(np.arange(sizes.size), sizes)
        each = np.maximum(sizes // self.n_arms, 1)[owner]  # columns of a model in one block
        arm, place = np.divmod(np.arange(len(columns)) - offsets[owner], each)
        local = columns[np.minimum(offsets[owner] + place, len(columns) - 1)]
        whole = (columns == local + self.size * arm) & (local < self.size) & (arm < self.n_arms)
        if np.any(sizes % self.n_arms) or not sizes.all() or not whole.all():
            raise ValueError(
                f"a per-arm model must have the same columns in each of {self.n_arms} blocks of {self.size} columns, "
                "one block after the other"
            )
        kept = (arm == 0) & (local >= self.lead)
        if self.intercept and np.bincount(owner[(arm == 0) & (local == 0)], minlength=sizes.size).min() == 0:
            raise ValueError("a per-arm model with an intercept must have the first column of a block, its constant")
        self.columns: IntArray = columns[kept]
        counts = np.bincount(owner[kept], minlength=sizes.size)
        self.offsets: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def repeated(self, times: int) -> ArmColumns:
        """The same groups several times over, one after the other."""
        out = copy(self)
        out.columns, ends = np.tile(self.columns, times), np.tile(np.diff(self.offsets), times).cumsum()
        out.offsets = np.append(0, ends)
        return out

    def arm(self, row: FloatArray) -> int:
        """The arm of a dictionary row (P,); an error if the row is not zero outside of one block."""
        arm = int(self.arms(row[None, :])[0])
        if np.count_nonzero(row) != np.count_nonzero(self.block(arm, row)):
            raise ValueError("a row of per-arm features must be zero outside the block of one arm")
        return arm

    def arms(self, rows: FloatArray) -> IntArray:
        """The arms of dictionary rows (n, P), shape (n,); 0 for rows that are zero, which say nothing of any arm."""
        if rows.ndim != 2 or rows.shape[1] != self.n_arms * self.size:
            raise ValueError(f"rows must have the {self.n_arms * self.size} columns of all arms, got {rows.shape}")
        out = np.empty(len(rows), dtype=np.int64)
        block_of(rows, self.size, out)
        return out

    def block(self, arm: int, rows: FloatArray) -> FloatArray:
        """The columns of one arm, last axis."""
        return rows[..., arm * self.size : (arm + 1) * self.size]

    def pieces(self, where: Where) -> list[Piece]:
        """Choices or dictionary rows (n, P) arm by arm, those of an arm in their order and not too many at once.

        Those of the last choices are kept: several draws of a round look at the same.
        """
        if self._last is None or self._last[0] is not where:
            self._last = where, list(self._taken_apart(dictionary_rows(where)))
        pieces, self._last = self._last[1], None if isinstance(where, np.ndarray) else self._last
        return pieces

    def _taken_apart(self, rows: FloatArray) -> Iterator[Piece]:
        arms = self.arms(rows)
        order = np.argsort(arms, kind="stable")
        starts = np.flatnonzero(np.diff(arms[order], prepend=-1)).tolist()
        for low, high in pairwise([*starts, arms.size]):
            arm = int(arms[order[low]])
            for begin in range(low, high, _MOST_ROWS):
                places = order[begin : min(begin + _MOST_ROWS, high)]
                yield Piece(arm, places, np.ascontiguousarray(self.block(arm, rows)[places]))
