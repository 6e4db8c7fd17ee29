"""Constraints of a plate: how often a value of a column may come, and columns with one value for the whole plate.

A trial of a plate is a choice among the candidates that the constraints still allow, given the trials before it. That
is a restriction like `available`, so that propensities and the log need nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from alexp.common.arrays import IntArray
from alexp.common.validation import count
from alexp.problem.domains import Available, Domain, check_available
from alexp.problem.where import holds, named_columns, unknown_column


class PlateArguments(TypedDict, total=False):
    """Constraints of a plate, as `ask` takes them."""

    where: str | None
    at_most: Mapping[str, int] | None
    together: Sequence[str] | str | None


def check_where(available: Available, where: str | None, domain: Domain) -> IntArray | None:
    """Candidate numbers that a round may use: those `available` for which a condition holds; None for all of them."""
    allowed = check_available(available, domain)
    if where is None:
        return allowed
    found = holds(where, domain)
    both = found if allowed is None else np.intersect1d(found, allowed)
    if not both.size:
        raise ValueError(f"where={where!r} holds for none of the available candidates")
    return both


def check_unrestricted(where: object, at_most: object, together: object) -> None:
    """Raise where constraints of a plate are passed with a contextual round, whose candidates have no columns."""
    for name, value in (("where", where), ("at_most", at_most), ("together", together)):
        if value is not None:
            raise ValueError(f"{name} needs a table of candidates with named columns; for a round use available=")


def check_plate(
    domain: Domain, at_most: Mapping[str, int] | None, together: Sequence[str] | str | None
) -> PlateLimits | None:
    """The limits of a plate, or the error that says what is wrong with them; None where nothing is limited."""
    if at_most is None and together is None:
        return None
    if at_most is not None and (not isinstance(at_most, Mapping) or not at_most):
        raise TypeError(f"at_most must say how many may share a value, such as {{'ligand': 2}}, got {at_most!r}")
    alike = (together,) if isinstance(together, str) else tuple(together or ())
    if together is not None and (not alike or not all(isinstance(name, str) for name in alike)):
        raise TypeError(f"together must hold names of columns, such as ('temperature',), got {together!r}")
    columns = named_columns(domain, "at_most" if at_most is not None else "together")
    for argument, names in (("at_most", at_most or ()), ("together", alike)):
        for name in names:
            if name not in columns:
                raise ValueError(f"{argument}: {unknown_column(name, columns)}")
    caps = {name: count(f"at_most[{name!r}]", most) for name, most in (at_most or {}).items()}
    return PlateLimits({name: columns[name] for name in (*caps, *alike)}, caps, alike)


@dataclass(frozen=True, eq=False)
class PlateLimits:
    """What candidates of one plate may have in common.

    Attributes
    ----------
    columns : the columns that matter, N values each.
    at_most : how many candidates may share a value of a column.
    together : columns with one value for the whole plate.
    """

    columns: Mapping[str, list[Any]]
    at_most: Mapping[str, int]
    together: tuple[str, ...]

    @cached_property
    def _codes(self) -> IntArray:
        """(N, columns of at_most) number of each value; equal values have equal numbers, missing ones too."""
        return _numbered([self.columns[name] for name in self.at_most])

    @cached_property
    def _groups(self) -> IntArray:
        """(N,) number of the values of all columns of `together`."""
        codes = _numbered([self.columns[name] for name in self.together])
        return np.unique(codes, axis=0, return_inverse=True)[1].ravel() if codes.size else np.zeros(0, dtype=np.int64)

    def __str__(self) -> str:
        shown = [f"at_most={dict(self.at_most)!r}"] if self.at_most else []
        return " and ".join([*shown, f"together={self.together!r}"] if self.together else shown)

    def check(self, free: IntArray, wanted: int) -> None:
        """Raise unless `wanted` of the `free` candidates can make a plate."""
        if not self.choices(free, [], wanted).size:
            most = max((self._most(part, wanted, ()) for part in self._parts(free, ())), default=0)
            whose = "one candidate" if free.size == 1 else f"{free.size} candidates"
            raise ValueError(
                f"n must be at most {most}: {self} leaves no larger plate of the {whose} to choose from that are "
                f"neither pending nor excluded; got {wanted}. Allow more, or ask for fewer"
            )

    def choices(self, free: IntArray, chosen: Sequence[int], left: int) -> IntArray:
        """The free candidates that may come next, so that `left` trials, this one included, complete the plate.

        Empty if there is no such plate.
        """
        open_ = np.setdiff1d(free, np.asarray(chosen, dtype=np.int64))
        parts = [self._next(part, left, chosen) for part in self._parts(open_, chosen)]
        return np.sort(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)

    def _parts(self, open_: IntArray, chosen: Sequence[int]) -> list[IntArray]:
        """Candidates that could be on one plate as far as `together` is concerned."""
        if not self.together:
            return [open_]
        own = self._groups[open_]
        values = np.unique(own) if not len(chosen) else self._groups[np.asarray(chosen[:1])]
        return [part for value in values if (part := open_[own == value]).size]

    def _next(self, part: IntArray, left: int, chosen: Sequence[int]) -> IntArray:
        """The candidates of a part after which `left - 1` more can follow."""
        if not self.at_most:
            return part if part.size >= left else part[:0]
        part = part[self._has_room(part, chosen)]
        n_columns = len(self.at_most)
        # One more trial takes one place in every column, so that the largest plate shrinks by at most that many.
        most = self._most(part, left - 1 + n_columns, chosen)
        if most >= left - 1 + n_columns:
            return part
        if most < left:
            return part[:0]
        kinds, kind = np.unique(self._codes[part], axis=0, return_inverse=True)
        first = [part[np.flatnonzero(kind.ravel() == k)[0]] for k in range(len(kinds))]
        fits = [self._most(np.setdiff1d(part, one), left - 1, (*chosen, one)) >= left - 1 for one in first]
        return np.asarray(part[np.array(fits)[kind.ravel()]])

    def _has_room(self, part: IntArray, chosen: Sequence[int]) -> IntArray:
        """Positions of the candidates that no limit of the plate so far excludes."""
        room = np.ones(part.size, dtype=bool)
        for k, most in enumerate(self.at_most.values()):
            taken = Counter(self._codes[list(chosen), k].tolist())
            full = [value for value, times in taken.items() if times >= most]
            room &= ~np.isin(self._codes[part, k], full)
        return np.flatnonzero(room)

    def _most(self, part: IntArray, enough: int, chosen: Sequence[int]) -> int:
        """How many candidates of a part can follow those chosen; counted up to `enough`."""
        if not self.at_most or not part.size:
            return min(int(part.size), enough)
        kinds, counts = np.unique(self._codes[part], axis=0, return_counts=True)
        rooms = [
            Counter(dict.fromkeys(kinds[:, k].tolist(), most)) - Counter(self._codes[list(chosen), k].tolist())
            for k, most in enumerate(self.at_most.values())
        ]
        bound = min(enough, *(_in_column(kinds[:, k], counts, room) for k, room in enumerate(rooms)))
        found = _one_by_one(kinds, counts, rooms, bound)
        return bound if found >= bound else min(_largest(kinds, counts, rooms), bound)


def _in_column(values: IntArray, counts: IntArray, room: Counter[int]) -> int:
    """How many fit as far as one column is concerned."""
    totals = np.bincount(values, counts)
    return sum(min(int(totals[value]), room[value]) for value in np.unique(values).tolist())


def _one_by_one(kinds: IntArray, counts: IntArray, rooms: Sequence[Counter[int]], enough: int) -> int:
    """How many fit, up to `enough`, if each kind in turn takes what it can: all that fit, for one column."""
    left, total = [Counter(room) for room in rooms], 0
    for kind, number in zip(kinds.tolist(), counts.tolist(), strict=True):
        fits = min(number, *(room[value] for room, value in zip(left, kind, strict=True)))
        for room, value in zip(left, kind, strict=True):
            room[value] -= fits
        total += fits
        if total >= enough:
            break
    return total


def _largest(kinds: IntArray, counts: IntArray, rooms: Sequence[Counter[int]]) -> int:
    """How many fit at most: maximise sum y_kind, where kinds that share a value share its room. An integer program."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import, and seldom needed

    rows, upper = [], []
    for k, room in enumerate(rooms):
        for value in np.unique(kinds[:, k]):
            rows.append(kinds[:, k] == value)
            upper.append(room[int(value)])
    shares = LinearConstraint(np.array(rows, dtype=np.float64), ub=upper)
    solved = milp(
        -np.ones(len(kinds)),
        integrality=np.ones(len(kinds), dtype=np.int64),
        bounds=Bounds(0, counts),
        constraints=shares,
    )
    assert solved.x is not None, "an empty plate breaks no limit"
    return round(float(np.sum(solved.x)))


def _numbered(columns: Sequence[list[Any]]) -> IntArray:
    """(N, k) numbers of the values of k columns."""
    out = []
    for column in columns:
        known: dict[object, int] = {}
        out.append([known.setdefault(("missing",) if cell != cell else cell, len(known)) for cell in column])
    return np.array(out, dtype=np.int64).T
