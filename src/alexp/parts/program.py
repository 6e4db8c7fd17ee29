"""What is computed on every candidate, as data: calls that are put off, sent where the rows are, and run there.

An operation of `PartsBackend` makes a `Node`: a call by name, constants, and the nodes it reads. Nothing is computed
before a number is wanted, such as the position of the best candidate. A `Program` then has all the calls that this
number needs and no part has made yet. It is sent to every part, which runs it a few thousand candidates at a time: a
block of features is read once for the rewards since the last ask and for the ask itself, and what is computed on the
way stays in the cache. The calls are those of `HostBackend`: a part computes what one memory would.

Arrays that the run still holds, means and variances, stay in the parts. A part that has lost them, because its worker
died, gets a program that begins at the last time that values were made from the factors: nodes know what they read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count, pairwise
from math import inf
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.ties import tolerance
from alexp.estimation.onepass.backends import HostBackend, ModelMoments, ToldValue, subtract_products
from alexp.estimation.onepass.regressions import KernelRegression
from alexp.parts._kernels import extend_front
from alexp.problem.kernels import Kernel
from alexp.problem.matrices import Block

BLOCK = 1 << 14  # candidates whose values stay in the cache
_FOLDED = 1 << 14  # rows of a block that something is summed over
_GONE = np.empty(0)
_numbers = count()


class Features(NamedTuple):
    """Columns of tables in parts, side by side: (key of the table, numbers of its columns, or None for all)."""

    pieces: tuple[tuple[str, tuple[int, ...] | None], ...]


class Node:
    """A call that is put off: `name` is that of a function of `CALLS`.

    Attributes
    ----------
    reads : nodes whose values are its first arguments.
    constants : the other arguments.
    live : how many arrays of the run are this node.
    """

    __slots__ = ("__weakref__", "constants", "live", "name", "number", "reads")

    def __init__(self, name: str, reads: tuple[Node, ...] = (), constants: tuple[Any, ...] = ()) -> None:
        self.name, self.reads, self.constants = name, reads, constants
        self.number, self.live = next(_numbers), 0
        NODES[self.number] = self


NODES: WeakValueDictionary[int, Node] = WeakValueDictionary()


class ProgramStep(NamedTuple):
    """A node in a program. `in_place`: its first argument is of no use to anything else and may be written to."""

    number: int
    name: str
    reads: tuple[int, ...]
    constants: tuple[Any, ...]
    in_place: bool


class CandidatePart:
    """What a process has of some consecutive candidates, low..high-1.

    Attributes
    ----------
    tables : by key, rows that are read, (n, d), or computed.
    values : by node, arrays that stay, (..., BLOCK) for one block of candidates after the other.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.tables: dict[str, Any] = {}
        self.values: dict[int, list[FloatArray]] = {}

    def taken(self, node: int, where: IntArray) -> FloatArray:
        """Values (..., k) of a node at some candidates, increasing numbers within the part."""
        blocks = self.values[node]
        cuts = np.searchsorted(where, BLOCK * np.arange(len(blocks) + 1))
        found = [
            values[..., where[low:high] - BLOCK * number]
            for number, (values, (low, high)) in enumerate(zip(blocks, pairwise(cuts.tolist()), strict=True))
            if high > low
        ]
        return np.concatenate(found, axis=-1)


class Here:
    """Some candidates of a part: those between two numbers within it, or some by number."""

    def __init__(self, part: CandidatePart, where: slice | IntArray) -> None:
        self._part, self.where, self._blocks = part, where, dict[Features, Block]()
        self.size = where.stop - where.start if isinstance(where, slice) else where.size

    @property
    def numbers(self) -> IntArray:
        """Their numbers, (n,)."""
        where = self.where
        return (np.arange(where.start, where.stop) if isinstance(where, slice) else where) + self._part.low

    def block(self, features: Features) -> Block:
        """Their features."""
        if features not in self._blocks:
            rows = [_columns(self._part.tables[key][self.where], columns) for key, columns in features.pieces]
            self._blocks[features] = Block(np.ascontiguousarray(rows[0] if len(rows) == 1 else np.hstack(rows)))
        return self._blocks[features]

    def place(self, candidates: IntArray) -> tuple[slice | IntArray, IntArray]:
        """Which of some candidates, increasing numbers, are here, and where."""
        if isinstance(self.where, slice):
            first = self._part.low + self.where.start
            if not candidates.size or candidates[0] >= first + self.size or candidates[-1] < first:
                return slice(0, 0), candidates[:0]
            low, high = np.searchsorted(candidates, [first, first + self.size]).tolist()
            return slice(low, high), candidates[low:high] - first
        places = np.minimum(np.searchsorted(self.numbers, candidates), self.size - 1)
        found = np.flatnonzero(self.numbers[places] == candidates)
        return found, places[found]

    def told(self, value: ToldValue | None) -> ToldValue | None:
        """What is known of one candidate, if it is here."""
        if value is None:
            return None
        _, places = self.place(np.array([value.candidate]))
        return value._replace(candidate=int(places[0])) if places.size else None


