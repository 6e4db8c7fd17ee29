"""Several objectives: which they are, and rewards that are a number for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import did_you_mean, limited, positive
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.ranges import RewardRange
from alexp.problem.where import named_columns, unknown_column

Direction = Literal["maximize", "minimize"]
Reward = float | Mapping[str, float]  # a number, or numbers by the names of objectives
Value = float | dict[str, float]  # a reward that was checked: by name, in their order, where several are measured
Measurements = Reward | Sequence[Reward] | Mapping[str, Sequence[float]]  # of one experiment
_FEWEST, _MOST = 2, 3
# Columns of exported trials and of files of results, which no objective can be.
_TAKEN = {
    "id", "trial", "candidate", "label", "x", "index", "model", "explored", "propensity", "reward", "state", "note",
    "asked_at", "told_at", "asked_by", "told_by", "entries", "replicate_of", "n", "context", "well", "failed",
}  # fmt: skip


def first_of(reward: Value) -> float:
    """The number of the first objective; a reward that is a number is that.

    >>> first_of({"yield": 81.0, "cost": 12.0}), first_of(81.0)
    (81.0, 81.0)
    """
    return next(iter(reward.values())) if isinstance(reward, dict) else reward


def numbers_of(reward: Value) -> tuple[float, ...]:
    """The numbers of all measured objectives."""
    return tuple(reward.values()) if isinstance(reward, dict) else (reward,)


@dataclass(frozen=True)
class Objectives:
    """Two or three objectives by name, each to be maximised or minimised.

    An objective whose name is a column of the candidates' table is known beforehand; the others are measured.

    Attributes
    ----------
    directions : of every objective, by name.
    measured : names of those that are measured, in their order.
    ranges : of those that are measured, where one was stated.
    """

    directions: Mapping[str, Direction]
    measured: tuple[str, ...]
    ranges: Mapping[str, RewardRange]

    @classmethod
    def checked(cls, given: object, domain: Domain, ranges: Mapping[str, RewardRange | None]) -> Self:
        """The objectives, or the error that says what is wrong with them."""
        if not isinstance(given, Mapping) or not _FEWEST <= len(given) <= _MOST:
            raise ValueError(
                'objectives must name two or three, such as {"yield": "maximize", "cost": "minimize"}; for one there '
                f"is direction=; got {given!r:.80}"
            )
        for name, direction in given.items():
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"objectives must have texts as names, got {name!r}")
            if name in _TAKEN or name != name.strip():
                raise ValueError(
                    f"objectives must have names of their own, and {name!r} is a column of exported trials"
                )
            if direction not in ("maximize", "minimize"):
                raise ValueError(f'objectives[{name!r}] must be "maximize" or "minimize", got {direction!r}')
        columns = column_names(domain)
        measured = tuple(name for name in given if name not in columns)
        if not measured:
            raise ValueError(
                f"objectives {', '.join(map(repr, given))} are columns of the candidates, which are known: name one "
                "that is measured"
            )
        for name in given:
            if name in columns:
                known_column(f"objectives[{name!r}]", domain, name)
        return cls(dict(given), measured, {name: one for name, one in ranges.items() if one is not None})

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the objectives that are columns of the candidates."""
        return tuple(name for name in self.directions if name not in self.measured)

    def sign(self, name: str) -> float:
        """What values of an objective are multiplied by so that larger is better."""
        return 1.0 if self.directions[name] == "maximize" else -1.0

    def check(self, reward: object) -> Value:
        """A reward as a number, or as numbers by name if several objectives are measured; raises if it is wrong."""
        if not isinstance(reward, Mapping):
            if len(self.measured) > 1 or isinstance(reward, str):
                raise ValueError(f"reward must name the objectives, such as {self._example()}, got {reward!r:.80}")
            reward = {self.measured[0]: reward}
        for name in reward:
            if name in self.directions and name not in self.measured:
                raise ValueError(f"reward: {name!r} is a column of the candidates and known; leave it out")
            if name not in self.measured:
                meant = did_you_mean(name, self.measured) or self._listed()
                raise ValueError(f"reward: {name!r} is no objective{meant}")
        if missing := [name for name in self.measured if name not in reward]:
            raise ValueError(f"reward lacks {missing[0]!r}: an experiment has a number for each{self._listed()}")
        numbers = {name: self._number(name, reward[name]) for name in self.measured}
        if len(numbers) == 1:
            return numbers[self.measured[0]]
        return {name: number + 0.0 for name, number in numbers.items()}  # databases do not keep the sign of zero

    def listed(self, reward: Measurements) -> Any:
        """A reward as it is; with a list of numbers for every objective, the list of measurements that they make."""
        if not isinstance(reward, Mapping) or not any(_is_list(value) for value in reward.values()):
            return reward
        columns: list[Any] = [value if _is_list(value) else [value] for value in reward.values()]
        if len({len(column) for column in columns}) > 1:
            sizes = ", ".join(f"{len(column)} of {name!r}" for name, column in zip(reward, columns, strict=True))
            raise ValueError(f"reward must have as many numbers of every objective, got {sizes}")
        return [dict(zip(reward, row, strict=True)) for row in zip(*columns, strict=True)]

    def _number(self, name: str, value: object) -> float:
        number, own = limited(name, value), self.ranges.get(name)
        try:
            return number if own is None else own.check(number)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def _example(self) -> str:
        return "{" + ", ".join(f"{name!r}: ..." for name in self.measured) + "}"

    def _listed(self) -> str:
        return f"; measured are {', '.join(map(repr, self.measured))}"


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray) and np.ndim(value) > 0


