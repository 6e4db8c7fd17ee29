"""Environments with a known reward function, and running an algorithm against one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from math import fsum, sqrt
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from alexp.algorithms.base import Algorithm, RandomState, Streams
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.log import Trial
from alexp.common.arrays import Action, FloatArray
from alexp.common.codec import State
from alexp.common.extras import require
from alexp.common.validation import count, non_negative, positive
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROBLEM, NOISE, CONTEXT = 100, 101, 102  # purposes of random numbers, apart from those of algorithms


class Environment:
    """A reward known on every candidate, observed with Gaussian noise.

    Attributes
    ----------
    rewards : (N,) noiseless reward of every candidate.
    """

    def __init__(
        self, domain: Domain, rewards: ArrayLike, *, noise_std: float = 0.1, random_state: RandomState = None
    ) -> None:
        self.domain, self.noise_std = domain, non_negative("noise_std", noise_std)
        self.rewards: FloatArray = np.asarray(rewards, dtype=np.float64)
        if self.rewards.shape != (domain.n_candidates,) or not np.all(np.isfinite(self.rewards)):
            raise ValueError(f"rewards must be {domain.n_candidates} finite numbers, one per candidate")
        self._streams = Streams(random_state)
        self._noise = self._streams.generator(NOISE)

    @property
    def best_value(self) -> float:
        """The largest noiseless reward among the candidates."""
        return float(self.rewards.max())

    def noise(self) -> float:
        """One draw of the noise."""
        return float(self.noise_std * self._noise.standard_normal())

    def observe_index(self, index: int) -> float:
        """A noisy reward of candidate `index`."""
        return float(self.rewards[index]) + self.noise()

    def reward(self, x: Action) -> Any:
        """Noiseless reward of an action: a float, or an array for several actions of an Interval or Box."""
        if isinstance(self.domain, FiniteSet):
            return float(self.rewards[self.domain.locate(x)])
        raise TypeError("this environment knows rewards at its candidates only; use .rewards[index]")

    def observe(self, x: Action) -> Any:
        """The reward of `x` plus noise."""
        value = self.reward(x)
        if np.ndim(value) == 0:
            return value + self.noise()
        return value + self.noise_std * self._noise.standard_normal(np.shape(value))


class ModelEnvironment(Environment):
    """An environment with the models to choose from and the number of the true one.

    Attributes
    ----------
    models : the class of models, as algorithms see it.
    true_model : number of the model that carries the reward, or comes closest to it.
    """

    models: ModelClass
    true_model: int


class SyntheticEnvironment(ModelEnvironment):
    """The paper's data model: a random true model with Gaussian coefficients normalised to `norm`.

    Attributes
    ----------
    true_model : number of the model the reward is linear in.
    theta : (d,) its coefficients.

    >>> from alexp import Interval, ModelClass
    >>> env = SyntheticEnvironment(ModelClass.legendre(4, 2), Interval(), noise_std=0.01, random_state=7)
    >>> bool(np.isclose(np.linalg.norm(env.theta), 1.0)), env.reward(0.5) <= env.best_value
    (True, True)
    """

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        noise_std: float = 0.01,
        norm: float = 1.0,
        true_model: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        models.require_linear("SyntheticEnvironment", "it draws coefficients of columns")
        streams = Streams(random_state)
        rng = streams.generator(PROBLEM)
        features = models.matrix(domain)
        drawn = int(rng.integers(models.n_models))
        self.models = models
        self.true_model = drawn if true_model is None else count("true_model", true_model, 0)
        if self.true_model >= models.n_models:
            raise ValueError(f"true_model must be below {models.n_models}, got {true_model}")
        self._columns = models.groups[self.true_model]
        theta = rng.standard_normal(self._columns.size)
        self.theta = positive("norm", norm) * theta / sqrt(fsum(theta * theta))
        self._beta = self.theta / models.scales[self.true_model]
        super().__init__(
            domain, _combined(features[:, self._columns], self._beta), noise_std=noise_std, random_state=streams.entropy
        )

    def reward(self, x: Action) -> Any:
        """Noiseless reward of any action of the domain, candidate or not."""
        rows, single = self.models.rows(self.domain, x)
        values = _combined(rows[:, self._columns], self._beta)
        return float(values[0]) if single else values


def _combined(columns: FloatArray, beta: FloatArray) -> FloatArray:
    """The product of columns (n, d) and coefficients (d,), summed exactly: rewards are the same on every processor."""
    return np.array([fsum(row) for row in (columns * beta).tolist()])


class EnvironmentRound(NamedTuple):
    """The arguments of `ask` in a round, and the noiseless reward of each of its n candidates (n,)."""

    presented: State
    values: FloatArray


class RoundEnvironment(ABC):
    """Rounds that depend on seed and number only: all algorithms meet the same candidates and the same noise.

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


_MOST_RECORDED = 50_000_000  # numbers, 400 MB