def _columns(rows: AnyArray, columns: tuple[int, ...] | None) -> AnyArray:
    return rows if columns is None else rows[:, list(columns)]


# -- the calls: on a few candidates, first the values that are read --------------------------------------------------

_HOST = HostBackend()


def _prior(
    here: Here, features: Features, kernel: Kernel | None, cells: int, level: bool, mean: FloatArray
) -> FloatArray:
    return _HOST.prior(here.block(features), kernel, cells, level, mean)[0]


def _product(here: Here, features: Features, directions: FloatArray, constants: FloatArray | None) -> FloatArray:
    return _HOST.product(here.block(features), directions, constants)


def _covariances(
    here: Here, features: Features, kernel: Kernel, points: FloatArray, weights: FloatArray, more: tuple[Any, ...]
) -> FloatArray:
    row, constants = more
    rows = here.block(features).rows
    out = np.add.outer(constants, kernel(row[None], rows)[0])
    if len(points):
        subtract_products(out, weights, kernel(points, rows))
    return np.asarray(out)


class _Unknown:
    """Similarities that nothing has been kept of."""

    def similarities(self, part: slice | IntArray) -> None: ...


def _made(here: Here, features: Features, regression: KernelRegression) -> FloatArray:
    return _HOST.made(regression, _Unknown(), here.block(features))


def _moved(
    here: Here,
    values: FloatArray,
    covariances: FloatArray,
    gain: FloatArray,
    total: FloatArray,
    told: ToldValue | None,
) -> FloatArray:
    return _HOST.move(values, covariances, gain, total, here.told(told))


def _moved_by_product(
    here: Here,
    values: FloatArray,
    features: Features,
    directions: FloatArray,
    constants: FloatArray | None,
    gain: FloatArray,
    total: FloatArray,
    told: ToldValue | None,
) -> FloatArray:
    block = here.block(features)
    return _HOST.move_by_product(values, block, directions, constants, gain, total, here.told(told))


def _shrunk(here: Here, variance: FloatArray, covariances: FloatArray, total: FloatArray) -> FloatArray:
    return _HOST.shrunk(variance, covariances, total, True)


def _put(here: Here, values: FloatArray, candidates: IntArray, new: FloatArray) -> FloatArray:
    found, places = here.place(candidates)
    if places.size:
        values[..., places] = new[..., found]
    return values


def _mixed(here: Here, *arguments: Any) -> FloatArray:
    """Means and variances of several models, and what else `ModelMoments` has of each."""
    *values, shares = arguments
    return _HOST.mixed([ModelMoments(*values[2 * k : 2 * k + 2], *own) for k, own in enumerate(shares)])


def _elementwise(here: Here, *arguments: Any) -> FloatArray:
    """A function of NumPy; arguments that are no values are the constants at their places."""
    *values, function, fixed = arguments
    given = iter(values)
    return np.asarray(function(*(next(given) if value is None else value[0] for value in fixed)))


CALLS: dict[str, Callable[..., FloatArray]] = {
    "prior": _prior,
    "product": _product,
    "covariances": _covariances,
    "made": _made,
    "moved": _moved,
    "moved by product": _moved_by_product,
    "shrunk": _shrunk,
    "put": _put,
    "mixed": _mixed,
    "elementwise": _elementwise,
    "row": lambda here, values, k: values[k],
    "astype": lambda here, values, dtype: values.astype(dtype),
    "entries": lambda here, indices, table: table[indices],
}
_WRITES = {"moved", "moved by product", "shrunk", "put"}  # to their first argument


# -- programs ----------------------------------------------------------------------------------------------------


