"""The pool of M base agents: all learn from the same history, or each from its own rounds only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.schema import same, sequence
from alexp.common.ties import first_best
from alexp.decision.agents import Agent, Crowd
from alexp.decision.suggestions import Suggestions
from alexp.estimation.factory import agents_posteriors
from alexp.estimation.posteriors import NotFiniteError, Posteriors
from alexp.problem.candidates import NOTHING, Choices, Pending, Round
from alexp.problem.models import ModelClass

Agents = Agent | Sequence[Agent] | Mapping[str, Agent]


class AgentPool:
    """One agent per model, all fed with the same history.

    Parameters
    ----------
    agents
        One agent for every model, a list of M agents, or a dict from model name to agent.
    forget
        Weight of a reward for each one that came after it.
    """

    def __init__(
        self,
        agents: Agents,
        models: ModelClass,
        noise_std: float,
        norm_bound: float,
        forget: float | None = None,
    ) -> None:
        self.noise_std, self.norm_bound = noise_std, norm_bound
        self._unlisted = models.enumerated_on is not None
        crowds = _crowds(agents, models)
        self.agents = [agent for agent, _ in crowds]
        self.members = [members for _, members in crowds]
        self._made_of = [(models, agent.ridge, members, forget) for agent, members in crowds]
        self.fits = [agents_posteriors(*own) for own in self._made_of]
        self.draws = not all(agent.determined for agent in self.agents)  # whether some agent needs random numbers
        self._beliefs: list[tuple[Pending, Posteriors]] = []  # trials believed in, and the fits, by crowd
        self._forget()

    @property
    def n_observations(self) -> int:
        """Number of rewards that the agents have seen."""
        return self.fits[0].n_observations

    def update(self, row: FloatArray, y: float) -> None:
        """Report one observation to every agent; row has shape (P,)."""
        for fits in self.fits:
            fits.update(row, y)
        self._forget()

    def suggest(self, round_: Round, rng: np.random.Generator, believe: bool = True) -> Suggestions:
        """Policies of all M agents in a round; `believe` says that they will see the rewards that are pending."""
        parts = []
        for k, (agent, fits, members) in enumerate(zip(self.agents, self.fits, self.members, strict=True)):
            believed = self.with_fantasies(k, round_.pending) if believe and agent.believes else fits
            crowd = Crowd(fits, believed, members, round_.choices, self.noise_std, self.norm_bound, rng)
            try:
                parts.append(agent.suggest(crowd))
            except NotFiniteError as error:
                raise NotFiniteError(error.what, int(members[error.model])) from None
        return Suggestions.merged(parts, self.members)

    def with_fantasies(self, crowd: int, pending: Pending) -> Posteriors:
        """The fits of a crowd, variances as they will be when pending rewards are in.

        A trial that joins those believed in already is absorbed alone; if one has left, they are absorbed anew.
        """
        known, fits = self._beliefs[crowd]
        if not pending.begins_with(known):
            known, fits = NOTHING, self.fits[crowd]
        if len(known) < len(pending):
            fits = fits.with_fantasies(pending.rows[len(known) :])
            self._beliefs[crowd] = pending, fits
        return fits

    def _forget(self) -> None:
        self._beliefs = [(NOTHING, fits) for fits in self.fits]

    def best(self, j: int, choices: Choices) -> tuple[int, float]:
        """Position of the candidate with the largest posterior mean under model j, the first of equal ones, and it."""
        fits, local = self._locate(j)
        mean = fits.mean(local, choices)
        position = first_best(mean)
        return position, float(mean[position])

    def mean(self, j: int, features: FloatArray) -> FloatArray:
        """Posterior mean reward of model j at n dictionary rows (n, P)."""
        fits, local = self._locate(j)
        return fits.mean(local, features)

    def nothing(self) -> FloatArray:
        """Zeros for all models, (M,), wherever what agents suggest is."""
        zeros: FloatArray = getattr(self.fits[0], "xp", np).zeros(sum(own.n_models for own in self.fits))
        return zeros

    def placed(self, values: FloatArray) -> FloatArray:
        """Values of all models, (M,), wherever what agents suggest is."""
        placed: FloatArray = getattr(self.fits[0], "xp", np).asarray(values)
        return placed

    def _locate(self, j: int) -> tuple[Posteriors, int]:
        """The fits that hold model j, and its number there."""
        if self._unlisted:
            return self.fits[0], j
        for fits, members in zip(self.fits, self.members, strict=True):
            local = int(np.searchsorted(members, j))
            if local < members.size and members[local] == j:
                return fits, local
        raise IndexError(f"there is no model {j}")

    def state(self) -> list[Packable]:
        """Everything the agents need to continue."""
        return [fits.state() for fits in self.fits]

    def restore(self, state: list[Packable]) -> None:
        """Continue from `state`."""
        saved = sequence("pool", state, len(self.fits))
        restored = [agents_posteriors(*own) for own in self._made_of]
        for fits, one in zip(restored, saved, strict=True):
            fits.restore(one)
        self.fits = restored
        for fits in self.fits:
            same("n_observations of an agent", fits.n_observations, self.n_observations, "as for all others")
        self._forget()


class OwnDataPool:
    """M base agents that learn from their own rounds only, as masters over black-box algorithms assume.

    Policies of agents that have learnt nothing since the last round on the same choices are not computed again.
    """

    def __init__(self, agents: Agents, models: ModelClass, noise_std: float, norm_bound: float) -> None:
        whole = AgentPool(agents, models, noise_std, norm_bound)  # checks the agents and matches them to models
        self.draws = whole.draws
        crowds = zip(whole.agents, whole.members, strict=True)
        owners: list[Agent] = [agent for agent, members in crowds for _ in members]
        order = np.argsort(np.concatenate(whole.members))
        self._agents = [owners[int(k)] for k in order]
        self._models, self._noise_std, self._bound = models, noise_std, norm_bound
        self._pools = [self.newborn(j) for j in range(models.n_models)]
        self._played_on: bytes | None = None  # key of the last round, and the policies in it
        self._policies: dict[int, Suggestions] = {}

    def newborn(self, j: int) -> AgentPool:
        """The agent of model j as it was before it had seen anything."""
        return AgentPool(self._agents[j], self._models.only(j), self._noise_std, self._bound)

    @property
    def n_observations(self) -> int:
        """Most rewards that any of the agents has seen."""
        return max(pool.n_observations for pool in self._pools)

    def update(self, row: FloatArray, y: float, model: int) -> None:
        """Report one observation to the agent of `model`; row has shape (P,)."""
        self._pools[model].update(row, y)
        self._policies.pop(model, None)

    def suggest(self, round_: Round, rng: np.random.Generator) -> Suggestions:
        """Policies of all M agents in a round."""
        if self._played_on != round_.key:
            self._played_on, self._policies = round_.key, {}
        everyone = range(len(self._pools))
        parts = [self._policies[j] if j in self._policies else self._policy(j, round_, rng) for j in everyone]
        return Suggestions.merged(parts, [np.array([j]) for j in everyone])

    def _policy(self, j: int, round_: Round, rng: np.random.Generator) -> Suggestions:
        policy = self._pools[j].suggest(round_, rng, believe=False)  # it may never see what is pending
        if self._pools[j].agents[0].determined:
            self._policies[j] = policy
        return policy

    def best(self, j: int, choices: Choices) -> tuple[int, float]:
        """Position of the best candidate under model j, and its posterior mean."""
        return self._pools[j].best(0, choices)

    def mean(self, j: int, features: FloatArray) -> FloatArray:
        """Posterior mean reward of model j at n dictionary rows (n, P)."""
        return self._pools[j].mean(0, features)

    def state(self) -> list[Packable]:
        """Everything the agents need to continue."""
        return [pool.state() for pool in self._pools]

    def restore(self, state: list[Packable]) -> None:
        """Continue from `state`."""
        for pool, saved in zip(self._pools, sequence("pool", state, len(self._pools)), strict=True):
            pool.restore(saved)
        self._policies = {}


def _crowds(agents: Agents, models: ModelClass) -> list[tuple[Agent, IntArray]]:
    m = models.n_models
    if models.enumerated_on is not None:
        if not isinstance(agents, Agent) or not agents.sweeps:
            raise ValueError(
                "subsets that are enumerated have one agent for all of them: UCB with a number for beta, Greedy or "
                "EpsilonGreedy"
            )
        return [(agents, np.empty(0, dtype=np.int64))]
    if isinstance(agents, Agent):
        return [(_checked(agents, "agents"), np.arange(m))]
    if isinstance(agents, Mapping):
        missing = set(models.names) ^ set(agents)
        if missing:
            raise ValueError(f"agents must name every model exactly once; missing or unknown: {sorted(missing)[:5]}")
        agents = [agents[name] for name in models.names]
    if not isinstance(agents, Sequence) or len(agents) != m:
        raise ValueError(f"agents must be one agent, a dict by model name, or a list of {m} agents, one per model")
    members: dict[Agent, list[int]] = {}
    for j, agent in enumerate(agents):
        members.setdefault(_checked(agent, f"agents[{j}]"), []).append(j)
    return [(agent, np.array(owned, dtype=np.int64)) for agent, owned in members.items()]


def _checked(agent: Agent, name: str) -> Agent:
    if not isinstance(agent, Agent):
        raise TypeError(f"{name} must be an Agent such as UCB() or a subclass of alexp.decision.Agent, got {agent!r}")
    return agent
