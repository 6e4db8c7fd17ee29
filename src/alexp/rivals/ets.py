"""ETS: explore, then select (the paper's variant of ETC): the Lasso chooses the features, UCB plays on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    UCB,
    Agent,
    AgentPool,
    Alone,
    Decision,
    Domain,
    Estimate,
    FloatArray,
    IntArray,
    ModelClass,
    Observation,
    Round,
    State,
    Stated,
    a_dict,
    anything,
    first_best,
    floats,
    integers,
    maybe,
    read_notes,
    record,
    same,
    sequence,
)
from alexp.rivals.etc import ETC, Commitment, ETCSettings


@dataclass(frozen=True)
class Selection(Commitment):
    """A decision after exploration has ended: the agent, and the columns it plays on."""

    pool: AgentPool
    selected: IntArray


class ETS(ETC):
    """Explore and solve one group Lasso like ETC, then run one agent on the selected columns, with all data.

    The columns are those of all groups with theta_j != 0; columns that are equal on every candidate count once.
    If lambda_1 is so large that nothing is selected, the group that would enter first is taken, the one with the
    largest ||Phi_j'y|| / scale_j; if all of these are zero, all columns.

    Needs `noise_std` (lambda_1) and `norm_bound` (the agent's width).
    """

    name: ClassVar[str] = "ets"
    settings: ClassVar[tuple[str, ...]] = (*ETC.settings, "agent")

    def __init__(
        self, models: ModelClass, domain: Domain, *, agent: Agent | None = None, **settings: Unpack[ETCSettings]
    ) -> None:
        super().__init__(models, domain, **settings)
        self.agent = UCB() if agent is None else agent
        self.selected: IntArray | None = None  # columns the agent plays on, set when exploration ends
        self._pool: AgentPool | None = None
        self._explored: dict[int, tuple[FloatArray, float]] = {}  # rows and rewards by trial, until exploration ends

    @property
    def relies_on(self) -> frozenset[str]:
        """The noise for lambda_1, the bounds for the agent."""
        return frozenset(Stated._fields)

    def _exploit(self, round_: Round, fit: Estimate) -> Decision:
        pool, selected = self._pool, self.selected
        if pool is None or selected is None:
            pool, selected = self._selection(fit)
        policies = pool.suggest(round_, self._agent_rng())
        return Selection(Alone(policies, 0, None), fit, pool, selected)

    def _commit(self, round_: Round, decision: Decision) -> None:
        super()._commit(round_, decision)
        if isinstance(decision, Selection):
            self._pool, self.selected, self._explored = decision.pool, decision.selected, {}

    def _learn(self, seen: Observation) -> None:
        super()._learn(seen)
        if self._pool is not None:
            self._pool.update(seen.row, seen.reward)
        else:
            self._explored[seen.trial] = (seen.row, seen.reward)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        position, value, leader = super()._recommend(round_)
        if self._pool is not None:
            position, value = self._pool.best(0, round_.choices)
        return position, value, leader

    def _selection(self, fit: Estimate) -> tuple[AgentPool, IntArray]:
        """The columns that the estimate selects, and an agent on them that has seen all rewards, in order of trials."""
        data = [self._explored[trial] for trial in sorted(self._explored)]
        selected = self._columns(fit, np.array([row for row, _ in data]), np.array([reward for _, reward in data]))
        pool = self._agent_on(selected)
        for row, reward in data:
            pool.update(row, reward)
        return pool, selected

    def _columns(self, fit: Estimate, rows: FloatArray, rewards: FloatArray) -> IntArray:
        groups = self.models.groups
        if fit.groups.size:
            chosen = np.unique(np.concatenate([groups[int(j)] for j in fit.groups]))
        else:
            chosen = self._first_to_enter(rows, rewards)
        return self._distinct_columns(chosen)

    def _first_to_enter(self, rows: FloatArray, rewards: FloatArray) -> IntArray:
        """Columns of the group that is the first to become active as lambda falls."""
        if self.models.intercept:
            rewards = rewards - rewards.mean()
        correlations = rows.T @ rewards
        if not correlations.any():
            return np.arange(self.models.n_columns)
        squares = np.add.reduceat(correlations[self.models.columns_flat] ** 2, self.models.offsets[:-1])
        return self.models.groups[first_best(np.sqrt(squares) / self.models.scales)]

    def _agent_on(self, columns: IntArray) -> AgentPool:
        return AgentPool(self.agent, self.models.pooled(columns), self.noise_std, self.norm_bound)

    def _state(self) -> State:
        pool = None if self._pool is None else self._pool.state()
        explored = {str(trial): list(self._explored[trial]) for trial in sorted(self._explored)}
        return super()._state() | {"selected": self.selected, "pool": pool, "explored": explored}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        columns = integers(None, low=0, high=self.models.n_columns - 1)
        self.selected = record("state", state, {"selected": maybe(columns), "pool": anything})["selected"]
        same("state['selected'] is None", self.selected is None, self._fit is None, "by state['fit']")
        if self.selected is not None:
            self._pool = self._agent_on(self.selected)
            self._pool.restore(state["pool"])
            same("n_observations of the agent", self._pool.n_observations, self.n_told, "the number of rewards")
            return
        # The log has it all, unless it keeps no rows; what states hold of it serves versions that read it from there.
        told = [(k, self._sign * r) for k, r in enumerate(self._log.reward) if r == r]
        if self.log_features != "none":
            self._explored = {k: (self._row(k), reward) for k, reward in told}
            return
        kept = read_notes("state['explored']", record("state", state, {"explored": a_dict})["explored"])
        same("trials of state['explored']", sorted(kept), [k for k, _ in told], "those with a reward")
        row = floats(self.models.n_columns)
        self._explored = {k: (row("a row of state['explored']", sequence("", kept[k], 2)[0]), r) for k, r in told}
