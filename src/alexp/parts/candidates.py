"""Candidates that are in files, in a Dask array, or described by a rule; and their features, in parts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.extras import require
from alexp.common.validation import did_you_mean, matrix
from alexp.parts.backend import PartedRows
from alexp.parts.engines import Cluster, PartEngine, ThisProcess, the_client
from alexp.parts.program import Features

_BATCH = 1 << 16  # rows of a file that are decoded at a time
_MIXED = (
    "matrices in parts go with others of the same candidates only: features of one alexp.Parquet or one "
    "alexp.Combinations, or Dask and NumPy arrays with equally many rows"
)


def engine_for(given: Mapping[str, object]) -> PartEngine:
    """The engine of some matrices, one of which is in parts."""
    found = [value.device for value in given.values() if isinstance(value, PartedRows)]
    if found:
        return found[0]
    first = next(value for value in given.values() if type(value).__module__.startswith("dask"))
    shape = tuple(cast(Any, first).shape)
    if len(shape) != 2 or not all(isinstance(size, int | np.integer) for size in shape):
        raise ValueError(
            f"a Dask array of features must have the shape (N, d), with both known, got {shape}; "
            "array.compute_chunk_sizes() finds them"
        )
    return Cluster(int(shape[0]), the_client())


def part_rows(engine: PartEngine, name: str, value: Any, n_rows: int | None) -> PartedRows:
    """A matrix as rows in the parts of an engine, or an error that says what is wrong with it."""
    if isinstance(value, PartedRows):
        if value.device is not engine:
            raise ValueError(f"{name}: {_MIXED}")
        rows = value
    else:
        rows = PartedRows(engine, _array_features(engine, name, value))
    rows.check_finite(name)
    return rows


# -- Dask arrays -----------------------------------------------------------------------------------------------------


def _array_features(engine: PartEngine, name: str, value: Any) -> Features:
    if not isinstance(engine, Cluster):
        raise ValueError(f"{name}: {_MIXED}")
    if not type(value).__module__.startswith("dask"):
        value = matrix(name, value) if not isinstance(value, np.ndarray) or value.ndim != 2 else value
    if len(value.shape) != 2 or int(value.shape[0]) != engine.n_rows:
        raise ValueError(f"{name} must have shape ({engine.n_rows}, d), one row per point, got {tuple(value.shape)}")
    table = ArrayTable(value, engine.edges)
    engine.add(table)
    return Features(((table.key, None),))


class ArrayTable:
    """A Dask or NumPy array of features, (N, d). Single precision stays; all else becomes double."""

    def __init__(self, array: Any, edges: IntArray) -> None:
        self.key, self.shape = uuid.uuid4().hex, (int(array.shape[0]), int(array.shape[1]))
        self.dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)
        self._array = array
        if not isinstance(array, np.ndarray):
            self._array = array.astype(self.dtype).rechunk((tuple(np.diff(edges).tolist()), self.shape[1]))

    def given(self, number: int, low: int, high: int, client: Any) -> Any:
        """The rows, which Dask computes, or sends."""
        if isinstance(self._array, np.ndarray):
            return np.ascontiguousarray(self._array[low:high], dtype=self.dtype)
        return client.compute(self._array.blocks[number])


# -- Parquet ---------------------------------------------------------------------------------------------------------


class Parquet:
    """Candidates in Parquet files: one row each, file after file in the order of their names.

    Workers of a Dask cluster read the columns that models need, each its own part. The cluster is that of the last
    `dask.distributed.Client` of this process; its workers must see the files under the same path.

    Parameters
    ----------
    path : a file, a folder, or a pattern such as "candidates/*.parquet".

    `candidates[i]` is row i as a dict, without columns of lists, and `len(candidates)` their number: pass it to
    `alexp.FiniteSet`.
    """

    def __init__(self, path: str | Path) -> None:
        self._parquet = _pyarrow()
        self.path = str(path)
        self._files = _files(self.path)
        self._schema: Any = None
        counts = list[int]()
        for file in self._files:
            try:
                known = self._parquet.ParquetFile(file)
            except import_module("pyarrow").ArrowInvalid as error:
                raise ValueError(f"{file} cannot be read as a Parquet file: {error}") from None
            self._schema = known.schema_arrow if self._schema is None else self._schema
            _check_schema(self._files[0], self._schema, file, known.schema_arrow)
            counts.append(known.metadata.num_rows)
        self._ends = np.cumsum(counts)
        if not self._ends[-1]:
            raise ValueError(f"{self.path} has no rows")
        self._engine: PartEngine | None = None

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} candidates, no candidate {index}")
        index %= len(self)
        plain = [name for name in self.columns if "list" not in str(self._schema.field(name).type)]
        (batch,) = _batches(self._files, self._ends, plain, index, index + 1)
        row: dict[str, Any] = batch.to_pylist()[0]
        return row

    def __repr__(self) -> str:
        return f"Parquet({self.path!r}: {len(self):,} candidates)"

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._schema.names)

    def locate(self, x: Mapping[str, Any]) -> int:
        """Number of the first row with these values, by column."""
        row = 0
        for file in self._files:
            known = self._parquet.ParquetFile(file)
            for batch in known.iter_batches(columns=list(x)):
                found = np.logical_and.reduce([np.asarray(batch.column(name)) == value for name, value in x.items()])
                if found.any():
                    return row + int(np.argmax(found))
                row += batch.num_rows
        raise ValueError(f"no row of {self.path} has {dict(x)}")

    def features(self, columns: str | Sequence[str]) -> PartedRows:
        """Some columns of numbers as a feature matrix, (N, d): for `ModelClass.from_matrices`.

        A column of lists of equal length counts as that many columns. Single precision stays.
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        if not names:
            raise ValueError("columns must name at least one column")
        for name in names:
            if name not in self.columns:
                raise ValueError(
                    f"{self.path} has no column {name!r}{did_you_mean(name, self.columns)} (columns: "
                    f"{', '.join(self.columns[:12])}{', ...' if len(self.columns) > 12 else ''})"
                )
        if self._engine is None:
            self._engine = Cluster(len(self), the_client())
        table = ParquetTable(self._files, self._ends, names, self._schema)
        self._engine.add(table)
        return PartedRows(self._engine, Features(((table.key, None),)))


