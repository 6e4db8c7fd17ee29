"""LinUCB: one ridge agent, on one model (the oracle, if it is the right one) or on all features (naive)."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from alexp.algorithms.base import Decision, Observation, Shared
from alexp.algorithms.certified import Certified
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import anything, record, same
from alexp.common.validation import count, fraction
from alexp.decision.agents import UCB, Agent, Greedy
from alexp.decision.plays import Alone
from alexp.decision.pool import AgentPool
from alexp.estimation.checking.credible import Credence
from alexp.estimation.ellipsoids import optimistic_point
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import Round
from alexp.problem.contextual.balls import Ball
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class LinUCB(Certified):
    """A single base agent that plays alone.

    `model=j` uses the features of model j: Oracle UCB when j is the true model. `model=None` is the naive
    baseline on all distinct columns of the dictionary (features that are equal on every candidate count once).
    `agent` is UCB unless another is given. `forget` is the weight of a reward for each one that came after it, for
    rewards that drift (D-LinUCB with a constant width): V = sum_s forget^(t-s) phi_s phi_s' + ridge^2 I. Nothing is
    certified then, and the order of rewards matters; widths of `UCB(beta="theory")` are no theorem under it.

    On `alexp.Ball` it maximises the upper bound over all points, see `estimation.ellipsoids`; agents there are UCB and
    Greedy.

    Needs `norm_bound` for the width of UCB, and `noise_std` where that is the theory's (`UCB(beta="theory")`).
    """

    name: ClassVar[str] = "linucb"
    needs_columns: ClassVar[str] = ""
    settings: ClassVar[tuple[str, ...]] = ("model", "agent", "forget")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        model: int | None = None,
        agent: Agent | None = None,
        forget: float | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        if model is not None and count("model", model, 0) >= models.n_models:
            raise ValueError(f"model must be below the number of models ({models.n_models}), got {model}")
        self.model, self.agent = None if model is None else int(model), UCB() if agent is None else agent
        self.forget = None if forget is None else fraction("forget", forget)
        if isinstance(domain, Ball) and type(self.agent) not in (UCB, Greedy):
            raise ValueError(f"agent must be UCB or Greedy on a ball: others choose from a list, got {self.agent!r}")
        single = self._single()
        self._columns = single.columns_flat
        self._pool = AgentPool(self.agent, single, self.noise_std, self.norm_bound, self.forget)

    def _single(self) -> ModelClass:
        """The class whose only model is the one to play."""
        if self.model is not None:
            return self.models.only(self.model)
        self.models.require_linear("LinUCB without model=", "it puts all columns into one model; state which kernel")
        return self.models.pooled(self._distinct_columns())

    def _decide(self, round_: Round) -> Decision:
        policies = self._pool.suggest(round_, self._agent_rng())
        return Decision(Alone(policies, 0, self.model))

    def _aim(self) -> FloatArray:
        waiting = tuple(self._log.waiting)
        fits = self._ball_fits()
        believed = fits.believing(self._offers.rows(waiting)) if waiting else fits
        agent = self.agent
        width = agent.widths(fits, self.noise_std, self.norm_bound) if isinstance(agent, UCB) else 0.0
        return self._farthest(believed, float(np.max(width)))

    def _peak(self) -> FloatArray:
        return self._farthest(self._ball_fits(), 0.0)

    def _ball_fits(self) -> RidgeBank:
        fits = self._pool.fits[0]
        assert isinstance(fits, RidgeBank)  # coordinates are few, and there is no table
        return fits

    def _farthest(self, fits: RidgeBank, width: float) -> FloatArray:
        """The point of the ball with the largest mean + width x ||x||_{V^-1}, zero in coordinates of other models."""
        assert isinstance(self.domain, Ball)
        x, towards = np.zeros(self.domain.dim), self._agent_rng().standard_normal(self._columns.size)
        mean = fits.coefficients()[0]
        x[self._columns] = optimistic_point(mean, fits.triangle(0), width, self.domain.radius, towards)
        return x

    def _learn(self, seen: Observation) -> None:
        self._pool.update(seen.row, seen.reward)

    def _certified_models(self) -> ModelClass:
        """The model it is told to be true; all models, if it is told none."""
        return self.models if self.model is None else self.models.only(self.model)

    def _numbers(self) -> IntArray:
        return super()._numbers() if self.model is None else np.array([self.model])

    def _belief(self, round_: Round) -> Credence:
        """What its own fit says where old rewards are forgotten."""
        if self.forget is None:
            return super()._belief(round_)
        fits, choices = self._pool.fits[0], round_.choices
        return Credence(fits.mean(0, choices), self.noise_std * fits.width(0, choices))

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        return *self._pool.best(0, round_.choices), self.model

    def _state(self) -> State:
        return {"pool": self._pool.state()}

    def _restore(self, state: State) -> None:
        self._pool.restore(record("state", state, {"pool": anything})["pool"])
        same("n_observations of the agent", self._pool.n_observations, self.n_told, "the number of rewards")
