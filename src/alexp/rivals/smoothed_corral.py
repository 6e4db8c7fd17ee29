"""Smoothed Corral: masters over stochastic bandits, each step played twice (Pacchiano et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, Literal, Unpack, get_args

import numpy as np

from alexp.extend import (
    AGENTS,
    Agents,
    Alone,
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
    exponential_weights,
    floats,
    one_of,
    positive,
    record,
    same,
    sequence,
)
from alexp.rivals.corral import Corral

Master = Literal["corral", "exp3p"]
MASTERS: tuple[Master, ...] = get_args(Master)
_PAST = 1  # purpose, among random numbers of agents, of which past policy comes back


@dataclass(frozen=True)
class Past(Alone):
    """The second round of a step: a policy that an agent had earlier. Its trials are marked as explored."""

    def draw(self, rng: np.random.Generator) -> Proposal:
        """What the agent would have drawn."""
        drawn = super().draw(rng)
        return Proposal(drawn.position, drawn.model, True, drawn.propensity)


class SmoothedCorral(Corral):
    """An adversarial master over stochastic agents: a step is two rounds, and only the second one counts for it.

    Round one: draw agent i from q, play its policy, and let it learn. Round two: play a policy that it had before one
    of its rounds so far, drawn evenly, on the present candidates; no agent learns, and the master takes the loss l. On
    average an agent's second rounds have the mean regret of all of its rounds so far, which does not increase, however
    seldom it is drawn, as the master's theory needs.

    | master | q |
    |---|---|
    | "corral" | as `Corral` on losses 2 l / q_i, eta = min(1 / (40 regret log n), sqrt(M / n)), gamma = 1/n |
    | "exp3p" | (1 - p) softmax(eta G) + p/M; G_i += ((1 - l) 1{i played} + beta) / q_i in each of N = n/2 steps |

    EXP3.P: p = min(1, 1.05 sqrt(M log M / N)), eta = .95 sqrt(log M / (N M)), beta = sqrt(log M / (N M)). `regret`
    bounds the best agent's regret in rewards of [0, 1]; without it eta = sqrt(M / n).

    How sure the constants are: those of EXP3.P are Theorem 3.3 of Bubeck and Cesa-Bianchi (2012) for N steps with gains
    in [0, 1], whose regret is 5.15 sqrt(N M log M) and a term in log(1/delta). The constants of Pacchiano et al. differ
    and were not checked; a public code of theirs adds p/2 for beta, M times as much, and has no eta, so that its first
    rewards decide. Corral's 40, gamma and the growth of rates are those of Agarwal et al. (2017) and of public codes.
    That the master takes its loss twice, because a step is two rounds, is in the paper's construction.

    Agents have their own data. Past policies are computed again from the rows that the agent had then. An abandoned
    round is played again. Propensities of second rounds are exact given the policy that was drawn.
    External measurements train all agents.

    Needs `horizon` n, `loss_range`, or `noise_std` and `reward_bound` for it, and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "smoothed-corral"
    settings: ClassVar[tuple[str, ...]] = ("horizon", "master", "regret", "agents", "data_mode", "loss_range")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        horizon: int,
        master: Master = "corral",
        regret: float | None = None,
        agents: Agents | None = None,
        data_mode: Literal["own"] = "own",
        loss_range: Sequence[float] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        one_of("data_mode", data_mode, ("own",))  # what an agent knew then is what it had played itself
        super().__init__(
            models, domain, horizon=horizon, agents=agents, data_mode=data_mode, loss_range=loss_range, **shared
        )
        self.master = one_of("master", master, MASTERS)
        self.regret = None if regret is None else positive("regret", regret)
        m = models.n_models
        if self.regret is not None:
            self.eta = min(1.0 / (40.0 * self.regret * log(self.horizon)), self.eta)
            self._rates = np.full(m, self.eta)
        self._beta = sqrt(2.0 * log(max(m, 2)) / (self.horizon * m))  # what EXP3.P adds to every gain
        self._share = min(1.0, 1.05 * m * self._beta)  # p of EXP3.P
        self._gains = np.zeros(m)
        self._lessons: list[list[FloatArray]] = [[] for _ in range(m)]  # what each agent has learnt from
        self._rewards: list[list[float]] = [[] for _ in range(m)]

    def _decide(self, round_: Round) -> Decision:
        first = self._first_of_pair()
        if first is None:
            return Decision(Follow(self.probabilities, self._suggestions(round_)))
        agent = self._log.model[first]
        rng = self._streams.generator(AGENTS, _PAST, first)
        known = int(rng.integers(max(len(self._lessons[agent]), 1)))
        assert isinstance(self._pool, OwnDataPool)
        past = self._pool.newborn(agent)
        for row, reward in zip(self._lessons[agent][:known], self._rewards[agent][:known], strict=True):
            past.update(row, reward)
        return Decision(Past(past.suggest(round_, rng, believe=False), 0, agent))

    def _first_of_pair(self) -> int | None:
        """The last trial, if it was the first round of a step; None otherwise. Abandoned trials do not count."""
        for trial in range(self.n_asked - 1, -1, -1):
            if self._log.model[trial] >= 0 and trial not in self._log.abandoned:
                return None if self._log.explored[trial] else trial
        return None

    def _note(self, decision: Decision, proposal: Proposal) -> float:
        """q_i of the agent that plays."""
        return float(self.probabilities[proposal.model])

    def _learn(self, seen: Observation) -> None:
        if seen.note is None or seen.model is None:  # external: no agent was drawn for it
            for agent in range(self.models.n_models):
                self._teach(agent, seen)
        elif not self._log.explored[seen.trial]:
            self._teach(seen.model, seen)
        elif self.master == "corral":
            self._descend(self._p, 2.0 * self._loss(seen.reward) / seen.note, seen.model)
        else:
            q, gains = self.probabilities, np.full(self._gains.size, self._beta)
            gains[seen.model] += (1.0 - self._loss(seen.reward)) * q[seen.model] / seen.note
            self._gains = self._gains + gains / q

    def _teach(self, agent: int, seen: Observation) -> None:
        self._train(seen.row, seen.reward, agent)
        self._lessons[agent].append(np.array(seen.row))
        self._rewards[agent].append(seen.reward)

    @property
    def probabilities(self) -> FloatArray:
        """q over the M models, with which the agent of the next step is drawn, shape (M,)."""
        if self.master == "corral":
            return super().probabilities
        m = self._gains.size
        return (1.0 - self._share) * exponential_weights(self._gains, 0.95 * self._beta) + self._share / m

    def _state(self) -> State:
        rows = [np.array(own).reshape(-1, self.models.n_columns) for own in self._lessons]
        return super()._state() | {
            "gains": self._gains,
            "rows": rows,
            "rewards": [np.array(own) for own in self._rewards],
        }

    def _restore(self, state: State) -> None:
        super()._restore(state)
        m, p = self.models.n_models, self.models.n_columns
        self._gains = record("state", state, {"gains": floats(m)})["gains"]
        rows, rewards = (sequence(f"state[{name!r}]", state.get(name), m) for name in ("rows", "rewards"))
        for agent in range(m):
            self._lessons[agent] = list(floats(None, p)("state['rows']", rows[agent]))
            self._rewards[agent] = floats(None)("state['rewards']", rewards[agent]).tolist()
            same(
                "rewards of an agent", len(self._rewards[agent]), len(self._lessons[agent]), "one for each of its rows"
            )
