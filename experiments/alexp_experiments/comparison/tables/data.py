"""Real tables: rewards, feature maps, models made of them, and rounds on them as a scenario."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import ceil
from pathlib import Path
from typing import Self

import numpy as np

from alexp.algorithms.base import Algorithm, Streams
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count
from alexp.datasets import direct_arylation
from alexp.problem import Domain, FiniteSet, ModelClass
from alexp.problem.kernel_models import Component, find_levels, is_counts
from alexp.simulation import ModelEnvironment, Run, simulate
from alexp_experiments.core.scenarios import Scenario, Settings

ARYLATION = "direct arylation"
_MOST_INPUTS = 6  # of a continuous table whose subsets are models
_NARROW = 12  # columns up to which the only map of a table is taken for its inputs
_WAVES = 100
MODELS = ("linear", "linear and waves", "kernels", "maps with kernels", "matrices", "side by side", "levels")


@dataclass(frozen=True)
class RealTable:
    """N rows, what each of them is worth, and how they may be described.

    Attributes
    ----------
    rewards : (N,) larger is better, in the table's own unit.
    matrices : (N, d) each, as the file has them.
    components : what rows are composed of, if they are.

    A table whose only map is narrow and continuous consists of *inputs*: linear models are then polynomials and waves
    of them, and models with kernels are subsets of them.
    """

    name: str
    rewards: FloatArray
    matrices: Mapping[str, FloatArray]
    components: Mapping[str, Component] | None = None

    @property
    def n_rows(self) -> int:
        """N."""
        return self.rewards.size

    @property
    def scores(self) -> FloatArray:
        """Rewards with mean 0 and standard deviation 1 over the table."""
        return np.asarray((self.rewards - self.rewards.mean()) / self.rewards.std())

    @property
    def top(self) -> int:
        """How many rows are the best hundredth."""
        return ceil(self.n_rows / 100)

    @cached_property
    def inputs(self) -> FloatArray | None:
        """(N, d) inputs of a continuous table; None for others."""
        (only, *others) = self.matrices.values()
        return only if not others and only.shape[1] <= _NARROW and not is_counts(only) else None

    @property
    def levels(self) -> IntArray | None:
        """(N, C) which value each component has; None where rows are not composed."""
        if self.components is None:
            return None
        return np.stack([find_levels(name, given).codes for name, given in self.components.items()], axis=1)

    @cached_property
    def maps(self) -> Mapping[str, FloatArray]:
        """Feature maps of linear models, centred; ||phi||^2 is one on average."""
        maps = self.matrices if self.inputs is None else input_maps(self.inputs)
        return {name: centred(features) for name, features in maps.items()}

    @property
    def waves(self) -> Mapping[str, FloatArray]:
        """One more map for the inputs of a continuous table: waves of each of them."""
        return {} if self.inputs is None else {"waves": centred(input_waves(self.inputs))}

    @cached_property
    def digest(self) -> str:
        """Hash of the contents; results are kept under it, wherever the file lies."""
        out = hashlib.sha256(self.rewards.tobytes())
        for name, features in self.matrices.items():
            out.update(name.encode() + b"\0" + np.ascontiguousarray(features).tobytes())
        return out.hexdigest()[:16]

    def models(self, kind: str, rows: IntArray) -> ModelClass:
        """Models on some of the rows.

        "linear": one per map; "linear and waves": one more for inputs. "kernels": subsets of the inputs of a continuous
        table, products and sums over components of a composed one, `from_matrices(kernels="auto")` of any other, and
        this is "maps with kernels" of all three. "matrices": one per matrix as it is in the file; "side by side": one
        of all of them. "levels": the numbers of the components' values, for who treats them as categories.
        """
        if kind in ("linear", "linear and waves"):
            maps = self.maps if kind == "linear" else {**self.maps, **self.waves}
            return ModelClass.from_matrices({name: features[rows] for name, features in maps.items()})
        if kind == "kernels" and self.components is not None:
            return ModelClass.from_components({name: _taken(given, rows) for name, given in self.components.items()})
        if kind == "kernels" and self.inputs is not None and self.inputs.shape[1] <= _MOST_INPUTS:
            return ModelClass.from_inputs(self.inputs[rows])
        if kind in ("kernels", "maps with kernels", "matrices"):
            matrices = {name: features[rows] for name, features in self.matrices.items()}
            return ModelClass.from_matrices(matrices, kernels="linear" if kind == "matrices" else "auto")
        if kind == "side by side":
            return ModelClass.from_matrices({"all": np.hstack([features[rows] for features in self.matrices.values()])})
        if kind == "levels" and self.levels is not None:
            return ModelClass.from_matrices({"levels": self.levels[rows].astype(np.float64)})
        raise ValueError(f"{self.name} has no models {kind!r}; there are {', '.join(MODELS)}")


def _taken(given: Component, rows: IntArray) -> Component:
    if isinstance(given, Mapping):
        return {name: np.asarray(values)[rows] for name, values in given.items()}
    return np.asarray(given)[rows]


def centred(features: FloatArray) -> FloatArray:
    """Columns minus their means, divided so that the squared norm of a row is one on average; constants are dropped."""
    out = np.asarray(features, dtype=np.float64) - features.mean(axis=0, dtype=np.float64)
    out = out[:, np.ptp(out, axis=0) > 0.0]
    return np.asarray(out / np.sqrt(np.mean(np.sum(out**2, axis=1))))


def input_maps(inputs: FloatArray) -> dict[str, FloatArray]:
    """What one might regress on: inputs (N, d), polynomials of them, and random waves of all."""
    x = np.asarray(inputs, dtype=np.float64)
    out = {"inputs": x, "quadratic": _monomials(x, 2)}
    if x.shape[1] <= _MOST_INPUTS:
        out["cubic"] = _monomials(x, 3)
    rng = np.random.default_rng(0)
    some = x[rng.permutation(len(x))[:300]]
    median = np.median(np.linalg.norm(some[:, None] - some[None], axis=2)[np.triu_indices(len(some), 1)])
    angles = x @ (rng.standard_normal((x.shape[1], _WAVES)) / median) + rng.uniform(0.0, 2.0 * np.pi, _WAVES)
    return out | {"random waves": np.cos(angles)}


def input_waves(inputs: FloatArray) -> FloatArray:
    """Half a wave, one and one and a half of every input over its range, sines and cosines, shape (N, 6 d)."""
    phase = np.pi * (inputs - inputs.min(axis=0)) / np.maximum(np.ptp(inputs, axis=0), 1e-300)
    return np.hstack([wave(k * phase) for k in (1, 2, 3) for wave in (np.cos, np.sin)])


def _monomials(x: FloatArray, degree: int) -> FloatArray:
    columns = [
        np.prod(x[:, list(factors)], axis=1)
        for size in range(1, degree + 1)
        for factors in combinations_with_replacement(range(x.shape[1]), size)
    ]
    return np.stack(columns, axis=1)


@lru_cache(maxsize=16)
def load_table(source: str) -> RealTable:
    """The table of a file `*.npz`, with `y`, maps `m_*` and perhaps components `c_*`; or the library's, by its name."""
    if source == ARYLATION:
        shipped = direct_arylation()
        rewards = np.asarray(shipped.rewards, dtype=np.float64)
        return RealTable(ARYLATION, rewards, dict(shipped.matrices), shipped.components)
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"there is no table {path}")
    with np.load(path, allow_pickle=False) as stored:
        maps = {key[2:]: np.asarray(stored[key], dtype=np.float64) for key in stored.files if key.startswith("m_")}
        if "y" not in stored.files or not maps:
            raise ValueError(f"{path} must hold y, one number per row, and maps m_*; it has {', '.join(stored.files)}")
        components = {key[2:]: np.asarray(stored[key]) for key in stored.files if key.startswith("c_")}
        rewards = np.asarray(stored["y"], dtype=np.float64)
    for name, features in maps.items():
        if features.ndim != 2 or features.shape[0] != rewards.size:
            raise ValueError(f"{path}: m_{name} must have one row per reward ({rewards.size}), got {features.shape}")
    if rewards.ndim != 1 or not all(np.all(np.isfinite(array)) for array in (rewards, *maps.values())):
        raise ValueError(f"{path}: y must be one-dimensional, and all numbers finite")
    if any(len(values) != rewards.size for values in components.values()):
        raise ValueError(f"{path}: every c_* must have one row per reward ({rewards.size})")
    return RealTable(path.stem, rewards, maps, components or None)


