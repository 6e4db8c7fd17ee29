"""Rows and numbers of candidates that no one memory has: for posteriors, and for code that calls NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import add
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from alexp.common.arrays import AnyArray, BoolArray, FloatArray, IntArray
from alexp.common.codec import fingerprint
from alexp.common.validation import LARGEST, refuse_size
from alexp.estimation.onepass.backends import LinearPass, ModelMoments, Pass, Similar, ToldValue
from alexp.estimation.onepass.regressions import KernelRegression, PointFit, PointTold
from alexp.parts.engines import PartEngine
from alexp.parts.program import (
    Extreme,
    Features,
    FindExtreme,
    FindFirst,
    FindFront,
    Fold,
    Node,
    SomeRows,
    SomeValues,
    UpperFront,
    WholeValues,
    joined,
    plan,
)
from alexp.problem.candidates import ComputedOrder, ListedOrder
from alexp.problem.kernels import Kernel
from alexp.problem.matrices import Block
from alexp.problem.rows import ColumnUnits, RemoteRows, Rows, rounding, squared_norms

_GATHERED = 1 << 27  # numbers that are copied into the memory of this process: one gigabyte
_NOTHING = np.empty(0, dtype=np.int64)


# -- rows ------------------------------------------------------------------------------------------------------------


class PartedRows(RemoteRows):
    """(N, d) features in the domain's order, in parts. Stands where NumPy's array stands.

    `features` says which columns of which tables of the engine these are.
    """

    is_in_parts = True
    device: PartEngine

    def __init__(self, engine: PartEngine, features: Features) -> None:
        self.device, self.features = engine, features
        tables = [engine.tables[key] for key, _ in features.pieces]
        widths = [t.shape[1] if c is None else len(c) for t, (_, c) in zip(tables, features.pieces, strict=True)]
        self.shape = (engine.n_rows, sum(widths))
        self.dtype = np.result_type(*(table.dtype for table in tables))
        self._units: ColumnUnits | None = None

    def beside(self, others: Sequence[PartedRows]) -> PartedRows:
        """These columns and those of others."""
        pieces = self.features.pieces + tuple(piece for other in others for piece in other.features.pieces)
        return PartedRows(self.device, Features(pieces))

    def only(self, columns: IntArray) -> PartedRows:
        """Some of the columns."""
        tables = [(key, own) for key, own in self.features.pieces for _ in range(self._n_columns(key, own))]
        numbers = [c for key, own in self.features.pieces for c in own or range(self._n_columns(key, own))]
        picked = [(tables[int(c)][0], numbers[int(c)]) for c in columns]
        runs = [(key, tuple(c for _, c in group)) for key, group in groupby(picked, key=lambda one: one[0])]
        whole = [(key, None if own == tuple(range(self._n_columns(key, None))) else own) for key, own in runs]
        return PartedRows(self.device, Features(tuple(whole)))

    def _n_columns(self, key: str, own: tuple[int, ...] | None) -> int:
        return self.device.tables[key].shape[1] if own is None else len(own)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self.only(np.arange(self.shape[1])[key[1]])
        if isinstance(key, slice) and len(range(*key.indices(self.shape[0]))) * self.shape[1] > _GATHERED:
            raise MemoryError(f"{self.shape[0]:,} rows of features are too many for one memory")
        listed = np.arange(*key.indices(self.shape[0])) if isinstance(key, slice) else key
        wanted = np.asarray(listed, dtype=np.int64)
        if wanted.size == 0:
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        numbers, back = np.unique(wanted, return_inverse=True)
        parts = self.device.holding(numbers).tolist()
        found = self.device.run(lambda k: SomeRows(self.features, numbers), parts)
        return np.concatenate(found)[back]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        rows = cast(AnyArray, self[:])
        return rows if dtype is None else rows.astype(dtype)

    def array_backend(self) -> PartsBackend:
        """What computes with such rows."""
        return PartsBackend(self.device)

    # -- what is asked about whole tables ----------------------------------------------------------------------

    def _fold(self, first: Callable[[AnyArray, int], Any], join: Callable[[Any, Any], Any]) -> Any:
        """`first` of every block of rows, joined; of combinations, where columns matter one by one, see `_levels`."""
        task = Fold(self.features, first, join)
        return joined(self.device.run(lambda k: task), join)

    def _by_column(self, first: Callable[[AnyArray, int], Any], join: Callable[[Any, Any], Any], mean: bool) -> Any:
        """The same for arrays (..., d) with an entry for each column; their sums over rows divided by N if `mean`.

        The values of a component are in equally many combinations, so that those of the component will do.
        """
        if (levels := self._levels()) is None:
            found = self._fold(first, join)
            return found / self.shape[0] if mean else found
        found = [first(values[:, None], 0) / (values.size if mean else 1) for _, values in levels]
        return np.concatenate(found, axis=-1)

    def _levels(self) -> list[tuple[int, FloatArray]] | None:
        """For each column of combinations, the number of its component and its values there; None for other rows."""
        out = list[tuple[int, FloatArray]]()
        for key, columns in self.features.pieces:
            table: Any = self.device.tables[key]
            if not hasattr(table, "level_column"):
                return None
            out += [table.level_column(c) for c in (range(table.shape[1]) if columns is None else columns)]
        return out

    def column_units(self) -> ColumnUnits:
        """Means and standard deviations of the columns."""
        if self._units is None:
            largest = self._by_column(_sizes, np.maximum, False)
            mean, powers = self._by_column(_sums, np.add, True), np.frexp(largest)[1]
            if (levels := self._levels()) is None:
                squares = self._fold(partial(_squares, mean=mean, powers=powers), np.add) / self.shape[0]
            else:
                both = zip(levels, mean, powers, strict=True)
                squares = np.array([np.mean(np.ldexp(values - m, -e) ** 2) for (_, values), m, e in both])
            deviations = np.ldexp(np.sqrt(squares), powers)
            varying = deviations > rounding(cast(Rows, self)) * largest
            self._units = ColumnUnits(mean, np.where(varying, deviations, 0.0))
        return self._units

    def column_squares(self, centred: bool) -> FloatArray:
        """Mean square of every column, or its variance, (d,)."""
        return self.column_units().deviations ** 2 if centred else self._by_column(_squares, np.add, True)

    def nonzero_columns(self) -> BoolArray:
        """Which columns hold anything but zeros, (d,)."""
        return np.asarray(self._by_column(_sizes, np.maximum, False) > 0.0)

    def is_counts(self) -> bool:
        """See `kernel_models.is_counts`."""
        fractions, zeros = self._by_column(_fractions, np.maximum, False), self._by_column(_zeros, np.add, True)
        largest = self._by_column(_sizes, np.maximum, False).max()
        return bool(not fractions.any() and (largest <= 1.0 or 2.0 * zeros.mean() >= 1.0))

    def mean_diagonal(self, kernel: Kernel) -> float:
        """Mean of k(x, x) over all rows."""
        if kernel.is_stationary:
            return 1.0
        return float(self._fold(partial(_diagonal_sum, kernel=kernel), add)) / self.shape[0]

    def largest_diagonal(self, kernel: Kernel | None) -> float:
        """The largest k(x, x); the largest squared norm without a kernel."""
        if kernel is not None and kernel.is_stationary:
            return 1.0
        if kernel is not None or (levels := self._levels()) is None:
            return float(self._fold(partial(_largest_diagonal, kernel=kernel), max))
        squares = dict[int, FloatArray]()
        for component, values in levels:
            squares[component] = squares.get(component, np.zeros(values.size)) + values**2
        return float(sum(own.max() for own in squares.values()))

    def fingerprint(self) -> str:
        """Content hash, block by block."""
        if (levels := self._levels()) is not None:
            return fingerprint(np.array([fingerprint(values) + str(number) for number, values in levels]))
        hashes = self.device.run(lambda k: Fold(self.features, _hashed, _chained))
        return fingerprint(np.array([str(self.shape), str(self.dtype), *hashes]))

    def check_finite(self, name: str) -> None:
        """Raise unless all entries are numbers that products can be taken of."""
        if self._levels() is not None:  # the components are checked when they are given
            return
        wrong = [one for one in self.device.run(lambda k: Fold(self.features, _wrong, _earlier)) if one is not None]
        if wrong:
            row, column, value = min(wrong)
            if not np.isfinite(value):
                raise ValueError(f"{name} has {value} at row {row}, column {column}; features must be finite")
            refuse_size(name, value, row, column)


def _doubles(rows: AnyArray) -> FloatArray:
    return np.asarray(rows, dtype=np.float64)


def _sums(rows: AnyArray, low: int) -> FloatArray:
    return np.asarray(_doubles(rows).sum(axis=0))


def _sizes(rows: AnyArray, low: int) -> FloatArray:
    return np.asarray(np.abs(_doubles(rows)).max(axis=0))


def _squares(rows: AnyArray, low: int, mean: FloatArray | float = 0.0, powers: IntArray | int = 0) -> FloatArray:
    return np.asarray(np.square(np.ldexp(_doubles(rows) - mean, -powers)).sum(axis=0))


def _fractions(rows: AnyArray, low: int) -> FloatArray:
    """One for columns with an entry that is no count."""
    return np.asarray(((rows < 0) | (rows != np.floor(rows))).any(axis=0), dtype=np.float64)


def _zeros(rows: AnyArray, low: int) -> FloatArray:
    return np.asarray((rows == 0).sum(axis=0), dtype=np.float64)


def _diagonal_sum(rows: AnyArray, low: int, kernel: Kernel) -> float:
    return float(kernel.diagonal(rows).sum())


def _largest_diagonal(rows: AnyArray, low: int, kernel: Kernel | None) -> float:
    return float((squared_norms(_doubles(rows)) if kernel is None else kernel.diagonal(rows)).max())


def _hashed(rows: AnyArray, low: int) -> str:
    return fingerprint(rows)


def _chained(one: str, two: str) -> str:
    return fingerprint(np.array([one, two]))


def _wrong(rows: AnyArray, low: int) -> tuple[int, int, float] | None:
    """Row, column and value of the first entry that is not finite or too large."""
    found = np.argwhere(~(np.abs(_doubles(rows)) <= LARGEST))
    if not found.size:
        return None
    row, column = found[0]
    return low + int(row), int(column), float(rows[row, column])


def _earlier(one: tuple[int, int, float] | None, two: tuple[int, int, float] | None) -> tuple[int, int, float] | None:
    return two if one is None else one


# -- values ----------------------------------------------------------------------------------------------------------


class PartedArray(NDArrayOperatorsMixin):
    """(..., N) numbers in parts, or (n,) in the visiting order of a round, for code that calls NumPy's functions.

    Operators, ufuncs, `where` and `clip` put off another call and return such an array; `argmax`, `argmin`, `max` and
    `min` are computed by all parts. Other functions of NumPy are computed here with a copy, up to 2^27 candidates.

    Attributes
    ----------
    node : what is to be computed.
    lead : the shape without the last axis.
    order : the visiting order, once the array is that of a round.
    but : candidates that the round leaves out, (k,) increasing.
    """

    def __init__(
        self, node: Node, engine: PartEngine, lead: tuple[int, ...] = (), order: Any = None, but: IntArray = _NOTHING
    ) -> None:
        self.node, self._engine, self.lead, self.order, self.but = node, engine, lead, order, but
        self._found: dict[int, Extreme] = {}  # the largest (1) and the smallest (-1)
        self._is_kept = bool(lead) and node.name != "row"  # by parts, as long as the run has it
        node.live += self._is_kept

    def __del__(self) -> None:
        self.node.live -= self._is_kept

    @property
    def shape(self) -> tuple[int, ...]:
        """As of any array."""
        return (*self.lead, self._engine.n_rows - self.but.size)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if self.lead:  # one row
            number = int(key[0] if isinstance(key, tuple) else key)
            return PartedArray(Node("row", (self.node,), (number,)), self._engine, self.lead[1:])
        if isinstance(key, tuple) and len(key) == 2 and key[0] is Ellipsis:
            key = key[1]
        if isinstance(key, int | np.integer):
            return float(self.at(np.array([self._candidate(int(key))]))[0])
        return self.at(np.array([self._candidate(int(k)) for k in np.arange(len(self))[key]], dtype=np.int64))

    def _candidate(self, position: int) -> int:
        if self.but.size:
            places = np.sort(self.order.position[self.but])
            position += int(np.searchsorted(places - np.arange(places.size), position, side="right"))
        return int(self.order[position])

    def visited(self, order: Any) -> PartedArray:
        """The same in a visiting order of all candidates."""
        return PartedArray(self.node, self._engine, (), order)

    def without(self, candidates: IntArray) -> PartedArray:
        """The same without some candidates, increasing numbers."""
        return PartedArray(self.node, self._engine, (), self.order, candidates)

    def replaced(self, candidates: IntArray, values: FloatArray) -> PartedArray:
        """The same with other values (k,) for some candidates, increasing numbers."""
        return self._next(Node("put", (self.node,), (candidates, values)))

    def at(self, candidates: IntArray) -> FloatArray:
        """Values of some candidates, (n,)."""
        if candidates.size == 0:
            return np.empty(0)
        numbers, back = np.unique(candidates, return_inverse=True)
        engine, node = self._engine, self.node
        parts = engine.holding(numbers).tolist()
        found = engine.run(lambda k: SomeValues(plan([node], engine.stored[k], False), numbers), parts)
        return np.asarray(np.concatenate(found, axis=-1)[..., back])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        if len(self) > _GATHERED:
            raise MemoryError(
                f'{len(self):,} candidates are too many for one memory, which this needs: take rule="ucb", "ids" or '
                '"ei"'
            )
        engine, node = self._engine, self.node
        whole = np.concatenate(engine.run(lambda k: WholeValues(plan([node], engine.stored[k], True))))
        if self.order is not None:
            kept = np.ones(whole.size, dtype=bool)
            kept[self.but] = False
            order = self.order[np.arange(whole.size)]
            whole = whole[order[kept[order]]]
        return whole if dtype is None else whole.astype(dtype)

    # -- reductions --------------------------------------------------------------------------------------------

    def _extreme(self, sign: int) -> Extreme:
        """The largest (1) or smallest (-1) value, and its position in the round."""
        if sign not in self._found:
            engine, node, where = self._engine, self.node, (self.but, self._visited())
            found = engine.run(lambda k: FindExtreme(plan([node], engine.stored[k], True), *where, sign))
            value, place = joined(found, lambda one, two: min(one, two, key=lambda e: (-e[0], e[1])))
            self._found[sign] = Extreme(sign * value, int(self._within(np.array(place))))
        return self._found[sign]

    def _visited(self) -> Any:
        """When candidates are visited: what `InOrder` needs."""
        if isinstance(self.order, ListedOrder):
            return _positions(self._engine, self.order)
        return ComputedOrder(self._engine.n_rows, 1, 0) if self.order is None else self.order.position

    def _within(self, places: IntArray) -> IntArray:
        """Positions in the round from those in the visiting order of all candidates."""
        return places - np.searchsorted(np.sort(self.order.position[self.but]), places) if self.but.size else places

    def first_best(self, tie: float) -> int:
        """See `alexp.common.ties.first_best`."""
        engine, node, where = self._engine, self.node, (self.but, self._visited())
        found = engine.run(lambda k: FindFirst(plan([node], engine.stored[k], True), *where, tie))
        whole = joined(found, lambda one, two: one.joined(two, tie))
        return int(self._within(np.array(whole.first(tie))))

    def upper_front(self, other: PartedArray) -> tuple[bool, IntArray, FloatArray, FloatArray]:
        """Positions that no other one equals or exceeds in these and other values, in order, and both values there.

        They are few, and one pass over the candidates finds them. First comes whether others may tie with them and be
        visited before.
        """
        engine, where, second = self._engine, (self.but, self._visited()), other.node
        is_root = second.name == "elementwise" and second.constants[0] is np.sqrt  # squares have the same front
        nodes = (self.node, second.reads[0] if is_root else second)
        fronts = engine.run(lambda k: FindFront(plan(nodes, engine.stored[k], True), *where))
        whole = UpperFront()
        for visited, one, two in (front.by_visit() for front in fronts):
            whole.extend(one, two, visited)
        visited, one, two = whole.by_visit()
        has_ties = whole.has_ties or any(front.has_ties for front in fronts)
        return has_ties, self._within(visited), one, np.sqrt(two) if is_root else two

    def max(self) -> float:
        """The largest of them."""
        return self._extreme(1).value

    def min(self) -> float:
        """The smallest of them."""
        return self._extreme(-1).value

    def argmax(self) -> int:
        """Position of the first that is largest."""
        return self._extreme(1).position

    def argmin(self) -> int:
        """Position of the first that is smallest."""
        return self._extreme(-1).position

    # -- functions of each number ------------------------------------------------------------------------------

    def _next(self, node: Node) -> PartedArray:
        return PartedArray(node, self._engine, (), self.order, self.but)

    def astype(self, dtype: type) -> PartedArray:
        """The same numbers as others."""
        return self._next(Node("astype", (self.node,), (dtype,)))

    def entries_of(self, table: FloatArray) -> PartedArray:
        """Entries of a table (k,) of NumPy at these indices, see `mixture.entries`."""
        return self._next(Node("entries", (self.node,), (table,)))

    def _elementwise(self, function: Callable[..., Any], inputs: Sequence[Any]) -> PartedArray:
        reads, fixed = list[Node](), list[tuple[Any] | None]()
        for value in inputs:
            if isinstance(value, PartedArray):
                if value.but is not self.but and not np.array_equal(value.but, self.but):
                    raise ValueError("arrays in parts are of different rounds")
                reads.append(value.node)
                fixed.append(None)
            elif np.ndim(value):
                raise TypeError(
                    "one number per candidate cannot be combined with values in parts: costs and several objectives "
                    "need all candidates in one memory"
                )
            else:
                fixed.append((value,))
        return self._next(Node("elementwise", tuple(reads), (function, tuple(fixed))))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: object) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        return self._elementwise(ufunc, inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: object, inputs: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        name = function.__name__
        if name in ("argmax", "argmin", "max", "min", "amax", "amin") and len(inputs) == 1 and not options:
            return getattr(self, name.removeprefix("a") if name in ("amax", "amin") else name)()
        if name in ("where", "clip") and not options:
            return self._elementwise(function, inputs)
        plain = (np.asarray(value) if isinstance(value, PartedArray) else value for value in inputs)
        return function(*plain, **options)


def _positions(engine: PartEngine, order: ListedOrder) -> str:
    """The key of the table of visiting positions by candidate."""
    key = f"positions-{id(order)}"
    if key not in engine.tables:
        engine.add(Positions(key, order))
    return key


class Positions:
    """Where each candidate is in an order that is listed: a table with one column."""

    dtype = np.dtype(np.int32)

    def __init__(self, key: str, order: ListedOrder) -> None:
        self.key, self._order, self.shape = key, order, (order.size, 1)

    def given(self, number: int, low: int, high: int, client: Any) -> AnyArray:
        """Those of a part."""
        return self._order.position[low:high].astype(np.int32)


class KernelsComputed:
    """C = k(., point) - weights'K + constant, with kernel rows K that are computed wherever they are needed."""

    def __init__(self, engine: PartEngine, features: Features, kernel: Kernel, n_columns: int) -> None:
        self._engine, self._features, self._kernel = engine, features, kernel
        self._points = np.empty((0, n_columns))

    def covariances(self, number: int, probe: PointFit, at: PointTold) -> FloatArray:
        """C(x, point) of all candidates, (cells, N)."""
        constants = (self._features, self._kernel, self._points, probe.weights, (at.row, probe.constant))
        return _array(Node("covariances", (), constants), self._engine, (len(probe.weights),))

    def add(self, at: PointTold) -> None:
        """Take note of a new point."""
        self._points = np.vstack([self._points, at.row])

    def similarities(self, part: slice | IntArray) -> None:
        """Nothing is kept."""

    def copy(self) -> KernelsComputed:
        """One that may absorb fantasies."""
        out = KernelsComputed(self._engine, self._features, self._kernel, self._points.shape[1])
        out._points = self._points
        return out


