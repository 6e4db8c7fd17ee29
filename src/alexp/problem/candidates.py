"""The dictionary on all candidates, stored the way compiled code reads it, and the rounds that are played on it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from itertools import pairwise
from math import gcd
from typing import Any, cast

import numpy as np

from alexp.common.arrays import AnyArray, BoolArray, FloatArray, IntArray
from alexp.common.validation import VANISHING
from alexp.common.warning import caution
from alexp.problem.domains import Domain
from alexp.problem.kernels import Kernel
from alexp.problem.matrices import (
    SMALL,
    Block,
    FeatureTable,
    ModelOnTable,
    SideBySide,
    columns_fingerprint,
    mean_squares,
    nonzero_columns,
    rows_fingerprint,
)
from alexp.problem.models import ModelClass
from alexp.problem.rows import RemoteRows, Rows, column_units, dense, first_rows, shifted, take

_BLOCK = 256  # ids of pending trials
_CANCELLED = 1e-6  # variances below this share of the mean square are computed from the deviations instead


class Pending:
    """Pending trials, oldest first.

    Attributes
    ----------
    trials : (k,) their ids.
    indices : (k,) their candidates.
    older : blocks of the first of them, where there are many.
    newest : (n, P) the dictionary at all others.
    n_older : how many are in `older` blocks.
    """

    def __init__(
        self, trials: IntArray, indices: IntArray, newest: FloatArray, older: tuple[PendingBlock, ...] = ()
    ) -> None:
        self.trials, self.indices, self.newest, self.older = trials, indices, newest, older
        self.n_older = trials.size - len(newest)

    @cached_property
    def rows(self) -> FloatArray:
        """(k, P) the dictionary there."""
        return np.vstack([*(block.rows for block in self.older), self.newest]) if self.older else self.newest

    def __len__(self) -> int:
        return int(self.trials.size)

    def begins_with(self, others: Pending) -> bool:
        """Whether these are the others of the same run, and perhaps further ones behind them."""
        k = others.trials.size
        if k > self.trials.size or not np.array_equal(self.trials[:k], others.trials):
            return False
        return np.array_equal(self.indices[:k], others.indices)


NOTHING = Pending(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty((0, 0)))


class PendingList:
    """Pending trials of a run on a fixed domain; one more takes the same time whatever their number.

    `now` are the trials so far; those that are added later do not change it. Of more than 256, those before the newest
    block of ids form blocks: a reward changes one of them. Only the trials themselves decide on blocks, so that a
    process that starts with many pending trials computes as one that saw them come.
    """

    def __init__(self, candidates: CandidateTable) -> None:
        self.now, self.candidates = NOTHING, candidates
        self._numbers, self._rows = np.empty((2, 0), dtype=np.int64), np.empty((0, 0))

    def extend(self, trials: IntArray, indices: IntArray) -> None:
        """Add k trials of some candidates (k,)."""
        low, n_older = self.now.trials.size, self.now.n_older
        high = low + trials.size
        if high > self._numbers.shape[1]:
            numbers = np.empty((2, 2 * high), dtype=np.int64)
            numbers[:, :low] = self._numbers[:, :low]
            self._numbers = numbers
        self._numbers[0, low:high], self._numbers[1, low:high] = trials, indices
        if low == 0 or trials[-1] // _BLOCK != self.now.trials[-1] // _BLOCK:
            self.replace(*self._numbers[:, :high])
            return
        rows = self.candidates.rows(indices)
        if high - n_older > len(self._rows):
            known, self._rows = self._rows, np.empty((2 * (high - n_older), rows.shape[1]))
            self._rows[: low - n_older] = known[: low - n_older]
        self._rows[low - n_older : high - n_older] = rows
        trials, indices = self._numbers[:, :high]
        self.now = Pending(trials, indices, self._rows[: high - n_older], self.now.older)

    def replace(self, trials: IntArray, indices: IntArray) -> None:
        """Have these trials of some candidates (k,) instead; blocks that are the same are kept."""
        numbers = trials // _BLOCK
        n = int(np.flatnonzero(numbers != numbers[-1])[-1]) + 1 if numbers[0] != numbers[-1] else 0
        n = n if n >= _BLOCK else 0
        known = {block.trials.tobytes() + np.asarray(block.indices).tobytes(): block for block in self.now.older}
        cuts, older = [0, *(np.flatnonzero(np.diff(numbers[:n])) + 1).tolist(), n], list[PendingBlock]()
        for low, high in pairwise(cuts) if n else ():
            own = trials[low:high].copy(), indices[low:high].copy()
            key = own[0].tobytes() + own[1].tobytes()
            older.append(known.get(key) or PendingBlock(*own, self.candidates.rows(own[1])))
        is_same = np.array_equal(indices[n:], self.now.indices[self.now.n_older :])
        self._rows = self.now.newest if is_same else self.candidates.rows(indices[n:])
        self._numbers = np.stack([trials, indices])
        self.now = Pending(self._numbers[0], self._numbers[1], self._rows, tuple(older))


class ComputedOrder:
    """A visiting order of n candidates that is not stored: candidate i is visited at (a i + b) mod n.

    For more candidates than a permutation is listed for. a has no divisor in common with n, and is so small that a i
    stays below 2^62.

    >>> order = ComputedOrder.drawn(10, np.random.default_rng(0))
    >>> sorted(order[k] for k in range(10)) == list(range(10)), [order.position[order[k]] for k in range(3)]
    (True, [0, 1, 2])
    """

    def __init__(self, n: int, factor: int, offset: int) -> None:
        self.size, self._factor, self._offset = n, factor, offset

    @classmethod
    def drawn(cls, n: int, rng: np.random.Generator) -> ComputedOrder:
        """One of many."""
        if n >= 1 << 61:
            raise ValueError(f"there are {n} candidates; at most {1 << 61} can be numbered")
        factor = 0
        while gcd(factor, n) != 1:
            factor = int(rng.integers(1, max(min(n, (1 << 62) // n), 2)))
        position = cls(n, factor, int(rng.integers(n)))
        return position.position  # inverses of each other: the large factor is for one position at a time

    @property
    def position(self) -> ComputedOrder:
        """The inverse."""
        factor = pow(self._factor, -1, self.size)
        return ComputedOrder(self.size, factor, -self._offset * factor % self.size)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return (self._factor * int(key) + self._offset) % self.size
        numbers = np.asarray(key, dtype=np.int64)
        if self._factor * self.size >= 1 << 62:
            return np.array([self[k] for k in numbers.tolist()], dtype=np.int64)
        return (self._factor * numbers + self._offset) % self.size


class ListedOrder:
    """A visiting order that is listed, for candidates in parts."""

    def __init__(self, order: IntArray) -> None:
        self._order, self.size = order, int(order.size)
        self.position = np.empty_like(order)
        self.position[order] = np.arange(order.size)

    def __getitem__(self, key: Any) -> Any:
        return self._order[key]


class AllBut:
    """All of n candidates but a few: what may be chosen where there are too many to list.

    Attributes
    ----------
    but : (k,) numbers of the others, increasing.
    """

    def __init__(self, n: int, but: IntArray) -> None:
        self.but, self.size = but, n - but.size

    def without(self, index: int) -> AllBut:
        """One candidate less."""
        return AllBut(self.size + self.but.size, np.union1d(self.but, [index]))


class Listing:
    """n candidates in one fixed visiting order, and the rounds that are played on them.

    Exact ties between candidates are common (even polynomials cannot tell x from -x). Loops visit candidates in
    `order`, a random permutation, and the first best wins: deterministic, and without a bias to either side.

    Attributes
    ----------
    order : (N,) candidate visited k-th.
    position : (N,) inverse of `order`.
    n_candidates : N.
    mark : what tells these candidates apart from those of other rounds; None if they are those of all rounds.
    everything : the round on all candidates, with nothing pending.
    """

    is_in_parts = False  # whether no one memory has all candidates

    def __init__(self, order: IntArray | ComputedOrder | ListedOrder, mark: bytes | None = None) -> None:
        self.order: Any = order
        self.position: Any
        self.mark = mark
        if not isinstance(order, np.ndarray):
            self.position = order.position
        else:
            self.position = np.empty_like(order)
            self.position[order] = np.arange(order.size)
        self.n_candidates = int(order.size)
        self.everything = Round(self)
        self._last: tuple[IntArray, Choices] | None = None  # positions of the last choices that were copied

    @property
    def table(self) -> FloatArray:
        """(P, N) the features, feature-major and in visiting order."""
        raise NotImplementedError

    def round(
        self, indices: IntArray | AllBut | None = None, pending: Pending = NOTHING, copied: bool = False
    ) -> Round:
        """The round on some candidates, or on all of them, while some trials are pending.

        `copied` says that the features of the choices must be computed with in a table of their own, see `Round.wide`.
        """
        if indices is not None and indices.size == self.n_candidates and not copied:
            indices = None
        return self.everything if indices is None and not pending.trials.size else Round(self, indices, pending, copied)

    def copied(self, positions: IntArray) -> Choices:
        """The candidates at some positions with features of their own; those of the last call are kept."""
        if self._last is None or not np.array_equal(self._last[0], positions):
            self._last = positions, Choices(self.order[positions], partial(self._taken, positions))
        return self._last[1]

    def _taken(self, positions: IntArray) -> FloatArray:
        table = np.take(self.table, positions, axis=1)  # twenty times as fast as an index would be
        table.flags.writeable = False  # like the whole table; sweeps would be compiled again for one that is
        return table


class CandidateTable(Listing):
    """Features of the N candidates of a domain, feature-major and in visiting order.

    `n_first` candidates were there first, in the domain's order and in the visiting order: all units come from them.
    """

    def __init__(self, models: ModelClass, domain: Domain, order: IntArray | ComputedOrder) -> None:
        self._tables = models.tables(domain)  # in the domain's order
        self.is_in_parts = models.is_in_parts
        if isinstance(order, ComputedOrder) and not self.is_in_parts:
            order = order[np.arange(order.size)]
        super().__init__(ListedOrder(order) if self.is_in_parts and isinstance(order, np.ndarray) else order)
        self._models = models
        self.n_first = models.batches[0] if models.batches else self.n_candidates
        self._blocks: dict[tuple[bytes, bool], Block] = {}  # columns of models, by their numbers
        _point_out_empty_models(models, self._filled)

    @cached_property
    def table(self) -> FloatArray:
        """The features as the compiled code of small models reads them; made when first asked for."""
        table = np.empty((self.n_columns, self.n_candidates))
        for part in self._tables:
            table[part.columns] = dense(part.rows)[self.order[:]].T
        table.flags.writeable = False  # sweeps keep a copy in single precision
        return table

    @property
    def is_small(self) -> bool:
        """Whether a copy of the table in double precision does not matter."""
        return self.n_candidates * self.n_columns <= SMALL

    @property
    def n_columns(self) -> int:
        """P."""
        return sum(part.columns.size for part in self._tables)

    def mean_squares(self, centred: bool) -> FloatArray:
        """Mean square of every column over the first candidates, or its variance, shape (P,)."""
        if self.is_small:
            table = self.table[:, : self.n_first]
            squares: FloatArray = np.einsum("pn,pn->p", table, table) / self.n_first
            if not centred:
                return squares
            out = np.maximum(squares - table.mean(axis=1) ** 2, 0.0)
            cancelled = np.flatnonzero(out <= _CANCELLED * squares)
            out[cancelled] = np.square(column_units(table[cancelled].T).deviations)
            return np.asarray(out)
        return np.concatenate([mean_squares(first_rows(part.rows, self.n_first), centred) for part in self._tables])

    def prior_variance(self, group: IntArray, kernel: Kernel) -> float:
        """Mean of k(x, x) over the first candidates."""
        rows = first_rows(self._on_table(group, kernel).block.rows, self.n_first)
        return rows.mean_diagonal(kernel) if isinstance(rows, RemoteRows) else float(np.mean(kernel.diagonal(rows)))

    def _filled(self, least: float) -> BoolArray:
        """Which columns are larger than `least` in size on some candidate, (P,)."""
        return np.concatenate([nonzero_columns(part.rows, least) for part in self._tables])

    def hashes(self) -> list[str]:
        """Content hashes of the columns on all candidates: of what was handed in, where that is large."""
        if self.is_in_parts:
            return [cast(RemoteRows, part.rows).fingerprint() for part in self._tables]
        wide = [_in_memory(part.rows) for part in self._tables]
        plain = [rows for rows in wide if isinstance(rows, np.ndarray) and rows.dtype == np.float64]
        return [columns_fingerprint(plain)] if len(plain) == len(wide) else [rows_fingerprint(rows) for rows in wide]

    def models(self, models: ModelClass) -> list[ModelOnTable]:
        """The models on tables of all candidates, in the domain's order."""
        return [self._on_table(models.groups[j], models.kernel(j)) for j in range(models.n_models)]

    def _on_table(self, group: IntArray, kernel: Kernel | None) -> ModelOnTable:
        """A model on the table that has all of its columns; on all tables side by side, if none has.

        Of linear models beside an intercept, what is far from zero has been taken off, see `ModelClass.origin`.
        """
        low, high = int(group.min()), int(group.max())
        far = self._models.origin if kernel is None else None
        origin = None if far is None or not far[group].any() else far[group]
        tables = [self._whole] if kernel is not None and self.is_small and not self.is_in_parts else self._tables
        holds = [part for part in tables if part.columns[0] <= low and high <= part.columns[-1]]
        table = holds[0] if holds else self._joined
        local, key = group - table.columns[0], (group.tobytes(), origin is None)
        if key not in self._blocks:
            rows = take(table.rows, local) if holds else cast(Rows, self._side_by_side.only(local))
            rows = dense(rows[:]) if kernel is None and not holds and not self.is_in_parts else rows
            self._blocks[key] = Block(rows if origin is None else shifted(rows, origin).astype(rows.dtype))
        return ModelOnTable(table, group, local, kernel, self._blocks[key], origin)

    @cached_property
    def _side_by_side(self) -> SideBySide:
        rows = [part.rows for part in self._tables]
        return cast(Any, rows[0]).beside(rows[1:]) if self.is_in_parts else SideBySide(rows)

    @cached_property
    def _whole(self) -> FeatureTable:
        """All columns in double precision: what kernels of several maps share is computed once."""
        return FeatureTable(np.hstack([dense(part.rows) for part in self._tables]), np.arange(self.n_columns))

    @cached_property
    def _joined(self) -> FeatureTable:
        return FeatureTable(cast(Rows, self._side_by_side), np.arange(self.n_columns))

    def _taken(self, positions: IntArray) -> FloatArray:
        if not self.is_in_parts:
            return super()._taken(positions)
        return np.ascontiguousarray(self.rows(self.order[positions]).T)

    def row(self, index: int) -> FloatArray:
        """Features of candidate `index`, shape (P,)."""
        if "table" in vars(self):
            return np.ascontiguousarray(self.table[:, self.position[index]])
        return np.concatenate([dense(part.rows[index : index + 1])[0] for part in self._tables])

    def rows(self, indices: IntArray) -> FloatArray:
        """Features of k candidates, shape (k, P)."""
        if "table" in vars(self):
            return np.ascontiguousarray(np.take(self.table, self.position[indices], axis=1).T)
        return np.hstack([dense(part.rows[indices]) for part in self._tables])

    def distinct_columns(self, columns: IntArray | None = None) -> IntArray:
        """Columns of the dictionary, or some of them; of those that are equal on every candidate only the first."""
        table = self.table if columns is None else self.table[columns]
        _, first = np.unique(table, axis=0, return_index=True)
        return np.sort(first) if columns is None else np.asarray(columns[np.sort(first)])


