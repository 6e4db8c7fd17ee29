"""D3RB and ED2RB: balance realised regret over agents (Dann, Gentile and Pacchiano 2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from alexp.algorithms.base import Proposal
from alexp.algorithms.certified import Certified
from alexp.algorithms.streams import AGENTS
from alexp.algorithms.trials import Trial
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import fraction, non_negative, positive
from alexp.decision.agents import UCB
from alexp.decision.losses import LossScale
from alexp.decision.own_data import OwnDataPool
from alexp.decision.pool import AgentPool, Agents
from alexp.problem.candidates import Choices
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class D3RB(Certified):
    """Doubling data-driven regret balancing: no bound on any agent's regret has to be known.

    With n_i rounds, u_i their mean reward in [0, 1] and conf_i = width sqrt(log(M log(n_i) / delta) / n_i), the agent
    with the least balancing potential d_i sqrt(n_i) plays, each once first. Its coefficient d_i doubles when

        u_i + d_i / sqrt(n_i) + conf_i < max_j (u_j - conf_j).

    `data_mode="own"` trains the agent that played, as the theory assumes; "shared" trains all. The potentials depend
    on the order of tells. Rewards are scaled by `loss_range` or +-(reward_bound + 3 noise_std). Measurements from
    elsewhere train the agents alone.
    """

    name: ClassVar[str] = "d3rb"
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
        **shared: Any,
    ) -> None:
        super().__init__(models, domain, **shared)
        if data_mode not in ("own", "shared"):
            raise ValueError(f'data_mode must be "own" or "shared", got {data_mode!r}')
        self.agents, self.data_mode, self.loss_range = UCB() if agents is None else agents, data_mode, loss_range
        self.d_min, self.delta = positive("d_min", d_min), fraction("delta", delta)
        self.width = non_negative("width", width)
        self._loss = LossScale.of(loss_range, self.reward_bound, self.noise_std, self._sign)
        pool = OwnDataPool if data_mode == "own" else AgentPool
        self._pool: OwnDataPool | AgentPool = pool(self.agents, models, self.noise_std, self.reward_bound)
        self._order = self._streams.generator(AGENTS).permutation(models.n_models)  # who plays first among equals
        self._counts, self._sums = np.zeros(models.n_models), np.zeros(models.n_models)
        self._d, self._potential = np.full(models.n_models, self.d_min), np.zeros(models.n_models)
        self._telling: int | None = None

    def _propose(self, choices: Choices, rng: np.random.Generator) -> Proposal:
        policies = self._pool.suggest(choices, self._streams.generator(AGENTS, self.n_told))
        model = self._next()
        position = policies.draw(model, rng)
        return Proposal(position, model, False, float(policies.mass(position)[model]))

    def _next(self) -> int:
        return int(self._order[np.argmin(self._potential[self._order])])

    def tell(self, trial: Trial | int, reward: float) -> None:
        """Report the reward of a trial; see `Algorithm.tell`."""
        self._telling, _ = self.check_tell(trial, reward)
        super().tell(trial, reward)
        self._telling = None

    def _learn(self, index: int, reward: float) -> None:
        row, model = self._row(index), None if self._telling is None else self._log.model[self._telling]
        if isinstance(self._pool, AgentPool):
            self._pool.update(row, reward)
        else:
            for j in range(self.models.n_models) if model is None else (model,):
                self._pool.update(row, reward, j)
        if model is not None:
            self._counts[model] += 1.0
            self._sums[model] += 1.0 - self._loss(reward)
            self._balance(model)

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

    @property
    def certifies(self) -> bool:
        """Only where all agents see all rewards."""
        return isinstance(self._pool, AgentPool)

    def _certified_pool(self) -> AgentPool:
        if not isinstance(self._pool, AgentPool):
            raise ValueError('certificates need agents that have seen all rewards; use data_mode="shared"')
        return self._pool

    def _recommend(self) -> tuple[int, float, int | None]:
        played = np.flatnonzero(self._counts)
        leader = int(played[np.argmax(self._means(played)[0])]) if played.size else self._next()
        mean = self._pool.mean(leader, self._candidates.table.T)
        position = int(np.argmax(mean))
        return position, float(mean[position]), leader

    def _state(self) -> dict[str, Any]:
        return {
            "pool": self._pool.state(), "counts": self._counts, "sums": self._sums,
            "d": self._d, "potential": self._potential,
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        self._pool.restore(state["pool"])
        self._counts, self._sums = state["counts"], state["sums"]
        self._d, self._potential = state["d"], state["potential"]


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
