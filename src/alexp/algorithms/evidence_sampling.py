"""Evidence sampling: draw a model from its posterior and let that model's agent play."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from alexp.algorithms.base import Proposal
from alexp.algorithms.certified import Certified
from alexp.common.arrays import FloatArray
from alexp.common.validation import non_negative, positive
from alexp.decision.agents import UCB
from alexp.decision.pool import AgentPool
from alexp.decision.suggestions import Suggestions
from alexp.problem.candidates import Choices
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class EvidenceSampling(Certified):
    """ALExp's master with the Gaussian evidence in place of hallucinated returns.

    A round draws model j with probability proportional to its evidence to the power `temper`, and plays the UCB
    action of that model alone, argmax mu_j + beta sigma ||phi_j||_{V_j^-1}, with ridge sigma / reward_bound.
    """

    name: ClassVar[str] = "evidence-sampling"
    settings: ClassVar[tuple[str, ...]] = ("beta", "temper")

    def __init__(
        self, models: ModelClass, domain: Domain, *, beta: float = 2.0, temper: float = 1.0, **shared: Any
    ) -> None:
        super().__init__(models, domain, **shared)
        self.beta, self.temper = non_negative("beta", beta), positive("temper", temper)
        agent = UCB(beta=self.beta, ridge=self.noise_std / self.reward_bound)
        self._pool = AgentPool(agent, models, self.noise_std, self.reward_bound)
        self._ahead: tuple[int, Suggestions] | None = None

    def _propose(self, choices: Choices, rng: np.random.Generator) -> Proposal:
        q, policies = self.probabilities, self._policies(choices, rng)
        model = int(np.searchsorted(np.cumsum(q), rng.random() * q.sum(), side="right").clip(max=q.size - 1))
        position = policies.draw(model, rng)
        return Proposal(position, model, False, float(q @ policies.mass(position)))

    def _policies(self, choices: Choices, rng: np.random.Generator) -> Suggestions:
        everything = choices.table is self._candidates.table
        if everything and self._ahead is not None and self._ahead[0] == self.n_told:
            return self._ahead[1]
        policies = self._pool.suggest(choices, rng)  # UCB agents draw no random numbers
        if everything:
            self._ahead = (self.n_told, policies)
        return policies

    def _learn(self, index: int, reward: float) -> None:
        self._pool.update(self._row(index), reward)

    @property
    def probabilities(self) -> FloatArray:
        """Tempered posterior over the models, shape (M,)."""
        bank = self._pool.banks[0]
        evidence = -bank.residuals() / (2.0 * self.noise_std**2) - 0.5 * bank.log_determinants()
        weights = np.exp(self.temper * (evidence - evidence.max()))
        return np.asarray(weights / weights.sum())

    def _recommend(self) -> tuple[int, float, int | None]:
        leader = int(np.argmax(self.probabilities))
        mean = self._pool.mean(leader, self._candidates.table.T)
        position = int(np.argmax(mean))
        return position, float(mean[position]), leader

    def _certified_pool(self) -> AgentPool:
        return self._pool

    def _state(self) -> dict[str, Any]:
        return {"pool": self._pool.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._pool.restore(state["pool"])
        self._ahead = None
