"""Compile ahead of use what an algorithm will need, without touching the algorithm."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.assumptions import quietly
from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.algorithms.lmucb import LMUCB
from alexp.common.arrays import Action
from alexp.common.codec import State
from alexp.problem import Ball, FiniteSet, Interval, Matrices, ModelClass
from alexp.problem.matrices import SMALL
from alexp.problem.offers import Offer

_T = TypeVar("_T")
_ROWS = 64  # of large tables that compiling ahead is done on
_SHARES = (1.0, 0.0)  # of the bound: rewards that every likelihood takes
_warm: set[Hashable] = set()  # what has been through `warm_up` in this process


def warm_up(algorithm: Algorithm) -> float:
    """Make sure that asking and telling `algorithm` will compile nothing; return the seconds that took.

    A fresh algorithm with the same problem and settings is asked and told in its place. A second call for a problem of
    the same kind and size returns at once.
    """
    key = _kind(algorithm)
    if key in _warm or not algorithm.models.is_listable:  # of so many, a round takes longer than to compile for it
        return 0.0
    begin = time.perf_counter()
    with quietly():
        _play(_fresh(algorithm))
    _warm.add(key)
    return time.perf_counter() - begin


def _kind(algorithm: Algorithm) -> Hashable:
    """What decides which compiled functions are called, and with which types."""
    models = algorithm.models
    sizes = (models.n_models, models.n_columns, models.dimension, models.subset_size, models.arm_blocks)
    problem = (*sizes, models.intercept)
    settings = tuple((name, _trait(value)) for name, value in algorithm.arguments().items())
    return type(algorithm), problem, algorithm.domain.n_candidates, algorithm.reward_bound, settings


def _trait(value: object) -> Hashable:
    plain = value is None or isinstance(value, str | bool | int | float)
    return repr(value) if plain else (type(value), repr(value) if isinstance(value, tuple) else None)


def _fresh(algorithm: Algorithm) -> Algorithm:
    """An algorithm with the same problem and settings and no history; on a few rows of tables that are large."""
    models, domain = algorithm.models, algorithm.domain
    if isinstance(models.dictionary, Matrices) and models.dictionary.n_rows * models.n_columns > SMALL:
        models, domain = models.head(_ROWS), FiniteSet(np.arange(_ROWS))
    plain = algorithm.of_first_objective()
    arguments: State = {name: _own_copy(value) for name, value in plain.arguments().items()}
    for stated in ("reward_range", "cost", "budget"):  # rewards are made up, and so are arms and rows
        arguments.pop(stated, None)
    return type(algorithm)(models, domain, random_state=0, **arguments)


def _own_copy(setting: _T) -> _T:
    """A copy, because an agent of the user's own may remember what it was asked."""
    try:
        return copy.deepcopy(setting)
    except MemoryError:
        raise
    except Exception:  # whatever it holds that cannot be copied; it is then shared, as it would be between two runs
        return setting


def _play(algorithm: Algorithm) -> None:
    if algorithm.is_contextual and not isinstance(algorithm.domain, Ball):
        _play_rounds(algorithm)
        return
    for share in _SHARES:
        trial = algorithm.ask()
        algorithm.tell(trial, share * algorithm.reward_bound)
    if offers(algorithm, WeighsModels):
        _ = algorithm.probabilities
    algorithm.best()


def _play_rounds(algorithm: Algorithm) -> None:
    """The same on a few made-up candidates of contextual rounds: what they are is the user's to say."""
    blocks = algorithm.models.arm_blocks
    rows = np.random.default_rng(0).standard_normal((4, algorithm.models.n_columns))
    if blocks is not None:  # an arm has zeros in the columns of others
        rows = np.repeat(np.eye(blocks[0]), blocks[1], axis=1)
    offer = Offer(rows, range(len(rows)), tuple(range(len(rows))))
    for share in _SHARES:
        trial = algorithm.ask_offers([offer])[0]
        algorithm.tell(trial, share * algorithm.reward_bound)


@dataclass(frozen=True)
class Warmed:
    """One kind of problem that was compiled for, and what that took."""

    problem: str
    seconds: float


def warm_up_common(progress: Callable[[Warmed], None] = lambda done: None) -> list[Warmed]:
    """Compile what common problems need: subsets, explicit groups, independent maps, with and without an intercept."""
    out = []
    for problem, algorithm in _common():
        out.append(Warmed(problem, warm_up(algorithm)))
        progress(out[-1])
    return out


def _common() -> Iterator[tuple[str, Algorithm]]:
    line = Interval(-1.0, 1.0, resolution=60)
    rng = np.random.default_rng(0)
    points = FiniteSet(rng.standard_normal((60, 2)))
    matrices = {name: rng.standard_normal((60, size)) for name, size in (("a", 3), ("b", 6), ("c", 2))}
    wide = ModelClass.from_matrices({name: rng.standard_normal((60, 40)) for name in "abc"})
    waves = {f"w{k}": _Wave(float(k)) for k in range(1, 4)}
    for intercept, ending in ((False, ""), (True, ", with an intercept")):
        subsets = ModelClass.legendre(degree=5, size=3, intercept=intercept)
        groups = ModelClass.from_matrices(matrices, intercept=intercept)
        maps = ModelClass.from_maps(waves, intercept=intercept)
        yield f"ALExp, Legendre subsets{ending}", ALExp(subsets, line)
        yield f"ALExp, three matrices{ending}", ALExp(groups, points)
        yield f"ALExp, independent maps{ending}", ALExp(maps, line)
        yield f"EvidenceMixture, Legendre subsets{ending}", EvidenceMixture(subsets, line)
        yield f"EvidenceMixture, three matrices{ending}", EvidenceMixture(groups, points)
        yield f"LMUCB, Legendre subsets{ending}", LMUCB(subsets, line)
        yield f"LMUCB, three matrices{ending}", LMUCB(groups, points)
    yield "EvidenceMixture, three wide matrices", EvidenceMixture(wide, points)


@dataclass(frozen=True)
class _Wave:
    """sin and cos of a frequency, a feature map of two columns."""

    frequency: float

    def __call__(self, x: Action) -> Any:
        angle = self.frequency * np.asarray(x, dtype=np.float64)
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1)