def table_sources(folder: Path) -> list[str]:
    """Every table of a folder, and the one of the library."""
    found = sorted(str(path) for path in folder.glob("*.npz"))
    if not found:
        raise FileNotFoundError(f"there are no tables *.npz in {folder}")
    return [*found, ARYLATION]


def far_apart(maps: Sequence[FloatArray], size: int, rng: np.random.Generator) -> list[int]:
    """k-means++ (Arthur and Vassilvitskii 2007) on all maps: squared distances are averaged over maps.

    Each map, shape (N, d), counts alike: its features have a squared norm of one on average. The first row is drawn
    evenly, every further one in proportion to its squared distance from those that are in.
    """
    n = maps[0].shape[0]
    chosen: list[int] = []
    nearest = np.ones(n)
    for _ in range(min(size, n)):
        chosen.append(int(rng.choice(n, p=nearest / nearest.sum())))
        distance = np.mean([np.sum((features - features[chosen[-1]]) ** 2, axis=1) for features in maps], axis=0)
        nearest = distance if len(chosen) == 1 else np.minimum(nearest, distance)
        nearest[chosen] = 0.0
        if not nearest.any():
            nearest = np.ones(n)
            nearest[chosen] = 0.0
    return chosen


_ROWS, _FIRST = 114, 115  # purposes of random numbers: the rows that take part, and the first that are measured
STARTS = ("random", "designed", "poor")


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
    first : rows whose rewards all players get before the first ask. They count as rounds.
    start : "random", the same for all algorithms under a seed; "poor", likewise, of the rows below the median; or
        "designed", rows that are spread out in all maps.
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
        """The first rows are given, the rest is asked for."""
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
        elif scenario.start == "poor":
            self.first = rng.permutation(np.flatnonzero(scores < np.median(scores)))[:size].tolist()
        else:
            maps = [features[rows] for features in scenario.table.maps.values()]
            self.first = far_apart(maps, size, rng)
