"""Rules: how a belief about the rewards of a round becomes a play.

A rule sees a `Belief` and a round, and nothing else. `EvidenceMixture(rule=...)` takes one by name or as an object; a
rule of one's own is a frozen dataclass with a `play`:

    @dataclass(frozen=True)
    class Optimist(Rule):
        beta: float = 1.0

        def play(self, belief, round):
            mean, std = belief.moments(round)
            return Certain(first_best(mean + self.beta * std))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf, log, sqrt
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

import numpy as np

from alexp.common.arguments import FullSignature, check_keywords, constructor
from alexp.common.arrays import FloatArray
from alexp.common.ties import first_best
from alexp.common.validation import count, non_negative, one_of, positive, share
from alexp.decision.plays import Among, Certain, Play, Weighted
from alexp.problem.candidates import Round

__all__ = ["IDS", "UCB", "Belief", "ExpectedImprovement", "HypervolumeImprovement", "Matching", "Rule", "Thompson"]

RuleName = Literal["ids", "ucb", "ei", "ei+ucb", "thompson", "matching"]
_NO_INFORMATION, _ALL_INFORMATION = 1e-300, 1e300
NARROW = 0.7  # width of "ucb" where no candidate is measured twice: it cannot lock there
HONEST = 1.0  # and where deviations are honest, see `Belief.is_honest`
_SHARPER = 2.0  # multiplies the sharpness of "matching" there


Score: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]  # of mean and standard deviation, (n,) each


class Belief(Protocol):
    """What is believed about the rewards of a round's n choices, noise aside; larger is better."""

    @property
    def n_told(self) -> int:
        """Number of rewards so far."""

    @property
    def noise_variance(self) -> float:
        """Expected variance of the noise."""

    @property
    def one_by_one(self) -> bool:
        """Whether the newest reward came right after its ask, not after another reward of a plate."""

    @property
    def is_exact(self) -> bool:
        """Whether measured candidates are believed to give the same reward again."""

    @property
    def is_honest(self) -> bool:
        """Whether deviations are those of probabilities, from rewards that chose the Bernoulli likelihood.

        A linear model of rewards that are 0 or 1 is far too sure of itself, which usual widths make up for. Where
        deviations hold, as much exploration costs more than it brings.
        """

    def rng(self) -> np.random.Generator:
        """Random numbers that depend on the seed and the number of rewards alone, so that a run can be replayed."""

    def moments(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of every choice, (n,) each; pending trials shrink the deviation."""

    def first_best(self, round: Round, score: Score) -> tuple[int, float]:
        """Position and size of the largest score(mean, std), the first of equal ones.

        A score takes and gives arrays (n,), element by element, and must not fall where the deviation rises: while
        trials are pending, choices that cannot be the best by an earlier, larger deviation are not looked at.
        """

    def expected_improvement(self, round: Round, width: float) -> FloatArray:
        """E[max(reward - incumbent, 0)] of every choice, (n,), with deviations multiplied by `width`.

        Per unit of cost, where experiments have one.
        """

    def most_improving(self, round: Round, width: float) -> tuple[int, float]:
        """Position and size of the largest expected improvement, the first of equal ones."""

    def sample(self, round: Round, rng: np.random.Generator) -> FloatArray:
        """Rewards of all choices, (n,), under one draw from the posterior."""

    def best_probabilities(self, round: Round, rng: np.random.Generator) -> FloatArray:
        """Posterior probability that each choice is the best, (n,)."""


class SeveralBeliefs(Protocol):
    """What is believed about a round's n choices where there are K objectives; larger is better in each."""

    @property
    def reference(self) -> FloatArray:
        """What the hypervolume is measured from, (K,)."""

    def front(self, round: Round) -> FloatArray:
        """Measured values, and values expected of pending trials, (m, K)."""

    def excess(self, objective: int, round: Round, levels: FloatArray, width: float) -> FloatArray:
        """E[max(value - level, 0)] of one objective at L levels, (L, n), with deviations multiplied by `width`."""

    def uncertainty(self, round: Round) -> FloatArray:
        """Standard deviations summed over the objectives, each in units of its reach above the reference, (n,)."""

    def worth(self, round: Round, gains: FloatArray) -> FloatArray:
        """Gains (n,) times the probability of success, per unit of cost where experiments have one."""


class Rule(ABC):
    """Decides a round. A subclass is a frozen dataclass of numbers and texts, so that runs can be saved and loaded."""

    # Whether mean and deviation are all it asks for. Only such rules play subsets that are enumerated and never
    # listed, and only for them rewards that a candidate repeats exactly are learned once.
    needs_only_moments: ClassVar[bool] = False
    weighs_objectives: ClassVar[bool] = False  # whether it decides where there are several, on `SeveralBeliefs`
    floor: ClassVar[float] = 0.0  # default share of even play
    __signature__ = FullSignature()

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Keywords are checked; those of the dataclass are the right ones."""
        check_keywords(cls.__name__, kwargs, constructor(cls).parameters)
        return super().__new__(cls)

    @property
    def weighs_cost(self) -> bool:
        """Whether it plays what improves most per cost."""
        return False

    @property
    def narrows(self) -> bool:
        """Whether it explores less where deviations are honest: with others the Gaussian likelihood stays."""
        return False

    @abstractmethod
    def play(self, belief: Any, round: Round) -> Play:
        """A distribution over the choices of the round, from a `Belief`. It changes nothing."""


@dataclass(frozen=True)
class IDS(Rule):
    """argmin of (max(m + beta s) - m(x))^2 / log(1 + s(x)^2 / noise^2): squared regret per information.

    beta_t^2 = 4 + log(t)/4 by default. Kirschner and Krause (2018) use this deterministic form for one model.
    """

    beta: float | None = None
    needs_only_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_width("beta", self.beta)

    def width(self, t: int) -> float:
        """beta in round t."""
        return sqrt(4.0 + 0.25 * log(t)) if self.beta is None else self.beta

    def play(self, belief: Belief, round: Round) -> Play:
        """One choice for sure; where nothing is left to learn, the best mean."""
        position, highest = belief.first_best(round, _upper_end(self.width(belief.n_told + 1)))
        if belief.is_exact:  # there is no noise to weigh information by
            return Certain(position)
        position, size = belief.first_best(round, partial(_regret_per_information, highest, belief.noise_variance))
        return Certain(position if size > -inf else belief.first_best(round, _upper_end(0.0))[0])


@dataclass(frozen=True)
class UCB(Rule):
    """argmax of m + beta s; beta_t^2 = 2 + log(t)/4 by default, and 1 where deviations are honest."""

    beta: float | None = None
    needs_only_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_width("beta", self.beta)

    def width(self, t: int) -> float:
        """beta in round t."""
        return sqrt(2.0 + 0.25 * log(t)) if self.beta is None else self.beta

    @property
    def narrows(self) -> bool:
        return self.beta is None

    def play(self, belief: Belief, round: Round) -> Play:
        beta = HONEST if belief.is_honest and self.beta is None else self.width(belief.n_told + 1)
        return Certain(belief.first_best(round, lambda mean, std: mean + beta * std)[0])


@dataclass(frozen=True)
class ExpectedImprovement(Rule):
    """argmax of the expected improvement over the incumbent, under deviations times `width`.

    With `alternate`, where rewards come one by one, every second round plays argmax of m + alternate s instead.
    """

    width: float = 1.0
    alternate: float | None = None

    def __post_init__(self) -> None:
        _check_width("width", self.width)
        _check_width("alternate", self.alternate)

    @property
    def weighs_cost(self) -> bool:
        """Unless every second round has no improvement to weigh."""
        return self.alternate is None

    def play(self, belief: Belief, round: Round) -> Play:
        if self.alternate is not None and belief.n_told % 2 == 0 and not round.pending and belief.one_by_one:
            return Certain(belief.first_best(round, _upper_end(self.alternate))[0])
        position, gain = belief.most_improving(round, self.width)
        return Certain(position if gain > 0.0 else belief.first_best(round, _upper_end(0.0))[0])


@dataclass(frozen=True)
class HypervolumeImprovement(Rule):
    """argmax of the expected growth of the hypervolume of measured values, under deviations times `width`.

    The default, and the only rule of this module, for several objectives. Exact for independent objectives, see
    `alexp.decision.hypervolume`: nothing is drawn. Where no choice is expected to add anything, the least certain one
    is played.
    """

    width: float = 1.0
    weighs_objectives: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_width("width", self.width)

    @property
    def weighs_cost(self) -> bool:
        return True

    def play(self, belief: SeveralBeliefs, round: Round) -> Play:
        from alexp.decision.hypervolume import expected_improvement, free_boxes

        boxes = free_boxes(belief.front(round), belief.reference)
        excesses = [partial(self._excess, belief, objective, round) for objective in range(belief.reference.size)]
        gains = belief.worth(round, expected_improvement(boxes, excesses))
        return Certain(first_best(gains if gains.max() > 0.0 else belief.uncertainty(round)))

    def _excess(self, belief: SeveralBeliefs, objective: int, round: Round, levels: FloatArray) -> FloatArray:
        return belief.excess(objective, round, levels, self.width)


@dataclass(frozen=True)
class Thompson(Rule):
    """argmax under a draw from the posterior.

    A round chooses evenly among the maximisers of `draws` draws, so that its propensity is exact given the draws.
    """

    draws: int = 8

    def __post_init__(self) -> None:
        count("draws", self.draws)

    def play(self, belief: Belief, round: Round) -> Play:
        """Evenly one of the maximisers."""
        rng = belief.rng()
        return Among(np.array([first_best(belief.sample(round, rng)) for _ in range(self.draws)], dtype=np.int64))


@dataclass(frozen=True)
class Matching(Rule):
    """Every choice in proportion to the probability that it is the best, to the power `sharpness`.

    For logs that others will learn from. Sharpness 1 is Thompson sampling with its propensities integrated; more of it
    mostly has less regret, and more runs that stay with a wrong choice. With probability 1 - `share` the choice of
    "ucb" is played instead: regret falls towards that of "ucb", and importance weights of other choices grow by up to
    1 / `share`; where deviations are honest, with a sharpness twice as large. Only rewards change probabilities,
    pending trials do not.
    """

    sharpness: float = 1.0
    share: float = field(default=1.0, metadata={"added": True})
    floor: ClassVar[float] = 0.01

    def __post_init__(self) -> None:
        positive("sharpness", self.sharpness)
        share("share", self.share)

    @property
    def narrows(self) -> bool:
        return self.share < 1.0

    def play(self, belief: Belief, round: Round) -> Play:
        """A probability for every choice."""
        chances = belief.best_probabilities(round, belief.rng())
        sharper = _SHARPER if self.narrows and belief.is_honest else 1.0
        shares = (chances / chances.max()) ** (sharper * self.sharpness)
        shares /= shares.sum()
        if self.share < 1.0:
            beta = HONEST if belief.is_honest else UCB().width(belief.n_told + 1)
            best, _ = belief.first_best(round.settled, _upper_end(beta))
            shares *= self.share
            shares[best] += 1.0 - self.share
        return Weighted(np.arange(len(round)), shares)


_NAMED: dict[RuleName, Callable[[float | None], Rule]] = {
    "ids": IDS,
    "ucb": UCB,
    "ei": lambda width: ExpectedImprovement(1.0 if width is None else width),
    "ei+ucb": lambda width: ExpectedImprovement(1.0 if width is None else width, NARROW),
    "thompson": lambda _: Thompson(),
    "matching": lambda _: Matching(),
}


def rule_named(name: str, width: float | None = None) -> Rule:
    """A rule by its name, with a width in place of its own where it has one.

    >>> rule_named("ucb", 0.7)
    UCB(beta=0.7)
    """
    return _NAMED[one_of("rule", name, tuple(sorted(_NAMED)))](width)


def _check_width(name: str, width: float | None) -> None:
    if width is not None:
        non_negative(name, width)


def _upper_end(beta: float) -> Score:
    """The score m + beta s."""
    return lambda mean, std: mean + beta * std


def _regret_per_information(highest: float, noise_variance: float, mean: FloatArray, std: FloatArray) -> FloatArray:
    """-D^2 / I, the squared regret paid per unit of information gained; minus infinity where there is none to gain.

    D(x) = highest - mean(x) with the `highest` mean + beta std is the largest regret one may be paying and
    I(x) = log(1 + std(x)^2 / noise_variance) twice the information about the reward that one observation at x brings.
    """
    with np.errstate(over="ignore"):
        information = np.log1p(np.minimum(std**2 / noise_variance, _ALL_INFORMATION))
    with np.errstate(divide="ignore", invalid="ignore"):
        out: FloatArray = np.where(information < _NO_INFORMATION, -inf, -((highest - mean) ** 2) / information)
    return out
