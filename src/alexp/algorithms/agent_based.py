"""Algorithms with one base agent per model: what they recommend and store is the same."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from alexp.algorithms.certified import Certified
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.schema import anything, record, same
from alexp.common.ties import first_best
from alexp.decision.pool import AgentPool, OwnDataPool
from alexp.decision.suggestions import Suggestions
from alexp.problem.candidates import Round

_UNUSED_RNG = np.random.default_rng(0)  # for agents that draw nothing: making a generator takes longer than they do


class AgentBased(Certified):
    """An algorithm with a pool of agents and probabilities over them.

    It recommends the best action of the leading model.
    """

    _pool: AgentPool | OwnDataPool

    @property
    @abstractmethod
    def probabilities(self) -> FloatArray:
        """Probabilities over the M models for the next round, shape (M,)."""

    @property
    def relies_on(self) -> frozenset[str]:
        """All that is stated or assumed; not on the bound of rewards where their range is a setting of its own."""
        ranged = getattr(self, "loss_range", None) is not None
        return super().relies_on - ({"reward_bound"} if ranged else set())

    def _suggestions(self, round_: Round) -> Suggestions:
        """Policies of all agents in a round; their random numbers, if they want any, depend on seed and t alone."""
        rng = self._agent_rng() if self._pool.draws else _UNUSED_RNG
        return self._pool.suggest(round_, rng)

    def _leader(self) -> int:
        """The model to recommend."""
        return first_best(self.probabilities)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        leader = self._leader()
        return *self._pool.best(leader, round_.choices), leader

    def _train(self, row: FloatArray, reward: float, model: int | None) -> None:
        """Let the agents learn: all of them, or, with data of their own, the one of `model` (all if None)."""
        if isinstance(self._pool, AgentPool):
            self._pool.update(row, reward)
            return
        for j in range(self.models.n_models) if model is None else (model,):
            self._pool.update(row, reward, j)

    def _state(self) -> State:
        return {"pool": self._pool.state()}

    def _restore(self, state: State) -> None:
        self._pool.restore(record("state", state, {"pool": anything})["pool"])
        if isinstance(self._pool, AgentPool):
            same("n_observations of the agents", self._pool.n_observations, self.n_told, "the number of rewards")
        elif self._pool.n_observations > self.n_told:
            raise ValueError(f"n_observations of an agent must be at most {self.n_told}, the number of rewards")
