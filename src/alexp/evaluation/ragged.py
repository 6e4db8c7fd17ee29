"""Rounds of different sizes in one array: the numbers, or rows, of all candidates, one round after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Ragged:
    """One block of entries per round.

    Attributes
    ----------
    values : (N,) or (N, P), where N is the sum of the lengths of all rounds.
    starts : (n + 1,); round t has values[starts[t] : starts[t + 1]].
    """

    values: FloatArray
    starts: IntArray

    @classmethod
    def of(cls, name: str, blocks: object, lengths: IntArray, rows: bool = False) -> Ragged:
        """From an array (n, K) or (n, K, P), or one array per round: (n_t,), or (n_t, P) if these are `rows`.

        `lengths` are the sizes that the rounds have; NaN and infinities are refused.
        """
        n, starts = lengths.size, _starts(lengths)
        values: FloatArray
        if isinstance(blocks, np.ndarray) and blocks.dtype != object and blocks.ndim == 2 + rows:
            if len(blocks) != n or np.any(lengths != blocks.shape[1]):
                raise ValueError(f"{name} has shape {blocks.shape}; needed is one block for each of the {n} rounds")
            values = np.asarray(blocks, dtype=np.float64).reshape(-1, *blocks.shape[2:])
        else:
            values = _stacked(name, blocks, lengths, rows)
        if not np.all(np.isfinite(values)):
            where = int(np.argwhere(~np.isfinite(values))[0][0])
            number = int(np.searchsorted(starts, where, side="right")) - 1
            raise ValueError(f"{name} of round {number} has {values[where]}; all of them must be finite")
        return cls(values, starts)

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getitem__(self, t: int) -> FloatArray:
        """The block of round t."""
        return self.values[self.starts[t] : self.starts[t + 1]]

    @property
    def lengths(self) -> IntArray:
        """Number of candidates of each round, (n,)."""
        return np.diff(self.starts)

    def at(self, index: IntArray) -> FloatArray:
        """The entry of one candidate per round, (n,) or (n, P)."""
        found: FloatArray = self.values[self.starts[:-1] + index]
        return found

    def sums(self) -> FloatArray:
        """Sum over the candidates of each round, (n,)."""
        found: FloatArray = np.add.reduceat(self.values, self.starts[:-1]) if len(self) else np.zeros(0)
        return found

    def like(self, values: FloatArray) -> Ragged:
        """Other values for the same candidates."""
        return Ragged(values, self.starts)

    def take(self, mask: BoolArray) -> Ragged:
        """Some of the rounds."""
        if mask.all():
            return self
        return Ragged(self.values[np.repeat(mask, self.lengths)], _starts(self.lengths[mask]))


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _stacked(name: str, blocks: object, lengths: IntArray, rows: bool) -> FloatArray:
    if not isinstance(blocks, Sequence | np.ndarray) or isinstance(blocks, str):
        raise TypeError(f"{name} must be a list with one array per round, got {type(blocks).__name__}")
    if len(blocks) != lengths.size:
        raise ValueError(f"{name} must have one entry for each of the {lengths.size} rounds, got {len(blocks)}")
    found: list[FloatArray] = []
    for t, block in enumerate(blocks):
        try:
            array = np.asarray(block, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} of round {t} must be numbers: {error}") from error
        if array.ndim != 1 + rows or len(array) != lengths[t]:
            wanted = f"({lengths[t]}, P)" if rows else f"({lengths[t]},)"
            raise ValueError(f"{name} of round {t} must have shape {wanted}, got {array.shape}")
        if found and array.shape[1:] != found[0].shape[1:]:
            raise ValueError(f"{name} of round {t} have {array.shape[1]} columns, those of round 0 {found[0].shape[1]}")
        found.append(array)
    return np.concatenate(found) if found else np.zeros((0, 0) if rows else 0)
