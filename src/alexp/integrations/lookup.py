"""Which candidate a row of somebody else's table is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.validation import positive
from alexp.problem.domains import Box, Domain, FiniteSet

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = -1


class _Numbers:
    """The values of a column of numbers, found up to a tolerance: tables come back rounded, or through text."""

    def __init__(self, values: FloatArray, tolerance: float) -> None:
        self.values = np.unique(values)
        span = float(self.values[-1] - self.values[0]) or abs(float(self.values[0])) or 1.0
        self._reach = tolerance * span

    def codes(self, given: AnyArray) -> IntArray:
        """The number of each value, or UNKNOWN, (n,)."""
        numbers = np.asarray(given, dtype=np.float64)
        above = np.clip(np.searchsorted(self.values, numbers), 1, self.values.size - 1) if self.values.size > 1 else 0
        below = np.maximum(np.asarray(above) - 1, 0)
        nearer = np.abs(self.values[above] - numbers) < np.abs(self.values[below] - numbers)
        found = np.where(nearer, above, below)
        return np.where(np.abs(self.values[found] - numbers) <= self._reach, found, UNKNOWN)


class _Names:
    """The values of any other column, found where they are equal."""

    def __init__(self, values: Sequence[Hashable]) -> None:
        self._codes = {value: code for code, value in enumerate(dict.fromkeys(values))}

    def codes(self, given: AnyArray) -> IntArray:
        """The number of each value, or UNKNOWN, (n,)."""
        return np.array([self._codes.get(value, UNKNOWN) for value in given.tolist()], dtype=np.int64)


class Lookup(Protocol):
    """Where candidates are in a domain."""

    @property
    def domain(self) -> FiniteSet | Box:
        """The candidates so far."""

    def rows(self, table: pd.DataFrame) -> list[int]:
        """The candidate of every row of a table; raises and says which row is none."""

    def one(self, x: Action) -> int:
        """The number of one candidate, in the user's own form or as {column: value}."""


def lookup(domain: Domain, keys: Sequence[str] | None, tolerance: float) -> Lookup:
    """The lookup for a domain; raises for those whose points nobody else has a table of."""
    named = None if keys is None else [str(key) for key in keys]
    if isinstance(domain, FiniteSet):
        return ListLookup(domain, named, positive("tolerance", tolerance))
    if isinstance(domain, Box):
        return BoxLookup(domain, named)
    raise TypeError(
        f"domain must be a FiniteSet or a Box, got {type(domain).__name__}; Box([a], [b]) stands for an interval"
    )


class ListLookup:
    """Candidates of a FiniteSet.

    Parameters
    ----------
    keys : columns that identify a candidate: by default all of a DataFrame's; for an array, names for its columns, and
        for a list of values, the name of the one column they stand in. The name of a DataFrame's index will do as well.
    tolerance : how far numbers may be from a candidate's, as a share of the column's range.
    """

    def __init__(self, domain: FiniteSet, keys: list[str] | None, tolerance: float) -> None:
        self.domain, self._keys = domain, list[str]()
        table = _as_frame(domain.candidates, keys)
        if table is None:
            return
        self._keys = [str(name) for name in table.columns]
        self._columns = [_column(name, table[name].to_numpy(), tolerance) for name in table.columns]
        self._numbers: dict[tuple[int, ...], int] = {}
        for number, row in enumerate(map(tuple, self._codes(table).tolist())):
            if (first := self._numbers.setdefault(row, number)) != number:
                raise ValueError(
                    f"{_listed(self._keys)} must tell all candidates apart, but candidates {first} and {number} are "
                    "equal in that; name more columns in keys"
                )

    def _codes(self, table: pd.DataFrame) -> IntArray:
        """(n, keys)."""
        both = zip(self._columns, table.columns, strict=True)
        return np.stack([column.codes(table[name].to_numpy()) for column, name in both], axis=1)

    def rows(self, table: pd.DataFrame) -> list[int]:
        """The candidate of every row of a table."""
        if not self._keys:
            raise ValueError(
                "these candidates have no named columns to find them by; pass keys, the columns of your table that "
                "say which candidate a row is"
            )
        own = _own_columns(table, self._keys)
        codes = self._codes(own)
        found = [self._numbers.get(row, UNKNOWN) for row in map(tuple, codes.tolist())]
        if UNKNOWN in found:
            place = found.index(UNKNOWN)
            strange = [key for key, code in zip(self._keys, codes[place], strict=True) if code == UNKNOWN]
            row = ", ".join(f"{key} = {own[key].iloc[place]}" for key in strange or self._keys)
            what = "which no candidate has" if strange else "which is none of the candidates"
            raise ValueError(f"row {table.index[place]!r} of the table has {row}, {what}")
        return found

    def one(self, x: Action) -> int:
        """The number of one candidate."""
        return self.rows(_one_row(x))[0] if _is_named(x) else self.domain.locate(x)