class PartTask(ABC):
    """What a part is asked to do.

    Attributes
    ----------
    tables : keys of the tables that it needs.
    known : nodes whose values the part must have.
    kept, dropped : nodes whose values the part has afterwards, and has no longer.
    """

    tables: frozenset[str]
    known: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()

    @abstractmethod
    def run(self, part: CandidatePart) -> Any:
        """Do it."""


@dataclass(frozen=True)
class Program:
    """Calls in an order in which each finds what it reads.

    Attributes
    ----------
    steps : the calls.
    targets : numbers of the nodes that are wanted.
    kept : nodes whose arrays stay in the part.
    dropped : nodes whose arrays are of no use any more.
    """

    steps: tuple[ProgramStep, ...]
    targets: tuple[int, ...]
    tables: frozenset[str]
    known: frozenset[int]
    kept: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()

    def blocks(self, part: CandidatePart) -> Iterator[tuple[Here, list[FloatArray]]]:
        """The targets on all candidates of a part, block by block."""
        n, kept = part.high - part.low, dict[int, list[FloatArray]]({number: [] for number in self.kept})
        try:
            with np.errstate(all="ignore"):
                for number, low in enumerate(range(0, n, BLOCK)):
                    here = Here(part, slice(low, min(low + BLOCK, n)))
                    values = {known: part.values[known][number] for known in self.known}
                    for step in self.steps:
                        values[step.number] = _call(here, step, values)
                    for node, own in kept.items():
                        own.append(np.ascontiguousarray(values[node]))
                    for node in self.dropped & part.values.keys():
                        part.values[node][number] = _GONE  # at once: old and new arrays would take twice the memory
                    yield here, [values[target] for target in self.targets]
        except BaseException:
            part.values.clear()  # some were written to
            raise
        for node in self.dropped:
            part.values.pop(node, None)
        part.values |= kept

    def at(self, part: CandidatePart, where: IntArray) -> FloatArray:
        """The first target at some candidates, increasing numbers within the part; nothing stays."""
        here = Here(part, where)
        values = {node: part.taken(node, where) for node in self.known}
        with np.errstate(all="ignore"):
            for step in self.steps:
                values[step.number] = _call(here, step, values)
        return values[self.targets[0]]


def _call(here: Here, step: ProgramStep, values: Mapping[int, FloatArray]) -> FloatArray:
    read = [values[number] for number in step.reads]
    if step.name in _WRITES and not step.in_place:
        read[0] = read[0].copy()
    return CALLS[step.name](here, *read, *step.constants)


def plan(targets: Sequence[Node], stored: Mapping[int, Node], whole: bool) -> Program:
    """The program that computes some nodes where others are stored, by number.

    `whole` says that it runs on all candidates, so that arrays may stay.
    """
    order, known, readers = list[Node](), set[int](), Counter[int]()
    stack, seen = [(target, False) for target in targets], set[int]()
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            order.append(node)
        elif node.number not in seen:
            seen.add(node.number)
            if node.number in stored:
                known.add(node.number)
                continue
            stack.append((node, True))
            readers.update(read.number for read in node.reads)
            stack += [(read, False) for read in node.reads]
    kept = {node.number for node in order if node.live} if whole else set[int]()
    dropped = {number for number, node in stored.items() if not node.live} if whole else set[int]()
    needed = (known - dropped) | kept if whole else set[int]()  # after the program has run
    steps = dict[int, ProgramStep]()
    for node in order:
        name, reads, constants = node.name, tuple(read.number for read in node.reads), node.constants
        # The only reader of an array may write to it; a row is a view of another one.
        own = name in _WRITES and readers[reads[0]] == 1 and reads[0] not in needed and node.reads[0].name != "row"
        if name == "moved" and node.reads[1].name == "product" and readers[reads[1]] == 1 and reads[1] not in needed:
            name, reads, constants = "moved by product", reads[:1], node.reads[1].constants + constants
            del steps[node.reads[1].number]
        steps[node.number] = ProgramStep(node.number, name, reads, constants, own)
    tables = {
        key for step in steps.values() for one in step.constants if isinstance(one, Features) for key, _ in one.pieces
    }
    sets = (frozenset(known), frozenset(kept), frozenset(dropped))
    return Program(tuple(steps.values()), tuple(target.number for target in targets), frozenset(tables), *sets)


# -- what is wanted of a program ------------------------------------------------------------------------------------


