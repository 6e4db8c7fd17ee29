"""UniformRandom: plays candidates uniformly and recommends the one with the best average reward."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    Algorithm,
    Decision,
    Domain,
    Even,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    first_best,
    floats,
    record,
    same,
)


class UniformRandom(Algorithm):
    """The baseline that learns nothing while it plays. Needs none of noise_std, reward_bound and norm_bound.

    Where candidates are new in every round, the mean of all rewards is the estimate of every candidate.
    """

    name: ClassVar[str] = "uniform"
    needs_columns: ClassVar[str] = ""

    def __init__(self, models: ModelClass, domain: Domain, **shared: Unpack[Shared]) -> None:
        super().__init__(models, domain, **shared)
        n = domain.n_candidates or 1  # where candidates have no numbers, all are one
        self._sums, self._counts = np.zeros(n), np.zeros(n)

    @property
    def relies_on(self) -> frozenset[str]:
        return frozenset()

    def _decide(self, round_: Round) -> Decision:
        return Decision(Even(len(round_)))

    def _learn(self, seen: Observation) -> None:
        assert seen.index is not None
        index = seen.index if self.domain.n_candidates else 0
        self._sums[index] += seen.reward
        self._counts[index] += 1.0

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        if not self.domain.n_candidates:
            return 0, float(self._sums[0] / self._counts[0]), None
        means = np.where(self._counts > 0, self._sums / np.maximum(self._counts, 1.0), -np.inf)
        if not round_.is_full:
            position = first_best(means[round_.indices])
            return position, float(means[round_.indices[position]]), None
        index = first_best(means)
        return int(np.flatnonzero(round_.indices == index)[0]), float(means[index]), None

    def _take_arms(self, n: int) -> None:
        super()._take_arms(n)
        more = np.zeros(n - self._sums.size)
        self._sums, self._counts = np.append(self._sums, more), np.append(self._counts, more)

    def _state(self) -> State:
        return {"sums": self._sums, "counts": self._counts}

    def _restore(self, state: State) -> None:
        n = self._sums.size
        known = record("state", state, {"sums": floats(n), "counts": floats(n, low=0.0)})
        self._sums, self._counts = known["sums"], known["counts"]
        same("sum of state['counts']", self._counts.sum(), self.n_told, "the number of rewards")
