"""Feature matrices of a fixed list of candidates, kept as they were handed in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, FloatArray
from alexp.common.devices.places import Place
from alexp.common.validation import LARGEST, check_sizes, matrix, refuse_size
from alexp.problem.descriptions import Description
from alexp.problem.kernels.rows import Rows, blocks, dense, is_sparse
from alexp.problem.kernels.units import column_units
from alexp.problem.labels import check_same_rows, frame_labels
from alexp.problem.tables.blocks import SMALL, FeatureTable
from alexp.problem.tables.on_device import DeviceRows, device_rows, on_device

if TYPE_CHECKING:
    from alexp.problem.kernels.rows import Sparse

_NARROW = (np.float16, np.float32)


class Matrices:
    """Feature matrices of a fixed list of candidates, side by side; points are row numbers.

    Matrices in single or half precision, memory-mapped ones and CSR are kept as they are, without a copy; so are large
    ones in double precision: do not change them afterwards. Small ones are copied.

    Attributes
    ----------
    labels : what DataFrames call their rows; None where rows are merely numbered.
    place : the device that the matrices are on; None for the memory of the CPU.
    sizes : widths of the matrices.
    blocks : (N, w) each, all columns one after the other.
    """

    labels: list[Hashable] | None = None
    place: Place | None = None

    def __init__(self, given: Mapping[str, ArrayLike | Rows], device: str | Place | None = None) -> None:
        self.place = on_device(given, device)
        self.labels = check_same_rows([str(name) for name in given], [frame_labels(b) for b in given.values()])
        self.blocks: list[Rows] = []
        for name, block in given.items():
            n_rows = self.blocks[0].shape[0] if self.blocks else None
            self.blocks.append(_checked(f"features {name!r}", block, n_rows, self.place))
        self.sizes = [int(block.shape[1]) for block in self.blocks]
        self._names = [f"{name}[{i}]" for name, size in zip(given, self.sizes, strict=True) for i in range(size)]
        if self.is_plain:
            self.blocks = [np.array(block) for block in self.blocks]

    _table: FloatArray | None = None

    @cached_property
    def origin(self) -> FloatArray | None:
        """Means of the columns that are far from zero for their spread, zero for all others, (P,).

        They are rounded to the precision of the matrix, so that differences are exact there. None if there
        are no such columns, and for matrices on a device.
        """
        if self.place is not None:
            return None
        own = [column_units(block).origin(constants=True) for block in self.blocks]
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
        """All matrices side by side in double precision, (N, P); made anew at every call where they are large."""
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
    def names(self) -> list[str]:
        """matrix[column]."""
        return self._names

    def name_columns(self, columns: Sequence[Sequence[str] | None]) -> None:
        """Call the columns of each matrix by names of their own; None leaves those of a matrix numbered."""
        edges = np.cumsum([0, *self.sizes])
        for (low, high), own in zip(pairwise(edges), columns, strict=True):
            if own is not None:
                matrix_name = self._names[low].rpartition("[")[0]
                self._names[low:high] = [f"{matrix_name}[{name}]" for name in own]

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Features of the candidates with row numbers `x`, shape (n, P)."""
        rows = np.atleast_1d(np.asarray(x))
        if not np.issubdtype(rows.dtype, np.integer) or rows.ndim != 1:
            raise TypeError("models made from matrices are evaluated at row numbers: pass an integer or several")
        if rows.size and (rows.min() < 0 or rows.max() >= self.n_rows):
            raise IndexError(f"row numbers must lie in 0..{self.n_rows - 1}, got {rows.min()}..{rows.max()}")
        if self._table is not None:
            return np.asarray(self._table[rows])
        return np.hstack([dense(block[rows]) for block in self.blocks])

    def head(self, n: int) -> Matrices:
        """The same matrices with their first n rows."""
        out = Matrices.__new__(Matrices)
        out._names, out.sizes, out.blocks = self._names, self.sizes, [block[:n] for block in self.blocks]
        return out

    def to_dict(self) -> Description | None:
        """JSON-safe after `pack`: the matrices themselves; None where they lie in files, which must be passed again."""
        own: Description = {"family": "matrices", "names": self._names, "sizes": self.sizes}
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
        blocks: Sequence[Description] | None = None,
    ) -> Matrices:
        """Rebuild from what `to_dict` stored."""
        out = cls.__new__(cls)
        out._names, out.sizes = list(names), list(sizes)
        if blocks is None:
            out.blocks = [matrix("table", table)]
        else:
            out.blocks = [_rebuilt(block) for block in blocks]
        return out


def _checked(name: str, value: ArrayLike | Rows, n_rows: int | None, place: Place | None) -> Rows:
    """A matrix as it may be kept, or an error that says what is wrong with it."""
    if place is not None:
        return cast(Rows, device_rows(name, value, place, n_rows))
    if hasattr(value, "tocsr"):
        return _checked_sparse(name, cast("Sparse", value.tocsr()), n_rows)
    if not isinstance(value, np.ndarray) or value.ndim != 2 or not _is_kept(value):
        return matrix(name, value, n_rows)
    _check_rows(name, value.shape[0], n_rows)
    _check_finite(name, value)
    return value if value.flags.c_contiguous or _in_file(value) else np.ascontiguousarray(value)


def _is_kept(value: AnyArray) -> bool:
    """Whether an array is kept as it is, and not copied in double precision."""
    return value.dtype in _NARROW or (value.dtype == np.float64 and value.size > SMALL)


def _checked_sparse(name: str, value: Sparse, n_rows: int | None) -> Rows:
    _check_rows(name, value.shape[0], n_rows)
    if value.dtype not in (np.float32, np.float64):
        value = value.astype(np.float64)
    if not np.all(np.isfinite(value.data)):
        raise ValueError(f"{name} holds {value.data[~np.isfinite(value.data)][0]}; features must be finite")
    if value.data.size and float(np.abs(value.data).max()) > LARGEST:
        entry = int(np.argmax(np.abs(value.data)))
        row = int(np.searchsorted(value.indptr, entry, side="right")) - 1
        refuse_size(name, float(value.data[entry]), row, int(value.indices[entry]))
    return value


def _check_rows(name: str, found: int, n_rows: int | None) -> None:
    if n_rows is not None and found != n_rows:
        raise ValueError(f"{name} must have {n_rows} rows, one per point, got {found}")


def _check_finite(name: str, rows: AnyArray) -> None:
    """The same errors as for small matrices, looking at a few rows at a time."""
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
    block = block.source if isinstance(block, DeviceRows) else block
    while isinstance(block, np.ndarray):
        if isinstance(block, np.memmap):
            return True
        block = block.base
    return False


def _described(block: Rows) -> Description:
    if not is_sparse(block):
        return {"dense": np.asarray(block)}
    return {"data": block.data, "indices": block.indices, "indptr": block.indptr, "shape": list(block.shape)}


def _rebuilt(data: Description) -> Rows:
    if "dense" in data:
        return np.asarray(data["dense"])
    from scipy.sparse import csr_array  # slow to import, and only sparse tables need it

    return csr_array((data["data"], data["indices"], data["indptr"]), shape=tuple(data["shape"]))
