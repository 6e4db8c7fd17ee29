"""ModCB: the smallest of nested models that explains the rewards (Foster, Krishnamurthy and Luo 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    SQUARE,
    UCB,
    Agent,
    AgentBased,
    AgentPool,
    Agents,
    Alone,
    Decision,
    Domain,
    Explore,
    FloatArray,
    IntArray,
    ModelClass,
    Observation,
    Packable,
    Proposal,
    Round,
    Shared,
    State,
    anything,
    count,
    floats,
    fraction,
    number,
    positive,
    record,
    sequence,
    whole,
)

# How much better each of nested linear models predicts than another, from few rewards of evenly drawn actions.
#
# With S the second moment of the features of all actions, S_i its leading block for the first d_i columns and b = E[f
# y], the least square error of model i is E[y^2] - b_i' S_i^-1 b_i. The drop from model m to model i is the mean of
# z_s' z_t over pairs of samples, z = S_i^(1/2) (S_i^-1 - S_m^-1) f y (Foster, Krishnamurthy and Luo 2019): it is known
# at the rate sqrt(d) / n, long before either fit is. All of them come from one triangular factor S = L L', because
# leading blocks of L are the factors of leading blocks of S: with u = L^-1 sum f y and g = diag(L^-1 (sum y^2 f f')
# L^-T),
#
#     drop(m, i) = sum_{d_m < k <= d_i} (u_k^2 - g_k) / (n (n - 1)).

_RIDGE = 1e-10  # share of its mean diagonal that keeps S invertible where columns depend on each other


class NestedDrops:
    """Second moments of all features offered, and samples of evenly drawn actions; d columns, smallest model first."""

    def __init__(self, n_columns: int) -> None:
        self._moment = np.zeros((n_columns, n_columns))
        self._cross = np.zeros(n_columns)  # sum of f y
        self._own = np.zeros((n_columns, n_columns))  # sum of y^2 f f'
        self.n_rounds, self.n_rows, self.n_samples = 0, 0, 0
        self._squares = 0.0

    @property
    def mean_square(self) -> float:
        """Mean of y^2."""
        return self._squares / max(self.n_samples, 1)

    def add_round(self, table: FloatArray) -> None:
        """Take in the features of a round's n actions, feature-major (d, n)."""
        self._moment += table @ table.T / table.shape[1]
        self.n_rounds += 1
        self.n_rows += table.shape[1]

    def add_sample(self, row: FloatArray, y: float) -> None:
        """Take in the reward of an evenly drawn action with features (d,)."""
        self._cross += y * row
        self._own += np.outer(y * row, y * row)
        self._squares += y * y
        self.n_samples += 1

    def by_column(self) -> FloatArray:
        """(d,): sums of it over the columns that one model has and another has not are drops in square error.

        Needs a round and two samples.
        """
        moment = self._moment / self.n_rounds
        ridge = _RIDGE * max(float(np.trace(moment)) / len(moment), np.finfo(np.float64).tiny)
        factor = np.linalg.cholesky(moment + ridge * np.eye(len(moment)))
        half = np.linalg.solve(factor, np.column_stack([self._cross, self._own]))
        own = np.linalg.solve(factor, half[:, 1:].T)
        n = self.n_samples
        return np.asarray((half[:, 0] ** 2 - np.diagonal(own)) / (n * (n - 1)))

    def state(self) -> State:
        """Everything needed to continue bit for bit."""
        arrays = {"moment": self._moment, "cross": self._cross, "own": self._own, "squares": self._squares}
        return arrays | {"rounds": self.n_rounds, "rows": self.n_rows, "samples": self.n_samples}

    def restore(self, state: State) -> None:
        """Continue from `state` of as many columns."""
        d = self._cross.size
        square, vector = floats(d, d, low=-SQUARE, high=SQUARE), floats(d, low=-SQUARE, high=SQUARE)
        checks = {
            "moment": square, "cross": vector, "own": square, "squares": number(0.0, SQUARE),
            "rounds": whole(), "rows": whole(), "samples": whole(),
        }  # fmt: skip
        known = record("drops", state, checks)
        self._moment, self._cross, self._own = known["moment"], known["cross"], known["own"]
        self.n_rounds, self.n_rows, self.n_samples = known["rounds"], known["rows"], known["samples"]
        self._squares = known["squares"]


