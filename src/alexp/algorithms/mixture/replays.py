"""Candidates measured again: where that gives the reward they had, it says nothing new, and their reward is known.

No model fits a real table perfectly. Where measuring again gives exactly the same reward, as simulators and lookups do,
what models leave unexplained belongs to the candidate and is no noise. To take every such reward for new evidence makes
a mixture ever surer that its models fit, up to staying with a bad candidate.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.problem.candidates import Choices


class Replays:
    """Holds back rewards that a candidate has given before, until some candidate gives another one.

    Rewards with noise differ at once, and then all of them are learned. Those that agree by chance, clicks for
    instance, are held back for longer; as the best of what seems known is played, they differ soon.

    Parameters
    ----------
    watched : whether rewards are looked at; all of them are learned otherwise.
    """

    def __init__(self, watched: bool) -> None:
        self._watched = watched
        self._first: dict[int, float] = {}
        self._held: list[int] = []

    def __len__(self) -> int:
        """Rewards that were held back."""
        return len(self._held)

    @property
    def known(self) -> Mapping[int, float]:
        """Rewards of the candidates measured, if some were measured again and all of those gave the same; else none."""
        return self._first if self._held else {}

    def hold(self, candidate: int | None, reward: float) -> bool:
        """Whether a reward is the one that the candidate gave before, so that it is not to be learned now."""
        if not self._watched or candidate is None:
            return False
        same = candidate in self._first and self._first[candidate] == reward
        if same:
            self._held.append(candidate)
        elif candidate in self._first:
            self._watched = False
        else:
            self._first[candidate] = reward
        return same

    def release(self) -> list[tuple[int, float]]:
        """Candidates and rewards that were held back, once a candidate has given another reward; none before."""
        if self._watched:
            return []
        out = [(candidate, self._first[candidate]) for candidate in self._held]
        self._first, self._held = {}, []
        return out

    def learned(self, candidates: IntArray) -> BoolArray:
        """(t,) which rewards of a run, given their candidates in the order of tells, have been learned."""
        out = np.ones(candidates.size, dtype=bool)
        if self._held:
            out[:] = False
            out[np.unique(candidates, return_index=True)[1]] = True
        return out

    def settle(self, mean: FloatArray, variance: FloatArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the rewards of n choices, where models expect these; what is known has no variance."""
        if not self._held or choices.indices is None:
            return mean, variance
        numbers = np.fromiter(self._first, dtype=np.int64, count=len(self._first))
        rewards = np.fromiter(self._first.values(), dtype=np.float64, count=len(self._first))
        order = np.argsort(numbers)
        place = np.minimum(np.searchsorted(numbers, choices.indices, sorter=order), numbers.size - 1)
        found = order[place]
        is_known = numbers[found] == choices.indices
        return np.where(is_known, rewards[found], mean), np.where(is_known, 0.0, variance)


def replayed(candidates: IntArray, rewards: FloatArray, watched: bool) -> Replays:
    """What was held back of a run, from its candidates and rewards in the order of tells."""
    out = Replays(watched)
    for candidate, reward in zip(candidates.tolist(), rewards.tolist(), strict=True) if watched else ():
        out.hold(candidate, reward)
        out.release()
    return out
