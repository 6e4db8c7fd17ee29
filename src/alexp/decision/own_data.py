"""Agents that learn from their own rounds only, as masters over black-box algorithms assume."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable
from alexp.common.schema import sequence
from alexp.decision.agents import Agent
from alexp.decision.pool import AgentPool, Agents
from alexp.decision.suggestions import Suggestions
from alexp.problem.candidates import Choices, Round
from alexp.problem.models import ModelClass


class OwnDataPool:
    """M base agents, each with a history of its own; otherwise like `AgentPool`.

    Policies of agents that have learnt nothing since the last round on the same choices are not computed again.
    """

    def __init__(self, agents: Agents, models: ModelClass, noise_std: float, norm_bound: float) -> None:
        whole = AgentPool(agents, models, noise_std, norm_bound)  # checks the agents and matches them to models
        self.draws = whole.draws
        crowds = zip(whole.agents, whole.members, strict=True)
        owners: list[Agent] = [agent for agent, members in crowds for _ in members]
        order = np.argsort(np.concatenate(whole.members))
        self._agents = [owners[int(k)] for k in order]
        self._models, self._noise_std, self._bound = models, noise_std, norm_bound
        self._pools = [self.newborn(j) for j in range(models.n_models)]
        self._played_on: bytes | None = None  # key of the last round, and the policies in it
        self._policies: dict[int, Suggestions] = {}

    def newborn(self, j: int) -> AgentPool:
        """The agent of model j as it was before it had seen anything."""
        return AgentPool(self._agents[j], self._models.only(j), self._noise_std, self._bound)

    @property
    def n_observations(self) -> int:
        """Most rewards that any of the agents has seen."""
        return max(pool.n_observations for pool in self._pools)

    def update(self, row: FloatArray, y: float, model: int) -> None:
        """Report one observation to the agent of `model`; row has shape (P,)."""
        self._pools[model].update(row, y)
        self._policies.pop(model, None)

    def suggest(self, round_: Round, rng: np.random.Generator) -> Suggestions:
        """Policies of all M agents in a round."""
        if self._played_on != round_.key:
            self._played_on, self._policies = round_.key, {}
        everyone = range(len(self._pools))
        parts = [self._policies[j] if j in self._policies else self._policy(j, round_, rng) for j in everyone]
        return Suggestions.merged(parts, [np.array([j]) for j in everyone])

    def _policy(self, j: int, round_: Round, rng: np.random.Generator) -> Suggestions:
        policy = self._pools[j].suggest(round_, rng, believe=False)  # it may never see what is pending
        if self._pools[j].agents[0].determined:
            self._policies[j] = policy
        return policy

    def best(self, j: int, choices: Choices) -> tuple[int, float]:
        """Position of the best candidate under model j, and its posterior mean."""
        return self._pools[j].best(0, choices)

    def mean(self, j: int, features: FloatArray) -> FloatArray:
        """Posterior mean reward of model j at n dictionary rows (n, P)."""
        return self._pools[j].mean(0, features)

    def state(self) -> list[Packable]:
        """Everything the agents need to continue."""
        return [pool.state() for pool in self._pools]

    def restore(self, state: list[Packable]) -> None:
        """Continue from `state`."""
        for pool, saved in zip(self._pools, sequence("pool", state, len(self._pools)), strict=True):
            pool.restore(saved)
        self._policies = {}
