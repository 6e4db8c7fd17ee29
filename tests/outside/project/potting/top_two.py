"""A rule."""

from dataclasses import dataclass

import numpy as np

from alexp.extend import Belief, Certain, Play, Round, Rule, Weighted, fraction


@dataclass(frozen=True)
class TopTwo(Rule):
    """The likeliest best choice with probability `leader`, the second likeliest otherwise (Russo 2016)."""

    leader: float = 0.5

    def __post_init__(self) -> None:
        fraction("leader", self.leader)

    def play(self, belief: Belief, round: Round) -> Play:
        """Two choices."""
        if len(round) == 1:
            return Certain(0)
        first, second = np.argsort(-belief.best_probabilities(round, belief.rng()), kind="stable")[:2]
        return Weighted(np.array([first, second]), np.array([self.leader, 1.0 - self.leader]))
