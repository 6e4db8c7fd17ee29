"""Whoever chooses, on a stream of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from alexp.common.arrays import FloatArray
from alexp_experiments.contextual.streams import ContextRound, ContextStream


class Pick(NamedTuple):
    """What was chosen, by its place in the round, with which probability; `note` comes back with the reward."""

    action: int
    probability: float
    note: object = None


class Chooser(Protocol):
    """Somebody who decides and learns; ours, or an adapter of another library's learner."""

    def decide(self, presented: ContextRound) -> Pick:
        """Choose one of what is offered."""

    def learn(self, presented: ContextRound, pick: Pick, reward: float) -> None:
        """Take in the reward of what was chosen."""

    def weights(self) -> FloatArray:
        """Probabilities of the feature sets at the moment, (M,); empty if there are none."""


@dataclass(frozen=True)
class ContextRun:
    """What happened in T rounds.

    Attributes
    ----------
    regret : (T,) cumulative regret in expectation.
    actions : (T,) what was chosen.
    propensities : (T,) with which probability.
    rewards : (T,) what it gave.
    weights : (M,) probabilities of the feature sets at the end; empty if there are none.
    seconds : (T,) time of each decision and what was learnt from it.
    """

    regret: FloatArray
    actions: NDArray[np.int32]
    propensities: FloatArray
    rewards: FloatArray
    weights: FloatArray
    seconds: FloatArray


def play(chooser: Chooser, stream: ContextStream) -> ContextRun:
    """All rounds of a stream, in order."""
    n = len(stream)
    actions, propensities, rewards, seconds = np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n)
    for t, presented in enumerate(stream):
        begin = perf_counter()
        pick = chooser.decide(presented)
        middle = perf_counter()
        actions[t], propensities[t], rewards[t] = pick.action, pick.probability, stream.rewards[t, pick.action]
        after = perf_counter()
        chooser.learn(presented, pick, float(rewards[t]))
        seconds[t] = perf_counter() - after + middle - begin
    regret = np.cumsum(stream.regrets[np.arange(n), actions])
    return ContextRun(regret, actions, propensities, rewards, chooser.weights(), seconds)