class BoxLookup:
    """Points of a Box, whose coordinates tables have in the columns `keys`; points that are new become candidates."""

    def __init__(self, box: Box, keys: list[str] | None) -> None:
        if keys is not None and len(keys) != box.dim:
            raise ValueError(f"keys must name the {box.dim} coordinates of the box, got {_listed(keys)}")
        self._box, self._keys, self._new = box, keys, list[FloatArray]()
        self._numbers = {point.tobytes(): number for number, point in reversed([*enumerate(box.points)])}

    @property
    def domain(self) -> Box:
        """The box with all points so far."""
        box = self._box
        if self._new:
            self._box = Box(box.lower, box.upper, box.resolution, box.seed, np.vstack([box.extra, *self._new]))
            self._new = []
        return self._box

    def rows(self, table: pd.DataFrame) -> list[int]:
        """The candidate of every row of a table."""
        if self._keys is None:
            raise ValueError(f"keys must name the {self._box.dim} columns that are the coordinates of the box")
        own = _own_columns(table, self._keys)
        return self._found(own.to_numpy(dtype=np.float64)) if len(own) else []

    def one(self, x: Action) -> int:
        """The number of one candidate, a vector (dim,) or coordinates by name."""
        if _is_named(x):
            return self.rows(_one_row(x))[0]
        return self._found(np.asarray(x, dtype=np.float64).reshape(1, -1))[0]

    def _found(self, given: FloatArray) -> list[int]:
        out, points = [], self._box.batch(given)[0]
        for point in points:
            key = np.ascontiguousarray(point).tobytes()
            if key not in self._numbers:
                self._numbers[key] = self._box.n_candidates + len(self._new)
                self._new.append(np.array(point))
            out.append(self._numbers[key])
        return out


def _is_named(x: Action) -> bool:
    return isinstance(x, Mapping) or (hasattr(x, "index") and hasattr(x, "to_dict"))


def _one_row(x: Action) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([dict(x)])


def _own_columns(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    if missing := [key for key in keys if key not in table.columns]:
        raise ValueError(
            f"the table must have the columns {_listed(keys)}, which say which candidate a row is; it has no "
            f"{missing[0]!r}. Name those that matter in keys"
        )
    return table[keys]


def _as_frame(candidates: Action, keys: Sequence[str] | None) -> pd.DataFrame | None:
    import pandas as pd

    if isinstance(candidates, pd.DataFrame):
        if keys is None:
            return candidates
        table = candidates.reset_index() if candidates.index.name in keys else candidates
        if unknown := [key for key in keys if key not in table.columns]:
            raise ValueError(f"keys must be columns of the candidates, {_listed(table.columns)}; got {unknown[0]!r}")
        return table[list(keys)]
    if keys is None:
        return None
    values = np.asarray(candidates)
    wide = values.ndim == 2
    if len(keys) != (values.shape[1] if wide else 1) or values.ndim > 2:
        raise ValueError(f"keys must name each column of the candidates, of shape {values.shape}; got {_listed(keys)}")
    return pd.DataFrame(values if wide else {keys[0]: values}, columns=list(keys))


def _column(name: object, values: AnyArray, tolerance: float) -> _Numbers | _Names:
    if values.dtype.kind in "iuf":
        if not np.all(np.isfinite(values)):
            raise ValueError(f"column {str(name)!r} of the candidates has missing values; leave it out of keys")
        return _Numbers(np.asarray(values, dtype=np.float64), tolerance)
    return _Names(values.tolist())


def _listed(names: Sequence[str] | pd.Index) -> str:
    return ", ".join(repr(str(name)) for name in names)