class PartsBackend:
    """An `ArrayBackend` on candidates in parts: every operation is put off."""

    def __init__(self, engine: PartEngine) -> None:
        self._engine, self.keeps_values = engine, engine.keeps_values

    def over(self, block: Block, kernel: Kernel | None) -> Pass:
        """One product for linear models; kernel rows are computed where they are needed."""
        if kernel is None:
            return LinearPass(block, self)
        return KernelsComputed(self._engine, _rows(block).features, kernel, block.n_columns)

    def prior(self, block: Block, kernel: Kernel | None, cells: int, level: bool) -> tuple[FloatArray, float]:
        """Values before any reward, (2, cells, N), and the largest prior variance."""
        rows = _rows(block)
        mean = rows.column_units().means if level else np.empty(0)
        values = Node("prior", (), (rows.features, kernel, cells, level, mean))
        return _array(values, self._engine, (2, cells)), rows.largest_diagonal(kernel)

    def product(self, block: Block, directions: FloatArray, constants: FloatArray | None = None) -> FloatArray:
        """Phi u, plus a constant, for each of k directions u, (k, d), and constants (k,): (k, N)."""
        node = Node("product", (), (_rows(block).features, directions, constants))
        return _array(node, self._engine, (len(directions),))

    def made(self, regression: KernelRegression, over: Similar, block: Block) -> FloatArray:
        """Values of all candidates from the factors as they are now."""
        node = Node("made", (), (_rows(block).features, regression.copy()))
        return _array(node, self._engine, (2, regression.ratios.size))

    def move(
        self, values: FloatArray, covariances: FloatArray, gain: FloatArray, total: FloatArray, told: ToldValue | None
    ) -> FloatArray:
        """Add gain_c C_c to the means and take C_c^2 / total_c off the variances."""
        return self._from("moved", (values, covariances), gain, total, told)

    def shrunk(self, variance: FloatArray, covariances: FloatArray, total: FloatArray, reuse: bool) -> FloatArray:
        """Variances less C_c^2 / total_c."""
        return self._from("shrunk", (variance, covariances), total)

    def mixed(self, models: Sequence[ModelMoments]) -> FloatArray:
        """Mean and variance of a mixture, (2, N)."""
        read = [array for model in models for array in (model.mean, model.variance)]
        nodes = tuple(cast(PartedArray, array).node for array in read)
        node = Node("mixed", nodes, (tuple((model.cells, model.shares, model.scales) for model in models),))
        return _array(node, self._engine, (2,))

    def taken(self, values: FloatArray, indices: Any) -> FloatArray:
        """Values (N,) of all candidates in a visiting order, still in parts; of a few of them as a NumPy array."""
        own = cast(PartedArray, values)
        return own.at(indices) if isinstance(indices, np.ndarray) else cast(FloatArray, own.visited(indices))

    def _from(self, name: str, arrays: tuple[FloatArray, FloatArray], *constants: Any) -> FloatArray:
        """What a call with these constants makes of the first array, which it may write to."""
        first, second = (cast(PartedArray, array) for array in arrays)
        return _array(Node(name, (first.node, second.node), constants), self._engine, first.lead)


def _array(node: Node, engine: PartEngine, lead: tuple[int, ...]) -> FloatArray:
    return cast(FloatArray, PartedArray(node, engine, lead))


def _rows(block: Block) -> PartedRows:
    assert isinstance(block.rows, PartedRows)
    return block.rows