@dataclass(frozen=True, repr=False)
class Run:
    """The record of one simulation.

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

    def plot(self, ax: Axes | None = None, *, engine: str = "matplotlib") -> Any:
        """Draw the cumulative regret; returns the axes, or with `engine="plotly"` a figure of Plotly."""
        return import_module("alexp.plot").regret(self, ax, engine=engine)

    def __repr__(self) -> str:
        return f"Run({len(self.trials)} rounds, cumulative regret {self.regret[-1]:.4g})"


def simulate(
    algorithm: Algorithm,
    environment: Environment | RoundEnvironment,
    steps: int,
    *,
    first: Sequence[int] = (),
    plate: int = 1,
    repeats: bool = True,
    record_probabilities: bool | None = None,
    progress: bool | Callable[[int], None] = False,
) -> Run:
    """Play `steps` rounds of ask, observe, tell.

    Where candidates are new in every round (a `RoundEnvironment`), one is asked for at a time.

    Parameters
    ----------
    first : candidates that are measured before the first ask and passed to `observe`. They are the first rounds of the
        run.
    plate : number of trials per ask.
    repeats : if False, no candidate is measured twice: the algorithm has `repeats=False`, or gets the rest as
        `available`. Regret of round t is then against the t-th best candidate: after n rounds it is the sum of the n
        best rewards minus the rewards collected.
    record_probabilities : q_t is recorded by default when it fits in 400 MB.
    progress : True shows a bar with the time left; a function is called with the number of finished rounds.
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False or a function of the finished rounds, got {progress!r}")
    count("steps", steps)
    count("plate", plate)
    if progress is True:
        with _bar(type(algorithm).__name__, steps) as shown:
            return simulate(
                algorithm, environment, steps, first=first, plate=plate, repeats=repeats,
                record_probabilities=record_probabilities, progress=shown,
            )  # fmt: skip
    done = progress or _ignored
    if isinstance(environment, RoundEnvironment):
        if first or plate != 1 or not repeats:
            raise ValueError("first, plate and repeats are for environments with a fixed set of candidates")
        return _play_rounds(algorithm, environment, steps, record_probabilities, done)
    if environment.domain.n_candidates != algorithm.domain.n_candidates:
        raise ValueError("environment and algorithm must have the same domain")
    if not repeats and steps > environment.domain.n_candidates:
        raise ValueError(f"without repeats steps must be at most {environment.domain.n_candidates}, got {steps}")
    probabilities = _recorded(algorithm, steps, record_probabilities)
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
        asked = algorithm.ask(size, None if repeats or not algorithm.repeats else left)
        seconds[t : t + size] = (perf_counter() - begin) / size
        if probabilities is not None:
            probabilities[t : t + size] = algorithm.probabilities  # type: ignore[attr-defined]
        rewards[t : t + size] = [environment.observe_index(trial.index) for trial in asked]
        for k, trial in enumerate(asked, t):
            begin = perf_counter()
            algorithm.tell(trial, float(rewards[k]))
            seconds[k] += perf_counter() - begin
            left[trial.index] = False
            done(k + 1)
        trials += asked
    regret = np.cumsum(ideal - values[[trial.index for trial in trials]])
    return Run(regret, trials, rewards, probabilities, seconds)


def _ignored(rounds: int) -> None:
    """What `progress=False` calls."""


@contextmanager
def _bar(title: str, steps: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, with the time left."""
    require("rich")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(title, total=steps)
        yield lambda rounds: bars.update(task, completed=rounds)


def _play_rounds(
    algorithm: Algorithm,
    environment: RoundEnvironment,
    steps: int,
    record: bool | None,
    done: Callable[[int], None],
) -> Run:
    sign = 1.0 if algorithm.direction == "maximize" else -1.0
    regrets, rewards, seconds = np.empty(steps), np.empty(steps), np.empty(steps)
    probabilities = _recorded(algorithm, steps, record)
    trials: list[Trial] = []
    for t in range(steps):
        round_ = environment.round(t)
        begin = perf_counter()
        trial = algorithm.ask(**round_.presented)
        seconds[t] = perf_counter() - begin
        if probabilities is not None:
            probabilities[t] = algorithm.probabilities  # type: ignore[attr-defined]
        rewards[t], regrets[t] = environment.outcome(t, round_, trial, sign)
        begin = perf_counter()
        algorithm.tell(trial, float(rewards[t]))
        seconds[t] += perf_counter() - begin
        trials.append(trial)
        done(t + 1)
    return Run(np.cumsum(regrets), trials, rewards, probabilities, seconds)


def _recorded(algorithm: Algorithm, steps: int, wanted: bool | None) -> FloatArray | None:
    """An array for q_t of every round (steps, M); None if not wanted, too large, or the algorithm has none."""
    shape = (steps, algorithm.models.n_models)
    fits = steps * algorithm.models.n_models <= _MOST_RECORDED
    return np.empty(shape) if offers(algorithm, WeighsModels) and (fits if wanted is None else wanted) else None
