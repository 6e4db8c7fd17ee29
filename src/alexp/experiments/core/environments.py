"""Environments: a reward function on the candidates of a domain, and noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from alexp.algorithms.protocol.streams import RandomState, Streams
from alexp.common.arrays import Action, FloatArray
from alexp.common.validation import count, non_negative, positive
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.models import ModelClass

_PROBLEM, _NOISE = 100, 101  # purposes of random numbers, apart from those of algorithms with the same seed


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
        self._noise = self._streams.generator(_NOISE)

    @property
    def best_value(self) -> float:
        """The largest noiseless reward among the candidates."""
        return float(self.rewards.max())

    @property
    def best_index(self) -> int:
        """A candidate that attains it."""
        return int(np.argmax(self.rewards))

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
    """An environment that comes with the models to choose from, and knows the one an oracle would be given.

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
        rng = streams.generator(_PROBLEM)
        features = models.matrix(domain)
        drawn = int(rng.integers(models.n_models))
        self.models = models
        self.true_model = drawn if true_model is None else count("true_model", true_model, 0)
        if self.true_model >= models.n_models:
            raise ValueError(f"true_model must be below {models.n_models}, got {true_model}")
        self._columns = models.groups[self.true_model]
        theta = rng.standard_normal(self._columns.size)
        self.theta = positive("norm", norm) * theta / np.linalg.norm(theta)
        self._beta = self.theta / models.scales[self.true_model]
        super().__init__(
            domain, features[:, self._columns] @ self._beta, noise_std=noise_std, random_state=streams.entropy
        )

    def reward(self, x: Action) -> Any:
        """Noiseless reward of any action of the domain, candidate or not."""
        rows, single = self.models.rows(self.domain, x)
        values = rows[:, self._columns] @ self._beta
        return float(values[0]) if single else values
