"""Domains of contextual rounds: named arms that appear in ever new contexts, and candidates of one round only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from alexp.common.arrays import Action
from alexp.problem.descriptions import Description


class ContextualDomain:
    """What there is to choose from is known in the round only."""

    @property
    def n_candidates(self) -> int:
        """How many candidates every round has, K; zero where that is known in the round only."""
        return 0

    @property
    def points(self) -> Action:
        """There are none before a round."""
        self._refuse("points")

    def __getitem__(self, index: int) -> Action:
        self._refuse("numbered candidates")

    def batch(self, x: Action) -> tuple[Action, bool]:
        """Actions have features in a round only."""
        self._refuse("features of an action alone; pass context=, candidates= or features=")

    def to_dict(self) -> Description | None:
        """JSON-safe description."""
        raise NotImplementedError

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is a domain of contextual rounds: it has no {what}")


class Arms(ContextualDomain):
    """K named arms; every round brings a context, and all arms are there unless `available` says otherwise.

    Arms may be added while a run goes on: later rounds have them, and the run is repeated from its log where its models
    have columns for every arm.

    >>> arms = Arms(["small", "large"])
    >>> arms.add("local")
    2
    >>> arms.names, arms.locate("large"), arms[2]
    (('small', 'large', 'local'), 1, 'local')
    """

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, str | bytes) or not isinstance(names, Iterable):
            raise TypeError(f"names must be a list of texts, one per arm, got {names!r}")
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        for name in names:
            self.add(name)
        if not self._names:
            raise ValueError("names must not be empty: there is nothing to choose from without arms")

    def add(self, name: str) -> int:
        """Add an arm, and return its number."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of an arm must be a text, got {type(name).__name__}: {name!r}")
        if name in self._numbers:
            raise ValueError(f"there is an arm {name!r} already; names must be distinct")
        self._numbers[name] = len(self._names)
        self._names.append(name)
        return self._numbers[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all arms."""
        return tuple(self._names)

    def locate(self, name: object) -> int:
        """Number of an arm."""
        number = self._numbers.get(name) if isinstance(name, str) else None
        if number is None:
            raise ValueError(f"there is no arm {name!r}; arms are {', '.join(map(repr, self._names))}")
        return number

    @property
    def n_candidates(self) -> int:
        """K, the number of arms."""
        return len(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> str:
        return self._names[index]

    def __repr__(self) -> str:
        return f"Arms({self._names!r})"

    def to_dict(self) -> Description:
        """JSON-safe description."""
        return {"kind": "arms", "names": list(self._names)}


class Candidates(ContextualDomain):
    """Nothing is known before a round: it brings its candidates, or their features, along."""

    def __repr__(self) -> str:
        return "Candidates()"

    def to_dict(self) -> Description:
        """JSON-safe description."""
        return {"kind": "candidates"}
