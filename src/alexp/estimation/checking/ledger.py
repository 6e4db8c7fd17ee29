"""What is computed from the rewards when somebody asks, and caught up with later."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.estimation.factory import posteriors
from alexp.problem.models import ModelClass


class Rewards:
    """Rewards in the order of tells: candidates (t,), rewards (t,) and features (t, P).

    Negative numbers stand for candidates that were there once, each for another one.
    """

    def __init__(self, indices: IntArray, rewards: FloatArray, rows: FloatArray) -> None:
        self.indices, self.rewards, self.rows = indices, rewards, rows

    def __len__(self) -> int:
        return int(self.indices.size)

    def only(self, kept: BoolArray) -> Rewards:
        """Some of them."""
        return Rewards(self.indices[kept], self.rewards[kept], self.rows[kept])


class Following(ABC):
    """Follows the rewards, one after the other; begins again when the past has been corrected."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, float]] = []  # candidate and reward
        self.restart()

    @abstractmethod
    def restart(self) -> None:
        """Forget all rewards."""

    @abstractmethod
    def _see(self, t: int, index: int, y: float, row: FloatArray) -> None:
        """Take in reward number t, counted from 1."""

    def catch_up(self, told: Rewards) -> None:
        """Take in what was told since the last time."""
        known = len(self._seen)
        given = list(zip(told.indices.tolist(), told.rewards.tolist(), strict=True))
        if given[:known] != self._seen:
            self.restart()
            self._seen, known = [], 0
        for t in range(known, len(given)):
            self._seen.append(given[t])
            self._see(t + 1, *given[t], told.rows[t])


class Ledger(Following):
    """Ridge fits of all models with ridge_j = noise_std / S_j, the natural one for coefficients of norm S_j (M,)."""

    def __init__(self, models: ModelClass, noise_std: float, norms: FloatArray) -> None:
        self._models, self.ridge = models, np.asarray(noise_std / norms)
        super().__init__()

    def restart(self) -> None:
        """Forget all rewards."""
        self.fits = posteriors(self._models, self.ridge)

    def _see(self, t: int, index: int, y: float, row: FloatArray) -> None:
        self.fits.update(row, y)
