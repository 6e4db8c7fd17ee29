"""Plays: distributions over the choices of a round, before one is drawn.

Every play knows the probability of each choice, so that the propensity of what was drawn is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.suggestions import Suggestions
from alexp.decision.weights import draw_index


@dataclass(slots=True)  # one per ask; a frozen one takes four times as long to make
class Proposal:
    """What was drawn; `position` counts within the round's choices.

    Attributes
    ----------
    model : whose agent proposed it; None if no single model did.
    explored : whether it came from the exploration distribution.
    propensity : probability of playing this choice in this round, in whatever way.
    """

    position: int
    model: int | None = None
    explored: bool = False
    propensity: float = 1.0


class Play(Protocol):
    """A distribution over the choices of a round."""

    def draw(self, rng: np.random.Generator) -> Proposal:
        """One choice, with its propensity."""

    def probability(self, position: int) -> float:
        """Probability of one choice."""


@dataclass(frozen=True)
class Certain:
    """One choice for sure."""

    position: int
    model: int | None = None

    def draw(self, rng: np.random.Generator) -> Proposal:
        """That choice."""
        return Proposal(self.position, self.model)

    def probability(self, position: int) -> float:
        """One or zero."""
        return float(position == self.position)


@dataclass(frozen=True)
class Even:
    """Each of n choices alike: exploration."""

    n: int

    def draw(self, rng: np.random.Generator) -> Proposal:
        """One of all choices."""
        return Proposal(int(rng.integers(self.n)), None, True, 1.0 / self.n)

    def probability(self, position: int) -> float:
        """1/n."""
        return 1.0 / self.n


@dataclass(frozen=True)
class Among:
    """Evenly one of a list of positions (K,), in which a choice may come more than once."""

    positions: IntArray

    def draw(self, rng: np.random.Generator) -> Proposal:
        """One of the list."""
        position = int(self.positions[rng.integers(self.positions.size)])
        return Proposal(position, None, False, self.probability(position))

    def probability(self, position: int) -> float:
        """Share of the list."""
        return float(np.mean(self.positions == position))


@dataclass(frozen=True)
class Weighted:
    """Some choices, by position (K,), with probabilities (K,); `explored` says whether that is exploration."""

    positions: IntArray
    weights: FloatArray
    explored: bool = False

    def draw(self, rng: np.random.Generator) -> Proposal:
        """One of them."""
        k = draw_index(self.weights, rng)
        return Proposal(int(self.positions[k]), None, self.explored, float(self.weights[k]))

    def probability(self, position: int) -> float:
        """Its weight."""
        return float(self.weights[self.positions == position].sum())


@dataclass(frozen=True)
class Alone:
    """The policy of one agent out of a crowd; `model` is the number that the proposal gets."""

    policies: Suggestions
    agent: int
    model: int | None

    def draw(self, rng: np.random.Generator) -> Proposal:
        """What the agent draws."""
        position = self.policies.draw(self.agent, rng)
        return Proposal(position, self.model, False, self.probability(position))

    def probability(self, position: int) -> float:
        """The agent's mass."""
        return float(self.policies.mass(position)[self.agent])


@dataclass(frozen=True)
class Follow:
    """The policy of an agent drawn with probabilities `weights` (M,)."""

    weights: FloatArray
    policies: Suggestions

    def draw(self, rng: np.random.Generator) -> Proposal:
        """An agent, then what it draws."""
        model = draw_index(self.weights, rng)
        position = self.policies.draw(model, rng)
        return Proposal(position, model, False, self.probability(position))

    def probability(self, position: int) -> float:
        """sum_j q_j p_j(x)."""
        return float(self.weights @ self.policies.mass(position))


@dataclass(frozen=True)
class Explore:
    """With probability `share` explore, by `design` or evenly over all `n` choices; otherwise another play."""

    share: float
    n: int
    design: FloatArray | None
    otherwise: Play

    def draw(self, rng: np.random.Generator) -> Proposal:
        """An exploring choice or one of the other play."""
        if rng.random() < self.share:
            position = int(rng.integers(self.n)) if self.design is None else draw_index(self.design, rng)
            return Proposal(position, None, True, self.probability(position))
        other = self.otherwise.draw(rng)
        return Proposal(other.position, other.model, False, self._mixed(other.position, other.propensity))

    def probability(self, position: int) -> float:
        """share x exploration + (1 - share) x the other play."""
        return self._mixed(position, self.otherwise.probability(position))

    def _mixed(self, position: int, otherwise: float) -> float:
        explored = self.share / self.n if self.design is None else self.share * self.design[position]
        return float(explored + (1.0 - self.share) * otherwise)


def on_choices(weights: FloatArray | None, indices: IntArray) -> FloatArray:
    """A distribution over all candidates (N,), given that one with these indices (n,) is played, shape (n,).

    None stands for the even one.
    """
    if weights is None:
        return np.full(indices.size, 1.0 / indices.size)
    restricted = weights[indices]
    total = restricted.sum()
    return restricted / total if total > 0.0 else np.full(indices.size, 1.0 / indices.size)
