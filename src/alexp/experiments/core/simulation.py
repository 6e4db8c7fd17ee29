"""Running an algorithm against an environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from alexp.algorithms.protocol.base import Algorithm
from alexp.algorithms.protocol.trials import Trial
from alexp.common.arrays import FloatArray
from alexp.common.validation import count
from alexp.experiments.core.environments import Environment


@dataclass(frozen=True)
class Run:
    """What happened in one simulation.

    Attributes
    ----------
    regret : (steps,) cumulative regret of the noiseless reward.
    trials : the proposals, in order.
    rewards : (steps,) observed rewards.
    probabilities : (steps, M) q_t in force at each ask; None for algorithms without, or if not recorded.
    step_seconds : (steps,) wall-clock time of each ask + tell.
    """

    regret: FloatArray
    trials: list[Trial]
    rewards: FloatArray
    probabilities: FloatArray | None
    step_seconds: FloatArray

    @property
    def seconds(self) -> float:
        """Total time spent in ask and tell."""
        return float(self.step_seconds.sum())


def simulate(
    algorithm: Algorithm,
    environment: Environment,
    steps: int,
    *,
    record_probabilities: bool | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Play `steps` rounds of ask, observe, tell.

    q_t is recorded by default when it fits in 400 MB. `progress` is called with the number of finished rounds.
    """
    count("steps", steps)
    if environment.domain.n_candidates != algorithm.domain.n_candidates:
        raise ValueError("environment and algorithm must have the same domain")
    n_models = algorithm.models.n_models
    if record_probabilities is None:
        record_probabilities = steps * n_models <= 50_000_000
    record = record_probabilities and hasattr(algorithm, "probabilities")
    probabilities = np.empty((steps, n_models)) if record else None
    sign = 1.0 if algorithm.direction == "maximize" else -1.0
    gaps = (sign * environment.rewards).max() - sign * environment.rewards
    regret, rewards, seconds = np.empty(steps), np.empty(steps), np.empty(steps)
    trials: list[Trial] = []
    for t in range(steps):
        start = perf_counter()
        trial = algorithm.ask()
        asked = perf_counter()
        if probabilities is not None:
            probabilities[t] = algorithm.probabilities  # type: ignore[attr-defined]
        rewards[t] = environment.observe_index(trial.index)
        observed = perf_counter()
        algorithm.tell(trial, float(rewards[t]))
        seconds[t] = asked - start + perf_counter() - observed
        trials.append(trial)
        regret[t] = gaps[trial.index]
        if progress is not None:
            progress(t + 1)
    return Run(np.cumsum(regret), trials, rewards, probabilities, seconds)