class Extreme(NamedTuple):
    """The largest or smallest value, and the visiting position of the first candidate that has it."""

    value: float
    position: int


class OnWhole(PartTask):
    """A task that runs a program on all candidates of a part."""

    def __init__(self, program: Program) -> None:
        self.program, self.tables, self.known = program, program.tables, program.known
        self.kept, self.dropped = program.kept, program.dropped


class InOrder(OnWhole):
    """A task on all candidates but some, (k,) increasing, that knows when they are visited.

    `positions` is the key of a table of visiting positions, or computes them from candidates' numbers.
    """

    def __init__(self, program: Program, but: IntArray, positions: Any) -> None:
        super().__init__(program)
        self._but, self._positions = but, positions
        if isinstance(positions, str):
            self.tables = self.tables | {positions}

    def _visited(self, part: CandidatePart, here: Here) -> IntArray:
        """Visiting positions of some candidates, (n,)."""
        listed = isinstance(self._positions, str)
        own = part.tables[self._positions][here.where] if listed else self._positions[here.numbers]
        return np.asarray(own, dtype=np.int64)


class FindExtreme(InOrder):
    """The first candidate of largest value (`sign` 1) or smallest (-1) in a part."""

    def __init__(self, program: Program, but: IntArray, positions: Any, sign: int) -> None:
        super().__init__(program, but, positions)
        self._sign = sign

    def run(self, part: CandidatePart) -> Extreme | None:
        """None where every candidate of the part is left out."""
        best: Extreme | None = None
        for here, (values,) in self.program.blocks(part):
            own = self._sign * values
            _, left_out = here.place(self._but)
            own[left_out] = -inf
            if left_out.size == own.size:
                continue
            top = float(own.max())
            if np.isnan(top) or (top == inf and self._sign > 0):
                raise _not_finite(here, int(np.argmax(~np.isfinite(own))))
            if best is not None and top < best.value:
                continue
            equal = np.flatnonzero(own == top)
            first = int(self._visited(part, here)[np.setdiff1d(equal, left_out)].min())
            if best is None or top > best.value or first < best.position:
                best = Extreme(top, first)
        return best


class FindFirst(InOrder):
    """What may be the first of the best in a part: see `Tied`."""

    def __init__(self, program: Program, but: IntArray, positions: Any, tie: float) -> None:
        super().__init__(program, but, positions)
        self._tie = tie

    def run(self, part: CandidatePart) -> Tied:
        """All that is known of the part."""
        found = Tied.none()
        for here, (values,) in self.program.blocks(part):
            kept = np.ones(here.size, dtype=bool)
            kept[here.place(self._but)[1]] = False
            own, visited = values[kept], self._visited(part, here)[kept]
            if not own.size:
                continue
            if not own.max() < inf:
                raise _not_finite(here, int(np.argmax(kept & ~(values < inf))))
            found = found.joined(Tied.of(own, visited, self._tie, found.top), self._tie)
        return found


class Tied(NamedTuple):
    """Of some values the largest, the smallest, and those that may be the first of the best in any larger set.

    They tie with the largest, and every one is larger than all that are visited before it: few are left.
    """

    top: float
    lowest: float
    values: FloatArray
    visited: IntArray

    @classmethod
    def none(cls) -> Tied:
        """No values yet."""
        return cls(-inf, inf, np.empty(0), np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, values: FloatArray, visited: IntArray, tie: float, known: float) -> Tied:
        """What is found among values (n,), of which those that do not tie with a `known` one are of no interest."""
        top = float(values.max())
        best = max(top, known)
        near = np.flatnonzero(values >= best - 2.0 * tolerance(best, -inf, tie))
        order = near[np.argsort(visited[near])]
        before = np.maximum.accumulate(values[order])[:-1]
        kept = order[np.append(True, values[order[1:]] > before)[: order.size]]
        return cls(top, float(values.min()), values[kept], visited[kept])

    def joined(self, other: Tied, tie: float) -> Tied:
        """What is found among the values of both."""
        top, lowest = max(self.top, other.top), min(self.lowest, other.lowest)
        values, visited = np.append(self.values, other.values), np.append(self.visited, other.visited)
        rest = Tied.of(values, visited, tie, top) if values.size else self
        return Tied(top, lowest, rest.values, rest.visited)

    def first(self, tie: float) -> int:
        """When the first of the best is visited."""
        return int(self.visited[self.values >= self.top - tolerance(self.top, self.lowest, tie)].min())


