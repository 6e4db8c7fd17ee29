"""Groups of dictionary columns, one per model, in compressed form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import overload

import numpy as np

from alexp.common.arrays import AnyArray, IntArray

MOST_LISTED = 50_000_000  # groups
MOST_NUMBERED = 2**63 - 1  # subsets


class GroupList(Sequence[IntArray]):
    """Column indices of every model; subclasses say which those of model j are, 0 <= j < len."""

    @abstractmethod
    def _group(self, j: int) -> IntArray: ...

    @overload
    def __getitem__(self, j: int) -> IntArray: ...
    @overload
    def __getitem__(self, j: slice) -> list[IntArray]: ...
    def __getitem__(self, j: int | slice) -> IntArray | list[IntArray]:
        if isinstance(j, slice):
            return [self[i] for i in range(*j.indices(len(self)))]
        if not -len(self) <= j < len(self):
            raise IndexError(f"there are {len(self)} models, no model {j}")
        return self._group(j % len(self))


class ColumnGroups(GroupList):
    """Column indices of every model, a view on the compressed arrays."""

    def __init__(self, columns: IntArray, offsets: IntArray) -> None:
        self._columns, self._offsets = columns, offsets

    def __len__(self) -> int:
        return self._offsets.size - 1

    def _group(self, j: int) -> IntArray:
        return self._columns[self._offsets[j] : self._offsets[j + 1]]


class AllSubsets(GroupList):
    """All subsets of ``size`` out of ``n_columns`` columns in lexicographic order, each computed when it is read.

    >>> AllSubsets(11, 3)[1].tolist(), len(AllSubsets(844, 3))
    ([0, 1, 3], 99846044)
    """

    def __init__(self, n_columns: int, size: int) -> None:
        self.n_columns, self.size = n_columns, size

    def __len__(self) -> int:
        return comb(self.n_columns, self.size)

    def _group(self, j: int) -> IntArray:
        left, column, out = len(self) - 1 - j, 0, []
        for missing in range(self.size, 0, -1):
            while comb(self.n_columns - 1 - column, missing) > left:
                column += 1
            left -= comb(self.n_columns - 1 - column, missing)
            out.append(column)
            column += 1
        return np.array(out, dtype=np.int64)

    @property
    def is_listable(self) -> bool:
        """Whether they are few enough to be listed."""
        return len(self) <= MOST_LISTED

    def listed(self) -> IntArray:
        """All of them, (M, size)."""
        groups = (i for group in combinations(range(self.n_columns), self.size) for i in group)
        return np.fromiter(groups, np.int64, len(self) * self.size).reshape(len(self), self.size)


def binomial_table(n: int, size: int) -> IntArray:
    """C(i, k) for i <= n and k <= size, (n + 1, size + 1), by which compiled code numbers subsets."""
    table = [[min(comb(i, k), MOST_NUMBERED) for k in range(size + 1)] for i in range(n + 1)]
    return np.array(table, dtype=np.int64)


class SubsetNames(Sequence[str]):
    """Names such as P0+P3, computed when they are read: there may be millions."""

    def __init__(self, columns: Sequence[str], groups: Sequence[IntArray]) -> None:
        self._columns, self._groups = columns, groups

    def __len__(self) -> int:
        return len(self._groups)

    @overload
    def __getitem__(self, j: int) -> str: ...
    @overload
    def __getitem__(self, j: slice) -> list[str]: ...
    def __getitem__(self, j: int | slice) -> str | list[str]:
        if isinstance(j, slice):
            return [self[i] for i in range(*j.indices(len(self)))]
        return "+".join(self._columns[int(i)] for i in self._groups[j])

    def __iter__(self) -> Iterator[str]:
        return (self[j] for j in range(len(self)))


def compress(groups: Sequence[Sequence[int] | IntArray] | AnyArray, n_columns: int) -> tuple[IntArray, IntArray]:
    """Column indices of all groups one after the other, and where each begins; checks every group."""
    if isinstance(groups, np.ndarray) and groups.ndim == 2 and np.issubdtype(groups.dtype, np.integer):
        m, size = groups.shape
        columns, offsets = groups.astype(np.int64).ravel(), np.arange(m + 1, dtype=np.int64) * size
    else:
        arrays = [np.asarray(group) for group in groups]
        for j, array in enumerate(arrays):
            if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
                raise ValueError(f"model {j} must be a non-empty list of column numbers, got {groups[j]!r}")
        columns = np.concatenate(arrays).astype(np.int64) if arrays else np.empty(0, np.int64)
        offsets = np.concatenate([[0], np.cumsum([a.size for a in arrays])]).astype(np.int64)
    if offsets.size < 2 or columns.size == 0:
        raise ValueError("a ModelClass needs at least one model with at least one column")
    if columns.min() < 0 or columns.max() >= n_columns:
        raise ValueError(f"column numbers must lie in 0..{n_columns - 1}, got {columns.min()}..{columns.max()}")
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    keys = np.sort(owner * n_columns + columns)
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    if repeated.size:
        raise ValueError(f"model {keys[repeated[0]] // n_columns} lists column {keys[repeated[0]] % n_columns} twice")
    return columns, offsets