class Choices:
    """A set of candidates in visiting order, or of other points.

    Parameters
    ----------
    indices : (n,) candidate numbers; None for points that are none.
    table : (P, n) their features, or a function that makes them when they are first needed.
    """

    def __init__(self, indices: IntArray | None, table: FloatArray | Callable[[], FloatArray]) -> None:
        self.indices, self._source = indices, table

    @cached_property
    def table(self) -> FloatArray:
        """(P, n) features."""
        return self._source() if callable(self._source) else self._source

    def __len__(self) -> int:
        return int(self.table.shape[1] if self.indices is None else self.indices.size)


class PendingBlock(Choices):
    """The candidates of some of many pending trials; the same object as long as these trials are the same.

    Parameters
    ----------
    trials, indices : (k,) their ids and candidates.
    rows : (k, P) the dictionary there.
    """

    def __init__(self, trials: IntArray, indices: IntArray, rows: FloatArray) -> None:
        super().__init__(indices, lambda: np.ascontiguousarray(rows.T))
        self.trials, self.rows = trials, rows


class Round:
    """What one ask chooses from, and what is known to come.

    Positions of a play count within `indices`. `choices` copies the features of the choices; where one number per
    candidate is computed, compute it on `wide` and `narrow` the result.

    Attributes
    ----------
    pending : trials whose rewards are not known yet.
    key : rounds of one run with equal keys have equal choices and the same trials pending; None for all candidates
        of the domain and nothing pending.
    indices : (n,) the candidates that may be chosen, in visiting order; None where they are too many to list.
    is_full : whether every candidate of the domain may be chosen.
    """

    indices: IntArray

    def __init__(
        self,
        candidates: Listing,
        indices: IntArray | AllBut | None = None,
        pending: Pending = NOTHING,
        copied: bool = False,
    ) -> None:
        self._candidates, self.pending = candidates, pending
        self.is_full, self.indices, self.key = indices is None, candidates.order, candidates.mark
        self._positions: IntArray | None = None
        self._but: IntArray | None = None  # positions of what may not be chosen, where the others are not listed
        self._copied = copied
        if isinstance(indices, AllBut):
            self._but, self._excluded = np.sort(candidates.position[indices.but]), indices
            self.key = b"but" + self._but.tobytes() + b"/" + pending.trials.tobytes()
            self.indices = cast(IntArray, None)
        elif candidates.is_in_parts and indices is not None:
            self._positions, self._copied = np.sort(candidates.position[indices]), True
            self.indices = candidates.order[self._positions]
            self.key = self._positions.tobytes() + b"/" + pending.trials.tobytes()
        elif candidates.is_in_parts:
            self.key = b"/" + pending.trials.tobytes() if pending.trials.size else None
        elif indices is not None or pending.trials.size:
            inside = np.zeros(candidates.n_candidates, dtype=bool)
            inside[slice(None) if indices is None else candidates.position[indices]] = True
            self.key = (candidates.mark or b"") + np.packbits(inside).tobytes() + pending.trials.tobytes()
            if indices is not None:
                self._positions = np.flatnonzero(inside)
                self.indices = candidates.order[self._positions]
                self._copied = copied or 8 * self._positions.size <= candidates.n_candidates

    def __len__(self) -> int:
        return int(self.indices.size if self._but is None else self._candidates.n_candidates - self._but.size)

    @property
    def settled(self) -> Round:
        """The same choices with nothing pending."""
        if not self.pending.trials.size:
            return self
        out = copy(self)
        out.pending, out.key = NOTHING, (self.key or b"") + b" settled"
        return out

    def candidate(self, position: int) -> int:
        """The number of the candidate at a position."""
        if self._but is None:
            return int(self.indices[position])
        before = np.searchsorted(self._but - np.arange(self._but.size), position, side="right")
        return int(self._candidates.order[position + int(before)])

    def position_of(self, candidate: int) -> int | None:
        """Where a candidate is; None if it may not be chosen."""
        if not self._candidates.is_in_parts:
            found = np.flatnonzero(self.indices == candidate)
            return int(found[0]) if found.size else None
        place = int(self._candidates.position[candidate])
        listed = self._positions if self._but is None else self._but
        if listed is None:
            return place
        rank = int(np.searchsorted(listed, place))
        is_listed = rank < listed.size and int(listed[rank]) == place
        if self._but is None:
            return rank if is_listed else None
        return None if is_listed else place - rank

    @cached_property
    def choices(self) -> Choices:
        """The candidates that may be chosen, and their features."""
        if self._but is not None:
            raise TypeError("these candidates are too many to list; take `wide` and `narrow`")
        if self._positions is None:
            return Choices(self.indices, partial(getattr, self._candidates, "table"))
        return self._candidates.copied(self._positions)

    @property
    def offered(self) -> Choices:
        """All candidates of the round, those that may not be chosen included."""
        return self._candidates.everything.choices

    @property
    def wide(self) -> Choices:
        """The choices, or all candidates where a number for each of them is cheaper than a copy of the features."""
        return self.choices if self._copied else self._candidates.everything.choices

    def narrow(self, values: AnyArray) -> AnyArray:
        """What was computed for the candidates of `wide`, last axis, for those that may be chosen: (..., n)."""
        if self._but is not None:
            others = getattr(values, "without", None)  # of values in parts
            return others(self._excluded.but) if others else np.delete(values, self._but, axis=-1)
        return values if self._copied or self._positions is None else values[..., self._positions]


