"""The columns of one model on all candidates, as they were handed in, and products with them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import AnyArray, BoolArray, FloatArray, IntArray
from alexp.common.codec import fingerprint
from alexp.problem.kernels import Kernel
from alexp.problem.kernels.rows import Rows, dense, is_sparse, squared_norms
from alexp.problem.kernels.rows import blocks as pieces
from alexp.problem.kernels.units import rounding
from alexp.problem.tables.on_device import DeviceRows

SMALL = 1 << 20  # numbers of a table that is copied freely: 8 megabytes


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
    def on_device(self) -> DeviceRows | None:
        """The rows, if they are on a device."""
        return self.rows if isinstance(self.rows, DeviceRows) else None

    def squared_norms(self) -> FloatArray:
        """||phi(x)||^2 of all candidates, (N,)."""
        out = np.empty(self.n_rows)
        for part, block in pieces(self.rows):
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
        for _, block in pieces(self.rows):
            rows = dense(block)
            mean += rows.sum(axis=0) / self.n_rows
            total += float(np.vdot(rows, rows)) / self.n_rows
            largest = np.maximum(largest, np.abs(rows).max(axis=0))
        if not centred:
            return total
        squares, total = np.zeros(self.n_columns), 0.0
        for _, block in pieces(self.rows):
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
    if isinstance(rows, DeviceRows):
        return rows.filled()
    out = np.zeros(rows.shape[1], dtype=bool)
    for _, block in pieces(rows):
        if is_sparse(block):
            out[block.indices[np.abs(block.data) > least]] = True
        else:
            out |= (np.abs(np.asarray(block)) > least).any(axis=0)
        if out.all():
            break
    return out


def mean_squares(rows: Rows, centred: bool) -> FloatArray:
    """Mean square of every column, or its variance, shape (d,); a few rows at a time."""
    if isinstance(rows, DeviceRows):
        return rows.column_squares(centred)
    n, d = rows.shape
    mean, out = np.zeros(d), np.zeros(d)
    for _, block in pieces(rows) if centred else ():
        mean += dense(block).sum(axis=0) / n
    for _, block in pieces(rows):
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
