"""Kernels: how alike two points are. A model is a set of columns and a kernel on them; <x, z> makes it a linear one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import positive
from alexp.problem.descriptions import Description
from alexp.problem.kernels.rows import Rows, blocks, dense, is_sparse, take
from alexp.problem.kernels.steps import Steps


class Kernel(ABC):
    """k(x, z), symmetric and positive semidefinite; instances do not change and are equal by value.

    `a + b`, `a * b` and `2.0 * a` are kernels, and `a.on([0, 2])` is `a` on two of the columns.
    """

    def __call__(self, x: FloatArray, z: Rows) -> FloatArray:
        """k(x_i, z_j), shape (n, m).

        Parameters
        ----------
        x : (n, d) points.
        z : (m, d) rows of a table: any float dtype, memory-mapped, or CSR. Temporary memory is a few blocks of half
            a megabyte, whatever m is.
        """
        points = dense(x)
        if points.ndim != 2 or z.ndim != 2 or points.shape[1] != z.shape[1]:
            raise ValueError(f"a kernel compares points (n, d) and rows (m, d), got {points.shape} and {z.shape}")
        out = np.empty((points.shape[0], z.shape[0]))
        for part, block in blocks(z, points.shape[0]):
            out[:, part] = self.block(points, block)
        return out

    def diagonal(self, x: Rows) -> FloatArray:
        """k(x_i, x_i), shape (n,)."""
        out = np.empty(x.shape[0])
        for part, block in blocks(x):
            out[part] = self.own(block if is_sparse(block) else dense(block))
        return out

    def fitted(self, x: Rows) -> Kernel:
        """The kernel with everything relative resolved on the candidates x (N, d); itself where nothing is."""
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether nothing is left to be resolved on candidates."""
        return True

    @property
    def is_stationary(self) -> bool:
        """Whether k(x, x) = 1 for every x."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name, as in "Matern 5/2, 0.5"."""

    @abstractmethod
    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """k(x_i, z_j) for a block of rows: contiguous in single or double precision, or CSR."""

    @abstractmethod
    def own(self, z: Rows) -> FloatArray:
        """k(z_j, z_j) for a block of rows: contiguous in double precision, or CSR."""

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """The number of the step that computes this kernel on some columns of a table, see `SharedKernels`."""
        return steps.leaf(self, columns, self.block)

    @abstractmethod
    def to_dict(self) -> Description | None:
        """A description from which `kernel_from_dict` rebuilds the kernel; None if it holds code of the user's."""

    def on(self, columns: Sequence[int] | IntArray, label: str | None = None) -> Kernel:
        """This kernel on some of the columns it is given; `label` names them."""
        return Restricted(self, tuple(int(c) for c in columns), label)

    def __add__(self, other: Kernel) -> Kernel:
        return Sum.of(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product.of(self, other) if isinstance(other, Kernel) else Scaled.of(self, other)

    def __rmul__(self, other: float) -> Kernel:
        return Scaled.of(self, other)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Sum(Kernel):
    """k_1 + k_2 + ...: a function that is a sum of one from each."""

    terms: tuple[Kernel, ...]

    @classmethod
    def of(cls, *kernels: Kernel) -> Sum:
        """The sum, with sums among its terms opened."""
        return cls(tuple(k for kernel in kernels for k in (kernel.terms if isinstance(kernel, Sum) else [kernel])))

    def __post_init__(self) -> None:
        _check_parts("a sum", self.terms)

    @property
    def name(self) -> str:
        """Names of the terms, joined."""
        return " + ".join(term.name for term in self.terms)

    @property
    def is_fitted(self) -> bool:
        """Whether all terms are."""
        return all(term.is_fitted for term in self.terms)

    def fitted(self, x: Rows) -> Sum:
        """With fitted terms."""
        return Sum(tuple(term.fitted(x) for term in self.terms))

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """Sum of the terms' blocks."""
        return reduce(np.add, [term.block(x, z) for term in self.terms])

    def own(self, z: Rows) -> FloatArray:
        """Sum of the terms' diagonals."""
        return reduce(np.add, [term.own(z) for term in self.terms])

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """The terms' steps, and one that adds them."""
        return _reduced(np.add, steps, columns, self.terms)

    def to_dict(self) -> Description | None:
        """Its terms."""
        return _described("sum", self.terms)


@dataclass(frozen=True)
class Product(Kernel):
    """k_1 k_2 ...: alike only where alike in every factor. `factors` on the components of a reaction, say."""

    factors: tuple[Kernel, ...]

    @classmethod
    def of(cls, *kernels: Kernel) -> Product:
        """The product, with products among its factors opened."""
        return cls(
            tuple(k for kernel in kernels for k in (kernel.factors if isinstance(kernel, Product) else [kernel]))
        )

    def __post_init__(self) -> None:
        _check_parts("a product", self.factors)

    @property
    def name(self) -> str:
        """Names of the factors, joined; sums in brackets."""
        return " x ".join(f"({f.name})" if isinstance(f, Sum) else f.name for f in self.factors)

    @property
    def is_fitted(self) -> bool:
        """Whether all factors are."""
        return all(factor.is_fitted for factor in self.factors)

    @property
    def is_stationary(self) -> bool:
        """Whether all factors are."""
        return all(factor.is_stationary for factor in self.factors)

    def fitted(self, x: Rows) -> Product:
        """With fitted factors."""
        return Product(tuple(factor.fitted(x) for factor in self.factors))

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """Product of the factors' blocks."""
        return reduce(np.multiply, [factor.block(x, z) for factor in self.factors])

    def own(self, z: Rows) -> FloatArray:
        """Product of the factors' diagonals."""
        return reduce(np.multiply, [factor.own(z) for factor in self.factors])

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """The factors' steps, and one that multiplies them."""
        return _reduced(np.multiply, steps, columns, self.factors)

    def to_dict(self) -> Description | None:
        """Its factors."""
        return _described("product", self.factors)


@dataclass(frozen=True)
class Scaled(Kernel):
    """c k for a positive number c: matters in sums."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        positive("the factor of a kernel", self.factor)

    @classmethod
    def of(cls, kernel: Kernel, factor: object) -> Kernel:
        """c k, with factors of factors multiplied."""
        number = positive("the factor of a kernel", factor)
        if isinstance(kernel, Scaled):
            return cls(kernel.kernel, kernel.factor * number)
        return cls(kernel, number)

    @property
    def name(self) -> str:
        """The factor, then the kernel."""
        inner = f"({self.kernel.name})" if isinstance(self.kernel, Sum) else self.kernel.name
        return f"{self.factor:g} {inner}"

    @property
    def is_fitted(self) -> bool:
        """Whether the kernel is."""
        return self.kernel.is_fitted

    def fitted(self, x: Rows) -> Scaled:
        """With a fitted kernel."""
        return replace(self, kernel=self.kernel.fitted(x))

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """The factor times the kernel's block."""
        return self.factor * self.kernel.block(x, z)

    def own(self, z: Rows) -> FloatArray:
        """The factor times the kernel's diagonal."""
        return self.factor * self.kernel.own(z)

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """The kernel's step, and one that multiplies it."""
        number, factor = self.kernel.plan(steps, columns), self.factor
        return steps.after((number, factor), lambda done: factor * done[number])

    def to_dict(self) -> Description | None:
        """The factor and the kernel."""
        inner = self.kernel.to_dict()
        return None if inner is None else {"kernel": "scaled", "factor": self.factor, "part": inner}


@dataclass(frozen=True)
class Restricted(Kernel):
    """A kernel on some of the columns, see `Kernel.on`."""

    kernel: Kernel
    columns: tuple[int, ...]
    label: str | None = None

    def __post_init__(self) -> None:
        if not self.columns or min(self.columns) < 0 or len(set(self.columns)) < len(self.columns):
            raise ValueError(f"columns of a kernel must be distinct numbers from 0 on, got {list(self.columns)}")

    @cached_property
    def _taken(self) -> IntArray:
        return np.array(self.columns, dtype=np.int64)

    def _take(self, rows: Rows) -> Rows:
        if self._taken.max() >= rows.shape[1]:
            raise ValueError(f"this kernel is on columns {list(self.columns)}, but there are only {rows.shape[1]}")
        return take(rows, self._taken)

    @property
    def name(self) -> str:
        """The kernel and its columns."""
        return f"{self.kernel.name} on {self.label or ', '.join(map(str, self.columns))}"

    @property
    def is_fitted(self) -> bool:
        """Whether the kernel is."""
        return self.kernel.is_fitted

    @property
    def is_stationary(self) -> bool:
        """Whether the kernel is."""
        return self.kernel.is_stationary

    def fitted(self, x: Rows) -> Restricted:
        """With the kernel fitted to its columns."""
        return replace(self, kernel=self.kernel.fitted(self._take(x)))

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """The kernel on its columns."""
        part = self._take(z)
        contiguous = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part
        return self.kernel.block(np.ascontiguousarray(x[:, self._taken]), contiguous)

    def own(self, z: Rows) -> FloatArray:
        """The kernel's diagonal on its columns."""
        return self.kernel.own(self._take(z))

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """The kernel's step on its columns."""
        return self.kernel.plan(steps, columns[self._taken])

    def to_dict(self) -> Description | None:
        """The kernel and its columns."""
        inner = self.kernel.to_dict()
        columns = {"columns": list(self.columns), "label": self.label}
        return None if inner is None else {"kernel": "restricted", "part": inner, **columns}


def _check_parts(what: str, parts: Sequence[object]) -> None:
    if len(parts) < 1 or not all(isinstance(part, Kernel) for part in parts):
        raise TypeError(f"{what} of kernels needs at least one kernel and nothing else, got {list(parts)!r}")


def _described(kind: str, parts: Sequence[Kernel]) -> Description | None:
    described = [part.to_dict() for part in parts]
    return None if None in described else {"kernel": kind, "parts": described}


def _reduced(how: np.ufunc, steps: Steps, columns: IntArray, parts: Sequence[Kernel]) -> int:
    numbers = tuple(part.plan(steps, columns) for part in parts)
    return steps.after((how.__name__, numbers), lambda done: reduce(how, [done[number] for number in numbers]))
