"""Feature matrices of a fixed list of candidates, kept as they were given, and the columns of models in them."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, BoolArray, FloatArray, IntArray
from alexp.common.backends import ComputeDevice, device_for
from alexp.common.codec import fingerprint
from alexp.common.validation import LARGEST, check_sizes, matrix, refuse_size
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.kernels import Kernel
from alexp.problem.rows import (
    RemoteRows,
    Rows,
    blocks,
    column_units,
    dense,
    first_rows,
    is_sparse,
    rounding,
    squared_norms,
)

if TYPE_CHECKING:
    from alexp.problem.rows import Sparse

SMALL = 1 << 20  # numbers of a table that is copied freely: 8 megabytes
_NARROW = (np.float16, np.float32)


class Matrices:
    """Feature matrices of a fixed list of candidates, side by side; points are row numbers.

    Matrices in single or half precision, memory-mapped ones and CSR are kept as they are, without a copy; so are large
    ones in double precision: do not change them afterwards. Small ones are copied.

    Attributes
    ----------
    labels : what DataFrames call their rows; None where rows are merely numbered.
    device : the device that the matrices are on; None for the memory of the CPU.
    names : matrix[column], one per column.
    sizes : widths of the matrices.
    blocks : (N, w) each, all columns one after the other.
    batches : how many candidates came first, and how many were added each time after; empty if all came at once.
    """

    labels: list[Hashable] | None = None
    device: ComputeDevice | None = None
    batches: tuple[int, ...] = ()
    _table: FloatArray | None = None

    def __init__(self, given: Mapping[str, ArrayLike | Rows], device: str | ComputeDevice | None = None) -> None:
        self.device = device_for(given, device)
        self.labels = _check_same_rows([str(name) for name in given], [frame_labels(b) for b in given.values()])
        self.blocks: list[Rows] = []
        for name, block in given.items():
            n_rows = self.blocks[0].shape[0] if self.blocks else None
            self.blocks.append(_checked_rows(f"features {name!r}", block, n_rows, self.device))
        self.sizes = [int(block.shape[1]) for block in self.blocks]
        self.names = [f"{name}[{i}]" for name, size in zip(given, self.sizes, strict=True) for i in range(size)]
        if self.is_plain:
            self.blocks = [np.array(block) for block in self.blocks]

    @cached_property
    def origin(self) -> FloatArray | None:
        """Means of the columns that are far from zero for their spread, zero for all others, (P,).

        They are rounded to the precision of the matrix, so that differences are exact there. None if there
        are no such columns, and for matrices on a device.
        """
        if self.device is not None:
            return None
        own = [column_units(first_rows(block, self.n_first)).origin(constants=True) for block in self.blocks]
        if all(origin is None for origin in own):
            return None
        parts = [
            np.zeros(block.shape[1]) if origin is None else origin.astype(block.dtype).astype(np.float64)
            for block, origin in zip(self.blocks, own, strict=True)
        ]
        return np.concatenate(parts)

    @property
    def is_plain(self) -> bool:
        """Whether everything is small and in double precision."""
        return self.n_rows * self.n_columns <= SMALL and all(_is_double(block) for block in self.blocks)

    @property
    def table(self) -> FloatArray:
        """All matrices side by side in double precision, (N, P); computed at every call where they are large."""
        if self._table is not None:
            return self._table
        table = np.hstack([dense(block) for block in self.blocks])
        if self.is_plain:
            self._table = table
        return table

    @property
    def tables(self) -> list[FeatureTable]:
        """The matrices one by one."""
        edges = np.cumsum([0, *[block.shape[1] for block in self.blocks]])
        return [
            FeatureTable(block, np.arange(a, b)) for block, (a, b) in zip(self.blocks, pairwise(edges), strict=True)
        ]

    @property
    def n_columns(self) -> int:
        """P, the sum of the matrices' widths."""
        return sum(int(block.shape[1]) for block in self.blocks)

    @property
    def n_rows(self) -> int:
        """Number of candidates the matrices describe."""
        return int(self.blocks[0].shape[0])

    @property
    def n_first(self) -> int | None:
        """Number of candidates that units, centres and scales come from; None for all of them."""
        return self.batches[0] if self.batches else None

    def name_columns(self, columns: Sequence[Sequence[str] | None]) -> None:
        """Call the columns of each matrix by names of their own; None leaves those of a matrix numbered."""
        edges = np.cumsum([0, *self.sizes])
        for (low, high), own in zip(pairwise(edges), columns, strict=True):
            if own is not None:
                matrix_name = self.names[low].rpartition("[")[0]
                self.names[low:high] = [f"{matrix_name}[{name}]" for name in own]

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Features of the candidates with row numbers `x`, shape (n, P)."""
        rows = np.atleast_1d(np.asarray(x))
        if not np.issubdtype(rows.dtype, np.integer) or rows.ndim != 1:
            raise TypeError("models from matrices are evaluated at row numbers: pass an integer or several")
        if rows.size and (rows.min() < 0 or rows.max() >= self.n_rows):
            raise IndexError(f"row numbers must lie in 0..{self.n_rows - 1}, got {rows.min()}..{rows.max()}")
        if self._table is not None:
            return np.asarray(self._table[rows])
        return np.hstack([dense(block[rows]) for block in self.blocks])

    def check_domain(self, domain: Domain) -> None:
        """Raise unless the matrices have one row for each candidate of a domain, in the same order."""
        if self.n_rows != domain.n_candidates:
            raise ValueError(
                f"the feature matrices have {self.n_rows} rows but the domain has {domain.n_candidates} candidates; "
                "they must match row by row"
            )
        if self.labels is not None and isinstance(domain, FiniteSet):
            _check_labels(self.labels, domain.candidates)

    def head(self, n: int) -> Matrices:
        """The same matrices with their first n rows."""
        out = Matrices.__new__(Matrices)
        out.names, out.sizes, out.blocks = self.names, self.sizes, [block[:n] for block in self.blocks]
        return out

    def to_dict(self) -> dict[str, Any] | None:
        """JSON-safe after `pack`: the matrices themselves; None where they lie in files, which must be passed again."""
        own: dict[str, Any] = {"family": "matrices", "names": self.names, "sizes": self.sizes}
        own |= {"batches": list(self.batches)} if self.batches else {}
        if all(_is_double(block) for block in self.blocks) and not any(_in_file(block) for block in self.blocks):
            return own | {"table": self.table}
        if any(_in_file(block) for block in self.blocks):
            return None
        return own | {"blocks": [_described(block) for block in self.blocks]}

    @classmethod
    def from_table(
        cls,
        table: FloatArray | None = None,
        names: Sequence[str] = (),
        sizes: Sequence[int] = (),
        blocks: Sequence[dict[str, Any]] | None = None,
        batches: Sequence[int] = (),
    ) -> Matrices:
        """Rebuild from what `to_dict` stored."""
        out = cls.__new__(cls)
        out.names, out.sizes, out.batches = list(names), list(sizes), tuple(batches)
        if blocks is None:
            out.blocks = [matrix("table", table)]
        else:
            out.blocks = [_rebuilt(block) for block in blocks]
        return out


def _checked_rows(name: str, value: ArrayLike | Rows, n_rows: int | None, device: ComputeDevice | None) -> Rows:
    """A matrix as it may be kept, or an error that says what is wrong with it."""
    if device is not None:
        return cast(Rows, device.adopt(name, value, n_rows))
    if hasattr(value, "tocsr"):
        return _checked_sparse(name, cast("Sparse", value.tocsr()), n_rows)
    if not isinstance(value, np.ndarray) or value.ndim != 2 or not _is_kept(value):
        return matrix(name, value, n_rows)
    _check_count(name, value.shape[0], n_rows)
    _check_finite(name, value)
    return value if value.flags.c_contiguous or _in_file(value) else np.ascontiguousarray(value)


def _is_kept(value: AnyArray) -> bool:
    """Whether an array is kept as it is, and not copied in double precision."""
    return value.dtype in _NARROW or (value.dtype == np.float64 and value.size > SMALL)


def _checked_sparse(name: str, value: Sparse, n_rows: int | None) -> Rows:
    _check_count(name, value.shape[0], n_rows)
    if value.dtype not in (np.float32, np.float64):
        value = value.astype(np.float64)
    if not np.all(np.isfinite(value.data)):
        raise ValueError(f"{name} holds {value.data[~np.isfinite(value.data)][0]}; features must be finite")
    if value.data.size and float(np.abs(value.data).max()) > LARGEST:
        entry = int(np.argmax(np.abs(value.data)))
        row = int(np.searchsorted(value.indptr, entry, side="right")) - 1
        refuse_size(name, float(value.data[entry]), row, int(value.indices[entry]))
    return value


def _check_count(name: str, found: int, n_rows: int | None) -> None:
    if n_rows is not None and found != n_rows:
        raise ValueError(f"{name} must have {n_rows} rows, one per point, got {found}")


def _check_finite(name: str, rows: AnyArray) -> None:
    """Raise for entries that are not finite, reading a few rows at a time."""
    for part, piece in blocks(rows):
        block = dense(piece)
        if not np.all(np.isfinite(block)):
            row, column = np.argwhere(~np.isfinite(block))[0]
            where = f"row {part.start + row}, column {column}"
            raise ValueError(f"{name} has {block[row, column]} at {where}; features must be finite")
        check_sizes(name, block, part.start)


def _is_double(block: Rows) -> bool:
    return isinstance(block, np.ndarray) and block.dtype == np.float64


def _in_file(block: object) -> bool:
    if isinstance(block, RemoteRows) and block.is_in_parts:
        return True
    block = block.source if isinstance(block, RemoteRows) else block
    while isinstance(block, np.ndarray):
        if isinstance(block, np.memmap):
            return True
        block = block.base
    return False


def _described(block: Rows) -> dict[str, Any]:
    if not is_sparse(block):
        return {"dense": np.asarray(block)}
    return {"data": block.data, "indices": block.indices, "indptr": block.indptr, "shape": list(block.shape)}


def _rebuilt(data: dict[str, Any]) -> Rows:
    if "dense" in data:
        return np.asarray(data["dense"])
    from scipy.sparse import csr_array  # slow to import, and only sparse tables need it

    return csr_array((data["data"], data["indices"], data["indptr"]), shape=tuple(data["shape"]))


# -- row labels of features and candidates -----------------------------------------------------------------------


def frame_labels(block: object) -> list[Hashable] | None:
    """Row labels of a DataFrame or Series; None for other things, and for rows that are merely numbered."""
    index: Any = getattr(block, "index", None)
    if index is None or callable(index):  # a list has an `index` too, of another kind
        return None
    labels = list(index)
    return None if labels == list(range(len(labels))) else labels


def _check_same_rows(names: Sequence[str], labels: Sequence[list[Hashable] | None]) -> list[Hashable] | None:
    """The labels that all labelled matrices share; raises where two of them list their rows differently."""
    labelled = [(name, own) for name, own in zip(names, labels, strict=True) if own is not None]
    if not labelled:
        return None
    first_name, first = labelled[0]
    for name, own in labelled:
        if len(set(own)) < len(own):
            raise ValueError(f"features {name!r} have two rows labelled {_twice(own)!r}; every candidate needs one row")
        if own != first:
            raise ValueError(
                f"features {name!r} and {first_name!r} list their rows differently: {_first_difference(own, first)}; "
                f"bring them into one order with frame.loc[...], or pass .to_numpy() if the labels mean nothing"
            )
    return first


def _check_labels(labels: list[Hashable], candidates: object) -> None:
    """Raise if the rows of labelled features are in another order than the candidates, or belong to others."""
    own = _candidate_labels(candidates)
    if own is None or own == labels:
        return
    remedy = "features.loc[candidates.index]" if hasattr(candidates, "iloc") else "features.loc[candidates]"
    if set(own) == set(labels):
        raise ValueError(
            f"the features list the candidates in another order: {_first_difference(labels, own)}; use {remedy}"
        )
    if hasattr(candidates, "iloc") or set(own) & set(labels):
        missing = next((label for label in own if label not in set(labels)), None)
        what = f"candidate {missing!r} has no row" if missing is not None else "some rows belong to no candidate"
        raise ValueError(
            f"the labels of features and candidates do not match: {what}; give both the same index, or pass "
            "features.to_numpy() if the rows are in the candidates' order"
        )


def _candidate_labels(candidates: object) -> list[Hashable] | None:
    """What candidates are called: the index of a table, or texts themselves; None where they have no names."""
    if hasattr(candidates, "iloc"):
        return list(candidates.index)  # type: ignore[attr-defined]
    if isinstance(candidates, list | tuple) and all(isinstance(item, str) for item in candidates):
        return list(candidates)
    if isinstance(candidates, np.ndarray) and candidates.ndim == 1 and candidates.dtype.kind == "U":
        return [str(item) for item in candidates]
    return None


def _twice(labels: list[Hashable]) -> Hashable:
    seen: set[Hashable] = set()
    return next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]


def _first_difference(labels: list[Hashable], others: list[Hashable]) -> str:
    for row, (one, two) in enumerate(zip(labels, others, strict=False)):
        if one != two:
            return f"row {row} is {one!r} in one and {two!r} in the other"
    return f"{len(labels)} rows in one and {len(others)} in the other"


# -- models on tables --------------------------------------------------------------------------------------------


class Block:
    """N rows of d columns, in the domain's order: dense of any float precision, memory-mapped, or CSR."""

    def __init__(self, rows: Rows) -> None:
        if isinstance(rows, np.ndarray) and not rows.flags.c_contiguous and rows.size <= SMALL:
            rows = np.ascontiguousarray(rows)  # some columns of a table
        self.rows = rows
        self.n_rows, self.n_columns = (int(size) for size in rows.shape)

    def dense(self, part: slice) -> FloatArray:
        """Some rows in double precision, (n, d)."""
        return dense(self.rows[part])

    def taken(self, indices: IntArray) -> FloatArray:
        """Rows of some candidates in double precision, (n, d)."""
        return dense(self.rows[indices])

    @property
    def on_device(self) -> RemoteRows | None:
        """The rows, if they are on a device."""
        return self.rows if isinstance(self.rows, RemoteRows) else None

    def squared_norms(self) -> FloatArray:
        """||phi(x)||^2 of all candidates, (N,)."""
        out = np.empty(self.n_rows)
        for part, block in blocks(self.rows):
            out[part] = squared_norms(block)
        return out

    def mean_square(self, centred: bool) -> float:
        """Mean of ||phi(x)||^2 over the candidates, or of ||phi(x) - mean||^2; constant columns add nothing."""
        if self.on_device is not None:
            whole = self.on_device.column_squares(False)
            if not centred:
                return float(whole.sum())
            squares = self.on_device.column_squares(True)
            return float(np.where(squares > rounding(self.rows) ** 2 * whole, squares, 0.0).sum())
        mean, largest, total = np.zeros(self.n_columns), np.zeros(self.n_columns), 0.0
        for _, block in blocks(self.rows):
            rows = dense(block)
            mean += rows.sum(axis=0) / self.n_rows
            total += float(np.vdot(rows, rows)) / self.n_rows
            largest = np.maximum(largest, np.abs(rows).max(axis=0))
        if not centred:
            return total
        squares, total = np.zeros(self.n_columns), 0.0
        for _, block in blocks(self.rows):
            rows = dense(block) - mean
            squares += np.einsum("nd,nd->d", rows, rows) / self.n_rows
            total += float(np.vdot(rows, rows)) / self.n_rows
        constant = squares <= (rounding(self.rows) * largest) ** 2
        return 0.0 if constant.all() else total - float(squares[constant].sum())


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Columns of the dictionary on all candidates that lie together.

    Attributes
    ----------
    rows : (N, w), in the domain's order.
    columns : (w,) their numbers in the dictionary, increasing.
    """

    rows: Rows
    columns: IntArray


@dataclass(frozen=True, eq=False)
class ModelOnTable:
    """One model: some columns of a table, and a kernel on them.

    Attributes
    ----------
    table : where the columns are.
    group, local : (d,) the columns' numbers in the dictionary and in the table.
    kernel : None for <x, z>.
    block : the columns on all candidates.
    origin : (d,) what has been taken off the block, and is to be taken off other rows; None for nothing.
    """

    table: FeatureTable
    group: IntArray
    local: IntArray
    kernel: Kernel | None
    block: Block
    origin: FloatArray | None = None


class SideBySide:
    """Tables of the same candidates side by side, joined a few rows at a time: what kernels read that span several."""

    ndim = 2

    def __init__(self, parts: Sequence[Rows], columns: IntArray | None = None) -> None:
        self._parts = parts
        self._columns = np.arange(sum(part.shape[1] for part in parts)) if columns is None else columns
        self.shape = (int(parts[0].shape[0]), int(self._columns.size))

    def only(self, columns: IntArray) -> SideBySide:
        """Some of the columns."""
        return SideBySide(self._parts, self._columns[columns])

    def __getitem__(self, rows: slice | IntArray | tuple[slice, slice | IntArray]) -> FloatArray | SideBySide:
        if isinstance(rows, tuple):  # all rows of some columns
            return SideBySide(self._parts, self._columns[rows[1]])
        return np.asarray(np.hstack([dense(part[rows]) for part in self._parts])[:, self._columns])


def nonzero_columns(rows: Rows, least: float = 0.0) -> BoolArray:
    """Which columns hold anything larger than `least` in size, (d,); on a device, anything but zeros."""
    if isinstance(rows, RemoteRows):
        return rows.nonzero_columns()
    out = np.zeros(rows.shape[1], dtype=bool)
    for _, block in blocks(rows):
        if is_sparse(block):
            out[block.indices[np.abs(block.data) > least]] = True
        else:
            out |= (np.abs(np.asarray(block)) > least).any(axis=0)
        if out.all():
            break
    return out


def mean_squares(rows: Rows, centred: bool) -> FloatArray:
    """Mean square of every column, or its variance, shape (d,); a few rows at a time."""
    if isinstance(rows, RemoteRows):
        return rows.column_squares(centred)
    n, d = rows.shape
    mean, out = np.zeros(d), np.zeros(d)
    for _, block in blocks(rows) if centred else ():
        mean += dense(block).sum(axis=0) / n
    for _, block in blocks(rows):
        out += np.square(dense(block) - mean).sum(axis=0) / n
    return out


def columns_fingerprint(tables: Sequence[AnyArray]) -> str:
    """Content hash of tables in double precision side by side, transposed: `codec.fingerprint` of (P, N) numbers."""
    n, p = tables[0].shape[0], sum(table.shape[1] for table in tables)
    digest = hashlib.sha256(f"{np.dtype(np.float64).str}{(p, n)}".encode())
    step = max(1, SMALL // max(n, 1))
    for table in tables:
        for low in range(0, table.shape[1], step):
            digest.update(np.ascontiguousarray(table[:, low : low + step].T).data)
    return digest.hexdigest()


def rows_fingerprint(rows: Rows) -> str:
    """Content hash of a table in its own precision, a few rows at a time."""
    if is_sparse(rows):
        parts = [fingerprint(part) for part in (rows.data, rows.indices, rows.indptr)]
        return fingerprint(np.array([*parts, str(rows.shape)]))
    digest = hashlib.sha256(f"{rows.dtype.str}{rows.shape}".encode())
    step = max(1, SMALL // max(int(rows.shape[1]), 1))
    for low in range(0, int(rows.shape[0]), step):
        digest.update(np.ascontiguousarray(rows[low : low + step]).data)
    return digest.hexdigest()
