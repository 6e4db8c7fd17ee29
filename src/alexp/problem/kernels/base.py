"""Kernels: how alike two points are. A model is a set of columns and a kernel on them; <x, z> makes it a linear one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from inspect import isabstract
from typing import ClassVar, Self

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import fingerprint
from alexp.common.validation import positive
from alexp.problem.descriptions import Description
from alexp.problem.kernels.rows import Rows, blocks, dense, is_sparse, take
from alexp.problem.kernels.steps import Steps


class Kernel(ABC):
    """k(x, z), symmetric and positive semidefinite; instances do not change and are equal by value.

    `a + b`, `a * b` and `2.0 * a` are kernels, and `a.on([0, 2])` is `a` on two of the columns.

    A kernel of one's own is a subclass with `block`; a kernel of the distance is a subclass of `Stationary` with
    `profile`. Two kernels are equal if they have the same class and the same attributes; names do not matter. A frozen
    dataclass of numbers, text, arrays and other kernels is also stored: by the name of its class and its fields.
    `alexp.testing.check_kernel` checks one.

    >>> @dataclass(frozen=True)
    ... class Cosine(Kernel):
    ...     period: float = 1.0
    ...
    ...     def block(self, x, z):
    ...         return np.cos(2.0 * np.pi / self.period * (x[:, :1] - z[:, 0]))
    >>> Cosine(2.0).name, Cosine(2.0) == Cosine(2.0), Cosine(2.0) == Cosine(3.0)
    ('Cosine period=2', True, False)
    """

    _stored_as: ClassVar[str]  # the name of the class in what is stored

    def __init_subclass__(cls, stored_as: str | None = None) -> None:
        super().__init_subclass__()
        cls._stored_as = stored_as or f"{cls.__module__}.{cls.__qualname__}"
        if "__eq__" not in vars(cls):  # a dataclass would compare its fields only and leave out other attributes
            cls.__eq__, cls.__hash__ = Kernel.__eq__, Kernel.__hash__  # type: ignore[method-assign]
        if "block" in vars(cls) and "plan" not in vars(cls):  # an inherited plan would compute another kernel
            cls.plan = Kernel.plan  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> Hashable:
        """What the kernel is compared by: its class and its attributes."""
        return type(self), tuple((name, _hashable(value)) for name, value in sorted(self._attributes().items()))

    def _attributes(self) -> dict[str, object]:
        """What the instance holds, by name, without cached properties."""
        state = object.__getstate__(self)
        parts = state if isinstance(state, tuple) else (state,)  # a second part has slots
        held: dict[str, object] = {name: value for part in parts for name, value in (part or {}).items()}
        return {k: v for k, v in held.items() if not isinstance(getattr(type(self), k, None), cached_property)}

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

    def replaced(self, **changes: object) -> Self:
        """The same kernel with other parameters; whatever else an instance holds stays, of a dataclass or not."""
        out = copy(self)
        for name in set(vars(self)) - set(self._attributes()):
            del vars(out)[name]  # cached
        for name, value in changes.items():
            object.__setattr__(out, name, value)
        if (check := getattr(out, "__post_init__", None)) is not None:
            check()
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
    def name(self) -> str:
        """A short name to display, as in "Matern 5/2, 0.5"; by default the class and its parameters."""
        return self._title()

    def _title(self, known: Sequence[str] = ()) -> str:
        """The name of the class, and numbers and text among its attributes that are not `known`."""
        words = [type(self).__name__]
        for key, value in self._attributes().items():
            if key not in known and isinstance(value, int | float | str):
                words.append(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}")
        return " ".join(words)

    @abstractmethod
    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """k(x_i, z_j) for points (n, d) and a block of rows: contiguous in single or double precision, or CSR."""

    def own(self, z: Rows) -> FloatArray:
        """k(z_j, z_j) for a block of rows: contiguous in double precision, or CSR."""
        return np.array([self.block(row[None], row[None])[0, 0] for row in dense(z)])

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """The number of the step that computes this kernel on some columns of a table, see `SharedKernels`."""
        return steps.leaf(self, columns, self.block)

    def to_dict(self) -> Description | None:
        """A description from which `kernel_from_dict` rebuilds the kernel; None if it holds code of the user's.

        The name of the class and its fields if it is a dataclass; None for all others.
        """
        if not _is_made_from_fields(type(self)):
            return None
        described = {f.name: _described(getattr(self, f.name)) for f in fields(self) if f.init}  # type: ignore[arg-type]
        if any(value is _CODE for value in described.values()):
            return None
        return {"kernel": self._stored_as, "fields": described}

    @classmethod
    def from_fields(cls, described: Description) -> Self:
        """The kernel of this class that has these fields, as `to_dict` described them."""
        if not _is_made_from_fields(cls):
            raise TypeError("it has no fields")
        rebuilt: Description = {name: _rebuilt(value) for name, value in described.items()}
        return cls(**rebuilt)

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
class Sum(Kernel, stored_as="sum"):
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


@dataclass(frozen=True)
class Product(Kernel, stored_as="product"):
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


@dataclass(frozen=True)
class Scaled(Kernel, stored_as="scaled"):
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
        return self.replaced(kernel=self.kernel.fitted(x))

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


@dataclass(frozen=True)
class Restricted(Kernel, stored_as="restricted"):
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
        return self.replaced(kernel=self.kernel.fitted(self._take(x)))

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


def _check_parts(what: str, parts: Sequence[object]) -> None:
    if len(parts) < 1 or not all(isinstance(part, Kernel) for part in parts):
        raise TypeError(f"{what} of kernels needs at least one kernel and nothing else, got {list(parts)!r}")


def _reduced(how: np.ufunc, steps: Steps, columns: IntArray, parts: Sequence[Kernel]) -> int:
    numbers = tuple(part.plan(steps, columns) for part in parts)
    return steps.after((how.__name__, numbers), lambda done: reduce(how, [done[number] for number in numbers]))


def _hashable(value: object) -> Hashable:
    """An attribute as something with a hash: arrays by their content, other objects without a hash by identity."""
    if isinstance(value, np.ndarray):
        return "array", fingerprint(value)
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, Mapping):
        return tuple((_hashable(key), _hashable(item)) for key, item in value.items())
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return value


# -- storage ---------------------------------------------------------------------------------------------------

_CODE = object()  # in place of a value that is not stored


def _is_made_from_fields(kind: type) -> bool:
    """Whether a class is constructed by the fields of a dataclass, and not by an `__init__` of another subclass."""
    return next("__dataclass_fields__" in vars(cls) for cls in kind.__mro__ if "__init__" in vars(cls))


def _described(value: object) -> object:
    """A field as it is stored: numbers, text and arrays as they are, tuples as lists, kernels by their fields."""
    if isinstance(value, Kernel):
        described = value.to_dict()
        return _CODE if described is None else described
    if isinstance(value, list | tuple):
        parts = [_described(item) for item in value]
        return _CODE if any(part is _CODE for part in parts) else parts
    if value is None or isinstance(value, bool | int | float | str | np.ndarray):
        return value
    return value.item() if isinstance(value, np.generic) else _CODE


def _rebuilt(value: object) -> object:
    """Invert `_described`."""
    if isinstance(value, Mapping):
        return kernel_from_dict(value)
    return tuple(_rebuilt(item) for item in value) if isinstance(value, list | tuple) else value


def kernel_classes() -> dict[str, type[Kernel]]:
    """All classes of kernels that are imported, by the name under which they are stored; of two the later."""
    found: dict[str, type[Kernel]] = {}
    waiting: list[type[Kernel]] = [Kernel]
    while waiting:
        kinds = waiting.pop(0).__subclasses__()
        found |= {kind._stored_as: kind for kind in kinds if not isabstract(kind)}
        waiting += kinds
    return found


def kernel_from_dict(data: object) -> Kernel:
    """Rebuild a kernel from what its `to_dict` stored. Nothing is imported: its class must be."""
    kind = data.get("kernel") if isinstance(data, Mapping) else None
    known = kernel_classes()
    if not isinstance(kind, str) or kind not in known:
        remedy = "; import the module that defines it first" if isinstance(kind, str) and "." in kind else ""
        raise ValueError(f"unknown kind of kernel {kind!r}{remedy}; known are {', '.join(known)}")
    assert isinstance(data, Mapping)
    try:
        return known[kind].from_fields(data["fields"])
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"what was stored of a kernel {kind!r} is damaged: {error}") from error
