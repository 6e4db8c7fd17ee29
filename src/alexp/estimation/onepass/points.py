"""The rewards told so far, by distinct points: all that a Gaussian regression needs of them."""

from __future__ import annotations

from copy import copy

import numpy as np

from alexp.common.arrays import FloatArray


class Points:
    """D distinct points in the order in which they were first told, with what was told of them.

    Attributes
    ----------
    order : (D,) the points by when they were told last.
    candidates : (D,) their numbers among the candidates; -1 for those that are none.
    scatter : sum of squares of the rewards about the means of their points.
    """

    def __init__(self, n_columns: int) -> None:
        self.n, self.n_observations, self.scatter = 0, 0, 0.0
        self.order, self.candidates = np.empty((2, 0), dtype=np.int64)
        self._rows, self._counts, self._means = np.empty((8, n_columns)), np.zeros(8), np.zeros(8)
        self._numbers: dict[bytes, int] = {}

    @property
    def rows(self) -> FloatArray:
        """(D, d) features."""
        return self._rows[: self.n]

    @property
    def counts(self) -> FloatArray:
        """(D,) how often each was told."""
        return self._counts[: self.n]

    @property
    def means(self) -> FloatArray:
        """(D,) their mean rewards."""
        return self._means[: self.n]

    def find(self, row: FloatArray) -> int:
        """The number of the point with features (d,); D if there is none."""
        return self._numbers.get(row.tobytes(), self.n)

    def note(self, row: FloatArray, y: float, candidate: int | None) -> None:
        """Take note of a reward; its point is the last of the `order` from now on."""
        point = self.find(row)
        if point == self.n:
            self._make_room()
            self._rows[point], self._numbers[row.tobytes()] = row, point
            self.candidates = np.append(self.candidates, -1 if candidate is None else candidate)
            self.n += 1
        self.order = np.append(self.order[self.order != point], point)
        n, mean = self._counts[point], self._means[point]
        self.scatter += float(n / (n + 1.0) * (y - mean) ** 2)
        self._means[point] = mean + (y - mean) / (n + 1.0)
        self._counts[point] = n + 1.0
        self.n_observations += 1

    def _make_room(self) -> None:
        more = self._counts.size
        if self.n == more:
            self._counts, self._means = np.pad(self._counts, (0, more)), np.pad(self._means, (0, more))
            self._rows = np.vstack([self._rows, np.empty_like(self._rows)])

    def copy(self) -> Points:
        """An independent copy."""
        out = copy(self)
        out._numbers = self._numbers.copy()  # `order` and `candidates` are never written to
        out._rows, out._counts, out._means = self._rows.copy(), self._counts.copy(), self._means.copy()
        return out
