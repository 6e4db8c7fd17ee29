"""Kernels of the distance: Matern and its limit, the Gaussian."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Self

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import positive
from alexp.problem.descriptions import Description
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.rows import Rows, squared_distances
from alexp.problem.kernels.steps import Steps
from alexp.problem.kernels.units import Scales, checked_scales, column_scales, median_distance, weights, with_arrays


@dataclass(frozen=True, kw_only=True)
class Stationary(Kernel):
    """k(x, z) = f(r), r^2 = sum_c ((x_c - z_c) / (l_c s_c u))^2, f(0) = 1. Subclasses say what `profile` f is.

    Parameters
    ----------
    lengthscale
        l: one positive number, or one per column (automatic relevance by hand).
    relative
        In units of the candidates: u is the median distance between them. Otherwise u = 1 and s_c = 1.
    standardize
        For relative kernels: s_c is the standard deviation of column c over the candidates, so that units of columns
        do not matter, and columns that are constant do not count. Otherwise s_c = 1.
    unit, scales
        u and (s_c) as `fitted` found them.

    >>> @dataclass(frozen=True)
    ... class RationalQuadratic(Stationary):
    ...     alpha: float = 1.0
    ...
    ...     def profile(self, squares):
    ...         return (1.0 + squares / (2.0 * self.alpha)) ** -self.alpha
    >>> RationalQuadratic(alpha=2.0, lengthscale=0.5).name
    'RationalQuadratic alpha=2, 0.5'
    """

    lengthscale: float | tuple[float, ...] = 1.0
    relative: bool = True
    standardize: bool = True
    unit: float | None = None
    scales: Scales | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _lengthscale(self.lengthscale))
        object.__setattr__(self, "scales", checked_scales(self.scales))
        if self.unit is not None:
            object.__setattr__(self, "unit", positive("unit", self.unit))

    @property
    def shape_name(self) -> str:
        """What the profile f is called; by default the class and the parameters it adds."""
        return self._title(known=tuple(Stationary.__dataclass_fields__))

    @abstractmethod
    def profile(self, squares: FloatArray) -> FloatArray:
        """f as a function of r^2."""

    @property
    def name(self) -> str:
        """The profile and its lengthscales."""
        own = (self.lengthscale,) if isinstance(self.lengthscale, float) else self.lengthscale
        text = "/".join(f"{scale:g}" for scale in own) if len(own) <= 6 else f"{len(own)} lengthscales"
        return f"{self.shape_name}, {text}{'' if self.relative else ' absolute'}"

    @property
    def is_stationary(self) -> bool:
        """k(x, x) = 1."""
        return True

    @property
    def is_fitted(self) -> bool:
        """Whether the median distance is known, if it matters."""
        return not self.relative or self.unit is not None

    def fitted(self, x: Rows) -> Self:
        """With spreads of columns and the median distance over the candidates x (N, d)."""
        if self.is_fitted:
            return self
        scales = column_scales(x) if self.standardize else None
        return self.replaced(scales=scales, unit=median_distance(x, scales))

    @cached_property
    def _weights(self) -> FloatArray | None:
        """1 / (l_c s_c), shape (d,), where there is one lengthscale per column; otherwise 1 / s_c, None for ones."""
        own = weights(self, self.scales)
        if isinstance(self.lengthscale, float):
            return own
        return np.asarray((1.0 if own is None else own) / np.array(self.lengthscale))

    @cached_property
    def _square(self) -> float:
        """What squared distances of the weighted rows are divided by: (l u)^2, or u^2."""
        unit = 1.0 if self.unit is None else self.unit
        return (unit * self.lengthscale if isinstance(self.lengthscale, float) else unit) ** 2

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """The profile of the distances."""
        own = self._weights
        if own is not None and own.size != x.shape[1]:
            raise ValueError(f"{self.name!r} is for {own.size} columns, got {x.shape[1]}")
        return self.profile(squared_distances(x, z, own) / self._square)

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """Distances, which lengthscales share, and their profile."""
        if self._weights is not None and self._weights.size != columns.size:
            raise ValueError(f"{self.name!r} is for {self._weights.size} columns, got {columns.size}")
        apart = steps.apart(columns, self._weights)
        return steps.after((apart, self), lambda done: self.profile(done[apart] / self._square))

    def own(self, z: Rows) -> FloatArray:
        """Ones."""
        return np.ones(z.shape[0])

    def to_dict(self) -> Description | None:
        """Its fields; scales as an array, which kernels at several lengthscales share in a database."""
        return with_arrays(super().to_dict(), "scales")


@dataclass(frozen=True)
class Matern(Stationary, stored_as="matern"):
    """Matern kernel of smoothness nu = 1/2, 3/2 or 5/2: functions that have 0, 1 or 2 derivatives.

    f(r) = exp(-r);  (1 + a) exp(-a), a = sqrt(3) r;  (1 + a + a^2/3) exp(-a), a = sqrt(5) r.

    >>> Matern(1.5, lengthscale=2.0, relative=False)(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(4).tolist()
    [[1.0, 0.4834]]
    """

    nu: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu!r}")
        object.__setattr__(self, "nu", float(self.nu))

    @property
    def shape_name(self) -> str:
        """Matern 1/2, 3/2 or 5/2."""
        return f"Matern {int(2 * self.nu)}/2"

    def profile(self, squares: FloatArray) -> FloatArray:
        """f(r)."""
        a = np.sqrt(2.0 * self.nu * squares)
        decay = np.exp(-a)
        if self.nu == 0.5:
            return np.asarray(decay)
        return np.asarray((1.0 + a) * decay if self.nu == 1.5 else (1.0 + a * (1.0 + a / 3.0)) * decay)


@dataclass(frozen=True)
class RBF(Stationary, stored_as="rbf"):
    """Gaussian kernel f(r) = exp(-r^2 / 2): functions that have all derivatives, often too smooth for real ones.

    >>> RBF(1.0, relative=False)(np.zeros((1, 1)), np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.6065]]
    """

    lengthscale: float | tuple[float, ...] = 1.0

    @property
    def shape_name(self) -> str:
        """RBF."""
        return "RBF"

    def profile(self, squares: FloatArray) -> FloatArray:
        """f(r)."""
        return np.asarray(np.exp(-0.5 * squares))


def _lengthscale(value: object) -> float | tuple[float, ...]:
    if isinstance(value, Real) or not isinstance(value, Iterable):
        return positive("lengthscale", value)
    out = tuple(positive("lengthscale", scale) for scale in value)
    if not out:
        raise ValueError("lengthscale must be one positive number or one per column, got none")
    return out


def fitted_together(kernels: Sequence[Kernel], x: Rows) -> list[Kernel]:
    """Kernels fitted to the candidates x (N, d); kernels of the distance share what they take from x."""
    found: dict[tuple[bool, bool], Stationary] = {}
    out: list[Kernel] = []
    for kernel in kernels:
        if isinstance(kernel, Stationary) and not kernel.is_fitted and type(kernel).fitted is Stationary.fitted:
            key = (kernel.relative, kernel.standardize)
            if key not in found:
                found[key] = kernel.fitted(x)
            out.append(kernel.replaced(unit=found[key].unit, scales=found[key].scales))
        else:
            out.append(kernel.fitted(x))
    return out
