"""Ridge fits of all subsets of one size for agents: every subset's best candidate in one sweep, no fit kept."""

from __future__ import annotations

from copy import copy
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.estimation.device.subsets.engine import Engine
from alexp.estimation.device.subsets.sums import SharedSums
from alexp.estimation.posteriors import dictionary_rows
from alexp.problem.candidates import Choices
from alexp.problem.groups import AllSubsets

if TYPE_CHECKING:
    from alexp.estimation.posteriors import Where


class SubsetPosteriors:
    """What agents need of `Posteriors`, for subsets that are enumerated; winners are arrays of the engine.

    Parameters
    ----------
    engine : who computes.
    n_columns : P.
    ridge : the square root of the penalty, the same for all subsets.
    intercept : whether every subset has an unpenalised constant.
    """

    def __init__(self, engine: Engine, n_columns: int, ridge: float, intercept: bool) -> None:
        self.engine, self.ridge, self.intercept = engine, ridge, intercept
        self.n_models = comb(n_columns, engine.size)
        self.sums = SharedSums(engine.xp, n_columns, intercept)
        self._later: SharedSums | None = None  # once pending rows are in
        self._groups = AllSubsets(n_columns, engine.size)
        self._points: tuple[FloatArray, FloatArray] | None = None  # the last table, and its rows on the device

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""
        return self.sums.n_observations

    @property
    def counts(self) -> IntArray:
        """The number of rewards, shape (1,): all of them tell of the constant."""
        return np.array([self.n_observations])

    def update(self, row: FloatArray, y: float) -> None:
        """Absorb one reward of an action with dictionary row (P,)."""
        self.sums.update(row, y)

    def with_fantasies(self, rows: FloatArray) -> SubsetPosteriors:
        """Other posteriors that have absorbed pending rows (k, P) at their own means."""
        out = copy(self)
        out._later = (self._later or self.sums).with_fantasies(rows)
        return out

    def argmax_ucb(self, choices: Choices, width: float) -> IntArray:
        """Position of every subset's best choice, argmax mu_j + width s_j, the first of equal ones, shape (M,)."""
        later = self._later or self.sums
        points = later.about(self._points_of(choices.table), choices.indices is not None)
        return self.engine.sweep(self.sums, later, self.ridge**2, width, points, 0, self.n_models)

    def argmax_mean(self, choices: Choices) -> IntArray:
        """Position of every subset's best choice by its mean, the first of equal ones, shape (M,)."""
        return self.engine.sweep(
            self.sums, self.sums, self.ridge**2, 0.0, self._points_of(choices.table), 0, self.n_models
        )

    def _points_of(self, table: FloatArray) -> FloatArray:
        """Rows (n, P) of a table (P, n) on the device; those of a table that cannot change are kept."""
        if self._points is None or self._points[0] is not table or table.flags.writeable:
            self._points = table, self.engine.xp.asarray(np.ascontiguousarray(table.T))
        return self._points[1]

    def mean(self, j: int, features: Where) -> FloatArray:
        """mu_j at choices, or at n dictionary rows (n, P), shape (n,)."""
        own = self._groups[j]
        xp, sums = self.engine.xp, self.sums
        at, rows = xp.asarray(own), dictionary_rows(features)[:, own]
        inverse = np.linalg.inv(self.engine.host(sums.gram[at[:, None], at]) + self.ridge**2 * np.eye(own.size))
        theta = inverse @ self.engine.host(sums.cross[at])
        level = sums.level if self.intercept else 0.0
        return np.asarray(level + (rows - self.engine.host(sums.mean[at])) @ theta)

    def state(self) -> Packable:
        """Everything that rewards have changed."""
        return self.sums.state()

    def restore(self, state: Packable) -> None:
        """Continue from `state`, wherever it was made."""
        self.sums.restore(state)
