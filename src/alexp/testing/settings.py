"""The problems and arguments that the checks run over."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.log import Trial
from alexp.common.arguments import constructor
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.decision.designs import DOptimal
from alexp.problem.dictionaries import Legendre
from alexp.problem.domains import Domain, FiniteSet, Interval
from alexp.problem.models import ModelClass

Kind = type[Algorithm]


@dataclass(frozen=True)
class Setting:
    """One small problem, and arguments to construct an algorithm with.

    Attributes
    ----------
    name : shown in reports.
    models, domain : the problem.
    arguments : passed to the constructor.
    needs : arguments that a constructor must take for this setting to apply.
    restricted : whether every third round is played on some of the candidates only.
    """

    name: str
    models: ModelClass
    domain: Domain
    arguments: Mapping[str, object] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    restricted: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def n_candidates(self) -> int:
        """N."""
        return self.domain.n_candidates

    def available(self, step: int) -> IntArray | None:
        """The candidates available in round `step`; None for all."""
        if not self.restricted or step % 3 != 1:
            return None
        return np.unique((step + np.array([0, 3, 4, 9])) % self.n_candidates)


class Check(Protocol):
    """A function that raises an AssertionError unless the class conforms."""

    __name__: str

    def __call__(self, kind: Kind, setting: Setting = ...) -> None:
        """Run the check."""


def _maps() -> tuple[ModelClass, FiniteSet]:
    rng = np.random.default_rng(8)
    matrices = {name: rng.uniform(-1.0, 1.0, (14, size)) for name, size in (("a", 3), ("b", 1), ("c", 2), ("d", 2))}
    return ModelClass.from_matrices(matrices, intercept=False), FiniteSet([f"item {i}" for i in range(14)])


def _setting(
    name: str, models: ModelClass, domain: Domain, *needs: str, restricted: bool = False, **arguments: object
) -> Setting:
    return Setting(name, models, domain, MappingProxyType(arguments), frozenset(needs), restricted)


_LINE = Interval(-1.0, 1.0, resolution=40)
_SUBSETS = ModelClass.legendre(degree=4, size=2)
_SCALED = ModelClass(Legendre(4), [[0, 1], [1, 2, 3], [2], [3, 4], [0, 4]], scales=[1.0, 3.0, 0.5, 2.0, 1.5])

PLAIN = _setting("plain", _SUBSETS, _LINE)
SETTINGS: tuple[Setting, ...] = (
    PLAIN,
    _setting("restricted rounds", _SUBSETS, _LINE, restricted=True),
    _setting("intercept, minimised", ModelClass.legendre(4, 2, intercept=True), _LINE, direction="minimize"),
    _setting("scaled models, restricted rounds", _SCALED, _LINE, restricted=True),
    _setting("independent maps, minimised", *_maps(), direction="minimize", restricted=True),
    _setting("own data", _SUBSETS, _LINE, "data_mode", data_mode="own"),
    _setting(
        "own data, scaled models, restricted rounds", _SCALED, _LINE, "data_mode", data_mode="own", restricted=True
    ),
    _setting("designed exploration", _SUBSETS, _LINE, "exploration", exploration=DOptimal(tol=0.1), restricted=True),
)


def takes(kind: Kind) -> frozenset[str]:
    """Names of all arguments the constructor takes, those it hands on to its base classes included."""
    return frozenset(constructor(kind).parameters)


def settings_for(kind: Kind) -> list[Setting]:
    """The settings that apply to a class."""
    return [] if kind.needs_ball else [setting for setting in SETTINGS if setting.needs <= takes(kind)]


def on_tables() -> list[str]:
    """Names of all registered algorithms that play on tables of candidates."""
    return sorted(name for name, kind in Algorithm.registry.items() if not kind.needs_ball)


def make(kind: Kind, setting: Setting = PLAIN, **arguments: object) -> Algorithm:
    """An instance of the algorithm on the problem of a setting."""
    return kind(setting.models, setting.domain, **arguments_for(kind, setting, **arguments))


def arguments_for(kind: Kind, setting: Setting, **arguments: object) -> State:
    """Constructor arguments: the suite's, the class's example, the setting's, then `arguments`; later ones count."""
    return arguments_for_class(kind) | dict(setting.arguments) | arguments


def arguments_for_class(kind: Kind) -> State:
    """Constructor arguments of the suite, and the class's own example."""
    return {"noise_std": 0.1, "random_state": 3} | kind.example


def reward(index: int) -> float:
    """The reward of candidate `index`; no model explains it."""
    return float(np.cos(index / 5.0) + 0.1 * np.sin(37.0 * index))


def play(algorithm: Algorithm, rounds: int, setting: Setting = PLAIN) -> list[Trial]:
    """Ask and tell."""
    trials = []
    for step in range(rounds):
        trial = algorithm.ask(available=setting.available(step))
        algorithm.tell(trial, reward(trial.index))
        trials.append(trial)
    return trials


def refusal(action: Callable[[], object], *errors: type[Exception]) -> str:
    """The message of the error that an action raises; empty if it raises none."""
    try:
        action()
    except errors as error:
        return str(error)
    return ""


def refuses(action: Callable[[], object], algorithm: Algorithm, what: str, *errors: type[Exception]) -> str:
    """The message of the error that wrong input must raise, without changing anything."""
    before, message = json.dumps(algorithm.to_dict()), refusal(action, *errors)
    assert message, f"{what} must raise {' or '.join(error.__name__ for error in errors)}, and say why"
    assert json.dumps(algorithm.to_dict()) == before, f"{what}: state changed although an error was raised"
    return message


def weights_of(algorithm: Algorithm) -> FloatArray | None:
    """Probabilities over the models, where there are any."""
    return algorithm.probabilities if offers(algorithm, WeighsModels) else None
