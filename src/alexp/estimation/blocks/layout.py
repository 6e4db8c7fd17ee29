"""Per-arm columns: which arm a dictionary row is of, and the groups of columns within one arm's block.

P = K p columns, arm-major: arm a has columns a p .. (a + 1) p - 1, and a row is zero outside the block of its arm.
Every model uses the same columns of each block. With an intercept the first column of a block is the constant 1 of its
arm, which every model has and none penalises.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.blocks._kernels import block_of

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
        groups = [self._within(columns[a:b]) for a, b in pairwise(offsets)]
        self.columns = np.concatenate(groups)
        self.offsets = np.concatenate([[0], np.cumsum([group.size for group in groups])]).astype(np.int64)

    def _within(self, group: IntArray) -> IntArray:
        """The columns of a group within a block; an error unless it has the same ones of every block, arm by arm."""
        shifts = self.size * np.arange(self.n_arms)[:, None]
        own = group.reshape(self.n_arms, -1) - shifts if group.size % self.n_arms == 0 else np.full((1, 1), -1)
        if own.size == 0 or own.min() < 0 or own.max() >= self.size or np.any(own != own[0]):
            raise ValueError(
                f"a per-arm model must have the same columns in each of {self.n_arms} blocks of {self.size} columns, "
                f"one block after the other, got {group.tolist()[:10]}"
            )
        if self.intercept and not np.any(own[0] == 0):
            raise ValueError("a per-arm model with an intercept must have the first column of a block, its constant")
        return np.asarray(own[0][own[0] > 0] if self.intercept else own[0], dtype=np.int64)

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

    def pieces(self, rows: FloatArray) -> Iterator[Piece]:
        """Dictionary rows (n, P) arm by arm, those of an arm in their order and not too many at once."""
        arms = self.arms(rows)
        order = np.argsort(arms, kind="stable")
        starts = np.flatnonzero(np.diff(arms[order], prepend=-1)).tolist()
        for low, high in pairwise([*starts, arms.size]):
            arm = int(arms[order[low]])
            for begin in range(low, high, _MOST_ROWS):
                places = order[begin : min(begin + _MOST_ROWS, high)]
                yield Piece(arm, places, np.ascontiguousarray(self.block(arm, rows)[places]))