class ParquetTable:
    """Columns of Parquet files as features, (N, d)."""

    def __init__(self, files: Sequence[str], ends: IntArray, names: Sequence[str], schema: Any) -> None:
        self.key = uuid.uuid4().hex
        widths = [_width(name, schema.field(name).type) for name in names]
        narrow = all(str(_inner(schema.field(name).type)) in ("float", "halffloat") for name in names)
        self.dtype = np.dtype(np.float32 if narrow else np.float64)
        self._files, self._ends, self._names, self._widths = list(files), ends, list(names), widths
        self.shape = (int(ends[-1]), sum(widths))

    def given(self, number: int, low: int, high: int, client: Any) -> Any:
        """A function that reads the rows of a part."""
        return partial(_read_features, self._files, self._ends, self._names, self._widths, self.dtype, low, high)


def _pyarrow() -> Any:
    require("pyarrow", subject="alexp.Parquet")
    from pyarrow import parquet

    return parquet


def _files(path: str) -> list[str]:
    given = Path(path)
    if given.is_dir():
        found = sorted(str(file) for file in given.rglob("*.parquet"))
    elif given.exists():
        found = [str(given)]
    else:
        found = sorted(str(file) for file in given.parent.glob(given.name))
    if not found:
        raise FileNotFoundError(f"there is no Parquet file {path}")
    return found


