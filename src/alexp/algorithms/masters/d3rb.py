"""D3RB and ED2RB: balance realised regret over agents (Dann, Gentile and Pacchiano 2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Unpack

import numpy as np

from alexp.algorithms.agent_based import AgentBased
from alexp.algorithms.protocol.base import Shared
from alexp.algorithms.protocol.rounds import Decision, Observation
from alexp.algorithms.protocol.streams import AGENTS
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import floats, record
from alexp.common.validation import fraction, non_negative, one_of, positive
from alexp.decision.agents import UCB
from alexp.decision.losses import LossScale
from alexp.decision.own_data import OwnDataPool
from alexp.decision.plays import Alone
from alexp.decision.pool import AgentPool, Agents
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class D3RB(AgentBased):
    """Doubling data-driven regret balancing: no bound on any agent's regret has to be known.

    With n_i rounds, u_i their mean reward in [0, 1] and conf_i = width sqrt(log(M log(n_i) / delta) / n_i), the agent
    with the least balancing potential d_i sqrt(n_i) plays, each once first. Its coefficient d_i doubles when

        u_i + d_i / sqrt(n_i) + conf_i < max_j (u_j - conf_j).

    `data_mode="own"` trains the agent that played, as the theory assumes; "shared" trains all. The potentials depend
    on the order of tells. Rewards are scaled by `loss_range` or +-(reward_bound + 3 noise_std). Measurements from
    elsewhere train the agents alone.

    Needs `loss_range`, or `noise_std` and `reward_bound` for it, and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "d3rb"
    needs_columns: ClassVar[str] = "each of its agents keeps a regression on columns"
    settings: ClassVar[tuple[str, ...]] = ("agents", "d_min", "delta", "width", "data_mode", "loss_range")
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None = None,
        d_min: float = 1.0,
        delta: float = 0.01,
        width: float = 0.2,
        data_mode: str = "shared",
        loss_range: Sequence[float] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        one_of("data_mode", data_mode, ("own", "shared"))
        self.agents, self.data_mode, self.loss_range = UCB() if agents is None else agents, data_mode, loss_range
        self.d_min, self.delta = positive("d_min", d_min), fraction("delta", delta)
        self.width = non_negative("width", width)
        self._loss = LossScale.of(loss_range, self.reward_bound, self.noise_std, self._sign)
        pool = OwnDataPool if data_mode == "own" else AgentPool
        self._pool: OwnDataPool | AgentPool = pool(self.agents, models, self.noise_std, self.norm_bound)
        self._order = self._streams.generator(AGENTS).permutation(models.n_models)  # who plays first among equals
        self._counts, self._sums = np.zeros(models.n_models), np.zeros(models.n_models)
        self._d, self._potential = np.full(models.n_models, self.d_min), np.zeros(models.n_models)

    def _decide(self, round_: Round) -> Decision:
        policies = self._suggestions(round_)
        model = self._next()
        return Decision(Alone(policies, model, model))

    def _next(self) -> int:
        return int(self._order[np.argmin(self._potential[self._order])])

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, seen.model)
        if seen.model is not None:
            self._counts[seen.model] += 1.0
            self._sums[seen.model] += 1.0 - self._loss(seen.reward)
            self._balance(seen.model)

    def _means(self, played: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean reward u_i and conf_i of the agents that have played."""
        n = self._counts[played]
        logs = np.log(self._counts.size * np.log(np.maximum(n, math.e)) / self.delta)
        return self._sums[played] / n, self.width * np.sqrt(logs / n)

    def _shortfall(self, model: int) -> float:
        """max_j (u_j - conf_j) - u_i - conf_i: by how much agent i is certainly worse than another."""
        played = np.flatnonzero(self._counts)
        means, widths = self._means(played)
        own = int(np.searchsorted(played, model))
        return float(np.max(means - widths) - means[own] - widths[own])

    def _balance(self, model: int) -> None:
        root = np.sqrt(self._counts[model])
        if self._shortfall(model) > self._d[model] / root:
            self._d[model] *= 2.0
        self._potential[model] = self._d[model] * root

    @property
    def probabilities(self) -> FloatArray:
        """One for the agent whose turn is next, shape (M,)."""
        out = np.zeros(self.models.n_models)
        out[self._next()] = 1.0
        return out

    def _leader(self) -> int:
        played = np.flatnonzero(self._counts)
        return int(played[np.argmax(self._means(played)[0])]) if played.size else self._next()

    def _state(self) -> State:
        own = {"counts": self._counts, "sums": self._sums, "d": self._d, "potential": self._potential}
        return super()._state() | own

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m, n = self.models.n_models, self.n_told
        checks = {
            "counts": floats(m, low=0.0, high=n),
            "sums": floats(m, low=0.0, high=n),
            "d": floats(m, low=self.d_min),
            "potential": floats(m, low=0.0),
        }
        known = record("state", state, checks)
        self._counts, self._sums = known["counts"], known["sums"]
        self._d, self._potential = known["d"], known["potential"]
        if self._counts.sum() > n or np.any(self._sums > self._counts):
            raise ValueError(f"state['counts'] must sum to at most {n}, the number of rewards, and state['sums'] below")


class ED2RB(D3RB):
    """Estimating data-driven regret balancing: d_i is estimated rather than doubled.

    d_i = max(d_min, sqrt(n_i) (max_j (u_j - conf_j) - u_i - conf_i)), and the potential d_i sqrt(n_i) may neither fall
    nor more than double in one step.
    """

    name: ClassVar[str] = "ed2rb"

    def _balance(self, model: int) -> None:
        root, before = np.sqrt(self._counts[model]), self._potential[model]
        self._d[model] = max(self.d_min, root * self._shortfall(model))
        potential = self._d[model] * root
        self._potential[model] = potential if before == 0.0 else np.clip(potential, before, 2.0 * before)
