"""EXP4-IX: exponential weights over agents from the loss of the played action alone (Neu 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    UCB,
    AgentBased,
    AgentPool,
    Agents,
    Decision,
    Domain,
    FloatArray,
    Follow,
    ModelClass,
    Observation,
    Packable,
    Proposal,
    Round,
    Shared,
    State,
    Suggestions,
    exponential_weights,
    floats,
    number,
    positive,
    record,
    sequence,
    whole,
)
from alexp.rivals.losses import LossScale


class EXP4IX(AgentBased):
    """Agents as experts: all that would have played the action share its loss, implicitly explored.

    With P(x) = sum_j q_j p_j(x) the probability of the played action, every agent's loss grows by
    p_j(x) loss / (P(x) + gamma_t), and q is the softmax of -eta_t times the sums. eta_t = eta sqrt(2 log M / W_t)
    and gamma_t = eta_t / 2, where W_t sums the number of distinct actions that were suggested, the K of the theory,
    over the rounds; no horizon is needed. All agents learn from every reward. The weights of a late reward are
    those of the round in which its trial was asked for. External measurements train the agents only.

    Losses are (hi - y)/(hi - lo) clipped to [0, 1], with `loss_range` = (lo, hi) or +-(reward_bound + 3 noise_std).

    Needs `loss_range`, or `noise_std` and `reward_bound` for it, and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "exp4-ix"
    needs_columns: ClassVar[str] = "each of its agents keeps a regression on columns"
    settings: ClassVar[tuple[str, ...]] = ("agents", "eta", "loss_range")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None = None,
        eta: float = 1.0,
        loss_range: Sequence[float] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.agents = UCB() if agents is None else agents
        self.eta, self.loss_range = positive("eta", eta), loss_range
        self._loss = LossScale.of(loss_range, self.reward_bound, self.noise_std, self._sign)
        self._pool = AgentPool(self.agents, models, self.noise_std, self.norm_bound)
        self._losses = np.zeros(models.n_models)
        self._n_actions = 0.0  # W_t

    def _decide(self, round_: Round) -> Decision:
        policies = self._suggestions(round_)
        return Decision(Follow(self.probabilities, policies))

    def _note(self, decision: Decision, proposal: Proposal) -> list[Packable]:
        """p_j(x) / (P(x) + gamma) of every agent, and K."""
        assert isinstance(decision.play, Follow)
        policies = decision.play.policies
        n_actions = _distinct_actions(policies)
        gamma = self._eta_t(self._n_actions + n_actions) / 2.0
        return [policies.mass(proposal.position) / (proposal.propensity + gamma), n_actions]

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, None)
        if seen.note is not None:
            weights, n_actions = seen.note
            self._losses = self._losses + weights * self._loss(seen.reward)
            self._n_actions += n_actions

    def _eta_t(self, n_actions: float) -> float:
        return self.eta * sqrt(2.0 * log(self.models.n_models) / max(n_actions, 1.0))

    @property
    def probabilities(self) -> FloatArray:
        return exponential_weights(-self._losses, self._eta_t(self._n_actions))

    def _state(self) -> State:
        return super()._state() | {"losses": self._losses, "n_actions": self._n_actions}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m = self.models.n_models
        known = record("state", state, {"losses": floats(m, low=0.0), "n_actions": number(low=0.0)})
        self._losses, self._n_actions = known["losses"], known["n_actions"]
        self._check_notes(self._read_note)

    def _read_note(self, name: str, note: Packable) -> list[Packable]:
        weights, n_actions = sequence(name, note, 2)
        return [floats(self.models.n_models, low=0.0)(name, weights), whole(low=1)(name, n_actions)]


def _distinct_actions(policies: Suggestions) -> int:
    return policies.n_candidates if policies.spread.any() else int(np.unique(policies.atoms).size)
