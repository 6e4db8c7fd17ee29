"""Corral: log-barrier mirror descent over agents (Agarwal, Luo, Neyshabur and Schapire 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import ClassVar, Literal, Unpack, get_args

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
    OwnDataPool,
    Proposal,
    Round,
    Shared,
    State,
    count,
    floats,
    log_barrier_omd,
    non_negative,
    number,
    one_of,
    positive,
    record,
)
from alexp.rivals.losses import LossScale

Variant = Literal["corrected", "released-code"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


class Corral(AgentBased):
    """A master that sees each agent as a black box and knows the horizon.

    An agent is drawn from q-bar and plays; its loss, divided by the probability q-bar_j with which it was drawn,
    moves q by log-barrier mirror descent; q-bar mixes q with a share `gamma` of the uniform distribution. When
    1/q-bar_j passes rho_j, rho_j doubles beyond it and the rate of agent j grows by exp(1/ln n).

    Losses are (hi - y)/(hi - lo) clipped to [0, 1], with `loss_range` = (lo, hi) or +-(reward_bound + 3 noise_std).
    `data_mode="own"` trains the drawn agent only, as the theory assumes; "shared" trains all, as ALExp does.
    `eta` is the first rate of every agent, sqrt(M/horizon) by default, and `gamma` the mixing, 1/horizon by
    default. A late reward is weighted by the probability in force when its trial was asked for; the rates that
    grow make the result depend on the order of tells. External measurements train the agents only.

    `variant="released-code"` repeats what the code published with the paper does: unscaled losses divided by the
    probability twice, agents regressed on y / q-bar (all of them on y / M in round one), mirror descent started
    from the mixed distribution, and thresholds truncated to integers. It exists to explain the published curve.

    Needs `loss_range`, or `noise_std` and `reward_bound` for it, and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "corral"
    needs_columns: ClassVar[str] = "each of its agents keeps a regression on columns"
    settings: ClassVar[tuple[str, ...]] = ("horizon", "agents", "eta", "gamma", "data_mode", "loss_range", "variant")
    example: ClassVar[State] = {"horizon": 30}
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        horizon: int,
        agents: Agents | None = None,
        eta: float | None = None,
        gamma: float | None = None,
        data_mode: Literal["own", "shared"] = "shared",
        loss_range: Sequence[float] | None = None,
        variant: Variant = "corrected",
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        one_of("data_mode", data_mode, ("own", "shared"))
        one_of("variant", variant, VARIANTS)
        m = models.n_models
        self.horizon = count("horizon", horizon, 2)
        self.agents = UCB() if agents is None else agents
        self.eta = sqrt(m / self.horizon) if eta is None else positive("eta", eta)
        self.gamma = 1.0 / self.horizon if gamma is None else min(non_negative("gamma", gamma), 1.0)
        self.data_mode = "own" if variant == "released-code" else data_mode
        self.loss_range, self.variant = loss_range, variant
        self._loss = LossScale.of(loss_range, self.reward_bound, self.noise_std, self._sign)
        pool = OwnDataPool if self.data_mode == "own" else AgentPool
        self._pool: OwnDataPool | AgentPool = pool(self.agents, models, self.noise_std, self.norm_bound)
        self._p = np.full(m, 1.0 / m)
        self._rates, self._rho = np.full(m, self.eta), np.full(m, 2.0 * m)

    def _decide(self, round_: Round) -> Decision:
        policies = self._suggestions(round_)
        return Decision(Follow(self.probabilities, policies))

    def _note(self, decision: Decision, proposal: Proposal) -> float:
        """q-bar_j with which the agent was drawn."""
        assert isinstance(decision.play, Follow)
        return float(decision.play.weights[proposal.model])

    def _learn(self, seen: Observation) -> None:
        if seen.note is None or seen.model is None:  # external: no agent was drawn for it
            self._train(seen.row, seen.reward, None)
        elif self.variant == "released-code":
            self._learn_as_released(seen, seen.model, seen.note)
        else:
            self._train(seen.row, seen.reward, seen.model)
            self._descend(self._p, self._loss(seen.reward) / seen.note, seen.model)

    def _descend(self, start: FloatArray, loss: float, model: int) -> None:
        """Mirror descent on a loss of one agent, then the growth of rates, judged by the new mixed probabilities."""
        losses = np.zeros(self._p.size)
        losses[model] = loss
        self._p = log_barrier_omd(start, losses, self._rates)
        inverse = 1.0 / self.probabilities
        passed = inverse > self._rho
        self._rho[passed] = 2.0 * inverse[passed]
        self._rates[passed] *= exp(1.0 / log(self.horizon))

    def _learn_as_released(self, seen: Observation, model: int, probability: float) -> None:
        if self.n_told == 0:
            self._train(seen.row, seen.reward / self.models.n_models, None)
        else:
            self._train(seen.row, seen.reward / probability, model)
        self._descend(self.probabilities, -seen.reward / probability**2, model)
        self._rho = np.floor(self._rho)

    @property
    def probabilities(self) -> FloatArray:
        """q-bar over the M models for the next round, shape (M,)."""
        return (1.0 - self.gamma) * self._p + self.gamma / self._p.size

    def _state(self) -> State:
        return super()._state() | {"p": self._p, "rates": self._rates, "rho": self._rho}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m = self.models.n_models
        checks = {
            "p": floats(m, low=0.0, high=1.0),
            "rates": floats(m, low=(1.0 - 1e-9) * self.eta),
            "rho": floats(m, low=1.0),
        }
        known = record("state", state, checks)
        if not np.isclose(known["p"].sum(), 1.0, rtol=0.0, atol=1e-6):
            raise ValueError(f"state['p'] must be probabilities that sum to one, got {known['p'].sum()}")
        self._p, self._rates, self._rho = known["p"], known["rates"], known["rho"]
        if np.any(np.array(self._log.model, dtype=np.int64)[self._log.proposed()] < 0):
            raise ValueError("log['model'] must name the agent that was drawn, for every trial but observations")
        self._check_notes(number(low=float(np.finfo(np.float64).tiny), high=1.0 + 1e-9))
