"""What a claim is, and how verdicts are made of parts that hold, do not hold, or cannot be told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from alexp_experiments.core.statistics import MeanEstimate

HOLDS, PARTLY, OPEN, FAILS = "holds", "holds partly", "not shown", "does not hold"

Part = bool | None  # None: the interval covers what it is held against


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the rule by which we judge it, what we measured, and the verdict."""

    statement: str
    rule: str
    evidence: tuple[str, ...]
    verdict: str


def verdict(parts: Iterable[Part]) -> str:
    """Holds if every part does, partly if some do; if none does, it is not shown or, where one fails, does not hold.

    >>> [verdict(parts) for parts in ([True, True], [True, None], [True, False], [None, None], [None, False])]
    ['holds', 'holds partly', 'holds partly', 'not shown', 'does not hold']
    """
    judged = list(parts)
    if judged and all(judged):
        return HOLDS
    if any(judged):
        return PARTLY
    return FAILS if any(part is False for part in judged) else OPEN


def below(value: MeanEstimate, limit: float) -> Part:
    """Whether a quantity is at most `limit`, as far as its 95% interval can tell.

    >>> [below(MeanEstimate(1.0, 0.1, 0.8, 1.2), limit) for limit in (1.5, 0.5, 1.1)]
    [True, False, None]
    """
    return True if value.high <= limit else False if value.low > limit else None


def above(value: MeanEstimate, limit: float) -> Part:
    """Whether a quantity is larger than `limit`, as far as its 95% interval can tell."""
    return True if value.low > limit else False if value.high <= limit else None


def often(share: float, most: float, some: float) -> str:
    """Verdict on how often something happens: holds at `most` or more, partly at `some` or more."""
    return HOLDS if share >= most else PARTLY if share >= some else FAILS
