"""Scenarios as data: which class of models, which domain, which reward, which noise, how many rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import comb, sqrt
from typing import Any, Self, TypeAlias

import numpy as np

from alexp.algorithms.base import Algorithm, Streams
from alexp.common.arrays import FloatArray
from alexp.common.validation import count, finite, non_negative, positive
from alexp.problem import Domain, FiniteSet, Interval, ModelClass
from alexp.simulation import ModelEnvironment, Run, SyntheticEnvironment, simulate

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Settings: TypeAlias = Mapping[str, Json]


_FEATURES, _MISFIT, _HEAVY = 110, 111, 112  # purposes of random numbers, apart from those of environments

FAMILIES = ("legendre", "gaussian")
NOISES = ("gaussian", "student-t")


@dataclass(frozen=True)
class Scenario:
    """One kind of problem; a seed turns it into an environment.

    Attributes
    ----------
    family : "legendre", all `size`-subsets of P_0..P_degree on [-1, 1]; or "gaussian", `n_maps` independent feature
        maps with `size` standard normal features each, divided by sqrt(size), drawn anew for every seed.
    size : features per model, the paper's s.
    degree : largest degree, the paper's p (family "legendre").
    n_maps : number of models (family "gaussian").
    resolution : N, number of candidates.
    steps : n, rounds to play.
    noise_std : standard deviation of the noise.
    noise : "gaussian", or "student-t" with three degrees of freedom, scaled to the same standard deviation.
    stated_noise : what algorithms are told about the noise, as a multiple of the truth.
    offset : constant added to every reward.
    intercept : whether the models that algorithms get have an unpenalised constant.
    misfit : size of a component of the reward that no model contains, in units of the norm of theta.

    >>> SCENARIOS["large"].n_models, SCENARIOS["hard-meant"].n_models
    (165, 55)
    >>> Scenario.from_dict(SCENARIOS["easy"].to_dict()) == SCENARIOS["easy"]
    True
    """

    family: str = "legendre"
    size: int = 2
    degree: int = 10
    n_maps: int = 50
    resolution: int = 2000
    steps: int = 100
    noise_std: float = 0.01
    noise: str = "gaussian"
    stated_noise: float = 1.0
    offset: float = 0.0
    intercept: bool = False
    misfit: float = 0.0

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {self.family!r}")
        if self.noise not in NOISES:
            raise ValueError(f"noise must be one of {', '.join(NOISES)}, got {self.noise!r}")
        for name in ("size", "n_maps", "resolution", "steps"):
            count(name, getattr(self, name))
        if self.family == "legendre" and self.size > count("degree", self.degree, 0) + 1:
            raise ValueError(f"size must be at most degree + 1 = {self.degree + 1}, got {self.size}")
        positive("noise_std", self.noise_std)
        positive("stated_noise", self.stated_noise)
        finite("offset", self.offset)
        non_negative("misfit", self.misfit)

    @property
    def n_models(self) -> int:
        """M."""
        return comb(self.degree + 1, self.size) if self.family == "legendre" else self.n_maps

    @property
    def reward_range(self) -> tuple[float, float]:
        """Interval that holds the rewards and three standard deviations of noise, for methods on bounded losses.

        |r| <= max ||phi_j|| ||theta|| + misfit; for Gaussian features, which are unbounded, 3 stands for the norm.
        """
        width = (sqrt(self.size) if self.family == "legendre" else 3.0) + self.misfit
        width += 3.0 * self.noise_std * self.stated_noise
        return self.offset - width, self.offset + width

    def problem(self, seed: int) -> tuple[ModelClass, Domain]:
        """Class of models and domain; only the Gaussian family depends on the seed."""
        if self.family == "legendre":
            return _legendre(self.degree, self.size, self.resolution, self.intercept)
        rng = Streams(seed).generator(_FEATURES)
        shape = (self.resolution, self.size)
        maps = {f"map {j}": rng.standard_normal(shape) / sqrt(self.size) for j in range(self.n_maps)}
        return ModelClass.from_matrices(maps, intercept=self.intercept), FiniteSet(np.arange(self.resolution))

    def environment(self, seed: int) -> ModelEnvironment:
        """The environment of a seed; without misfit, offset and heavy tails it is `SyntheticEnvironment`'s."""
        return ScenarioEnvironment(self, seed)

    def play(self, algorithm: Algorithm, environment: ModelEnvironment) -> Run:
        """One run of an algorithm against an environment of this scenario."""
        return simulate(algorithm, environment, self.steps)

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def to_dict(self) -> Settings:
        """Plain data, for hashing and storage."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Invert `to_dict`; unknown fields raise."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(data) - set(known))
        if unknown:
            raise ValueError(f"unknown fields of a scenario: {', '.join(unknown)}; known are {', '.join(known)}")
        return cls(**data)


class ScenarioEnvironment(ModelEnvironment):
    """The reward of a scenario under one seed.

    Attributes
    ----------
    models : the class of models, as algorithms see it.
    true_model : the model that carries the reward (up to offset and misfit).
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.models, domain = scenario.problem(seed)
        base = SyntheticEnvironment(self.models, domain, noise_std=scenario.noise_std, random_state=seed)
        self.true_model, self.theta = base.true_model, base.theta
        rewards = base.rewards + scenario.offset + scenario.misfit * _misfit(scenario, domain, seed)
        super().__init__(domain, rewards, noise_std=scenario.noise_std, random_state=seed)
        self._heavy = Streams(seed).generator(_HEAVY) if scenario.noise == "student-t" else None

    def noise(self) -> float:
        """One draw of the noise."""
        if self._heavy is None:
            return super().noise()
        return float(self.noise_std * self._heavy.standard_t(3) / sqrt(3.0))  # a t with 3 degrees has variance 3


def _misfit(scenario: Scenario, domain: Domain, seed: int) -> FloatArray | float:
    """A function of size one that no model contains: a fast wave on the interval, white noise on a table."""
    if scenario.misfit == 0.0:
        return 0.0
    rng = Streams(seed).generator(_MISFIT)
    if scenario.family == "legendre":
        return np.asarray(np.sin(rng.uniform(20.0, 40.0) * domain.points + rng.uniform(0.0, 2.0 * np.pi)))
    return rng.uniform(-1.0, 1.0, domain.n_candidates)


@lru_cache(maxsize=8)
def _legendre(degree: int, size: int, resolution: int, intercept: bool) -> tuple[ModelClass, Domain]:
    models = ModelClass.legendre(degree=degree, size=size, intercept=intercept)
    return models, Interval(-1.0, 1.0, resolution=resolution)


SCALING_DEGREES = (9, 10, 11, 12, 13)  # M = 45, 55, 66, 78, 91
BEYOND_DEGREES = (31, 63, 99, 141)  # M = 496, 2016, 4950, 10011

SCENARIOS: dict[str, Scenario] = {
    "easy": Scenario(size=2, degree=10),
    "hard-printed": Scenario(size=8, degree=10),  # s = 8 as the paper prints it; M = C(11, 8) = 165
    "hard-meant": Scenario(size=9, degree=10),  # M = 55, and 36 models share 7 polynomials with the true one
    "large": Scenario(size=3, degree=10),
    **{f"scaling-{p}": Scenario(size=2, degree=p) for p in (*SCALING_DEGREES, *BEYOND_DEGREES)},
}


def scenario_named(name: str) -> Scenario:
    """A scenario by its name, or an error that lists the names.

    >>> scenario_named("easy").n_models
    55
    """
    if name not in SCENARIOS:
        raise ValueError(f"there is no scenario {name!r}; known are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
