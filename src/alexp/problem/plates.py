"""Constraints of a plate: how often a value of a column may come, and columns with one value for the whole plate.

A trial of a plate is a choice among the candidates that the constraints still allow, given the trials before it. That
is a restriction like `available`, so that propensities and the log need nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count
from alexp.problem.domains import Available, Domain, check_available, not_withheld
from alexp.problem.where import holds, named_columns, unknown_column

if TYPE_CHECKING:
    from alexp.problem.candidates import Pending, Round

_ROUNDING = 1e-9  # of a budget
_FEW = 32  # choices with the largest upper bounds that are looked at first


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
    both = not_withheld(domain, found) if allowed is None else np.intersect1d(found, allowed)
    if both is None or not both.size:
        raise ValueError(f"where={where!r} holds for none of the available candidates")
    return both


def check_unrestricted(where: object, at_most: object, together: object) -> None:
    """Raise where constraints of a plate are passed with a contextual round, whose candidates have no columns."""
    for name, value in (("where", where), ("at_most", at_most), ("together", together)):
        if value is not None:
            raise ValueError(f"{name} needs a table of candidates with named columns; for a round use available=")


def check_plate(
    domain: Domain,
    at_most: Mapping[str, int] | None,
    together: Sequence[str] | str | None,
    purse: Purse | None = None,
) -> PlateLimits | None:
    """The limits of a plate, or the error that says what is wrong with them; None where nothing is limited."""
    if at_most is None and together is None:
        return None if purse is None else PlateLimits({}, {}, (), purse)
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
    return PlateLimits({name: columns[name] for name in (*caps, *alike)}, caps, alike, purse)


class Purse(NamedTuple):
    """What experiments cost, (N,), and what is left to spend on them."""

    costs: FloatArray
    left: float

    def allows(self, total: float) -> bool:
        """Whether so much can be spent, up to rounding."""
        return total <= self.left + _ROUNDING * abs(self.left)


@dataclass(frozen=True, eq=False)
class PlateLimits:
    """What candidates of one plate may have in common.

    Attributes
    ----------
    columns : the columns that matter, N values each.
    at_most : how many candidates may share a value of a column.
    together : columns with one value for the whole plate.
    purse : what candidates cost and what is left to spend, where there is a budget.
    """

    columns: Mapping[str, list[Any]]
    at_most: Mapping[str, int]
    together: tuple[str, ...]
    purse: Purse | None = None

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
        shown += [f"together={self.together!r}"] if self.together else []
        return " and ".join(
            shown if self.purse is None else [*shown, f"what is left of the budget, {self.purse.left:g},"]
        )

    def check(self, free: IntArray, wanted: int) -> None:
        """Raise unless `wanted` of the `free` candidates can make a plate."""
        if not self.choices(free, [], wanted).size:
            most = max((self._largest_plate(part, wanted) for part in self._parts(free, ())), default=0)
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
        if self.purse is not None:
            parts = [self._affordable(self.purse, part, left, chosen) for part in parts]
        return np.sort(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)

    def _affordable(self, purse: Purse, part: IntArray, left: int, chosen: Sequence[int]) -> IntArray:
        """The candidates of a part whose plate can be paid if the cheapest that still fit follow.

        With limits of several columns the cheapest one by one may not be the cheapest plate: one that could just be
        paid may then be left out. What is left in always can be completed by them.
        """
        spent = float(purse.costs[np.asarray(chosen, dtype=np.int64)].sum())
        ranked = part[np.argsort(purse.costs[part], kind="stable")]
        codes = self._codes[part] if self.at_most else np.zeros((part.size, 1), dtype=np.int64)
        _, kind = np.unique(codes, axis=0, return_inverse=True)
        known: dict[int, tuple[float, set[int]]] = {}  # what follows a candidate of a kind, unless it is one of these
        fits = np.zeros(part.size, dtype=bool)
        for k, (one, own) in enumerate(zip(part.tolist(), kind.ravel().tolist(), strict=True)):
            if own not in known:
                known[own] = self._cheapest(purse.costs, ranked, left - 1, (*chosen, one))
            rest, followers = known[own]
            if one in followers:
                rest, _ = self._cheapest(purse.costs, ranked, left - 1, (*chosen, one))
            fits[k] = purse.allows(spent + float(purse.costs[one]) + rest)
        return part[fits]

    def _cheapest(self, costs: FloatArray, ranked: IntArray, n: int, chosen: Sequence[int]) -> tuple[float, set[int]]:
        """Cost of the n cheapest that fit beside those chosen, one by one, and which they are; infinite if too few."""
        room = [Counter(self._codes[list(chosen), k].tolist()) for k in range(len(self.at_most))]
        total, taken, used = 0.0, set[int](), set(chosen)
        for one in ranked.tolist():
            if len(taken) == n:
                break
            own = self._codes[one].tolist() if self.at_most else []
            full = any(room[k][v] >= most for k, (v, most) in enumerate(zip(own, self.at_most.values(), strict=True)))
            if one in used or full:
                continue
            for k, value in enumerate(own):
                room[k][value] += 1
            taken.add(one)
            total += float(costs[one])
        return (total, taken) if len(taken) == n else (np.inf, taken)

    def _largest_plate(self, part: IntArray, enough: int) -> int:
        """How many candidates of a part can be on one plate; counted up to `enough`."""
        most = self._most(part, enough, ())
        while self.purse is not None and most and not self._affordable(self.purse, part, most, ()).size:
            most -= 1
        return most

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


class UpperBounds:
    """Upper bounds by candidate, (N,), of what only falls, up to a share `rises`, while trials become pending.

    Attributes
    ----------
    pending : trials that are pending; bounds hold while these and further ones are.
    is_exact : (N,) which bounds are the values beside just these trials.
    """

    def __init__(self, n: int, pending: Pending, rises: float) -> None:
        self.upper, self.is_exact, self.pending, self.rises = np.full(n, inf), np.zeros(n, dtype=bool), pending, rises

    def hold_for(self, round: Round) -> bool:
        """Whether they are bounds of all choices of a round."""
        return round.pending.begins_with(self.pending) and bool(np.isfinite(self.upper[round.indices]).all())

    def go_on(self, pending: Pending) -> None:
        """Further trials may be pending now."""
        if len(pending) > len(self.pending):
            self.upper[self.is_exact] *= 1.0 + self.rises
            self.is_exact[:] = False
        self.pending = pending

    def first_best(
        self, indices: IntArray, score: Callable[[IntArray | slice], FloatArray], look: Callable[[IntArray], FloatArray]
    ) -> tuple[int, float]:
        """Position and size of the largest score of some candidates (n,), the first of equal ones.

        `score` of some positions follows from their bounds; `look` computes values at some. Those with the largest
        scores are looked at, four times as many each time, until the largest score is that of a value.
        """
        scores, is_exact, few = score(slice(None)), self.is_exact[indices], _FEW
        while not is_exact[position := int(np.argmax(scores))]:
            some = np.flatnonzero(~is_exact)
            if some.size > few:
                some = some[np.argpartition(-scores[some], few)[:few]]
            self.upper[indices[some]], self.is_exact[indices[some]] = look(some), True
            scores[some], is_exact[some], few = score(some), True, 4 * few
        return position, float(scores[position])
