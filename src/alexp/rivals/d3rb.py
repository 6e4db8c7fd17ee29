"""D3RB and ED2RB: balance realised regret over agents (Dann, Gentile and Pacchiano 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Unpack

import numpy as np

from alexp.extend import Agents, Domain, ModelClass, Shared, State, first_best, floats, positive, record, share
from alexp.rivals.counted import CountedAgents


class D3RB(CountedAgents):
    """Doubling data-driven regret balancing: no bound on any agent's regret has to be known.

    With n_i rounds, u_i their mean reward in [0, 1] and conf_i = width sqrt(log(M log(n_i) / delta) / n_i), the agent
    with the least balancing potential d_i sqrt(n_i) plays. Its coefficient d_i doubles when

        u_i + d_i / sqrt(n_i) + conf_i < max_j (u_j - conf_j).

    As printed every agent plays before any plays again (`newcomers` = 1), which with more agents than rounds is a round
    robin. Here at most 1 + `newcomers` t agents play in t rounds: a new agent, in a random order, may play whenever
    that allows it. Balancing is among the agents that have played, and the bound on the regret is against the best of
    them.

    `data_mode="own"` trains the agent that played, as the theory assumes; "shared" trains all. The potentials depend
    on the order of tells. Rewards are scaled by `loss_range` or +-(reward_bound + 3 noise_std). External measurements
    train the agents only.

    Needs `loss_range`, or `noise_std` and `reward_bound` for it, and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "d3rb"
    settings: ClassVar[tuple[str, ...]] = ("agents", "d_min", "delta", "width", "newcomers", "data_mode", "loss_range")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None = None,
        d_min: float = 1.0,
        delta: float = 0.01,
        width: float = 0.2,
        newcomers: float = 0.25,
        data_mode: Literal["own", "shared"] = "shared",
        loss_range: Sequence[float] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(
            models,
            domain,
            agents=agents,
            delta=delta,
            width=width,
            data_mode=data_mode,
            loss_range=loss_range,
            **shared,
        )
        self.d_min, self.newcomers = positive("d_min", d_min), share("newcomers", newcomers)
        if self.newcomers == 0.0:
            raise ValueError("newcomers must be above 0, or one agent would play for ever; 1 is every agent once first")
        self._d, self._potential = np.full(models.n_models, self.d_min), np.zeros(models.n_models)

    def _next(self) -> int:
        fresh = self._counts[self._order] == 0.0
        n_played, n_rounds = fresh.size - int(fresh.sum()), self._counts.sum()
        if fresh.any() and n_played <= self.newcomers * n_rounds:
            return int(self._order[np.argmax(fresh)])
        potential = np.where(fresh, np.inf, self._potential[self._order])
        return int(self._order[first_best(-potential)])

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

    def _state(self) -> State:
        return super()._state() | {"d": self._d, "potential": self._potential}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m = self.models.n_models
        known = record("state", state, {"d": floats(m, low=self.d_min), "potential": floats(m, low=0.0)})
        self._d, self._potential = known["d"], known["potential"]


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
