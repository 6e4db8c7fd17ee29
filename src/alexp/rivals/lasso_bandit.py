"""LASSO Bandit: forced samples, two Lassos for every arm (Bastani and Bayati 2020)."""

from __future__ import annotations

from math import log
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    Algorithm,
    Certain,
    Decision,
    Domain,
    Estimate,
    Even,
    FloatArray,
    GroupLasso,
    IntArray,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    Weighted,
    count,
    first_best,
    floats,
    positive,
    record,
    sequence,
)
from alexp.rivals.lasso_based import FIRST_FIT, decay, plain_lasso

_FORCED, _ALL = 0, 1  # whose rows a Lasso has


class LassoBandit(Algorithm):
    """K arms, one context z with p features, and coefficients of their own for every arm: `ModelClass.per_arm`.

    Ask t is forced for arm a if t = (2^n - 1) K q + j for an n = 0, 1, ... and a j in q (a - 1) + 1 .. q a, and plays
    it if it may. Otherwise, with bF_a the Lasso on the forced rows of arm a at lambda = lam1 reward_bound and bS_a that
    on all its rows at lam2 reward_bound sqrt((log t + log p) / t), t the rewards of all arms together:

        F = {a : z . bF_a > max_a' z . bF_a' - h reward_bound / 2},    play argmax_{a in F} z . bS_a.

    An arm's fits are made when its reward comes, those on all rows from the sixth reward on. These lambdas are
    scikit-learn's alpha, half of the paper's. The paper's lambdas hold unknown constants (phi_0, p*, C_1); these are
    the values of the released codes. A constant of the models is part of every prediction (the released codes fit one
    and omit it).

    Where all candidates share their coefficients there is one "arm", whose forced asks play evenly. The schedule counts
    asks that were not abandoned, and external measurements, whose rows are like others, but no forced ones.

    Needs `reward_bound`. Every arm must be forced before anything is known of it: for the first K q rounds it is no
    better than uniform play.
    """

    name: ClassVar[str] = "lasso-bandit"
    needs_columns: ClassVar[str] = "it chooses columns by a Lasso"
    settings: ClassVar[tuple[str, ...]] = ("q", "h", "lam1", "lam2", "oracle")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        q: int = 1,
        h: float = 5.0,
        lam1: float = 0.05,
        lam2: float = 0.05,
        oracle: GroupLasso | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.q, self.h = count("q", q), positive("h", h)
        self.lam1, self.lam2 = positive("lam1", lam1), positive("lam2", lam2)
        self.oracle = GroupLasso(canonical=False) if oracle is None else oracle  # as the released code has it
        self._arms, self._size = models.arm_blocks or (1, models.n_columns)
        self._data = [[plain_lasso(self.oracle, self._size, models.intercept) for _ in range(2)] for _ in self._each]
        self._beta = np.zeros((2, self._arms, self._size))  # of forced rows, and of all
        self._constant = np.zeros((2, self._arms))

    @property
    def relies_on(self) -> frozenset[str]:
        """The bound, the unit of h and both lambdas."""
        return frozenset({"reward_bound"})

    @property
    def _each(self) -> range:
        return range(self._arms)

    def forced_arm(self, ask: int) -> int | None:
        """For which arm ask number `ask`, counting from 1, is forced; None if it is free."""
        block, place = divmod(ask - 1, self._arms * self.q)
        return place // self.q if block & (block + 1) == 0 else None  # block = 2^n - 1

    def _decide(self, round_: Round) -> Decision:
        forced = self.forced_arm(self.n_asked - len(self._log.abandoned) + 1)
        if forced is not None and self._arms == 1:
            return Decision(Even(len(round_)))
        if forced is not None and forced in round_.indices:
            return Decision(Weighted(np.flatnonzero(round_.indices == forced), np.ones(1), explored=True))
        first, second = self._values(round_)
        second[first <= first.max() - 0.5 * self.h * self.reward_bound] = -np.inf
        return Decision(Certain(first_best(second)))

    def _values(self, round_: Round) -> tuple[FloatArray, FloatArray]:
        """What the Lassos on forced rows and on all rows say of the choices, (n,) each."""
        table, arms = round_.choices.table, self._arm(round_.indices)
        out = np.empty((2, len(round_)))
        none = np.empty(0, dtype=np.int64)
        for arm in np.unique(arms):
            places = np.flatnonzero(arms == arm)
            own = np.ascontiguousarray(table[arm * self._size : (arm + 1) * self._size, places])
            for kind in (_FORCED, _ALL):
                fit = Estimate(self._beta[kind, arm], float(self._constant[kind, arm]), none, np.empty(0))
                out[kind, places] = fit.at(own)
        return out[0], out[1]

    def _arm(self, indices: IntArray) -> IntArray:
        return indices if self._arms > 1 else np.zeros_like(indices)

    def _learn(self, seen: Observation) -> None:
        assert seen.index is not None
        arm, t = (seen.index if self._arms > 1 else 0), self.n_told + 1
        row = seen.row[arm * self._size : (arm + 1) * self._size]
        if seen.trial < self.n_asked and self._log.explored[seen.trial]:  # external measurements have no trial yet
            self._fit(_FORCED, arm, row, seen.reward, self.lam1)
        self._fit(_ALL, arm, row, seen.reward, self.lam2 * decay(t, log(t), log(max(self._size, 2))), t >= FIRST_FIT)

    def _fit(self, kind: int, arm: int, row: FloatArray, reward: float, lam: float, solve: bool = True) -> None:
        data = self._data[arm][kind]
        data.append(row, reward)
        if solve:
            fit = data.solve(lam * self.reward_bound)
            self._beta[kind, arm], self._constant[kind, arm] = fit.beta, fit.intercept

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        values = self._values(round_)[_ALL]
        position = first_best(values)
        return position, float(values[position]), None

    def _state(self) -> State:
        data = [[one.state() for one in pair] for pair in self._data]
        return {"data": data, "beta": self._beta, "constant": self._constant}

    def _restore(self, state: State) -> None:
        checks = {"beta": floats(*self._beta.shape), "constant": floats(*self._constant.shape)}
        known = record("state", state, checks)
        pairs = sequence("state['data']", state.get("data"), self._arms)
        for own, saved in zip(self._data, pairs, strict=True):
            for one, part in zip(own, sequence("state['data']", saved, 2), strict=True):
                one.restore(part)
        if (n := sum(pair[_ALL].n_observations for pair in self._data)) != self.n_told:
            raise ValueError(f"state['data'] must have {self.n_told} rows, the number of rewards, got {n}")
        self._beta, self._constant = known["beta"], known["constant"]
