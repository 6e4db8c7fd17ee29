"""k_j(x, all candidates) for all models at once: what models have in common is computed once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.plain import Linear
from alexp.problem.kernels.rows import Rows, is_sparse
from alexp.problem.kernels.steps import Steps

_ENTRIES = 1 << 16  # of a block of rows: half a megabyte
_SPARSE_ENTRIES = 1 << 25  # most of which are zero
_RESULTS = 1 << 23  # of all steps on a block: 64 megabytes
_FEWEST = 256  # rows of a block


class SharedKernels:
    """M kernels on groups of the columns of one table.

    Matern kernels at several lengthscales share their distances, linear and Tanimoto kernels their inner products, and
    a sum of kernels that are models themselves costs no more than the addition. Values are those of the kernels
    themselves, bit for bit.

    Parameters
    ----------
    kernels : one per model, fitted; None for <x, z>.
    groups : the columns of each model.

    >>> from alexp.problem.kernels.plain import Tanimoto
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
            done = list(self._steps.run(point, table[part]))
            for j, number in enumerate(self._outputs):
                values[j, part] = done[number][0]
        return values
