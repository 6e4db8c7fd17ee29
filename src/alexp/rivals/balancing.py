"""Regret balancing: agents with stated bounds on their regret (Abbasi-Yadkori et al. 2020 and after)."""

from __future__ import annotations

from collections.abc import Sequence
from math import e
from typing import ClassVar, Literal, Unpack, get_args

import numpy as np

from alexp.extend import (
    Agents,
    BoolArray,
    Domain,
    FloatArray,
    ModelClass,
    Shared,
    State,
    booleans,
    first_best,
    one_of,
    positive,
    record,
)
from alexp.rivals.counted import CountedAgents

BalancingRule = Literal["balance", "eliminate", "dynamic"]
RULES: tuple[BalancingRule, ...] = get_args(BalancingRule)


class Balancing(CountedAgents):
    """Agents state how much regret they would have if their model was true; play so that it is the same for all.

    R_i(n) = scale sqrt(d_i n log^3(n^1.5 + e)) is the bound of LinUCB on d_i features for rewards in [0, 1], but for
    its constant and for the number of candidates within the logarithm. With n_i rounds, u_i their mean reward and
    conf_i as in `D3RB`, each agent plays once, and then:

    | rule | plays | among |
    |---|---|---|
    | "balance" | argmin n_i b - n_i u_i, b = max_j (u_j + R_j(n_j)/n_j) | all (Abbasi-Yadkori et al. 2020) |
    | "eliminate" | argmin R_i(n_i) | those never found misspecified (Pacchiano et al. 2020) |
    | "dynamic" | argmin R_i(n_i) | those not misspecified by what is known now (Cutkosky et al. 2021, nested models) |

    Agent i is misspecified when u_i + R_i(n_i)/n_i + conf_i < max_j (u_j - conf_j): lower bounds of the others, as
    printed (a public code compares with the largest upper bound, which drops agents for no reason).

    With `scale` = 1 the bounds exceed all differences for thousands of rounds, and the order in which agents play
    depends on their ratios sqrt(d_i) alone; smaller values are not covered by the theory.

    Needs `loss_range`, or `noise_std` and `reward_bound` for it, and `norm_bound` (the agents' widths).
    """

    name: ClassVar[str] = "balancing"
    settings: ClassVar[tuple[str, ...]] = ("rule", "agents", "scale", "delta", "width", "data_mode", "loss_range")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        rule: BalancingRule = "dynamic",
        agents: Agents | None = None,
        scale: float = 1.0,
        delta: float = 0.05,
        width: float = 1.0,
        data_mode: Literal["own", "shared"] = "own",
        loss_range: Sequence[float] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(
            models,
            domain,
            agents=agents,
            delta=delta,
            width=width,
            data_mode=data_mode,
            loss_range=loss_range,
            **shared,
        )
        self.rule, self.scale = one_of("rule", rule, RULES), positive("scale", scale)
        self._active = np.ones(models.n_models, dtype=bool)  # never found misspecified

    def bounds(self) -> FloatArray:
        """R_i(n_i), shape (M,)."""
        n, sizes = self._counts, np.diff(self.models.offsets)
        logs = np.log(n**1.5 + e)
        return np.asarray(self.scale * np.sqrt(sizes * n * logs**3))

    def _next(self) -> int:
        fresh = self._counts[self._order] == 0.0
        if fresh.any():
            return int(self._order[np.argmax(fresh)])
        bounds = self.bounds()
        if self.rule == "balance":
            best = np.max((self._sums + bounds) / self._counts)
            cost = self._counts * best - self._sums
        else:
            cost = np.where(self._active if self.rule == "eliminate" else self._specified(), bounds, np.inf)
        return int(self._order[first_best(-cost[self._order])])

    def _specified(self) -> BoolArray:
        """Which agents' rewards may be what their bounds promise, (M,); all have played."""
        means, widths = self._means(np.arange(self._counts.size))
        return np.asarray(means + self.bounds() / self._counts + widths >= np.max(means - widths))

    def _balance(self, model: int) -> None:
        if np.all(self._counts > 0.0):
            self._active &= self._specified()

    def _state(self) -> State:
        return super()._state() | {"active": self._active}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        self._active = record("state", state, {"active": booleans(self.models.n_models)})["active"]
