"""How much better each of nested linear models predicts than another, from few rewards of evenly drawn actions.

With S the second moment of the features of all actions, S_i its leading block for the first d_i columns and b = E[f y],
the least square error of model i is E[y^2] - b_i' S_i^-1 b_i. The drop from model m to model i is the mean of z_s' z_t
over pairs of samples, z = S_i^(1/2) (S_i^-1 - S_m^-1) f y (Foster, Krishnamurthy and Luo 2019): it is known at the rate
sqrt(d) / n, long before either fit is. All of them come from one triangular factor S = L L', because leading blocks
of L are the factors of leading blocks of S: with u = L^-1 sum f y and g = diag(L^-1 (sum y^2 f f') L^-T),

    drop(m, i) = sum_{d_m < k <= d_i} (u_k^2 - g_k) / (n (n - 1)).
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.schema import SQUARE, floats, number, record, whole

_RIDGE = 1e-10  # share of its mean diagonal that keeps S invertible where columns depend on each other


class NestedDrops:
    """Second moments of all features offered, and samples of evenly drawn actions; d columns, smallest model first."""

    def __init__(self, n_columns: int) -> None:
        self._moment = np.zeros((n_columns, n_columns))
        self._cross = np.zeros(n_columns)  # sum of f y
        self._own = np.zeros((n_columns, n_columns))  # sum of y^2 f f'
        self.n_rounds, self.n_rows, self.n_samples = 0, 0, 0
        self._squares = 0.0

    @property
    def mean_square(self) -> float:
        """Mean of y^2."""
        return self._squares / max(self.n_samples, 1)

    def add_round(self, table: FloatArray) -> None:
        """Take in the features of a round's n actions, feature-major (d, n)."""
        self._moment += table @ table.T / table.shape[1]
        self.n_rounds += 1
        self.n_rows += table.shape[1]

    def add_sample(self, row: FloatArray, y: float) -> None:
        """Take in the reward of an evenly drawn action with features (d,)."""
        self._cross += y * row
        self._own += np.outer(y * row, y * row)
        self._squares += y * y
        self.n_samples += 1

    def by_column(self) -> FloatArray:
        """(d,): sums of it over the columns that one model has and another has not are drops in square error.

        Needs a round and two samples.
        """
        moment = self._moment / self.n_rounds
        ridge = _RIDGE * max(float(np.trace(moment)) / len(moment), np.finfo(np.float64).tiny)
        factor = np.linalg.cholesky(moment + ridge * np.eye(len(moment)))
        half = np.linalg.solve(factor, np.column_stack([self._cross, self._own]))
        own = np.linalg.solve(factor, half[:, 1:].T)
        n = self.n_samples
        return np.asarray((half[:, 0] ** 2 - np.diagonal(own)) / (n * (n - 1)))

    def state(self) -> State:
        """Everything needed to continue bit for bit."""
        arrays = {"moment": self._moment, "cross": self._cross, "own": self._own, "squares": self._squares}
        return arrays | {"rounds": self.n_rounds, "rows": self.n_rows, "samples": self.n_samples}

    def restore(self, state: State) -> None:
        """Continue from `state` of as many columns."""
        d = self._cross.size
        square, vector = floats(d, d, low=-SQUARE, high=SQUARE), floats(d, low=-SQUARE, high=SQUARE)
        checks = {
            "moment": square, "cross": vector, "own": square, "squares": number(0.0, SQUARE),
            "rounds": whole(), "rows": whole(), "samples": whole(),
        }  # fmt: skip
        known = record("drops", state, checks)
        self._moment, self._cross, self._own = known["moment"], known["cross"], known["own"]
        self.n_rounds, self.n_rows, self.n_samples = known["rounds"], known["rows"], known["samples"]
        self._squares = known["squares"]
