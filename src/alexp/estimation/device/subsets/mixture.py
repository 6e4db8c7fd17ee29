"""The evidence mixture of all subsets of one size, none of which is kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, log

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.estimation.device.subsets.engine import Engine
from alexp.estimation.device.subsets.law import Law
from alexp.estimation.device.subsets.moments import Gathered, gather, predict
from alexp.estimation.device.subsets.sums import SharedSums
from alexp.problem.candidates import NOTHING, Choices, Pending


@dataclass(frozen=True)
class Posterior:
    """The posterior over all subsets after some rewards.

    Attributes
    ----------
    best : (P, P), the engine's: the largest level of the subsets whose two smallest columns are a < b.
    reference : the largest of them.
    gathered : sums over all subsets, with nothing pending.
    """

    best: FloatArray
    reference: float
    gathered: Gathered

    @property
    def log_total(self) -> float:
        """Logarithm of all weights' sum; a subset's probability is exp(level - log_total)."""
        return self.reference + log(self.gathered.total)


class SubsetMixture:
    """Bayesian average over all C(P, s) subsets of s columns and the cells of a grid.

    What `mixture.Mixture` is for models that are listed, with a `Posterior` in place of an array of weights. One reward
    takes O(P^2), a decision O(cells s^2 C(P, s)) operations and O(P^2) memory.

    Parameters
    ----------
    engine : who computes.
    law : how components are weighed.
    n_columns : P.
    intercept : whether every subset has an unpenalised constant.
    """

    def __init__(self, engine: Engine, law: Law, n_columns: int, intercept: bool) -> None:
        self.engine, self.law, self.n_columns, self.intercept = engine, law, n_columns, intercept
        self.n_models = comb(n_columns, engine.size)
        self.sums = SharedSums(engine.xp, n_columns, intercept)
        self._rows: tuple[FloatArray, FloatArray] | None = None  # the last table, and its rows on the device

    @property
    def n_observations(self) -> int:
        """Number of rewards taken in so far, t."""
        return self.sums.n_observations

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one observation; ``row`` (P,) is the dictionary at the action taken."""
        self.sums.update(row, y)

    def weights(self) -> Posterior:
        """The posterior over subsets and cells."""
        law = self.law.terms(self.sums)
        best = self.engine.best_of_pairs(self.sums, law)
        reference = float(best.max())
        return Posterior(best, reference, gather(self.engine, self.sums, law, reference, self.sums))

    def noise_variance(self, weights: Posterior) -> float:
        """Posterior mean of the noise variance."""
        return weights.gathered.noise

    def estimated_noise(self, weights: Posterior, rows: FloatArray, rewards: FloatArray) -> float:
        """The same: no smaller ratios are looked into."""
        return weights.gathered.noise

    def moments(
        self, weights: Posterior, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and total variance (within plus between components) at the choices, shapes (n,)."""
        gathered, later = weights.gathered, self.sums
        if pending:
            later = self.sums.with_fantasies(pending.rows)
            law = self.law.terms(self.sums)
            gathered = gather(self.engine, self.sums, law, weights.reference, later)
        is_listed = choices.indices is not None
        return predict(self.engine, gathered, self.sums, later, self._rows_of(choices.table), is_listed)

    def _rows_of(self, table: FloatArray) -> FloatArray:
        """Rows (n, P) of a table (P, n) on the device; those of a table that cannot change are kept."""
        if self._rows is None or self._rows[0] is not table or table.flags.writeable:
            self._rows = table, self.engine.xp.asarray(np.ascontiguousarray(table.T))
        return self._rows[1]

    def likeliest(self, weights: Posterior, n: int) -> tuple[IntArray, FloatArray]:
        """Numbers of the n most probable subsets, in lexicographic order of all subsets, and their probabilities.

        The n best have their two smallest columns among the n pairs with the largest `best`.
        """
        best = self.engine.host(weights.best)
        pairs = np.argsort(-best, axis=None, kind="stable")[: min(n, comb(self.n_columns, 2))]
        numbers = np.unique(np.concatenate([self._with_smallest(*divmod(int(k), self.n_columns)) for k in pairs]))
        levels = self.engine.host(self.engine.levels_of_ranks(self.sums, self.law.terms(self.sums), numbers))
        first = np.argsort(-levels, kind="stable")[:n]
        return numbers[first], np.exp(levels[first] - weights.log_total)

    def _with_smallest(self, a: int, b: int) -> IntArray:
        """Numbers of the subsets whose two smallest columns are a < b; there may be none."""
        if b <= a:
            return np.empty(0, dtype=np.int64)
        others = combinations(range(b + 1, self.n_columns), self.engine.size - 2)
        return np.array([rank_of((a, b, *rest), self.n_columns) for rest in others], dtype=np.int64)

    def leader(self, weights: Posterior) -> int:
        """Number of the most probable subset."""
        return int(self.likeliest(weights, 1)[0][0])

    def probabilities(self, weights: Posterior) -> FloatArray:
        """Posterior probability of every subset, shape (M,)."""
        numbers = np.arange(self.n_models)
        levels = self.engine.host(self.engine.levels_of_ranks(self.sums, self.law.terms(self.sums), numbers))
        return np.asarray(np.exp(levels - weights.log_total))

    def column_probabilities(self, weights: Posterior) -> FloatArray:
        """Probability that each column is in the model, shape (P,)."""
        return self.engine.host(weights.gathered.inclusion)

    def state(self) -> Packable:
        """Everything that observations have changed."""
        return self.sums.state()

    def restore(self, state: Packable) -> None:
        """Continue from `state`, wherever it was made."""
        self.sums.restore(state)


def rank_of(subset: tuple[int, ...], n_columns: int) -> int:
    """Number of an increasing subset of range(P) in lexicographic order.

    >>> rank_of((0, 1, 3), 11)
    1
    """
    s = len(subset)
    return comb(n_columns, s) - 1 - sum(comb(n_columns - 1 - column, s - i) for i, column in enumerate(subset))
