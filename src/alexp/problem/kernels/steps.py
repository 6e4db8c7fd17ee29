"""Kernels taken apart into steps, so that what several of them have in common is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.kernels.rows import Rows, inner, ready, squared_distances, take

Step = Callable[[list[FloatArray]], FloatArray]  # from the results of the steps before
Leaf = Callable[[FloatArray, Rows], FloatArray]  # from points (n, d) and rows (m, d)


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

    def apart(self, columns: IntArray, weights: FloatArray | None = None) -> int:
        """The step that computes weighted squared distances."""
        return self.leaf(("apart", _key(weights)), columns, lambda x, z: squared_distances(x, z, weights))

    def _number(self, key: Hashable, step: tuple[int, Leaf] | Step) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._steps)
            self._steps.append(step)
        return self._numbers[key]

    def run(self, points: FloatArray, rows: Rows) -> Iterator[FloatArray]:
        """Results of all steps, one after the other, for points (n, P) and rows (m, P)."""
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
            yield done[-1]


def _key(weights: FloatArray | None) -> bytes | None:
    return None if weights is None else weights.tobytes()