_FEW = 10  # samples that say nothing


@dataclass(frozen=True)
class Offered(Decision):
    """A decision, and the features of all choices (d, n), smallest model first."""

    table: FloatArray


class ModCB(AgentBased):
    """Follow the agent of a small model, and change to a larger one when evenly drawn actions show that it is wrong.

    For models phi^1 < ... < phi^M, each with the columns of the one before it and more. Round t is played evenly with
    probability mu_t = min(1, (K / t)^kappa), K the number of choices, and otherwise by the agent of model m, at first
    the smallest. After every `every` rewards, with E_i the drop in square error from model m to a larger model i, as
    the n evenly played rounds tell it (`NestedDrops`), v their mean y^2 and k = d_i - d_m, m becomes the least i with

        E_i >= test_scale v (2 sqrt(k L) + 2 L) / n,    L = log(2 d_i M / delta).

    That is the tail of a chi-square; in print the threshold is 2 alpha_i with alpha_i of order (tau^6 / gamma^4)
    sqrt(d_i) log^2(2 d_i M / delta) / n, with unknown constants. Models are tested once there are 10 + sqrt(d_i) evenly
    played rounds and 5 d_i rows of features.

    The print plays Exp4-IX on a cover and forgets its data at every switch; here agents (LinUCB, as in the released
    code) learn from all rewards. The released code's estimate of E is biased upwards by sum ||z||^2 / n^2; this one is
    not. No horizon: mu_t needs none.

    Assumes contexts that are independent and alike, and models that are nested; others are refused, unless `cumulative`
    says that model i stands for the columns of all models up to i, as they are listed. Needs `noise_std`
    and `norm_bound` for the agents' widths.
    """

    name: ClassVar[str] = "modcb"
    needs_columns: ClassVar[str] = "it compares regressions on nested sets of columns"
    settings: ClassVar[tuple[str, ...]] = ("agents", "kappa", "test_scale", "delta", "every", "cumulative")
    example: ClassVar[State] = {"cumulative": True}

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        agents: Agents | None = None,
        kappa: float = 1.0 / 3.0,
        test_scale: float = 1.0,
        delta: float = 0.05,
        every: int = 10,
        cumulative: bool = False,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.agents = UCB() if agents is None else agents
        self.kappa, self.test_scale = fraction("kappa", kappa), positive("test_scale", test_scale)
        self.delta, self.every = fraction("delta", delta), count("every", every)
        self.cumulative, self._constant = bool(cumulative), int(models.intercept)
        self._chain, self._columns, sizes = (cumulative_order if self.cumulative else nested_order)(models)
        self._sizes = sizes + self._constant
        groups, names = [np.sort(self._columns[:size]) for size in sizes], [models.names[int(j)] for j in self._chain]
        scales = models.scales[self._chain]
        nested = ModelClass(models.dictionary, groups, names, intercept=models.intercept, scales=scales)
        own = _of_chain(self.agents, models, self._chain)
        self._pool: AgentPool = AgentPool(own, nested, self.noise_std, self.norm_bound)
        self._drops = NestedDrops(self._columns.size + self._constant)
        self._rank = 0  # place of model m in the chain

    @property
    def model(self) -> int:
        """The model whose agent plays."""
        return int(self._chain[self._rank])

    def _decide(self, round_: Round) -> Decision:
        n, policies = len(round_), self._suggestions(round_)
        share = min(1.0, (n / (self.n_told + 1)) ** self.kappa)
        play = Explore(share, n, None, Alone(policies, self._rank, self.model))
        return Offered(play, self._features(round_.choices.table))

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        return *self._pool.best(self._rank, round_.choices), self.model

    def _note(self, decision: Decision, proposal: Proposal) -> list[Packable]:
        """Whether it was played evenly, and all features that were there (d, n)."""
        assert isinstance(decision, Offered)
        return [float(proposal.explored), decision.table]

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, None)
        even, table = seen.note or (0.0, None)  # external measurements have no other candidates
        if table is not None:
            self._drops.add_round(np.asarray(table))
        if even:
            self._drops.add_sample(self._features(seen.row[:, None])[:, 0], seen.reward)
        if (self.n_told + 1) % self.every == 0:
            self._rank = self._sufficient()

    def _features(self, table: FloatArray) -> FloatArray:
        """The columns of the chain, smallest model first, after the models' constant: (d, n)."""
        own = table[self._columns]
        return np.vstack([np.ones((1, own.shape[1])), own]) if self._constant else own

    def _sufficient(self) -> int:
        """The place of the smallest larger model that is needed, or of the present one."""
        n, small = self._drops.n_samples, self._sizes[self._rank]
        if n < _FEW or self._rank == self._sizes.size - 1:
            return self._rank
        gains = self._drops.by_column()
        for rank in range(self._rank + 1, self._sizes.size):
            size = int(self._sizes[rank])
            if n < _FEW + sqrt(size) or self._drops.n_rows < 5 * size:
                break
            log_term = log(2.0 * size * self._sizes.size / self.delta)
            width = 2.0 * sqrt((size - small) * log_term) + 2.0 * log_term
            if gains[small:size].sum() >= self.test_scale * self._drops.mean_square * width / n:
                return rank
        return self._rank

    @property
    def probabilities(self) -> FloatArray:
        """One for the model whose agent plays, shape (M,)."""
        out = np.zeros(self.models.n_models)
        out[self.model] = 1.0
        return out

    def _state(self) -> State:
        return super()._state() | {"drops": self._drops.state(), "rank": self._rank}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        known = record("state", state, {"drops": anything, "rank": whole(0, self._sizes.size - 1)})
        self._drops.restore(known["drops"])
        self._rank = known["rank"]
        self._check_notes(self._read_note)

    def _read_note(self, name: str, note: Packable) -> list[Packable]:
        even, table = sequence(name, note, 2)
        return [number(0.0, 1.0)(name, even), floats(self._columns.size + self._constant, None)(name, table)]


