"""What bandits that follow a plain Lasso share: the data, the estimate, and playing greedily on it."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    Algorithm,
    Certain,
    Decision,
    Domain,
    Estimate,
    GroupLasso,
    GroupLassoPath,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    anything,
    first_best,
    predict,
    record,
    same,
)

FIRST_FIT = 6  # rewards before the first Lasso, as in the released codes


class LassoBased(Algorithm):
    """A bandit that regresses on all P columns with a plain Lasso; models only say which columns there are.

    (1/t) ||y - X beta||^2 + 2 lambda ||beta||_1, with an unpenalised constant if the models have one. This lambda is
    scikit-learn's `alpha`, and half of that of texts which write (1/t) ||.||^2 + lambda ||beta||_1.
    """

    needs_columns: ClassVar[str] = "it chooses columns by a Lasso"
    settings: ClassVar[tuple[str, ...]] = ("oracle",)

    def __init__(
        self, models: ModelClass, domain: Domain, *, oracle: GroupLasso | None = None, **shared: Unpack[Shared]
    ) -> None:
        super().__init__(models, domain, **shared)
        self.oracle = GroupLasso(canonical=False) if oracle is None else oracle  # as the released codes have it
        self._data = plain_lasso(self.oracle, models.n_columns, models.intercept)

    @property
    def relies_on(self) -> frozenset[str]:
        """The noise, for lambda."""
        return frozenset({"noise_std"})

    @abstractmethod
    def _solve(self) -> Estimate:
        """The estimate from all rewards so far."""

    @property
    def fit(self) -> Estimate:
        """The estimate that the next decision is made on; zero while there is none."""
        return self._cached("fit", self._solve)

    def _decide(self, round_: Round) -> Decision:
        return Decision(Certain(first_best(round_.narrow(predict(self.fit, round_.wide.table)))))

    def _learn(self, seen: Observation) -> None:
        self._data.append(seen.row, seen.reward)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        values = predict(self.fit, round_.choices.table)
        position = first_best(values)
        return position, float(values[position]), None

    def _state(self) -> State:
        return {"data": self._data.state()}

    def _restore(self, state: State) -> None:
        self._data.restore(record("state", state, {"data": anything})["data"])
        same("n_observations of the regression", self._data.n_observations, self.n_told, "the number of rewards")


def plain_lasso(oracle: GroupLasso, n_columns: int, intercept: bool) -> GroupLassoPath:
    """An empty data set for the Lasso on single columns; raises unless `oracle` solves one."""
    if not isinstance(oracle, GroupLasso):
        raise TypeError(f"oracle must be a GroupLasso, which is a plain Lasso on single columns, got {oracle!r}")
    return oracle.bind_groups(n_columns, np.arange(n_columns), np.arange(n_columns + 1), intercept=intercept)


def nothing_known(n_columns: int) -> Estimate:
    """The estimate that is zero everywhere."""
    return Estimate(np.zeros(n_columns), 0.0, np.empty(0, dtype=np.int64), np.empty(0))


def decay(t: int, log_t: float, log_p: float) -> float:
    """sqrt((log_t + log_p) / t), the rate at which all these lambdas fall."""
    return sqrt((log_t + log_p) / t)