def _check_schema(first: str, expected: Any, file: str, found: Any) -> None:
    """Raise unless a file has the columns of the first, of the same types."""
    for name in expected.names:
        if name not in found.names:
            raise ValueError(f"{file} has no column {name!r}, which {first} has; all files must have the same columns")
        if found.field(name).type != expected.field(name).type:
            raise ValueError(
                f"column {name!r} is {found.field(name).type} in {file} and {expected.field(name).type} in {first}; "
                "write all files with the same types"
            )


def _inner(kind: Any) -> Any:
    return kind.value_type if str(kind).startswith("fixed_size_list") else kind


def _width(name: str, kind: Any) -> int:
    """How many columns of features a column has."""
    inner = str(_inner(kind))
    if not inner.startswith(("float", "double", "halffloat", "int", "uint", "bool")):
        raise ValueError(
            f"column {name!r} is {kind}, and features are numbers, or lists of numbers of one length "
            "(pyarrow's fixed_size_list)"
        )
    return int(kind.list_size) if str(kind).startswith("fixed_size_list") else 1


def _batches(files: Sequence[str], ends: IntArray, columns: Sequence[str] | None, low: int, high: int) -> Iterator[Any]:
    """Rows low..high-1 of all files, in order, as batches of Arrow; row groups are read once, a few rows at a time."""
    for file, (first, last) in zip(files, pairwise([0, *ends.tolist()]), strict=True):
        if low >= last or high <= first:
            continue
        known = _pyarrow().ParquetFile(file)
        sizes = [known.metadata.row_group(k).num_rows for k in range(known.num_row_groups)]
        edges = first + np.cumsum([0, *sizes])
        groups = [k for k in range(len(sizes)) if edges[k] < high and edges[k + 1] > low]
        at = int(edges[groups[0]])
        for batch in known.iter_batches(_BATCH, row_groups=groups, columns=columns, use_threads=False):
            start, stop = max(low - at, 0), min(high - at, batch.num_rows)
            if stop > start:
                yield batch.slice(start, stop - start)
            at += batch.num_rows
            if at >= high:
                return


def _read_features(
    files: Sequence[str],
    ends: IntArray,
    names: Sequence[str],
    widths: Sequence[int],
    dtype: np.dtype[Any],
    low: int,
    high: int,
) -> AnyArray:
    """Features of rows low..high-1, (n, d). Nulls become NaN."""
    out, at = np.empty((high - low, sum(widths)), dtype=dtype), 0
    for batch in _batches(files, ends, list(names), low, high):
        first, n = 0, batch.num_rows
        for name, width in zip(names, widths, strict=True):
            out[at : at + n, first : first + width] = _numbers_of(batch.column(name), width, dtype)
            first += width
        at += n
    import_module("pyarrow").default_memory_pool().release_unused()
    return out


def _numbers_of(column: Any, width: int, dtype: np.dtype[Any]) -> AnyArray:
    """A column of numbers, or of lists of them, as (n, width)."""
    if not str(column.type).startswith("fixed_size_list"):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=dtype)[:, None]
    if column.null_count:  # a list that is missing is left out of the numbers
        return np.full((len(column), width), np.nan, dtype=dtype)
    return np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=dtype).reshape(-1, width)


# -- combinations ----------------------------------------------------------------------------------------------------