def nested_order(models: ModelClass) -> tuple[IntArray, IntArray, IntArray]:
    """Models from the smallest to the largest (M,), the columns of the largest, of smaller ones first, and sizes."""
    chain = np.argsort([group.size for group in models.groups], kind="stable")
    columns: IntArray = np.empty(0, dtype=np.int64)
    for before, j in zip([0, *chain[:-1]], chain, strict=True):
        group = models.groups[int(j)]
        missing = np.setdiff1d(columns, group)
        if missing.size or group.size == columns.size:
            wrong = "lacks columns of" if missing.size else "has the same columns as"
            raise ValueError(
                "ModCB needs nested models, each with the columns of the next smaller one and more: "
                f"{models.names[int(j)]!r} {wrong} {models.names[int(before)]!r}; with cumulative=True each model "
                "stands for its columns and those of all models before it"
            )
        columns = np.concatenate([columns, np.setdiff1d(group, columns)])
    return chain, columns, np.array([models.groups[int(j)].size for j in chain])


def cumulative_order(models: ModelClass) -> tuple[IntArray, IntArray, IntArray]:
    """The same of unions of models with all before them; models that add no column are left out."""
    chain, sizes = list[int](), list[int]()
    columns: IntArray = np.empty(0, dtype=np.int64)
    for j, group in enumerate(models.groups):
        if (new := np.setdiff1d(group, columns)).size:
            columns = np.concatenate([columns, new])
            chain.append(j)
            sizes.append(columns.size)
    return np.array(chain), columns, np.array(sizes)


def _of_chain(agents: Agents, models: ModelClass, chain: IntArray) -> Agents:
    """The agents of the models in the chain."""
    if isinstance(agents, Agent):
        return agents
    AgentPool(agents, models, 1.0, 1.0)  # checks that there is one for every model
    every = [agents[name] for name in models.names] if isinstance(agents, Mapping) else agents
    return [every[int(j)] for j in chain]