def column_names(domain: Domain) -> list[str]:
    """Names of the columns of the candidates; empty where they have none."""
    table: Any = domain.candidates if isinstance(domain, FiniteSet) else None
    return [str(name) for name in table.columns] if hasattr(table, "columns") and hasattr(table, "iloc") else []


def known_column(what: str, domain: Domain, name: str) -> FloatArray:
    """A column of the candidates as numbers, (N,); raises, naming `what` it is for, where it has none or others."""
    columns = named_columns(domain, what)
    if name not in columns:
        raise ValueError(f"{what}: {unknown_column(name, columns)}")
    return numbers_in(what, name, columns[name])


def numbers_in(what: str, name: str, cells: Sequence[Any]) -> FloatArray:
    """Cells of a column as numbers, (N,); raises, naming `what` they are for, where one is none."""
    for k, cell in enumerate(cells):
        if isinstance(cell, bool | np.bool_ | str) or not isinstance(cell, int | float | np.number) or cell != cell:
            raise ValueError(f"{what}: column {name!r} must hold numbers, and candidate {k} has {cell!r:.40}")
        limited(f"{what}, candidate {k}", cell)
    return np.array(cells, dtype=np.float64)


def check_cost(cost: object, domain: Domain) -> str | tuple[float, ...]:
    """What experiments cost: the name of a column of the candidates, or a positive number for each."""
    if isinstance(cost, str):
        for k, number in enumerate(known_column("cost", domain, cost).tolist()):
            positive(f"cost of candidate {k} in column {cost!r}", number)
        return cost
    if not isinstance(cost, Sequence | np.ndarray) or np.ndim(cost) != 1:
        raise TypeError(f"cost must be the name of a column, or a number per candidate, got {cost!r:.80}")
    if len(cost) != domain.n_candidates:
        raise ValueError(f"cost must have a number for each of the {domain.n_candidates} candidates, got {len(cost)}")
    return tuple(positive(f"cost of candidate {k}", number) for k, number in enumerate(cost))


def costs_of(cost: str | tuple[float, ...], domain: Domain) -> FloatArray:
    """Cost of every candidate, (N,); candidates that came later have theirs in the column."""
    return known_column("cost", domain, cost) if isinstance(cost, str) else np.array(cost)
