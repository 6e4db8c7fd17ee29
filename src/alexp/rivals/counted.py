"""Masters that judge agents by their number of rounds and mean reward."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Unpack

import numpy as np

from alexp.extend import (
    AGENTS,
    UCB,
    AgentBased,
    AgentPool,
    Agents,
    Alone,
    Decision,
    Domain,
    FloatArray,
    IntArray,
    ModelClass,
    Observation,
    OwnDataPool,
    Round,
    Shared,
    State,
    first_best,
    floats,
    fraction,
    non_negative,
    one_of,
    record,
)
from alexp.rivals.losses import LossScale


class CountedAgents(AgentBased):
    """One agent plays at a time; n_i counts its rounds, u_i is their mean reward in [0, 1], and

        conf_i = width sqrt(log(M log(n_i) / delta) / n_i).

    `data_mode="own"` trains the agent that played, as the theory assumes; "shared" trains all. Rewards are scaled by
    `loss_range` or +-(reward_bound + 3 noise_std). External measurements train the agents only.
    """

    needs_columns: ClassVar[str] = "each of its agents keeps a regression on columns"
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None,
        delta: float,
        width: float,
        data_mode: Literal["own", "shared"],
        loss_range: Sequence[float] | None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        one_of("data_mode", data_mode, ("own", "shared"))
        self.agents, self.data_mode, self.loss_range = UCB() if agents is None else agents, data_mode, loss_range
        self.delta, self.width = fraction("delta", delta), non_negative("width", width)
        self._loss = LossScale.of(loss_range, self.reward_bound, self.noise_std, self._sign)
        pool = OwnDataPool if data_mode == "own" else AgentPool
        self._pool: OwnDataPool | AgentPool = pool(self.agents, models, self.noise_std, self.norm_bound)
        self._order = self._streams.generator(AGENTS).permutation(models.n_models)  # breaks ties
        self._counts, self._sums = np.zeros(models.n_models), np.zeros(models.n_models)

    def _decide(self, round_: Round) -> Decision:
        policies = self._suggestions(round_)
        model = self._next()
        return Decision(Alone(policies, model, model))

    @abstractmethod
    def _next(self) -> int:
        """The agent whose turn is next."""

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, seen.model)
        if seen.model is not None:
            self._counts[seen.model] += 1.0
            self._sums[seen.model] += 1.0 - self._loss(seen.reward)
            self._balance(seen.model)

    def _balance(self, model: int) -> None:
        """Learn a reward of an agent."""

    def _means(self, played: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean reward u_i and conf_i of the agents that have played."""
        n = self._counts[played]
        logs = np.log(self._counts.size * np.log(np.maximum(n, math.e)) / self.delta)
        return self._sums[played] / n, self.width * np.sqrt(logs / n)

    @property
    def probabilities(self) -> FloatArray:
        """One for the agent whose turn is next, shape (M,)."""
        out = np.zeros(self.models.n_models)
        out[self._next()] = 1.0
        return out

    def _leader(self) -> int:
        played = np.flatnonzero(self._counts)
        return int(played[first_best(self._means(played)[0])]) if played.size else self._next()

    def _state(self) -> State:
        return super()._state() | {"counts": self._counts, "sums": self._sums}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m, n = self.models.n_models, self.n_told
        known = record("state", state, {"counts": floats(m, low=0.0, high=n), "sums": floats(m, low=0.0, high=n)})
        self._counts, self._sums = known["counts"], known["sums"]
        if self._counts.sum() > n or np.any(self._sums > self._counts):
            raise ValueError(f"state['counts'] must sum to at most {n}, the number of rewards, and state['sums'] below")
