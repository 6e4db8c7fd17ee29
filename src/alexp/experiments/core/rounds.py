"""Environments whose candidates are new in every round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.protocol.streams import RandomState, Streams
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.validation import non_negative

if TYPE_CHECKING:
    from alexp.algorithms.protocol.base import Algorithm
    from alexp.algorithms.protocol.trials import Trial
    from alexp.problem.domains import Domain
    from alexp.problem.models import ModelClass

PROBLEM, NOISE, CONTEXT = 100, 101, 102  # purposes of random numbers, apart from those of algorithms with the same seed


class EnvironmentRound(NamedTuple):
    """What a round is asked for with, and the noiseless reward of each of its n candidates (n,)."""

    presented: State
    values: FloatArray


class RoundEnvironment(ABC):
    """Rounds with a key each: whoever plays round t of a seed meets the same candidates with the same luck.

    Attributes
    ----------
    models, domain : what algorithms are constructed with.
    noise_std : of the noise, which all candidates of a round share.
    """

    models: ModelClass
    domain: Domain

    def __init__(self, noise_std: float, random_state: RandomState) -> None:
        self.noise_std = non_negative("noise_std", noise_std)
        self._streams = Streams(random_state)

    @abstractmethod
    def round(self, t: int) -> EnvironmentRound:
        """Round t, counting from 0; the same whenever it is asked for."""

    def noise(self, t: int) -> float:
        """The noise of round t."""
        return float(self.noise_std * self._streams.generator(NOISE, t).standard_normal())

    def outcome(self, t: int, round_: EnvironmentRound, trial: Trial, sign: float) -> tuple[float, float]:
        """Noisy reward and regret of a trial of round t; `sign` is -1 where rewards are to be minimised."""
        values = sign * round_.values
        return float(round_.values[trial.index]) + self.noise(t), float(values.max() - values[trial.index])


class Played(NamedTuple):
    """What happened in n rounds: regret of each (n,), trials, rewards (n,), q_t (n, M) or None, and times (n,)."""

    regrets: FloatArray
    trials: list[Trial]
    rewards: FloatArray
    probabilities: FloatArray | None
    seconds: FloatArray


def play_rounds(algorithm: Algorithm, environment: RoundEnvironment, steps: int, record: bool) -> Played:
    """Ask, observe and tell, round after round."""
    sign = 1.0 if algorithm.direction == "maximize" else -1.0
    regrets, rewards, seconds = np.empty(steps), np.empty(steps), np.empty(steps)
    weights: list[FloatArray] = []
    trials: list[Trial] = []
    for t in range(steps):
        round_ = environment.round(t)
        begin = perf_counter()
        trial = algorithm.ask(**round_.presented)
        seconds[t] = perf_counter() - begin
        if record and offers(algorithm, WeighsModels):
            weights.append(algorithm.probabilities)
        rewards[t], regrets[t] = environment.outcome(t, round_, trial, sign)
        begin = perf_counter()
        algorithm.tell(trial, float(rewards[t]))
        seconds[t] += perf_counter() - begin
        trials.append(trial)
    return Played(regrets, trials, rewards, np.array(weights) if weights else None, seconds)
