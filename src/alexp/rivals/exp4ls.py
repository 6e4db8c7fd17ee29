"""EXP4LS: exponential weights on least-squares estimates of the agents' returns, one reward at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    UCB,
    AgentBased,
    AgentPool,
    Agents,
    Decision,
    Domain,
    Exploration,
    Explore,
    FloatArray,
    Follow,
    ModelClass,
    Observation,
    Proposal,
    Round,
    Schedules,
    Shared,
    State,
    Suggestions,
    Uniform,
    design_weights,
    exponential_weights,
    floats,
    offering,
    on_choices,
    record,
)

_RANK = 1e-10  # eigenvalues of V below this share of the largest are zero


@dataclass(frozen=True)
class MixedPolicies(Decision):
    """A decision, the features it was made on (P, n), the probability of each choice (n,), and the agents' policies."""

    table: FloatArray
    chances: FloatArray
    policies: Suggestions


class EXP4LS(AgentBased):
    """ALExp without its Lasso: the estimate of what an agent would have earned comes from the last reward alone.

    Explore with probability gamma_t, else follow an agent drawn from q. With p_t the probability of every action and
    V_t = E_{x ~ p_t} phi phi' on all P columns, agent j's return grows by

        E_{x ~ p_j}[phi(x)]' V_t^+ phi(x_t) y_t,    q = softmax(eta_t sum),

    unbiased where rewards are linear in the columns, with a variance that grows with P: the estimator that the paper on
    ALExp describes and argues against, and a shadow of the one that Luo et al. (2022) share between their agents.
    gamma_t and eta_t are those of `schedules`. The weights of a late reward are those of the round it was asked for in.
    External measurements train the agents only.

    Needs `reward_bound` (eta_t) and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "exp4-ls"
    needs_columns: ClassVar[str] = "it inverts the second moments of columns"
    settings: ClassVar[tuple[str, ...]] = ("agents", "exploration", "schedules")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None = None,
        exploration: Exploration | None = None,
        schedules: Schedules | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.agents = UCB() if agents is None else agents
        self.exploration = Uniform() if exploration is None else exploration
        self.schedules = Schedules() if schedules is None else schedules
        offering("exploration", self.exploration, "design")
        if not isinstance(self.schedules, Schedules):
            raise TypeError(f"schedules must be Schedules or a subclass, got {type(schedules).__name__}")
        self._pool: AgentPool = AgentPool(self.agents, models, self.noise_std, self.norm_bound)
        self._pi = design_weights(self.exploration, models, domain)
        self._returns = np.zeros(models.n_models)

    def _decide(self, round_: Round) -> MixedPolicies:
        q, policies = self.probabilities, self._suggestions(round_)
        gamma, pi = self.schedules.gamma_t(self.n_told + 1), on_choices(self._pi, round_.indices)
        chances = gamma * pi + (1.0 - gamma) * policies.mixed(q)
        play = Explore(gamma, len(round_), pi, Follow(q, policies))
        return MixedPolicies(play, round_.choices.table, chances, policies)

    def _note(self, decision: Decision, proposal: Proposal) -> FloatArray:
        """E_{x ~ p_j}[phi(x)]' V^+ phi(x_t) of every agent, (M,)."""
        assert isinstance(decision, MixedPolicies)
        table = decision.table
        moment = (table * decision.chances) @ table.T
        inverse = np.linalg.pinv(0.5 * (moment + moment.T), rcond=_RANK, hermitian=True)
        return decision.policies.expectation((inverse @ table[:, proposal.position]) @ table)

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, None)
        if seen.note is not None:
            self._returns = self._returns + seen.reward * np.asarray(seen.note)

    @property
    def probabilities(self) -> FloatArray:
        return exponential_weights(self._returns, self.schedules.eta_t(max(self.n_told, 1), self.reward_bound))

    @property
    def cumulative_returns(self) -> FloatArray:
        """Estimated returns of every model summed over all rewards so far, shape (M,)."""
        return self._returns.copy()

    def _state(self) -> State:
        return super()._state() | {"returns": self._returns}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m = self.models.n_models
        self._returns = record("state", state, {"returns": floats(m)})["returns"]
        self._check_notes(floats(m))
