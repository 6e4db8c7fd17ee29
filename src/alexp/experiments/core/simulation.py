"""Running an algorithm against an environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from alexp.algorithms.protocol.base import Algorithm
from alexp.algorithms.protocol.trials import Trial
from alexp.common.arrays import BoolArray, FloatArray
from alexp.common.validation import count
from alexp.experiments.core.environments import Environment
from alexp.experiments.core.rounds import RoundEnvironment, play_rounds

_MOST_RECORDED = 50_000_000  # numbers, 400 MB


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
    environment: Environment | RoundEnvironment,
    steps: int,
    *,
    first: Sequence[int] = (),
    plate: int = 1,
    repeats: bool = True,
    record_probabilities: bool | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Play `steps` rounds of ask, observe, tell.

    Where candidates are new in every round (a `RoundEnvironment`), one is asked for at a time.

    Parameters
    ----------
    first : candidates that are measured before the algorithm is asked; it is told of them by `observe`. They are the
        first rounds of the run.
    plate : rounds that are asked for at a time.
    repeats : False where no candidate is measured twice, whether the algorithm knows (its own `repeats`) or is offered
        only what is left. Regret of round t is then against the t-th best candidate: n rounds end with the sum of the
        n best minus what was collected.
    record_probabilities : q_t is recorded by default when it fits in 400 MB.
    progress : called with the number of finished rounds.
    """
    count("steps", steps)
    count("plate", plate)
    if isinstance(environment, RoundEnvironment):
        if first or plate != 1 or not repeats:
            raise ValueError("first, plate and repeats are for environments with a fixed set of candidates")
        small = steps * algorithm.models.n_models <= _MOST_RECORDED
        played = play_rounds(
            algorithm, environment, steps, small if record_probabilities is None else record_probabilities
        )
        return Run(np.cumsum(played.regrets), played.trials, played.rewards, played.probabilities, played.seconds)
    if environment.domain.n_candidates != algorithm.domain.n_candidates:
        raise ValueError("environment and algorithm must have the same domain")
    if not repeats and steps > environment.domain.n_candidates:
        raise ValueError(f"without repeats steps must be at most {environment.domain.n_candidates}, got {steps}")
    n_models = algorithm.models.n_models
    if record_probabilities is None:
        record_probabilities = steps * n_models <= _MOST_RECORDED
    record = record_probabilities and hasattr(algorithm, "probabilities")
    probabilities = np.empty((steps, n_models)) if record else None
    sign = 1.0 if algorithm.direction == "maximize" else -1.0
    values = sign * environment.rewards
    ideal = np.full(steps, values.max()) if repeats else -np.sort(-values)[:steps]
    rewards, seconds = np.empty(steps), np.empty(steps)
    left = np.ones(values.size, dtype=bool)
    trials: list[Trial] = []
    for t, index in enumerate(first[:steps]):
        rewards[t] = environment.observe_index(index)
        if probabilities is not None:
            probabilities[t] = algorithm.probabilities  # type: ignore[attr-defined]
        begin = perf_counter()
        trials.append(algorithm.observe(index, float(rewards[t])))
        seconds[t] = perf_counter() - begin
        left[index] = False
    while len(trials) < steps:
        t, size = len(trials), min(plate, steps - len(trials))
        begin = perf_counter()
        asked = algorithm.ask(size, _available(left, repeats or not algorithm.repeats))
        seconds[t : t + size] = (perf_counter() - begin) / size
        if probabilities is not None:
            probabilities[t : t + size] = algorithm.probabilities  # type: ignore[attr-defined]
        rewards[t : t + size] = [environment.observe_index(trial.index) for trial in asked]
        for k, trial in enumerate(asked, t):
            begin = perf_counter()
            algorithm.tell(trial, float(rewards[k]))
            seconds[k] += perf_counter() - begin
            left[trial.index] = False
            if progress is not None:
                progress(k + 1)
        trials += asked
    regret = np.cumsum(ideal - values[[trial.index for trial in trials]])
    return Run(regret, trials, rewards, probabilities, seconds)


def _available(left: BoolArray, everything: bool) -> BoolArray | None:
    return None if everything else left
