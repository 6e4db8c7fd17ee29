"""Contextual problems that the checks run over: features passed by the caller, maps of candidates, and arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.common.arrays import Action, FloatArray
from alexp.common.codec import State
from alexp.problem.domains import Arms, Candidates, Domain
from alexp.problem.models import ModelClass
from alexp.testing.settings import Kind, arguments_for_class


class Crossed:
    """A contextual dictionary of the suite: all products of a context (3,) with two numbers of each candidate.

    Candidates are pairs of numbers, or names of arms, whose numbers come from the length of their names.
    """

    n_columns = 6
    names = tuple(f"c{i}x{k}" for k in range(2) for i in range(3))
    example_rows: FloatArray | None = None

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """(n, 6) products."""
        own = np.array([_numbers(one) for one in candidates], dtype=np.float64)
        return np.asarray(np.hstack([own[:, :1] * np.asarray(context), own[:, 1:] * np.asarray(context)]))

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of a candidate alone."""
        raise TypeError("features are those of a round")

    def to_dict(self) -> None:
        """It is passed again."""


def _numbers(candidate: Action) -> tuple[float, float]:
    if isinstance(candidate, str):
        return 0.25 * len(candidate), (-1.0) ** len(candidate)
    return float(candidate[0]), float(candidate[1])


@dataclass(frozen=True)
class ContextualProblem:
    """Models, a domain, and the rounds that are played on them.

    Attributes
    ----------
    name : what it is called in reports.
    present : the arguments of `ask` of a round.
    arguments : passed to the constructor.
    """

    name: str
    models: ModelClass
    make_domain: Callable[[], Domain]
    present: Callable[[np.random.Generator], State]
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def round(self, step: int) -> State:
        """The arguments of `ask` in round `step`; the same each time."""
        return self.present(np.random.default_rng([17, step]))

    def make(self, kind: Kind, **arguments: object) -> Algorithm:
        """An algorithm on this problem."""
        every = arguments_for_class(kind) | {"norm_bound": 1.0} | dict(self.arguments) | arguments
        return kind(self.models, self.make_domain(), **every)

    def again(self, saved: Algorithm) -> Algorithm:
        """The run, saved and loaded."""
        return type(saved).from_dict(saved.to_dict(problem=False), self.models, saved.domain)


class ProblemCheck(Protocol):
    """A function that raises an AssertionError unless the class conforms."""

    __name__: str

    def __call__(self, kind: Kind, problem: ContextualProblem) -> None:
        """Run the check."""


def reward(step: int, index: int) -> float:
    """The reward of candidate `index` in round `step`; no model explains it."""
    return float(np.cos(step + index / 5.0) + 0.1 * np.sin(37.0 * index))


def _features(rng: np.random.Generator) -> State:
    n = int(rng.integers(2, 51))
    return {"features": rng.uniform(-1.0, 1.0, (n, 6)), "ids": [f"item {k}" for k in rng.permutation(n)]}


def _candidates(rng: np.random.Generator) -> State:
    n = int(rng.integers(2, 51))
    return {"context": rng.uniform(-1.0, 1.0, 3), "candidates": [tuple(pair) for pair in rng.uniform(-1, 1, (n, 2))]}


def _context(rng: np.random.Generator) -> State:
    return {"context": rng.uniform(-1.0, 1.0, 3)}


_EXAMPLE = np.random.default_rng(5).uniform(-1.0, 1.0, (20, 6))
_BLOCKS = ModelClass.from_blocks({"a": 3, "b": 1, "c": 2}, example=_EXAMPLE)
_PAIRS = ModelClass(Crossed(), [[0, 1, 2], [3, 4], [0, 3, 5], [5]], intercept=True, scales=[1.0, 2.0, 0.5, 1.0])
_PER_ARM = ModelClass.per_arm({"a": [0, 1], "b": [2], "c": [0, 1, 2]}, arms=4)

PROBLEMS: tuple[ContextualProblem, ...] = (
    ContextualProblem("features", _BLOCKS, Candidates, _features),
    ContextualProblem("context and candidates, minimised", _PAIRS, Candidates, _candidates, {"direction": "minimize"}),
    ContextualProblem("arms", _PAIRS, lambda: Arms(["one", "four", "fifteen", "a million"]), _context),
    ContextualProblem("models per arm", _PER_ARM, lambda: Arms(["one", "four", "fifteen", "a million"]), _context),
)


def refuses(kind: Kind, problem: ContextualProblem) -> None:
    """A class that needs a table or a ball raises, with the reason, when it is constructed."""
    message = None
    try:
        problem.make(kind)
    except ValueError as error:
        message = str(error)
    assert message is not None, f"{kind.__name__} needs a table or a ball and takes {problem}"
    assert (kind.needs_table or kind.needs_ball) in message
