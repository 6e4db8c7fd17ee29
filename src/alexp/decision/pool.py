"""The pool of M base agents: groups equal agents into crowds that are updated and swept together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.agents import Agent, Crowd
from alexp.decision.suggestions import Suggestions
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import Choices
from alexp.problem.models import ModelClass

Agents = Agent | Sequence[Agent] | Mapping[str, Agent]


class AgentPool:
    """One agent per model, all fed with the same history.

    Parameters
    ----------
    agents
        One agent for every model, a list of M agents, or a dict from model name to agent.
    """

    def __init__(self, agents: Agents, models: ModelClass, noise_std: float, reward_bound: float) -> None:
        self.noise_std, self.reward_bound = noise_std, reward_bound
        crowds = _crowds(agents, models)
        self.agents = [agent for agent, _ in crowds]
        self.members = [members for _, members in crowds]
        self.banks = [_bank(models, members, agent.ridge) for agent, members in crowds]

    def update(self, row: FloatArray, y: float) -> None:
        """Report one observation to every agent; row has shape (P,)."""
        for bank in self.banks:
            bank.update(row, y)

    def suggest(self, choices: Choices, rng: np.random.Generator) -> Suggestions:
        """Policies of all M agents on the given candidates."""
        parts = [
            agent.suggest(Crowd(bank, members, choices, self.noise_std, self.reward_bound, rng))
            for agent, bank, members in zip(self.agents, self.banks, self.members, strict=True)
        ]
        return Suggestions.merged(parts, self.members)

    def mean(self, j: int, features: FloatArray) -> FloatArray:
        """Posterior mean reward of model j at n dictionary rows (n, P)."""
        bank, local = self.locate(j)
        return bank.mean(local, features)

    def locate(self, j: int) -> tuple[RidgeBank, int]:
        """The bank that holds model j, and its number there."""
        for bank, members in zip(self.banks, self.members, strict=True):
            local = int(np.searchsorted(members, j))
            if local < members.size and members[local] == j:
                return bank, local
        raise IndexError(f"there is no model {j}")

    def state(self) -> list[dict[str, Any]]:
        """Everything the banks need to continue."""
        return [bank.state() for bank in self.banks]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Continue from `state`."""
        for bank, saved in zip(self.banks, state, strict=True):
            bank.restore(saved)


def _crowds(agents: Agents, models: ModelClass) -> list[tuple[Agent, IntArray]]:
    m = models.n_models
    if isinstance(agents, Agent):
        return [(_checked(agents, "agents"), np.arange(m))]
    if isinstance(agents, Mapping):
        missing = set(models.names) ^ set(agents)
        if missing:
            raise ValueError(f"agents must name every model exactly once; missing or unknown: {sorted(missing)[:5]}")
        agents = [agents[name] for name in models.names]
    if not isinstance(agents, Sequence) or len(agents) != m:
        raise ValueError(f"agents must be one agent, a dict by model name, or a list of {m} agents, one per model")
    members: dict[Agent, list[int]] = {}
    for j, agent in enumerate(agents):
        members.setdefault(_checked(agent, f"agents[{j}]"), []).append(j)
    return [(agent, np.array(owned, dtype=np.int64)) for agent, owned in members.items()]


def _checked(agent: Agent, name: str) -> Agent:
    if not isinstance(agent, Agent):
        raise TypeError(f"{name} must be an Agent such as UCB() or a subclass of alexp.decision.Agent, got {agent!r}")
    return agent


def _bank(models: ModelClass, members: IntArray, ridge: float) -> RidgeBank:
    """Ridge posteriors of some models. Dividing features by scale_j is a ridge of ridge x scale_j on the columns."""
    columns, offsets = models.columns_flat, models.offsets
    if members.size != models.n_models:
        columns = np.concatenate([models.groups[int(j)] for j in members])
        offsets = np.concatenate([[0], np.cumsum(np.diff(models.offsets)[members])]).astype(np.int64)
    return RidgeBank(columns, offsets, ridge * models.scales[members], models.intercept)
