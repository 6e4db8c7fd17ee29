"""Scenarios that only the comparison has: real tables of scikit-learn, where no model is true; the true model given.

Tables: candidates are rows, rewards are a standardised column, and the models are feature maps that one might
reasonably try. Told: the class of models that an algorithm gets holds the true one only. Regret there, with the same
prior and the same rule, is what an algorithm would pay if choosing a model was free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import sqrt

import numpy as np

from alexp.algorithms.base import Streams
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, positive
from alexp.problem import Domain, FiniteSet, ModelClass
from alexp.simulation import ModelEnvironment
from alexp_experiments.core.scenarios import Scenario

TABLES = ("diabetes", "digits")
_ROWS = 113  # purpose of the random numbers that pick rows


@dataclass(frozen=True)
class TableScenario(Scenario):
    """A table of scikit-learn; a seed picks `resolution` of its rows.

    Rewards have mean 0 and standard deviation 1/2; the models have an intercept, and the "true" model is the one with
    the largest adjusted R^2 on the rows, which is what an oracle would be given.

    Attributes
    ----------
    family : "diabetes" (442 patients; the reward is the progression of the disease; six maps of ten measurements) or
        "digits" (1,797 images; the reward is the digit that is shown; eight maps of 64 pixels).
    """

    family: str = "diabetes"
    resolution: int = 300
    noise_std: float = 0.1
    intercept: bool = True
    version: int = 1  # of the maps and rewards of this file; part of what results are kept under

    def __post_init__(self) -> None:
        if self.family not in TABLES:
            raise ValueError(f"family must be one of {', '.join(TABLES)}, got {self.family!r}")
        count("resolution", self.resolution)
        count("steps", self.steps)
        positive("noise_std", self.noise_std)
        positive("stated_noise", self.stated_noise)

    @property
    def n_models(self) -> int:
        """M."""
        return len(_maps(self.family))

    @property
    def reward_range(self) -> tuple[float, float]:
        """Three standard deviations of the rewards and of the noise."""
        width = 1.5 + 3.0 * self.noise_std * self.stated_noise
        return -width, width

    def problem(self, seed: int) -> tuple[ModelClass, Domain]:
        """The maps on the seed's rows, and those rows."""
        rows = self._rows(seed)
        maps = {name: features[rows] for name, features in _maps(self.family).items()}
        return ModelClass.from_matrices(maps, intercept=self.intercept), FiniteSet(rows)

    def _rows(self, seed: int) -> IntArray:
        total = _target(self.family).size
        return np.sort(Streams(seed).generator(_ROWS).permutation(total)[: min(self.resolution, total)])

    def environment(self, seed: int) -> ModelEnvironment:
        """The table's rewards on the seed's rows, measured with noise."""
        return TableEnvironment(self, seed)


class TableEnvironment(ModelEnvironment):
    """Rewards of a table on the rows of one seed; `models` and `true_model` as in `ScenarioEnvironment`."""

    def __init__(self, scenario: TableScenario, seed: int) -> None:
        self.models, domain = scenario.problem(seed)
        rewards = _target(scenario.family)[scenario._rows(seed)]
        super().__init__(domain, rewards, noise_std=scenario.noise_std, random_state=seed)
        table = self.models.matrix(domain)
        self.true_model = int(np.argmax([_adjusted_fit(table[:, group], rewards) for group in self.models.groups]))


def _adjusted_fit(features: FloatArray, rewards: FloatArray) -> float:
    """Adjusted R^2 of a least-squares fit with an intercept; minus infinity when there are too few rows."""
    n, d = features.shape
    if n <= d + 1:
        return -np.inf
    design = np.column_stack([np.ones(n), features])
    residual = rewards - design @ np.linalg.lstsq(design, rewards, rcond=None)[0]
    return float(1.0 - residual.var() / rewards.var() * (n - 1) / (n - d - 1))


def _load(family: str) -> tuple[FloatArray, FloatArray]:
    from sklearn import datasets

    table = datasets.load_diabetes() if family == "diabetes" else datasets.load_digits()
    return np.asarray(table.data, dtype=np.float64), np.asarray(table.target, dtype=np.float64)


@lru_cache(maxsize=2)
def _target(family: str) -> FloatArray:
    """Rewards of all rows, with mean 0 and standard deviation 1/2."""
    target = _load(family)[1]
    return np.asarray(0.5 * (target - target.mean()) / target.std())


def _scaled(features: FloatArray) -> FloatArray:
    """Centred features whose squared norm is one on average; constant columns are dropped."""
    centred = features - features.mean(axis=0)
    spread = centred.std(axis=0)
    kept = centred[:, spread > 0.0] / spread[spread > 0.0]
    return np.asarray(kept / sqrt(kept.shape[1]))


@lru_cache(maxsize=2)
def _maps(family: str) -> Mapping[str, FloatArray]:
    data = _load(family)[0]
    maps = _diabetes_maps(data) if family == "diabetes" else _digits_maps(data)
    return {name: _scaled(features) for name, features in maps.items()}


def _diabetes_maps(data: FloatArray) -> dict[str, FloatArray]:
    """Columns: age, sex, bmi, blood pressure, six blood serum measurements."""
    chosen = data[:, [2, 3, 8]]
    pairs = combinations_with_replacement(range(3), 2)
    products = np.stack([chosen[:, a] * chosen[:, b] for a, b in pairs], axis=1)
    return {
        "age and sex": data[:, :2],
        "body": data[:, :4],
        "serum": data[:, 4:],
        "bmi and s5": data[:, [2, 8]],
        "all ten": data,
        "quadratic in three": np.hstack([chosen, products]),
    }


def _digits_maps(data: FloatArray) -> dict[str, FloatArray]:
    images = data.reshape(-1, 8, 8)
    centred = data - data.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    components = centred @ axes.T
    rng = np.random.default_rng(0)
    whitened = components[:, :10] / components[:, :10].std(axis=0)
    angles = whitened @ rng.standard_normal((10, 20)) * 0.3 + rng.uniform(0.0, 2.0 * np.pi, 20)
    return {
        "rows": images.sum(axis=2),
        "columns": images.sum(axis=1),
        "quarters": images.reshape(-1, 2, 4, 2, 4).sum(axis=(2, 4)).reshape(-1, 4),
        "5 components": components[:, :5],
        "10 components": components[:, :10],
        "20 components": components[:, :20],
        "20 random waves": np.cos(angles),
        "all pixels": data,
    }


@dataclass(frozen=True)
class ToldScenario(Scenario):
    """A scenario of which only the true model is shown."""

    def environment(self, seed: int) -> ModelEnvironment:
        """The environment of a seed, rewards and noise as ever."""
        return _with_one_model(super().environment(seed))


@dataclass(frozen=True)
class ToldTable(TableScenario):
    """A table of which only the model with the largest adjusted R^2 is shown."""

    def environment(self, seed: int) -> ModelEnvironment:
        """The environment of a seed, rewards and noise as ever."""
        return _with_one_model(super().environment(seed))


def _with_one_model(environment: ModelEnvironment) -> ModelEnvironment:
    environment.models = environment.models.only(environment.true_model)
    environment.true_model = 0
    return environment


def with_true_model(scenario: Scenario) -> Scenario:
    """The same problem with the true model as the only one.

    >>> with_true_model(Scenario()).environment(0).models.n_models
    1
    """
    kind = ToldTable if isinstance(scenario, TableScenario) else ToldScenario
    return kind.from_dict(scenario.to_dict())
