"""Evidence sampling: draw a model from its posterior and let that model's agent play."""

from __future__ import annotations

from typing import ClassVar, Unpack

from alexp.algorithms.agent_based import AgentBased
from alexp.algorithms.base import Decision, Observation, Shared
from alexp.common.arrays import FloatArray
from alexp.common.validation import non_negative, positive
from alexp.decision.agents import UCB
from alexp.decision.plays import Follow
from alexp.decision.pool import AgentPool
from alexp.decision.weights import exponential_weights
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class EvidenceSampling(AgentBased):
    """ALExp's master with the Gaussian evidence in place of hallucinated returns.

    A round draws model j with probability proportional to its evidence to the power `temper`, and plays the UCB
    action of that model alone, argmax mu_j + beta sigma ||phi_j||_{V_j^-1}, with ridge sigma / norm_bound.

    It needs `noise_std` and `norm_bound` (or `reward_bound` in its place), and assumes 0.1 and 1 where they are not
    stated: rewards in other units then mislead it. `EvidenceMixture` does without either.
    """

    _pool: AgentPool
    name: ClassVar[str] = "evidence-sampling"
    needs_columns: ClassVar[str] = ""
    weights_mean: ClassVar[str] = "posterior"
    settings: ClassVar[tuple[str, ...]] = ("beta", "temper")

    def __init__(
        self, models: ModelClass, domain: Domain, *, beta: float = 2.0, temper: float = 1.0, **shared: Unpack[Shared]
    ) -> None:
        super().__init__(models, domain, **shared)
        self.beta, self.temper = non_negative("beta", beta), positive("temper", temper)
        agent = UCB(beta=self.beta, ridge=self.noise_std / self.norm_bound)
        self._pool = AgentPool(agent, models, self.noise_std, self.norm_bound)

    def _decide(self, round_: Round) -> Decision:
        policies = self._suggestions(round_)
        return Decision(Follow(self.probabilities, policies))

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, None)

    @property
    def probabilities(self) -> FloatArray:
        """Tempered posterior over the models, shape (M,)."""
        return exponential_weights(self._pool.fits[0].evidence(self.noise_std), self.temper)
