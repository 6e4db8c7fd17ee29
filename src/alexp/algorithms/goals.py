"""What the goals of a mixture mean: its defaults. docs/which-algorithm.md says what else was tried."""

from __future__ import annotations

from typing import NamedTuple


class Defaults(NamedTuple):
    """What a goal means where nothing else is said: the rule, the power of the evidence, and a constant width."""

    rule: str
    power: float
    beta: float | None = None


# By goal, and whether a candidate may be measured again.
DEFAULTS = {
    ("sum", True): Defaults("ids", 1.0),
    ("sum", False): Defaults("ucb", 0.5, 0.7),
    ("best", True): Defaults("ei", 1.0, 1.0),
    ("best", False): Defaults("ei", 0.25, 2.0**0.5),
}
# Where candidates are new in every round: nearly the regret of "ucb", and propensities that others can use.
CONTEXTUAL = Defaults("matching", 1.0)


def defaults(goal: str, repeats: bool, contextual: bool) -> Defaults:
    """What a goal means on a domain."""
    return CONTEXTUAL if contextual and goal == "sum" else DEFAULTS[goal, repeats]