def _in_memory(rows: Rows) -> Rows:
    """What features are recognised by: where they are computed with makes no difference."""
    return np.asarray(rows) if isinstance(rows, RemoteRows) else rows


def _point_out_empty_models(models: ModelClass, filled: Callable[[float], BoolArray]) -> None:
    """Warn of models whose features all vanish on every candidate; `filled(least)` (P,) says which do not.

    Kernels have units of their own, so that only zeros vanish for them.
    """
    visible = filled(VANISHING)
    if visible.all() or (models.subset_size is not None and np.count_nonzero(~visible) < models.dimension):
        return
    if models.enumerated_on is not None:
        some = "+".join(models.dictionary.names[int(i)] for i in np.flatnonzero(~visible)[: models.dimension])
        caution(f"models such as {some!r} are zero on every candidate; leave such columns out", UserWarning)
        return
    own = visible[models.columns_flat]
    if models.kernels is not None:
        linear = np.repeat([kernel is None for kernel in models.kernels], np.diff(models.offsets))
        own = np.where(linear, own, filled(0.0)[models.columns_flat])
    empty = np.flatnonzero(~np.logical_or.reduceat(own, models.offsets[:-1]))
    if empty.size:
        others = f" (and {empty.size - 1} more)" if empty.size > 1 else ""
        caution(
            f"model {models.names[int(empty[0])]!r} is zero on every candidate, or below {VANISHING:g} in size{others}"
            ": it predicts the same reward for all of them; leave it out, or use other units, unless that is meant",
            UserWarning,
        )
