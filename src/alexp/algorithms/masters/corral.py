"""Corral: log-barrier mirror descent over agents (Agarwal, Luo, Neyshabur and Schapire 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import Any, ClassVar

import numpy as np

from alexp.algorithms.base import Proposal
from alexp.algorithms.certified import Certified
from alexp.algorithms.streams import AGENTS
from alexp.algorithms.trials import Trial
from alexp.common.arrays import FloatArray
from alexp.common.validation import count, non_negative, positive
from alexp.decision.agents import UCB
from alexp.decision.losses import LossScale
from alexp.decision.omd import log_barrier_omd
from alexp.decision.own_data import OwnDataPool
from alexp.decision.pool import AgentPool, Agents
from alexp.problem.candidates import Choices
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

VARIANTS = ("corrected", "released-code")


class Corral(Certified):
    """A master that sees each agent as a black box and knows the horizon.

    An agent is drawn from q-bar and plays; its loss, divided by the probability q-bar_j with which it was drawn,
    moves q by log-barrier mirror descent; q-bar mixes q with a share `gamma` of the uniform distribution. When
    1/q-bar_j passes rho_j, rho_j doubles beyond it and the rate of agent j grows by exp(1/ln n).

    Losses are (hi - y)/(hi - lo) clipped to [0, 1], with `loss_range` = (lo, hi) or +-(reward_bound + 3 noise_std).
    `data_mode="own"` trains the drawn agent only, as the theory assumes; "shared" trains all, as ALExp does.
    `eta` is the first rate of every agent, sqrt(M/horizon) by default, and `gamma` the mixing, 1/horizon by
    default. A late reward is weighted by the probability in force when its trial was asked for; the rates that
    grow make the result depend on the order of tells. Measurements from elsewhere train the agents alone.

    `variant="released-code"` repeats what the code published with the paper does: unscaled losses divided by the
    probability twice, agents regressed on y / q-bar (all of them on y / M in round one), mirror descent started
    from the mixed distribution, and thresholds truncated to integers. It exists to explain the published curve.
    """

    name: ClassVar[str] = "corral"
    settings: ClassVar[tuple[str, ...]] = ("horizon", "agents", "eta", "gamma", "data_mode", "loss_range", "variant")
    example: ClassVar[dict[str, Any]] = {"horizon": 30}
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
        data_mode: str = "shared",
        loss_range: Sequence[float] | None = None,
        variant: str = "corrected",
        **shared: Any,
    ) -> None:
        super().__init__(models, domain, **shared)
        if data_mode not in ("own", "shared"):
            raise ValueError(f'data_mode must be "own" or "shared", got {data_mode!r}')
        if variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, got {variant!r}")
        m = models.n_models
        self.horizon = count("horizon", horizon, 2)
        self.agents = UCB() if agents is None else agents
        self.eta = sqrt(m / self.horizon) if eta is None else positive("eta", eta)
        self.gamma = 1.0 / self.horizon if gamma is None else min(non_negative("gamma", gamma), 1.0)
        self.data_mode = "own" if variant == "released-code" else data_mode
        self.loss_range, self.variant = loss_range, variant
        self._loss = LossScale.of(loss_range, self.reward_bound, self.noise_std, self._sign)
        pool = OwnDataPool if self.data_mode == "own" else AgentPool
        self._pool: OwnDataPool | AgentPool = pool(self.agents, models, self.noise_std, self.reward_bound)
        self._p = np.full(m, 1.0 / m)
        self._rates, self._rho = np.full(m, self.eta), np.full(m, 2.0 * m)
        self._drawn_with: dict[int, float] = {}  # q-bar_j at the ask, for trials whose reward is out
        self._telling: int | None = None

    def _propose(self, choices: Choices, rng: np.random.Generator) -> Proposal:
        policies = self._pool.suggest(choices, self._streams.generator(AGENTS, self.n_told))
        q = self.probabilities
        model = int(np.searchsorted(np.cumsum(q), rng.random() * q.sum(), side="right").clip(max=q.size - 1))
        position = policies.draw(model, rng)
        self._drawn_with[self.n_asked] = float(q[model])
        return Proposal(position, model, False, float(q @ policies.mass(position)))

    def tell(self, trial: Trial | int, reward: float) -> None:
        """Report the reward of a trial; see `Algorithm.tell`."""
        self._telling, _ = self.check_tell(trial, reward)
        super().tell(trial, reward)
        self._telling = None

    def _learn(self, index: int, reward: float) -> None:
        trial = self._telling
        if trial is None:  # measured elsewhere: no agent was drawn for it
            self._train(index, reward, None)
            return
        model, probability = self._log.model[trial], self._drawn_with.pop(trial)
        if self.variant == "released-code":
            self._learn_as_released(index, reward, model, probability)
            return
        self._train(index, reward, model)
        self._descend(self._p, self._loss(reward) / probability, model)

    def _train(self, index: int, reward: float, model: int | None) -> None:
        row = self._row(index)
        if isinstance(self._pool, AgentPool):
            self._pool.update(row, reward)
        else:
            for j in range(self.models.n_models) if model is None else (model,):
                self._pool.update(row, reward, j)

    def _descend(self, start: FloatArray, loss: float, model: int) -> None:
        """Mirror descent on a loss of one agent, then the growth of rates, judged by the new mixed probabilities."""
        losses = np.zeros(self._p.size)
        losses[model] = loss
        self._p = log_barrier_omd(start, losses, self._rates)
        inverse = 1.0 / self.probabilities
        passed = inverse > self._rho
        self._rho[passed] = 2.0 * inverse[passed]
        self._rates[passed] *= exp(1.0 / log(self.horizon))

    def _learn_as_released(self, index: int, reward: float, model: int, probability: float) -> None:
        if self.n_told == 0:
            self._train(index, reward / self.models.n_models, None)
        else:
            self._train(index, reward / probability, model)
        self._descend(self.probabilities, -reward / probability**2, model)
        self._rho = np.floor(self._rho)

    @property
    def probabilities(self) -> FloatArray:
        """q-bar over the M models for the next round, shape (M,)."""
        return (1.0 - self.gamma) * self._p + self.gamma / self._p.size

    @property
    def certifies(self) -> bool:
        """Only where all agents see all rewards."""
        return isinstance(self._pool, AgentPool)

    def _certified_pool(self) -> AgentPool:
        if not isinstance(self._pool, AgentPool):
            raise ValueError('certificates need agents that have seen all rewards; use data_mode="shared"')
        return self._pool

    def _recommend(self) -> tuple[int, float, int | None]:
        leader = int(np.argmax(self.probabilities))
        mean = self._pool.mean(leader, self._candidates.table.T)
        position = int(np.argmax(mean))
        return position, float(mean[position]), leader

    def _state(self) -> dict[str, Any]:
        return {
            "pool": self._pool.state(),
            "p": self._p,
            "rates": self._rates,
            "rho": self._rho,
            "trials": np.array(list(self._drawn_with), dtype=np.int64),
            "drawn_with": np.array(list(self._drawn_with.values()), dtype=np.float64),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._pool.restore(state["pool"])
        self._p, self._rates, self._rho = state["p"], state["rates"], state["rho"]
        self._drawn_with = dict(zip(state["trials"].tolist(), state["drawn_with"].tolist(), strict=True))