def _not_finite(here: Here, place: int) -> FloatingPointError:
    return FloatingPointError(f"a value of candidate {here.numbers[place]} is not a finite number")


class FindFront(InOrder):
    """The candidates of a part that no other one equals or exceeds in both targets."""

    def run(self, part: CandidatePart) -> UpperFront:
        """All that is known of the part."""
        front = UpperFront()
        for here, (one, two) in self.program.blocks(part):
            edges = [-1, *here.place(self._but)[1].tolist(), here.size]
            visited = self._visited(part, here)
            for low, high in pairwise(edges):
                own = slice(low + 1, high)
                wrong = front.extend(one[own], two[own], visited[own])
                if wrong is not None:
                    raise _not_finite(here, low + 1 + wrong)
        return front


class UpperFront:
    """Points that no other one equals or exceeds in both of two values; of equal ones the first to be visited.

    Attributes
    ----------
    has_ties : whether a point that was left out is visited before the one that exceeds it, and hardly smaller in the
        first value: where ties are broken by the visiting order, it may be the best one.
    """

    def __init__(self) -> None:
        self._values, self._visited, self._n = np.empty((2, 64)), np.empty(64, dtype=np.int64), 0
        self.has_ties = False

    def extend(self, one: FloatArray, two: FloatArray, visited: IntArray) -> int | None:
        """Take points with these values and visiting positions (n,) in; which of them is not finite, if one is not."""
        first = 0
        while first < one.size:
            rest = one[first:], two[first:], visited[first:]
            found = extend_front(*rest, self._values, self._visited, self._n)
            self._n, stopped, is_wrong, has_ties = found
            self.has_ties |= has_ties
            first += stopped
            if is_wrong:
                return first
            if first < one.size:  # there was no room
                self._values = np.hstack([self._values, np.empty_like(self._values)])
                self._visited = np.hstack([self._visited, np.empty_like(self._visited)])
        return None

    def by_visit(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Visiting positions, increasing, and both values, (k,) each."""
        order = np.argsort(self._visited[: self._n])
        return self._visited[order], self._values[0, order], self._values[1, order]


class WholeValues(OnWhole):
    """Values of all candidates of a part, along the last axis."""

    def run(self, part: CandidatePart) -> FloatArray:
        """In the domain's order."""
        return np.concatenate([values.copy() for _, (values,) in self.program.blocks(part)], axis=-1)


class SomeValues(PartTask):
    """Values of some candidates, increasing numbers, along the last axis; nothing stays."""

    def __init__(self, program: Program, candidates: IntArray) -> None:
        self._program, self._candidates, self.tables, self.known = program, candidates, program.tables, program.known

    def run(self, part: CandidatePart) -> FloatArray:
        """Those that are in the part."""
        low, high = np.searchsorted(self._candidates, [part.low, part.high])
        return self._program.at(part, self._candidates[low:high] - part.low)


class Fold(PartTask):
    """`first(rows, number of the first row)` of every block of features of a part, joined two by two."""

    def __init__(
        self, features: Features, first: Callable[[AnyArray, int], Any], join: Callable[[Any, Any], Any]
    ) -> None:
        self._features, self._first, self._join = features, first, join
        self.tables = frozenset(key for key, _ in features.pieces)

    def run(self, part: CandidatePart) -> Any:
        """Joined over the part."""
        out: Any = None
        for low in range(0, part.high - part.low, _FOLDED):
            where = slice(low, min(low + _FOLDED, part.high - part.low))
            own = self._first(np.asarray(Here(part, where).block(self._features).rows), part.low + low)
            out = own if out is None else self._join(out, own)
        return out


class SomeRows(PartTask):
    """Features of some candidates, increasing numbers."""

    def __init__(self, features: Features, candidates: IntArray) -> None:
        self._features, self._candidates = features, candidates
        self.tables = frozenset(key for key, _ in features.pieces)

    def run(self, part: CandidatePart) -> AnyArray:
        """Those that are in the part, (k, d)."""
        low, high = np.searchsorted(self._candidates, [part.low, part.high])
        return np.asarray(Here(part, self._candidates[low:high] - part.low).block(self._features).rows)


def joined(results: Sequence[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Results of all parts, those that are None left out."""
    return reduce(join, [result for result in results if result is not None])
