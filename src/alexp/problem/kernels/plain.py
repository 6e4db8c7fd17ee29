"""Kernels that come from feature maps of finite size or from counts: linear and Tanimoto."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.descriptions import Description
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.rows import Rows, dense, divided, inner, shifted, squared_distances, squared_norms
from alexp.problem.kernels.steps import Steps
from alexp.problem.kernels.units import Scales, checked_means, checked_scales, column_units, weights, with_arrays


@dataclass(frozen=True)
class Linear(Kernel, stored_as="linear"):
    """k(x, z) = sum_c (x_c - m_c) (z_c - m_c) / s_c^2.

    s_c = 1 and m_c = 0, or with `standardize=True` s_c is the standard deviation of column c over the candidates;
    columns that are constant there, up to rounding, do not count. m_c is the mean of a column over the candidates if it
    is more than 1,000 s_c, and zero otherwise. Beside an intercept m_c makes no difference but to rounding.

    >>> Linear()(np.eye(2), np.array([[3.0, 4.0]])).tolist()
    [[3.0], [4.0]]
    """

    standardize: bool = False
    scales: Scales | None = None
    means: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", checked_scales(self.scales))
        object.__setattr__(self, "means", checked_means(self.means, self.scales))

    @property
    def name(self) -> str:
        """Linear, whatever the scales."""
        return "linear"

    @property
    def is_plain(self) -> bool:
        """Whether this is <x, z> and nothing else."""
        return not self.standardize and self.scales is None

    @property
    def is_fitted(self) -> bool:
        """Whether the scales are known, if there are to be any."""
        return not self.standardize or self.scales is not None

    def fitted(self, x: Rows) -> Linear:
        """With the columns' standard deviations over x."""
        if self.is_fitted:
            return self
        units = column_units(x)
        origin = units.origin()
        means = None if origin is None else tuple(origin.tolist())
        return self.replaced(scales=tuple(units.deviations.tolist()), means=means)

    @cached_property
    def _weights(self) -> FloatArray | None:
        return weights(self, self.scales)

    @cached_property
    def _origin(self) -> FloatArray | None:
        return None if self.means is None else np.array(self.means)

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """Inner products of the divided rows."""
        return inner(dense(shifted(x, self._origin)), shifted(z, self._origin), self._weights)

    def own(self, z: Rows) -> FloatArray:
        """Squared norms of the divided rows."""
        return squared_norms(divided(shifted(z, self._origin), self._weights))

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """One step of inner products."""
        return steps.inner(columns, self._weights) if self._origin is None else super().plan(steps, columns)

    def to_dict(self) -> Description | None:
        """Its fields, scales and means as arrays."""
        return with_arrays(super().to_dict(), "scales", "means")


@dataclass(frozen=True)
class Tanimoto(Kernel, stored_as="tanimoto"):
    """k(x, z) = <x, z> / (|x|^2 + |z|^2 - <x, z>): shared over present in either, for bits, counts and one-hot rows.

    The denominator is <x, z> + |x - z|^2, so that k(x, x) = 1 exactly; two rows of zeros are equal, k(0, 0) = 1.

    >>> Tanimoto()(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])).round(4).tolist()
    [[0.3333, 1.0]]
    """

    @property
    def name(self) -> str:
        """Tanimoto."""
        return "Tanimoto"

    @property
    def is_stationary(self) -> bool:
        """k(x, x) = 1."""
        return True

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """Shared over present in either."""
        return _shared_over_either(inner(x, z), squared_distances(x, z))

    def own(self, z: Rows) -> FloatArray:
        """Ones."""
        return np.ones(z.shape[0])

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """Inner products, distances, and their ratio."""
        shared, apart = steps.inner(columns), steps.apart(columns)
        return steps.after(("tanimoto", shared), lambda done: _shared_over_either(done[shared], done[apart]))


def _shared_over_either(shared: FloatArray, apart: FloatArray) -> FloatArray:
    return np.divide(shared, shared + apart, out=np.ones_like(shared), where=apart > 0.0)
