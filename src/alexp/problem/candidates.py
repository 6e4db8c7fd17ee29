"""The dictionary on all candidates, stored the way the hot loops read it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

Available = Sequence[int] | AnyArray | None  # indices, a boolean mask, or all candidates


class CandidateTable:
    """Features of N candidates, feature-major and in one fixed visiting order.

    Exact ties between candidates are common (even polynomials cannot tell x from -x). Loops visit candidates in
    `order`, a random permutation, and the first best wins: deterministic, and without a bias to either side.

    Attributes
    ----------
    table : (P, N) float64, C-contiguous; `table[:, k]` are the features of candidate `order[k]`.
    order : (N,) candidate visited k-th.
    position : (N,) inverse of `order`.
    everything : the round on all candidates.
    """

    def __init__(self, models: ModelClass, domain: Domain, order: IntArray) -> None:
        self.order = order
        self.position = np.empty_like(order)
        self.position[order] = np.arange(order.size)
        self.table = np.ascontiguousarray(models.matrix(domain)[order].T)
        self.table.flags.writeable = False  # sweeps keep a copy in single precision
        _point_out_empty_models(models, self.table)
        self.everything = Round(Choices(order, self.table), None)

    @property
    def n_candidates(self) -> int:
        """N."""
        return int(self.order.size)

    def row(self, index: int) -> FloatArray:
        """Features of candidate `index`, shape (P,)."""
        return np.ascontiguousarray(self.table[:, self.position[index]])

    def round(self, available: Available = None) -> Round:
        """The round on all candidates, or on those with the given indices."""
        if available is None:
            return self.everything
        indices = check_available(available, self.n_candidates)
        positions = np.sort(self.position[indices])
        table = np.ascontiguousarray(self.table[:, positions])
        table.flags.writeable = False  # like the whole table; sweeps would be compiled again for one that is
        return Round(Choices(self.order[positions], table), positions.tobytes())

    def distinct_columns(self, columns: IntArray | None = None) -> IntArray:
        """Columns of the dictionary, or some of them; of those that are equal on every candidate only the first."""
        table = self.table if columns is None else self.table[columns]
        _, first = np.unique(table, axis=0, return_index=True)
        return np.sort(first) if columns is None else np.asarray(columns[np.sort(first)])


@dataclass(frozen=True, eq=False)
class Choices:
    """A set of candidates in visiting order.

    Attributes
    ----------
    indices : (n,) candidate numbers.
    table : (P, n) their features.
    """

    indices: IntArray
    table: FloatArray

    def __len__(self) -> int:
        return int(self.indices.size)


@dataclass(frozen=True, eq=False)
class Round:
    """What one ask chooses from.

    Attributes
    ----------
    choices : the candidates and their features.
    key : rounds of one run with equal keys have equal choices; None for all candidates of the domain.
    """

    choices: Choices
    key: bytes | None

    @property
    def is_full(self) -> bool:
        """Whether every candidate of the domain may be chosen."""
        return self.key is None


def _point_out_empty_models(models: ModelClass, table: FloatArray) -> None:
    """Warn of models whose features all vanish on every candidate."""
    filled = np.asarray(table.any(axis=1))
    if filled.all():
        return
    empty = np.flatnonzero(~np.logical_or.reduceat(filled[models.columns_flat], models.offsets[:-1]))
    if empty.size:
        others = f" (and {empty.size - 1} more)" if empty.size > 1 else ""
        warnings.warn(
            f"model {models.names[int(empty[0])]!r} is zero on every candidate{others}: it predicts the same reward "
            "for all of them; leave it out unless that is meant",
            stacklevel=4,
        )


def check_available(available: Sequence[int] | AnyArray, n_candidates: int) -> IntArray:
    """Candidate numbers a round may use, from indices or a boolean mask of length N."""
    array = np.asarray(available)
    if array.dtype == bool:
        if array.shape != (n_candidates,):
            raise ValueError(f"available as a mask must have shape ({n_candidates},), got {array.shape}")
        array = np.flatnonzero(array)
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError("available must be a non-empty list of candidate indices, or a boolean mask with some True")
    if array.min() < 0 or array.max() >= n_candidates:
        raise ValueError(f"available must hold indices in 0..{n_candidates - 1}, got {array.min()}..{array.max()}")
    if np.unique(array).size != array.size:
        raise ValueError("available must not list a candidate twice")
    return array.astype(np.int64)
