"""ETS: explore, then select (the paper's variant of ETC): the Lasso chooses the features, UCB plays on them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from alexp.algorithms.base import Proposal
from alexp.algorithms.baselines.etc import ETC
from alexp.algorithms.streams import AGENTS
from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.agents import UCB, Agent
from alexp.decision.pool import AgentPool
from alexp.estimation.estimate import Estimate
from alexp.problem.candidates import Choices
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class ETS(ETC):
    """Explore and solve one group Lasso like ETC, then run one agent on the selected columns, with all data.

    The columns are those of all groups with theta_j != 0; columns that are equal on every candidate count once.
    If lambda_1 is so large that nothing is selected, the group that would enter first is taken, the one with the
    largest ||Phi_j'y|| / scale_j; if all of these are zero, all columns.
    """

    name: ClassVar[str] = "ets"
    settings: ClassVar[tuple[str, ...]] = (*ETC.settings, "agent")

    def __init__(self, models: ModelClass, domain: Domain, *, agent: Agent | None = None, **settings: Any) -> None:
        super().__init__(models, domain, **settings)
        self.agent = UCB() if agent is None else agent
        self.selected: IntArray | None = None  # columns the agent plays on, set when exploration ends
        self._pool: AgentPool | None = None

    def _commit(self, fit: Estimate) -> None:
        super()._commit(fit)
        told = ~np.isnan(self._log.reward)
        indices, rewards = np.array(self._log.index)[told], self._sign * np.array(self._log.reward)[told]
        self.selected = self._columns(fit, indices, rewards)
        self._pool = self._agent_on(self.selected)
        for index, reward in zip(indices, rewards, strict=True):
            self._pool.update(self._row(int(index)), float(reward))

    def _exploit(self, choices: Choices, rng: np.random.Generator) -> Proposal:
        assert self._pool is not None
        policy = self._pool.suggest(choices, self._streams.generator(AGENTS, self.n_told))
        position = policy.draw(0, rng)
        return Proposal(position, None, False, float(policy.mass(position)[0]))

    def _learn(self, index: int, reward: float) -> None:
        super()._learn(index, reward)
        if self._pool is not None:
            self._pool.update(self._row(index), reward)

    def _recommend(self) -> tuple[int, float, int | None]:
        if self._pool is None:
            return super()._recommend()
        mean = self._pool.mean(0, self._candidates.table.T)
        position = int(np.argmax(mean))
        return position, float(mean[position]), super()._recommend()[2]

    def _columns(self, fit: Estimate, indices: IntArray, rewards: FloatArray) -> IntArray:
        groups = self.models.groups
        if fit.groups.size:
            chosen = np.unique(np.concatenate([groups[int(j)] for j in fit.groups]))
        else:
            chosen = self._first_to_enter(indices, rewards)
        _, first = np.unique(self._candidates.table[chosen], axis=0, return_index=True)
        return np.asarray(chosen[np.sort(first)])

    def _first_to_enter(self, indices: IntArray, rewards: FloatArray) -> IntArray:
        """Columns of the group that is the first to become active as lambda falls."""
        features = self._candidates.table[:, self._candidates.position[indices]]
        if self.models.intercept:
            rewards = rewards - rewards.mean()
        correlations = features @ rewards
        if not correlations.any():
            return np.arange(self.models.n_columns)
        squares = np.add.reduceat(correlations[self.models.columns_flat] ** 2, self.models.offsets[:-1])
        return self.models.groups[int(np.argmax(np.sqrt(squares) / self.models.scales))]

    def _agent_on(self, columns: IntArray) -> AgentPool:
        single = ModelClass(self.models.dictionary, [columns], intercept=self.models.intercept)
        return AgentPool(self.agent, single, self.noise_std, self.reward_bound)

    def _state(self) -> dict[str, Any]:
        pool = None if self._pool is None else self._pool.state()
        return super()._state() | {"selected": self.selected, "pool": pool}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.selected = state["selected"]
        if self.selected is not None:
            self._pool = self._agent_on(self.selected)
            self._pool.restore(state["pool"])
