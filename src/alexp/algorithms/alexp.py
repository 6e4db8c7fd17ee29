"""ALExp: anytime exponential weighting with Lasso reward estimates (Algorithm 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Unpack

import numpy as np

from alexp.algorithms.agent_based import AgentBased
from alexp.algorithms.base import Decision, Observation, Shared
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.schema import a_dict, anything, floats, maybe, record, same, whole
from alexp.common.ties import first_best
from alexp.common.validation import offering, one_of
from alexp.decision.agents import UCB
from alexp.decision.designs import Exploration, Uniform, design_weights
from alexp.decision.plays import Explore, Follow, on_choices
from alexp.decision.pool import AgentPool, Agents
from alexp.decision.schedules import ReleasedSchedules, Schedules
from alexp.decision.weights import exponential_weights, in_memory
from alexp.estimation.estimate import Estimate, Oracle, predict
from alexp.estimation.lasso.group_lasso import GroupLasso
from alexp.estimation.lasso.post_lasso import PostLasso
from alexp.estimation.mixture.evidence import Evidence
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


@dataclass(frozen=True)
class Plan(Decision):
    """What round t + 1 is decided on, given t rewards: theta-hat_t and the returns summed up to t."""

    fit: Estimate | None
    returns: FloatArray
    played: FloatArray | None  # (M, P) features of all policies so far, summed; retrospective returns only


class ALExp(AgentBased):
    """Anytime model selection while optimising.

    Every model has a base agent. A round explores with probability gamma_t and otherwise plays the suggestion of
    an agent drawn from q_t. One group Lasso on the concatenation of all feature maps estimates what every agent's
    next policy would return; q follows the sums of these hallucinated returns by exponential weights.

    The next policies are scored in `ask`, where the set they will be played on is known; `probabilities` looks
    ahead to a round with all candidates and changes nothing; in contextual runs, where there is no set to look ahead
    on, it has the weights that the last ask was played with. If m rewards arrive between two asks, the newest
    estimate stands for all m of them, so that the sum always has one term per reward.

    Parameters
    ----------
    agents : one agent for all models, a list of M, or a dict by model name; `UCB()` by default.
    oracle : the regression; `GroupLasso()` by default.
    exploration : the design that exploring rounds draw from; `Uniform()` by default.
    schedules : gamma_t, eta_t and lambda_t.
    returns : "as-printed" keeps each round's hallucinated returns as they were estimated then; "retrospective"
        evaluates all past policies again with the newest estimate (needs M x P numbers of memory).
    clip_returns : clip the estimate to [-reward_bound, reward_bound] before it scores the agents.
    variant : "paper", or "released-code": the schedules and the scoring of the authors' code, for `horizon` rounds.

    Needs `noise_std` (lambda_t), `reward_bound` (eta_t, clipping) and `norm_bound` (the agents' widths).

    >>> import alexp
    >>> models = alexp.ModelClass.legendre(degree=4, size=2)
    >>> opt = alexp.ALExp(models, alexp.Interval(-1.0, 1.0, resolution=50), noise_std=0.01, random_state=0)
    >>> for _ in range(20):
    ...     trial = opt.ask()
    ...     opt.tell(trial, 1.0 - trial.x**2)
    >>> abs(opt.best().x) < 0.1
    True
    """

    _pool: AgentPool
    name: ClassVar[str] = "alexp"
    enumerates: ClassVar[bool] = True
    needs_columns: ClassVar[str] = ""  # but the oracle may, see below
    settings: ClassVar[tuple[str, ...]] = (
        "agents", "oracle", "exploration", "schedules", "returns", "clip_returns", "variant", "horizon",
    )  # fmt: skip

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None = None,
        oracle: Oracle | None = None,
        exploration: Exploration | None = None,
        schedules: Schedules | None = None,
        returns: Literal["as-printed", "retrospective"] = "as-printed",
        clip_returns: bool = False,
        variant: Literal["paper", "released-code"] = "paper",
        horizon: int | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        one_of("returns", returns, ("as-printed", "retrospective"))
        one_of("variant", variant, ("paper", "released-code"))
        if variant == "released-code":
            if horizon is None:
                raise ValueError('variant="released-code" ties its constants to the horizon; pass horizon=')
            schedules = schedules if schedules is not None else ReleasedSchedules(horizon=horizon)
            oracle = oracle if oracle is not None else PostLasso()
        self.returns, self.clip_returns, self.variant, self.horizon = returns, clip_returns, variant, horizon
        self.agents = UCB() if agents is None else agents
        self.oracle = GroupLasso() if oracle is None else oracle
        if not isinstance(self.oracle, Evidence):
            models.require_linear(f"ALExp with {type(self.oracle).__name__}", "pass oracle=Evidence(...) for kernels")
        if returns == "retrospective":
            models.require_linear('returns="retrospective"', "it keeps the mean features of every policy")
            if models.enumerated_on is not None:
                raise ValueError('returns="retrospective" keeps features for each model, and these are never listed')
        self.exploration = Uniform() if exploration is None else exploration
        self.schedules = Schedules() if schedules is None else schedules
        for name, needed in (("oracle", "bind"), ("exploration", "design")):
            offering(name, getattr(self, name), needed)
        if not isinstance(self.schedules, Schedules):
            raise TypeError(f"schedules must be Schedules or a subclass, got {type(schedules).__name__}")
        self._pool = AgentPool(self.agents, models, self.noise_std, self.norm_bound)
        self._data = self.oracle.bind(models)
        self._pi = design_weights(self.exploration, models, domain)
        self._pi_on_all = None if self._pi is None else on_choices(self._pi, self._everything.indices)
        self._returns = self._pool.nothing()  # R_t,j: hallucinated returns summed up to the last scored reward
        self._played = np.zeros((models.n_models, models.n_columns)) if returns == "retrospective" else None
        self._fit: Estimate | None = None
        self._n_scored = 0

    def _decide(self, round_: Round) -> Plan:
        """Update the estimate, get the agents' next policies, and score them on the set they will be played on."""
        t, choices = self.n_told, round_.choices
        policies = self._suggestions(round_)
        fit, returns, played = self._fit, self._returns, self._played
        if (fresh := t - self._n_scored) > 0:
            fit = self._data.solve(self.lambda_t(t), start=self._fit)
            if played is None:
                returns = returns + fresh * policies.expectation(self._clip(predict(fit, choices.table)))
            else:
                played = played + fresh * policies.expected_features(choices.table)
                returns = t * self._clip(predict(fit, played.T / t))
        on_all = self._pi_on_all if round_.is_full else None
        pi = on_choices(self._pi, round_.indices) if on_all is None else on_all
        gamma = self.schedules.gamma_t(t + 1)
        play = Explore(gamma, len(choices), pi, Follow(self._weights(returns), policies))
        return Plan(play, fit, returns, played)

    def _commit(self, round_: Round, decision: Decision) -> None:
        assert isinstance(decision, Plan)
        if self.n_told > self._n_scored:  # other rounds were planned as if they were the one to be scored
            self._keep_only(round_, decision)
        self._fit, self._returns, self._played = decision.fit, decision.returns, decision.played
        self._n_scored = self.n_told

    def _learn(self, seen: Observation) -> None:
        self._data.append(seen.row, seen.reward)
        self._train(seen.row, seen.reward, None)

    @property
    def _scored(self) -> tuple[Estimate | None, FloatArray]:
        """The estimate and the summed returns on all rewards so far, if need be from a round with all candidates.

        Contextual rounds offer no set to look ahead on: there they are those of the last ask.
        """
        if self.n_told == self._n_scored or self.is_contextual:
            return self._fit, self._returns
        plan = self._decision(self._everything)
        assert isinstance(plan, Plan)
        return plan.fit, plan.returns

    def _clip(self, estimate: FloatArray) -> FloatArray:
        return np.clip(estimate, -self.reward_bound, self.reward_bound) if self.clip_returns else estimate

    def _weights(self, returns: FloatArray) -> FloatArray:
        return exponential_weights(returns, self.schedules.eta_t(max(self.n_told, 1), self.reward_bound))

    def lambda_t(self, t: int) -> float:
        """Regularisation of the group Lasso on t rewards, in the units of this run."""
        return self.schedules.lambda_t(t, self.noise_std, self.models.n_models, self.models.dimension)

    @property
    def cumulative_returns(self) -> FloatArray:
        """Hallucinated returns of every model summed over all rewards so far, shape (M,)."""
        self.models.require_list("cumulative_returns")
        return in_memory(self._scored[1]).copy()

    @property
    def fit(self) -> Estimate | None:
        """The group Lasso on all rewards so far; None before the first."""
        return self._scored[0]

    @property
    def probabilities(self) -> FloatArray:
        self.models.require_list("probabilities")
        return in_memory(self._weights(self._scored[1]))

    def _leader(self) -> int:
        return first_best(self._weights(self._scored[1]))

    def _state(self) -> State:
        self.models.require_list("saving ALExp, whose returns are one number for each model,")
        return super()._state() | {
            "data": self._data.state(),
            "returns": in_memory(self._returns),
            "played": self._played,
            "fit": None if self._fit is None else self._fit.state(),
            "n_scored": self._n_scored,
        }

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m = self.models.n_models
        checks = {
            "data": anything,
            "returns": floats(m),
            "played": maybe(floats(m, self.models.n_columns)),
            "fit": maybe(a_dict),
            "n_scored": whole(high=self.n_told),
        }
        known = record("state", state, checks)
        self._data.restore(known["data"])
        same("n_observations of the regression", self._data.n_observations, self.n_told, "the number of rewards")
        same("state['played'] is None", known["played"] is None, self.returns == "as-printed", "by the setting returns")
        same("state['fit'] is None", known["fit"] is None, known["n_scored"] == 0, "by state['n_scored']")
        self._returns = self._pool.placed(known["returns"])
        self._played, self._n_scored = known["played"], known["n_scored"]
        self._fit = None if known["fit"] is None else self._data.read(known["fit"])
