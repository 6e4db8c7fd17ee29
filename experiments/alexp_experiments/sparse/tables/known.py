"""Where released codes were measured: six sparse instances, and one for masters over nested models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, sqrt
from typing import TYPE_CHECKING

import numpy as np

from alexp.algorithms.base import Streams
from alexp.problem.domains import FiniteSet
from alexp.problem.models import ModelClass
from alexp.simulation import PROBLEM, ModelEnvironment, RoundEnvironment
from alexp_experiments.core.scenarios import Settings
from alexp_experiments.core.statistics import estimate
from alexp_experiments.sparse.reference import BAND, INSTANCES, ROUNDS, STEPS, Measured
from alexp_experiments.sparse.tables.instances import SparseScenario
from alexp_experiments.sparse.tables.tasks import SparseCell

if TYPE_CHECKING:
    import pandas as pd

# By method and columns, 10 of all others. TH Lasso's penalty is next to nothing: with a thousand columns a run takes
# ten minutes.
RELEASED_SEEDS = {("lasso-bandit", 100): 5, ("th-lasso", 1000): 3}
MASTER_SEEDS = 5
MASTER_ROUNDS = (500, 1000, 2500)


# -- six instances of the sparse literature ----------------------------------------------------------------------


@dataclass(frozen=True)
class ReleasedScenario(SparseScenario):
    """Instance number `instance` of `reference.INSTANCES`, as a method wants it."""

    instance: int = 0
    method: str = "uniform"

    @property
    def reward_bound(self) -> float:
        """Released constants are as if rewards were of size one."""
        return 1.0

    def rounds(self, seed: int) -> RoundEnvironment:
        """The contexts of a seed."""
        return INSTANCES[self.instance].environment(self.method, seed)


def released_cells(first: int, seeds: int | None) -> list[SparseCell]:
    """All methods that were measured, on all six instances."""
    cells = []
    for k, instance in enumerate(INSTANCES):
        for method, known in instance.methods.items():
            scenario = ReleasedScenario(
                instance=k, method=method, steps=STEPS, noise_std=instance.noise_std, n_columns=instance.p
            )
            n = seeds or RELEASED_SEEDS.get((method, instance.p), 10)
            numbers = tuple(range(first, first + n))
            cells.append(
                SparseCell(method, f"released {k + 1}", scenario, ROUNDS, method, dict(known.settings), numbers)
            )
    return cells


@dataclass(frozen=True)
class BesideReleased:
    """What was measured beside what a released code had."""

    title: str
    method: str
    seeds: int
    means: tuple[float, ...]
    error: float
    known: Measured

    @property
    def ratio(self) -> float:
        """Ours over theirs at the end."""
        return self.means[-1] / self.known.regret[-1]

    @property
    def within(self) -> bool:
        """Whether the difference is at most 25% and two standard errors of it."""
        allowed = BAND * self.known.regret[-1] + 2.0 * hypot(self.error, self.known.error)
        return abs(self.means[-1] - self.known.regret[-1]) <= allowed


def released(runs: pd.DataFrame) -> list[BesideReleased]:
    """All that was played, in the order of the instances."""
    out = []
    for k, instance in enumerate(INSTANCES):
        for method, known in instance.methods.items():
            own = runs[(runs["part"] == f"released {k + 1}") & (runs["entrant"] == method)]
            if len(own):
                finals = [estimate(own.loc[own["n"] == n, "regret"]) for n in ROUNDS]
                means = tuple(one.mean for one in finals)
                out.append(
                    BesideReleased(instance.title, method, own["seed"].nunique(), means, finals[-1].error, known)
                )
    return out


# -- masters over nested models ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MasterScenario(SparseScenario):
    """`arms` unit vectors in R^n_columns; the first `size` coordinates have 1/sqrt(size), models are nested.

    Models have the first 1, 2, 4, ... columns; with layout "columns" the only one has the `size` that matter.
    """

    family: str = "vectors"
    n_columns: int = 600
    arms: int = 1200
    size: int = 12
    steps: int = 2500
    noise_std: float = 0.1
    layout: str = "nested"

    @property
    def reward_bound(self) -> float:
        """Above nearly all: rewards are about N(0, 1/600), and the released code is told their range, too."""
        return 0.15

    @property
    def norm_bound(self) -> float:
        """That of theta."""
        return 1.0

    def environment(self, seed: int) -> ModelEnvironment:
        """The vectors of a seed."""
        return NestedVectors(self, seed)


class NestedVectors(ModelEnvironment):
    """Unit vectors of which the first coordinates matter."""

    def __init__(self, scenario: MasterScenario, seed: int) -> None:
        rows = Streams(seed).generator(PROBLEM).standard_normal((scenario.arms, scenario.n_columns))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        whole = ModelClass.from_matrices({"x": rows}, intercept=False)
        sizes = [2**k for k in range(scenario.n_columns.bit_length()) if 2**k <= scenario.n_columns]
        if scenario.layout == "columns":
            sizes = [scenario.size]
        self.true_model = int(np.searchsorted(sizes, scenario.size))
        self.models = ModelClass(whole.dictionary, [list(range(k)) for k in sizes], [f"first {k}" for k in sizes])
        values = rows[:, : scenario.size].sum(axis=1) / sqrt(scenario.size)
        domain = FiniteSet(list(range(scenario.arms)))
        super().__init__(domain, values, noise_std=scenario.noise_std, random_state=seed)


# The released code has gamma phi' V^-1 phi for a width, without a root; this is about as wide after 600 rounds.
_AGENT: Settings = {"kind": "UCB", "beta": 1.0, "ridge": 0.1}
_AGENTS: Settings = {"agents": _AGENT}
MASTERS: Mapping[str, tuple[str, str, Settings]] = {
    "oracle, d = 12": ("columns", "linucb", {"agent": _AGENT, "model": 0}),
    "LinUCB++": ("nested", "linucb++", {"horizon": "$steps", "ridge": 0.1, "width": 0.16}),
    "balancing, dynamic": ("nested", "balancing", {"rule": "dynamic", **_AGENTS}),
    "balancing, eliminate": ("nested", "balancing", {"rule": "eliminate", **_AGENTS}),
    "smoothed Corral": ("nested", "smoothed-corral", {"horizon": "$steps", **_AGENTS}),
    "Corral": ("nested", "corral", {"horizon": "$steps", "data_mode": "own", **_AGENTS}),
    "D3RB": ("nested", "d3rb", _AGENTS),
    "ALExp": ("nested", "alexp", _AGENTS),
    "mixture": ("nested", "evidence-mixture", {}),
    "even play": ("nested", "uniform", {}),
}
MASTERS_KNOWN: Mapping[str, tuple[int, int, int]] = {  # one run of the released code
    "oracle, d = 12": (7, 7, 7), "LinUCB++": (52, 81, 112), "balancing, dynamic": (43, 81, 185),
}  # fmt: skip


def master_cells(first: int, seeds: int | None) -> list[SparseCell]:
    """All masters on the one instance."""
    numbers = tuple(range(first, first + (seeds or MASTER_SEEDS)))
    return [
        SparseCell(name, "masters", MasterScenario(layout=layout), MASTER_ROUNDS, algorithm, settings, numbers)
        for name, (layout, algorithm, settings) in MASTERS.items()
    ]
