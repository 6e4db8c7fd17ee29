"""Where the rows of the paper's tables are measured: one group of a few columns matters, out of p columns."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from math import sqrt

import numpy as np

from alexp.algorithms.base import Streams
from alexp.common.arrays import FloatArray
from alexp.common.validation import count, one_of
from alexp.problem.domains import FiniteSet
from alexp.problem.models import ModelClass
from alexp.simulation import PROBLEM, ModelEnvironment, RoundEnvironment
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.sparse.environments import GaussianContexts

FAMILIES = ("contexts", "vectors", "ball")
_BALL = "alexp_experiments.sparse.ball"
LAYOUTS = ("columns", "singles", "groups", "nested", "stacked")
BASE = 30  # columns of the vectors that have norm one
PER_COLUMN = 3  # vectors for every column


@dataclass(frozen=True)
class SparseScenario(Scenario):
    """y = x_a . theta + noise, theta zero outside one of M = p / size groups of `size` columns.

    Attributes
    ----------
    family : "contexts", `arms` Gaussian candidates a round with rho2 = .7, coefficients U(0, 1); or "vectors", a fixed
        set of 3 p vectors, even on the sphere of radius sqrt(p / 30), coefficients of one: with p = 30 that is Case 2
        of Jang et al. (2022), 90 unit vectors, and with more columns each stays as visible as it was; or "ball", the
        unit ball of R^p with noise in the parameters (Carpentier and Munos 2012), `size` coordinates of which matter.
    n_columns : p.
    size : columns of a group; all that sparse methods learn of groups is how many columns matter.
    layout : what an algorithm is given as models: all "columns" as one; "singles", each column for itself; "groups";
        "nested" ones, of `size`, 2 `size`, 4 `size`, ... columns, the second of which has the true group: that order is
        what nestedness means; or "stacked" columns of their own for every arm.
    """

    family: str = "contexts"
    n_columns: int = 100
    arms: int = 20
    size: int = 5
    steps: int = 4000
    noise_std: float = 0.5
    layout: str = "columns"

    def __post_init__(self) -> None:
        one_of("family", self.family, FAMILIES)
        one_of("layout", self.layout, LAYOUTS)
        for name in ("n_columns", "arms", "size", "steps"):
            count(name, getattr(self, name))
        if self.family != "ball" and self.n_columns % self.size:
            raise ValueError(f"n_columns must be a multiple of size = {self.size}, got {self.n_columns}")

    @property
    def n_models(self) -> int:
        """M, the number of groups."""
        return self.n_columns // self.size

    @property
    def reward_bound(self) -> float:
        """What algorithms are told of the size of rewards: nearly all stay below it, however many columns there are."""
        return {"contexts": 5.0, "vectors": 1.0, "ball": 1.0}[self.family]

    @property
    def norm_bound(self) -> float:
        """What they are told of the coefficients' norm, about one standard deviation above its mean."""
        return {"contexts": 1.5, "vectors": sqrt(self.size), "ball": 1.0}[self.family]

    @property
    def reward_range(self) -> tuple[float, float]:
        """For methods on bounded losses."""
        width = self.reward_bound + 3.0 * self.noise_std
        return -width, width

    def environment(self, seed: int) -> ModelEnvironment:
        """The set of vectors of a seed; contexts come from `rounds`."""
        return VectorSet(self, seed)

    def rounds(self, seed: int) -> RoundEnvironment:
        """The contexts of a seed, or its ball."""
        if self.family == "contexts":
            return GroupedContexts(self, seed)
        made: RoundEnvironment = import_module(_BALL).BallEnvironment(
            self.n_columns, self.size, noise_std=self.noise_std, random_state=seed
        )
        return made

    @property
    def made_by(self) -> tuple[str, ...]:
        """Modules that its environments come from."""
        return (type(self).__module__, *([_BALL] if self.family == "ball" else []))


class GroupedContexts(GaussianContexts):
    """Gaussian contexts in which one group of columns matters; the group is `true_model`."""

    def __init__(self, scenario: SparseScenario, seed: int) -> None:
        stacked = scenario.layout == "stacked"
        super().__init__(
            scenario.arms,
            scenario.n_columns,
            scenario.size,
            noise_std=scenario.noise_std,
            stacked=stacked,
            random_state=seed,
        )
        rng = self._streams.generator(PROBLEM, 2)
        self.true_model, self.theta = grouped(scenario, rng, rng.uniform(0.0, 1.0, scenario.size))
        if not stacked and scenario.layout != "columns":
            groups = layout(scenario, self.true_model, rng)
            self.models = ModelClass(self.models.dictionary, groups, [f"model {j}" for j in range(len(groups))])


class VectorSet(ModelEnvironment):
    """A fixed set of vectors, one group of whose columns matters."""

    def __init__(self, scenario: SparseScenario, seed: int) -> None:
        rng = Streams(seed).generator(PROBLEM)
        p = scenario.n_columns
        rows = rng.standard_normal((PER_COLUMN * p, p))
        rows *= sqrt(p / BASE) / np.linalg.norm(rows, axis=1, keepdims=True)
        self.true_model, self.theta = grouped(scenario, rng, np.ones(scenario.size))
        whole = ModelClass.from_matrices({"x": rows}, intercept=False)
        groups = layout(scenario, self.true_model, rng)
        self.models = ModelClass(whole.dictionary, groups, [f"model {j}" for j in range(len(groups))])
        domain = FiniteSet(list(range(len(rows))))
        super().__init__(domain, rows @ self.theta, noise_std=scenario.noise_std, random_state=seed)


def grouped(scenario: SparseScenario, rng: np.random.Generator, values: FloatArray) -> tuple[int, FloatArray]:
    """A group drawn evenly, and coefficients (p,) that have these values there."""
    true = int(rng.integers(scenario.n_models))
    theta = np.zeros(scenario.n_columns)
    theta[true * scenario.size : (true + 1) * scenario.size] = values
    return true, theta


def layout(scenario: SparseScenario, true: int, rng: np.random.Generator) -> list[list[int]]:
    """The columns of every model that an algorithm is given."""
    p, size = scenario.n_columns, scenario.size
    if scenario.layout == "columns":
        return [list(range(p))]
    if scenario.layout == "singles":
        return [[column] for column in range(p)]
    groups = [list(range(first, first + size)) for first in range(0, p, size)]
    if scenario.layout == "groups":
        return groups
    order = rng.permutation([j for j in range(len(groups)) if j != true]).tolist()
    chain = [column for j in [*order[:1], true, *order[1:]] for column in groups[j]]
    sizes = [size]
    while sizes[-1] < p:
        sizes.append(min(2 * sizes[-1], p))
    return [chain[:one] for one in sizes]
