"""A budget per round, where candidates are new in every round: what plays cost, what can be paid, and a price on cost.

Round t brings the allowance b, so that R_t = b t - (costs of rounds 1..t-1) is left when it is decided. A candidate may
be played if it costs at most R_t. Where the cheapest one costs at most b, there always is one, and the costs of t
rounds never exceed b t.

That alone would spend every allowance at once. So that costs go where they bring most, decisions weigh rewards less
lambda_t x cost, with a dual variable that follows what is left:

    lambda_t = S / (c_+ - c_min) x exp(-3 R_t / theta_t),     theta_t = c_max + sqrt(b c_max t),

S the range of the rewards so far, c_min and c_max the least and the largest cost of the round, c_+ the least one above
b and c_min. With an empty purse no gain of at most S pays for a candidate of more than b. For constant S and theta
these are multiplicative steps on the Lagrangian dual, lambda_{t+1} = lambda_t exp(3 (c_t - b) / theta). docs/budgets.md
has the bounds. The price is a function of the log: asks leave nothing behind but their trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, sqrt
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray
from alexp.common.validation import non_negative
from alexp.problem.domains import Arms, Domain
from alexp.problem.models import ModelClass

_ROUNDING = 1e-9  # of what is left
_STEP = 3.0  # of 2, 4 and 8 the small ones earn most where the budget is tight, 4 where it is half of the cost


def check_round_cost(cost: object, domain: Domain, models: ModelClass) -> str | tuple[float, ...]:
    """What plays cost: the name of a feature of the round's candidates, or a number for each arm."""
    if isinstance(cost, str):
        cost_column(cost, models)
        return cost
    if not isinstance(domain, Arms):
        raise ValueError(
            "cost= must name the feature that holds it, a block or map of one column, because candidates are new in "
            f"every round; got {cost!r:.80}"
        )
    if isinstance(cost, Mapping):
        if set(cost) != set(domain.names):
            raise ValueError(f"cost must have a number for each arm, {', '.join(domain.names)}; got {list(cost)!r:.80}")
        cost = [cost[name] for name in domain.names]
    if not isinstance(cost, Sequence | np.ndarray) or np.ndim(cost) != 1 or len(cost) != len(domain):
        raise ValueError(f"cost must have a number for each of the {len(domain)} arms, got {cost!r:.80}")
    return tuple(non_negative(f"cost of arm {name!r}", one) for name, one in zip(domain.names, cost, strict=True))


def cost_column(cost: str, models: ModelClass) -> int:
    """The column of the dictionary that holds the cost: the only one of a block or map."""
    names = models.dictionary.names
    if f"{cost}[0]" not in names or f"{cost}[1]" in names:
        raise ValueError(f"cost={cost!r} must name a block or map of one column; features are {', '.join(names):.200}")
    return names.index(f"{cost}[0]")


class RoundPurse(NamedTuple):
    """What the next round may cost: `budget` for each of the `rounds` with it, less what was `spent` before."""

    budget: float
    rounds: int
    spent: float

    @property
    def left(self) -> float:
        """R_t."""
        return max(self.budget * self.rounds - self.spent, 0.0)

    def allows(self, costs: FloatArray) -> BoolArray:
        """Which candidates with these costs (n,) can be paid, up to rounding."""
        return np.asarray(costs <= self.left * (1.0 + _ROUNDING))

    def price(self, costs: FloatArray, spread: float) -> float:
        """lambda_t, in rewards per cost, from the costs of all candidates of the round and the range of rewards."""
        least = float(costs.min())
        dear = costs[costs > max(self.budget, least)]
        if not dear.size:  # whatever is played can be paid again, or costs the same
            return 0.0
        most = float(dear.max())
        unit = most + sqrt(self.budget * most * self.rounds)
        return spread / (float(dear.min()) - least) * exp(-_STEP * self.left / unit)
