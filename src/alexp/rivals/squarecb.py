"""SquareCB: inverse gap weighting of a regression oracle's estimates (Foster and Rakhlin 2020)."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar, Literal, Unpack

import numpy as np

from alexp.extend import (
    UCB,
    AgentPool,
    Agents,
    Certified,
    Decision,
    Domain,
    FloatArray,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    Weighted,
    anything,
    first_best,
    linear_posteriors,
    one_of,
    positive,
    record,
    same,
)


def inverse_gap_weighting(estimates: FloatArray, gamma: float) -> FloatArray:
    """p(a) = 1 / (K + gamma (max - estimate_a)) for all but the best of K arms, which gets the rest; shape (K,).

    >>> inverse_gap_weighting(np.array([1.0, 0.0]), 2.0).tolist()
    [0.75, 0.25]
    """
    best = first_best(estimates)
    p = 1.0 / (estimates.size + gamma * (estimates[best] - estimates))
    p[best] = 0.0
    p[best] = 1.0 - p.sum()
    return np.asarray(p)


class SquareCBSettings(Shared, total=False):
    """Keywords of `SquareCB`, for its subclasses."""

    agents: Agents | None
    gain: float
    arms: Literal["suggestions", "all"]


class SquareCB(Certified):
    """One regression for all features decides, by inverse gap weighting, among the actions the agents suggest.

    gamma_t = gain sqrt(K_t t) / reward_bound for K_t arms; `arms` are the distinct "suggestions" of the M agents, or
    "all" candidates. The oracle is a ridge regression on all distinct columns.

    Needs `reward_bound` (gamma_t) and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "squarecb"
    needs_columns: ClassVar[str] = "it compares regressions on columns, and on all of them together"
    settings: ClassVar[tuple[str, ...]] = ("agents", "gain", "arms")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None = None,
        gain: float = 10.0,
        arms: Literal["suggestions", "all"] = "suggestions",
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        one_of("arms", arms, ("suggestions", "all"))
        self.agents, self.gain, self.arms = UCB() if agents is None else agents, positive("gain", gain), arms
        self._pool = AgentPool(self.agents, models, self.noise_std, self.norm_bound)
        pooled = models.pooled(self._distinct_columns())
        self._oracle = linear_posteriors(pooled, self.noise_std / self.norm_bound)

    def _decide(self, round_: Round) -> Decision:
        choices = round_.choices
        arms = np.arange(len(choices))
        if self.arms == "suggestions":
            policies = self._pool.suggest(round_, self._agent_rng())
            arms = arms if policies.spread.any() else np.unique(policies.atoms)
        gamma = self.gain * sqrt(arms.size * (self.n_told + 1)) / self.reward_bound
        p = inverse_gap_weighting(self._estimate(np.take(choices.table, arms, axis=1)), gamma)
        return Decision(Weighted(arms, p))

    def _estimate(self, table: FloatArray) -> FloatArray:
        """The oracle's reward at n candidates, feature-major (P, n)."""
        return self._oracle.mean(0, table.T)

    def _learn(self, seen: Observation) -> None:
        self._oracle.update(seen.row, seen.reward)
        self._pool.update(seen.row, seen.reward)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        estimates = self._estimate(round_.choices.table)
        position = first_best(estimates)
        return position, float(estimates[position]), None

    def _state(self) -> State:
        return {"pool": self._pool.state(), "oracle": self._oracle.state()}

    def _restore(self, state: State) -> None:
        known = record("state", state, {"pool": anything, "oracle": anything})
        self._pool.restore(known["pool"])
        self._oracle.restore(known["oracle"])
        same("n_observations of the agents", self._pool.n_observations, self.n_told, "the number of rewards")
        if type(self)._estimate is SquareCB._estimate:  # subclasses with their own estimate do not train the oracle
            same("n_observations of the oracle", self._oracle.n_observations, self.n_told, "the number of rewards")
