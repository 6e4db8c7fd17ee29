"""An algorithm."""

from typing import Unpack

import numpy as np

from alexp.extend import (
    Algorithm,
    Among,
    Decision,
    Domain,
    FloatArray,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    count,
    floats,
    positive,
    record,
)


class RidgeThompson(Algorithm):
    """Thompson sampling on one ridge regression over all columns."""

    name = "ridge-thompson"
    settings = ("ridge", "draws")

    def __init__(
        self, models: ModelClass, domain: Domain, *, ridge: float = 0.1, draws: int = 4, **shared: Unpack[Shared]
    ) -> None:
        super().__init__(models, domain, **shared)
        self.ridge, self.draws = positive("ridge", ridge), count("draws", draws)
        self._gram = self.ridge**2 * np.eye(models.n_columns)
        self._moment = np.zeros(models.n_columns)

    @property
    def relies_on(self) -> frozenset[str]:
        """The noise, which draws are scaled by."""
        return frozenset({"noise_std"})

    def _coefficients(self) -> FloatArray:
        return np.asarray(np.linalg.solve(self._gram, self._moment))

    def _decide(self, round_: Round) -> Decision:
        root = np.linalg.cholesky(self._gram)
        normal = self._agent_rng().standard_normal((self.draws, self._moment.size))
        drawn = self._coefficients() + self.noise_std * np.linalg.solve(root.T, normal.T).T
        return Decision(Among(np.argmax(drawn @ round_.choices.table, axis=1)))

    def _learn(self, seen: Observation) -> None:
        self._gram += np.outer(seen.row, seen.row)
        self._moment += seen.reward * seen.row

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        means = self._coefficients() @ round_.choices.table
        return int(np.argmax(means)), float(means.max()), None

    def _state(self) -> State:
        return {"gram": self._gram, "moment": self._moment}

    def _restore(self, state: State) -> None:
        n = self._moment.size
        known = record("state", state, {"gram": floats(n, n), "moment": floats(n)})
        self._gram, self._moment = known["gram"], known["moment"]
