"""What all subsets of columns share: sums over the rewards."""

from __future__ import annotations

from types import ModuleType
from typing import TypedDict

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.schema import SQUARE, floats, number, record, whole


class SumsState(TypedDict):
    """What rewards have changed."""

    gram: FloatArray
    cross: FloatArray
    mean: FloatArray
    total: float
    level: float
    squares: float
    n_observations: int


class SharedSums:
    """gram = Phi'Phi (P, P), cross = Phi'y (P,) and total = y'y of all rewards; about their means, with an intercept.

    Arrays belong to ``xp``, NumPy or CuPy. Every operation is one sum or product per element, rounded by itself, so
    that both have the same bits.
    """

    def __init__(self, xp: ModuleType, n_columns: int, intercept: bool) -> None:
        self.xp, self.n_columns, self.intercept = xp, n_columns, intercept
        self.gram, self.cross = xp.zeros((n_columns, n_columns)), xp.zeros(n_columns)
        self.mean = xp.zeros(n_columns)  # of the rows; zero without an intercept
        self.level, self.squares = 0.0, 0.0  # mean of the rewards, and their squares about it
        self.total, self.n_observations = 0.0, 0

    @property
    def diagonal(self) -> FloatArray:
        """Squared norms of the columns, (P,)."""
        return self.xp.ascontiguousarray(self.xp.diagonal(self.gram))  # type: ignore[no-any-return]

    def update(self, row: FloatArray, y: float) -> None:
        """Absorb the reward y at a dictionary row (P,)."""
        row = self.xp.asarray(row)
        self.n_observations += 1
        n = self.n_observations
        excess = y - self.level
        self.level += excess / n
        self.squares += excess * (y - self.level)
        deviation, root = row, 1.0
        if self.intercept:
            deviation, root = row - self.mean, ((n - 1) / n) ** 0.5
            self.mean = self.mean + deviation / n
        deviation, reward = root * deviation, root * (excess if self.intercept else y)
        self.gram = self.gram + deviation[:, None] * deviation[None, :]
        self.cross = self.cross + deviation * reward
        self.total += reward**2

    def with_fantasies(self, rows: FloatArray) -> SharedSums:
        """The sums once pending rows (k, P) are in, for what does not depend on rewards: gram and mean."""
        out = SharedSums(self.xp, self.n_columns, self.intercept)
        out.gram, out.mean, out.n_observations = self.gram, self.mean, self.n_observations
        for row in rows:
            out.update(row, 0.0)
        return out

    def about(self, rows: FloatArray, candidates: bool) -> FloatArray:
        """Rows (n, P) less the mean of those so far; candidates before any reward, with an intercept, less theirs."""
        if not (candidates and self.intercept) or self.n_observations or len(rows) < 2:
            return rows - self.mean  # type: ignore[no-any-return]
        host = self.xp.asnumpy(rows) if hasattr(self.xp, "asnumpy") else rows
        level = self.xp.asarray(host.mean(axis=0))  # a sum of NumPy, wherever the rows are
        return rows - level  # type: ignore[no-any-return]

    @property
    def base(self) -> float:
        """Variance of the constant, in units of the noise's: 1/t; left out before any reward, and without intercept."""
        return 1.0 / self.n_observations if self.intercept and self.n_observations else 0.0

    def state(self) -> SumsState:
        """Everything that rewards have changed, in NumPy's arrays."""
        host = self.xp.asnumpy if hasattr(self.xp, "asnumpy") else np.array
        return {
            "gram": host(self.gram), "cross": host(self.cross), "mean": host(self.mean),
            "total": self.total, "level": self.level, "squares": self.squares, "n_observations": self.n_observations,
        }  # fmt: skip

    def restore(self, state: SumsState) -> None:
        """Continue from `state`, wherever it was made."""
        p = self.n_columns
        checks = {
            "gram": floats(p, p), "cross": floats(p), "mean": floats(p), "total": number(0.0, SQUARE),
            "level": number(), "squares": number(0.0, SQUARE), "n_observations": whole(),
        }  # fmt: skip
        known = record("state", dict(state), checks)
        if np.any(np.diagonal(known["gram"]) < 0.0) or not np.array_equal(known["gram"], known["gram"].T):
            raise ValueError("state['gram'] must be symmetric with a diagonal of squares: it is damaged")
        self.gram, self.cross, self.mean = (self.xp.asarray(known[name]) for name in ("gram", "cross", "mean"))
        self.total, self.level, self.squares = known["total"], known["level"], known["squares"]
        self.n_observations = known["n_observations"]
