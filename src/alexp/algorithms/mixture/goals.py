"""What the goals of a mixture mean: its defaults. docs/which-algorithm.md says what else was tried."""

from __future__ import annotations

from typing import NamedTuple


class Defaults(NamedTuple):
    """What a goal means where nothing else is said: the rule, the power of the evidence, and a constant width."""

    rule: str
    power: float
    beta: float | None = None


NARROW = 0.7  # width of "ucb" where nothing is measured twice: it cannot lock there
# By goal, and whether a candidate may be measured again, if models are linear.
DEFAULTS = {
    ("sum", True): Defaults("ids", 1.0),
    ("sum", False): Defaults("ucb", 0.5, NARROW),
    ("best", True): Defaults("ei", 1.0, 1.0),
    ("best", False): Defaults("ei+ucb", 0.25, 2.0),
}
# Where candidates are new in every round: propensities that others can use, at 1.3 to 1.6 times the regret of "ucb".
CONTEXTUAL = Defaults("matching", 1.0)


# Kernels learn about their neighbours only: "ids" then keeps on visiting rows that it knows nothing of.
KERNELS = Defaults("ucb", 1.0)


def defaults(goal: str, repeats: bool, contextual: bool, kernels: bool) -> Defaults:
    """What a goal means on a domain, for models that are linear or kernels."""
    if goal == "sum" and contextual:
        return CONTEXTUAL
    return KERNELS if goal == "sum" and repeats and kernels else DEFAULTS[goal, repeats]
