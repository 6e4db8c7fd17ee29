"""k_j(x, all candidates) for all models at once: what several kernels have in common is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.kernels import Kernel, Linear
from alexp.problem.rows import Rows, inner, is_sparse, ready, squared_distances, take

Step = Callable[[list[FloatArray]], FloatArray]  # from the results of the steps before
Leaf = Callable[[FloatArray, Rows], FloatArray]  # from points (n, d) and rows (m, d)

_ENTRIES = 1 << 16  # of a block of rows: half a megabyte
_SPARSE_ENTRIES = 1 << 25  # most of which are zero
_RESULTS = 1 << 23  # of all steps on a block: 64 megabytes
_FEWEST = 256  # rows of a block


class Steps:
    """Numbered steps, each of which gives an (n, m) array for points (n, P) and rows (m, P); equal steps are one."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, Leaf] | Step] = []  # a leaf and its columns, or a function of earlier steps
        self._numbers: dict[Hashable, int] = {}
        self._columns: list[IntArray] = []
        self._columns_of: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def after(self, key: Hashable, step: Step) -> int:
        """The number of a step that follows others; `key` says what it computes."""
        return self._number(("after", key), step)

    def leaf(self, key: Hashable, columns: IntArray, leaf: Leaf) -> int:
        """The number of a step on some columns."""
        which = columns.tobytes()
        if which not in self._columns_of:
            self._columns_of[which] = len(self._columns)
            self._columns.append(columns)
        number = self._columns_of[which]
        return self._number((key, number), (number, leaf))

    def inner(self, columns: IntArray, weights: FloatArray | None = None) -> int:
        """The step that computes weighted inner products."""
        return self.leaf(("inner", _key(weights)), columns, lambda x, z: inner(x, z, weights))

    def distances(self, columns: IntArray, weights: FloatArray | None = None) -> int:
        """The step that computes weighted squared distances."""
        return self.leaf(("apart", _key(weights)), columns, lambda x, z: squared_distances(x, z, weights))

    def _number(self, key: Hashable, step: tuple[int, Leaf] | Step) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._steps)
            self._steps.append(step)
        return self._numbers[key]

    def run(self, points: FloatArray, rows: Rows) -> list[FloatArray]:
        """Results of all steps for points (n, P) and rows (m, P)."""
        taken: dict[int, tuple[FloatArray, Rows]] = {}
        done: list[FloatArray] = []
        for step in self._steps:
            if isinstance(step, tuple):
                number, leaf = step
                if number not in taken:
                    columns = self._columns[number]
                    taken[number] = np.ascontiguousarray(points[:, columns]), ready(take(rows, columns))
                done.append(leaf(*taken[number]))
            else:
                done.append(step(done))
        return done


def _key(weights: FloatArray | None) -> bytes | None:
    return None if weights is None else weights.tobytes()


class SharedKernels:
    """M kernels on groups of the columns of one table.

    Matern kernels at several lengthscales share their distances, linear and Tanimoto kernels their inner products, and
    a sum of kernels that are models themselves costs no more than the addition. Values are those of the kernels
    themselves, bit for bit.

    Parameters
    ----------
    kernels : one per model, fitted; None for <x, z>.
    groups : the columns of each model.

    >>> from alexp.problem.kernels import Tanimoto
    >>> both = SharedKernels([None, Tanimoto()], [np.arange(2), np.arange(2)])
    >>> both(np.array([1.0, 1.0]), np.eye(2)).tolist()
    [[1.0, 1.0], [0.5, 0.5]]
    """

    def __init__(self, kernels: Sequence[Kernel | None], groups: Sequence[IntArray]) -> None:
        self._steps = Steps()
        both = zip(kernels, groups, strict=True)
        self._outputs = [(kernel or Linear()).plan(self._steps, np.asarray(group)) for kernel, group in both]
        self._widest = max((len(group) for group in groups), default=1)

    def __call__(self, row: FloatArray, table: Rows, out: FloatArray | None = None) -> FloatArray:
        """k_j(row, table), shape (M, N), for a row (P,) and rows (N, P) of the table; written into `out` if given.

        The table may have any float dtype, may be memory-mapped, or CSR.
        """
        point, n = np.asarray(row, dtype=np.float64)[None], table.shape[0]
        values = np.empty((len(self._outputs), n)) if out is None else out
        entries = _SPARSE_ENTRIES if is_sparse(table) else _ENTRIES
        step = max(_FEWEST, min(entries // self._widest, _RESULTS // len(self._steps)))
        for low in range(0, n, step):
            part = slice(low, min(low + step, n))
            done = self._steps.run(point, table[part])
            for j, number in enumerate(self._outputs):
                values[j, part] = done[number][0]
        return values
