"""A real table as a scenario: which models, how many rounds, in plates of which size, from which first rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.streams import Streams
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count
from alexp.problem import Domain, FiniteSet, ModelClass
from alexp.simulation import ModelEnvironment, Run, simulate
from alexp_experiments.comparison.tables.data import MODELS, RealTable, load_table
from alexp_experiments.comparison.tables.design import far_apart
from alexp_experiments.core.plain import Settings
from alexp_experiments.core.scenarios import Scenario

_ROWS, _FIRST = 114, 115  # purposes of random numbers: the rows that take part, and the first that are measured
STARTS = ("random", "designed")


@dataclass(frozen=True)
class RealScenario(Scenario):
    """Rounds on a real table; rewards are z-scores, measured without noise.

    Attributes
    ----------
    family : the table's name.
    source : where it is, see `load_table`; not part of what results are kept under, but `digest` is.
    models : which models algorithms get, see `RealTable.models`.
    only : number of the model that is kept, if not all of them are.
    repeats : whether a row may be measured twice.
    first : rows that everybody is told before the first ask. They count as rounds.
    start : "random", the same for all algorithms under a seed; or "designed", rows that are spread out in all maps.
    plate : rounds that are asked for at a time.
    resolution : rows that take part, drawn by the seed; all by default.
    """

    family: str = ""
    resolution: int = 10**9
    noise_std: float = 0.0
    intercept: bool = True
    source: str = ""
    digest: str = ""
    models: str = "linear"
    only: int | None = None
    repeats: bool = False
    first: int = 5
    start: str = "random"
    plate: int = 1

    def __post_init__(self) -> None:
        if self.models not in MODELS:
            raise ValueError(f"models must be one of {', '.join(MODELS)}, got {self.models!r}")
        if self.start not in STARTS:
            raise ValueError(f"start must be one of {', '.join(STARTS)}, got {self.start!r}")
        for name in ("resolution", "steps", "plate"):
            count(name, getattr(self, name))
        count("first", self.first, 0)

    @classmethod
    def of(cls, source: str, **settings: str | int | bool | None) -> Self:
        """The scenario of a table with some settings."""
        table = load_table(source)
        return cls(family=table.name, source=source, digest=table.digest).with_(**settings)

    @property
    def table(self) -> RealTable:
        """The table."""
        return load_table(self.source)

    @property
    def n_models(self) -> int:
        """M."""
        return len(self.names) if self.only is None else 1

    @property
    def names(self) -> list[str]:
        """Names of all models of this kind."""
        return list(_on_all_rows(self.source, self.models).names)

    def problem(self, seed: int) -> tuple[ModelClass, Domain]:
        """Models on the rows that take part, and those rows."""
        rows = self.rows(seed)
        whole = rows.size == self.table.n_rows
        models = _on_all_rows(self.source, self.models) if whole else self.table.models(self.models, rows)
        return models if self.only is None else models.only(self.only), FiniteSet(rows)

    def rows(self, seed: int) -> IntArray:
        """The rows that take part under a seed."""
        n = self.table.n_rows
        if self.resolution >= n:
            return np.arange(n)
        return np.sort(Streams(seed).generator(_ROWS).permutation(n)[: self.resolution])

    def environment(self, seed: int) -> ModelEnvironment:
        """The rewards, and the first rows of a seed."""
        return RealEnvironment(self, seed)

    def play(self, algorithm: Algorithm, environment: ModelEnvironment) -> Run:
        """The first rows are told, the rest is asked for."""
        assert isinstance(environment, RealEnvironment)
        return simulate(
            algorithm, environment, self.steps, first=environment.first, plate=self.plate, repeats=self.repeats
        )

    def to_dict(self) -> Settings:
        """Plain data; where the file lies is left out."""
        return {name: value for name, value in asdict(self).items() if name != "source"}


@lru_cache(maxsize=4)
def _on_all_rows(source: str, kind: str) -> ModelClass:
    table = load_table(source)
    return table.models(kind, np.arange(table.n_rows))


class RealEnvironment(ModelEnvironment):
    """The rows of a table under one seed.

    Attributes
    ----------
    first : candidates that are measured before the first ask; one round at least is left to ask for.
    true_model : none is; zero.
    """

    def __init__(self, scenario: RealScenario, seed: int) -> None:
        self.models, domain = scenario.problem(seed)
        rows, self.true_model = scenario.rows(seed), 0
        scores: FloatArray = scenario.table.scores[rows]
        super().__init__(domain, scores, noise_std=0.0, random_state=seed)
        rng, size = Streams(seed).generator(_FIRST), min(scenario.first, scenario.steps - 1)
        if scenario.start == "random":
            self.first = rng.permutation(rows.size)[:size].tolist()
        else:
            maps = [features[rows] for features in scenario.table.maps.values()]
            self.first = far_apart(maps, size, rng)