class Combinations:
    """All combinations of the values of some components, one candidate each, enumerated and never stored.

    `candidates[i]` is a dict of the values, and `len(candidates)` their number: pass it to `alexp.FiniteSet`. The last
    component changes first.

    >>> candidates = Combinations({"base": ["KOAc", "CsOPiv"], "celsius": [90, 105, 120]})
    >>> len(candidates), candidates[4], candidates.locate({"base": "CsOPiv", "celsius": 105})
    (6, {'base': 'CsOPiv', 'celsius': 105}, 4)
    """

    def __init__(self, components: Mapping[str, Sequence[Any]]) -> None:
        if not isinstance(components, Mapping) or not components:
            raise ValueError("components must name at least one component: {name: list of its values}")
        self.components = {str(name): list(values) for name, values in components.items()}
        for name, values in self.components.items():
            if not values:
                raise ValueError(f"component {name!r} has no values")
            if len(set(map(str, values))) < len(values):
                raise ValueError(f"component {name!r} has a value twice; list each once")
        self.sizes = tuple(len(values) for values in self.components.values())
        self._engine: PartEngine | None = None

    def __len__(self) -> int:
        return prod(self.sizes)

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} candidates, no candidate {index}")
        places = np.unravel_index(int(index) % len(self), self.sizes)
        both = zip(self.components.items(), places, strict=True)
        return {name: values[int(place)] for (name, values), place in both}

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, self.sizes))
        return f"Combinations({', '.join(self.components)}: {sizes} = {len(self):,} candidates)"

    def locate(self, x: Mapping[str, Any]) -> int:
        """Number of a combination."""
        places = []
        for name, values in self.components.items():
            if name not in x or x[name] not in values:
                raise ValueError(f"x must have one of the {len(values)} values of {name!r}, got {x!r}")
            places.append(values.index(x[name]))
        return int(np.ravel_multi_index(places, self.sizes))

    def features(self, components: Mapping[str, ArrayLike]) -> PartedRows:
        """Descriptors of components side by side, as a feature matrix (N, d): for `ModelClass.from_matrices`.

        `components` has a matrix (values, d_c) for some of the components or all, one row per value.
        """
        unknown = [name for name in components if name not in self.components]
        if unknown or not components:
            meant = did_you_mean(unknown[0], list(self.components)) if unknown else ""
            what = f"there is no component {unknown[0]!r}{meant}" if unknown else "none is named"
            raise ValueError(f"components must describe some of {', '.join(self.components)}: {what}")
        levels = list[tuple[int, FloatArray]]()
        for number, (name, values) in enumerate(self.components.items()):
            if name in components:
                levels.append((number, matrix(f"component {name!r}", components[name], len(values))))
        if self._engine is None:
            self._engine = ThisProcess(len(self))
        table = CombinedTable(self.sizes, levels)
        self._engine.add(table)
        return PartedRows(self._engine, Features(((table.key, None),)))


class CombinedTable:
    """Features of combinations: row i has the rows of its components' values, side by side."""

    dtype = np.dtype(np.float64)

    def __init__(self, sizes: tuple[int, ...], levels: Sequence[tuple[int, FloatArray]]) -> None:
        self.key, self._sizes, self._levels = uuid.uuid4().hex, sizes, list(levels)
        self.shape = (prod(sizes), sum(own.shape[1] for _, own in levels))

    def level_column(self, column: int) -> tuple[int, FloatArray]:
        """The component of a column, by number, and the column's values there."""
        for number, own in self._levels:
            if column < own.shape[1]:
                return number, own[:, column]
            column -= own.shape[1]
        raise IndexError("there is no such column")

    def given(self, number: int, low: int, high: int, client: Any) -> CombinedRows:
        """What computes the rows of a part."""
        return CombinedRows(self, low, high)

    def rows(self, numbers: IntArray) -> FloatArray:
        """Features of some candidates, (n, d)."""
        strides = np.cumprod([1, *self._sizes[:0:-1]])[::-1]
        out, first = np.empty((numbers.size, self.shape[1])), 0
        for component, own in self._levels:
            places = numbers // int(strides[component]) % self._sizes[component]
            out[:, first : first + own.shape[1]] = own[places]
            first += own.shape[1]
        return out


class CombinedRows:
    """Rows low..high-1 of combinations, computed when they are indexed."""

    def __init__(self, table: CombinedTable, low: int, high: int) -> None:
        self._table, self._low, self._n = table, low, high - low

    def __getitem__(self, where: slice | IntArray) -> FloatArray:
        numbers = np.arange(*where.indices(self._n)) if isinstance(where, slice) else where
        return self._table.rows(numbers + self._low)
