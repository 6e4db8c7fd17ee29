"""Kernels: the similarity of two points. A model is a set of columns and a kernel on them; <x, z> is linear."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from inspect import isabstract
from math import exp, inf, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.codec import fingerprint
from alexp.common.extensions import load_installed, stored_name, subclasses
from alexp.common.validation import matrix, positive
from alexp.problem.rows import (
    Rows,
    Scales,
    blocks,
    column_scales,
    column_units,
    dense,
    dense_blocks,
    divided,
    inner,
    is_sparse,
    median_distance,
    reciprocals,
    shifted,
    spread,
    squared_distances,
    squared_norms,
    take,
)

if TYPE_CHECKING:
    from alexp.problem.shared_kernels import Steps

_SYMMETRY = 1e-6  # as a share of the largest entry: what single precision leaves
_TOLERANCE = 1e-8  # of negative eigenvalues, as a share of the largest entry times the size
_LOOKED_AT = 50  # candidates that a function is tried on
_MOST_DECOMPOSED = 2000  # things up to which all eigenvalues are looked at
_PROBES = 6  # candidates that user code is evaluated on


class Kernel(ABC):
    """k(x, z), symmetric and positive semidefinite; instances do not change and are equal by value.

    `a + b`, `a * b` and `2.0 * a` are kernels, and `a.on([0, 2])` is `a` on two of the columns.

    A kernel of your own is one class with `block`; a kernel of the distance is a subclass of `Stationary` with
    `profile`. Two kernels are equal if they have the same class and the same attributes; names do not matter. A frozen
    dataclass of numbers, text, arrays and other kernels is stored by the name of its class and its fields.
    `alexp.testing.check_kernel` checks a kernel.

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
        cls._stored_as = stored_as or stored_name(cls)
        if "__eq__" not in vars(cls):  # a dataclass would compare its fields only and leave out other attributes
            cls.__eq__, cls.__hash__ = Kernel.__eq__, Kernel.__hash__  # type: ignore[method-assign]
        if "block" in vars(cls) and "plan" not in vars(cls):  # an inherited plan would compute another kernel
            cls.plan = Kernel.plan  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> Hashable:
        """The value by which kernels are compared: class and attributes."""
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
            out[part] = self.diagonal_block(block if is_sparse(block) else dense(block))
        return out

    def replaced(self, **changes: object) -> Self:
        """The same kernel with other parameters; other attributes stay."""
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

    def diagonal_block(self, z: Rows) -> FloatArray:
        """k(z_j, z_j) for a block of rows: contiguous in double precision, or CSR; shape (m,)."""
        return np.array([self.block(row[None], row[None])[0, 0] for row in dense(z)])

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """The number of the step that computes this kernel on some columns of a table, see `SharedKernels`."""
        return steps.leaf(self, columns, self.block)

    def to_dict(self) -> dict[str, Any] | None:
        """What `kernel_from_dict` rebuilds the kernel from: class and fields of a dataclass; None for other classes."""
        if not _is_made_from_fields(type(self)):
            return None
        described = {f.name: _described(getattr(self, f.name)) for f in fields(self) if f.init}  # type: ignore[arg-type]
        if any(value is _CODE for value in described.values()):
            return None
        return {"kernel": self._stored_as, "fields": described}

    @classmethod
    def from_fields(cls, described: dict[str, Any]) -> Self:
        """The kernel of this class that has these fields, as `to_dict` described them."""
        if not _is_made_from_fields(cls):
            raise TypeError("it has no fields")
        rebuilt: dict[str, Any] = {name: _rebuilt(value) for name, value in described.items()}
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


# -- combined kernels --------------------------------------------------------------------------------------------


class _Combined(Kernel):
    """Kernels combined entry by entry."""

    _how: ClassVar[np.ufunc]

    @property
    @abstractmethod
    def _parts(self) -> tuple[Kernel, ...]: ...

    def __post_init__(self) -> None:
        if len(self._parts) < 1 or not all(isinstance(part, Kernel) for part in self._parts):
            what = "a sum" if self._how is np.add else "a product"
            raise TypeError(f"{what} of kernels needs at least one kernel and nothing else, got {list(self._parts)!r}")

    @property
    def is_fitted(self) -> bool:
        return all(part.is_fitted for part in self._parts)

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        return self._reduced([part.block(x, z) for part in self._parts])

    def diagonal_block(self, z: Rows) -> FloatArray:
        return self._reduced([part.diagonal_block(z) for part in self._parts])

    def plan(self, steps: Steps, columns: IntArray) -> int:
        numbers = tuple(part.plan(steps, columns) for part in self._parts)
        key = self._how.__name__, numbers
        return steps.after(key, lambda done: self._reduced([done[number] for number in numbers]))

    def _reduced(self, values: Sequence[FloatArray]) -> FloatArray:
        return reduce(self._how, values)


@dataclass(frozen=True)
class Sum(_Combined, stored_as="sum"):
    """k_1 + k_2 + ...: a function that is a sum of one from each."""

    terms: tuple[Kernel, ...]
    _how = np.add

    @classmethod
    def of(cls, *kernels: Kernel) -> Sum:
        """The sum, with sums among its terms opened."""
        return cls(tuple(k for kernel in kernels for k in (kernel.terms if isinstance(kernel, Sum) else [kernel])))

    @property
    def _parts(self) -> tuple[Kernel, ...]:
        return self.terms

    @property
    def name(self) -> str:
        return " + ".join(term.name for term in self.terms)

    def fitted(self, x: Rows) -> Sum:
        return Sum(tuple(term.fitted(x) for term in self.terms))


@dataclass(frozen=True)
class Product(_Combined, stored_as="product"):
    """k_1 k_2 ...: alike only where alike in every factor. `factors` on the components of a reaction, say."""

    factors: tuple[Kernel, ...]
    _how = np.multiply

    @classmethod
    def of(cls, *kernels: Kernel) -> Product:
        """The product, with products among its factors opened."""
        opened = (kernel.factors if isinstance(kernel, Product) else [kernel] for kernel in kernels)
        return cls(tuple(k for factors in opened for k in factors))

    @property
    def _parts(self) -> tuple[Kernel, ...]:
        return self.factors

    @property
    def name(self) -> str:
        return " x ".join(f"({f.name})" if isinstance(f, Sum) else f.name for f in self.factors)

    @property
    def is_stationary(self) -> bool:
        return all(factor.is_stationary for factor in self.factors)

    def fitted(self, x: Rows) -> Product:
        return Product(tuple(factor.fitted(x) for factor in self.factors))


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
        inner = f"({self.kernel.name})" if isinstance(self.kernel, Sum) else self.kernel.name
        return f"{self.factor:g} {inner}"

    @property
    def is_fitted(self) -> bool:
        return self.kernel.is_fitted

    def fitted(self, x: Rows) -> Scaled:
        return self.replaced(kernel=self.kernel.fitted(x))

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        return self.factor * self.kernel.block(x, z)

    def diagonal_block(self, z: Rows) -> FloatArray:
        return self.factor * self.kernel.diagonal_block(z)

    def plan(self, steps: Steps, columns: IntArray) -> int:
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
        return f"{self.kernel.name} on {self.label or ', '.join(map(str, self.columns))}"

    @property
    def is_fitted(self) -> bool:
        return self.kernel.is_fitted

    @property
    def is_stationary(self) -> bool:
        return self.kernel.is_stationary

    def fitted(self, x: Rows) -> Restricted:
        return self.replaced(kernel=self.kernel.fitted(self._take(x)))

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        part = self._take(z)
        contiguous = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part
        return self.kernel.block(np.ascontiguousarray(x[:, self._taken]), contiguous)

    def diagonal_block(self, z: Rows) -> FloatArray:
        return self.kernel.diagonal_block(self._take(z))

    def plan(self, steps: Steps, columns: IntArray) -> int:
        return self.kernel.plan(steps, columns[self._taken])


# -- linear and Tanimoto -----------------------------------------------------------------------------------------


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
    name = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", _checked_scales(self.scales))
        object.__setattr__(self, "means", _checked_means(self.means, self.scales))

    @property
    def is_plain(self) -> bool:
        """Whether this is <x, z> and nothing else."""
        return not self.standardize and self.scales is None

    @property
    def is_fitted(self) -> bool:
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
        return _weights_of(self, self.scales)

    @cached_property
    def _origin(self) -> FloatArray | None:
        return None if self.means is None else np.array(self.means)

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        return inner(dense(shifted(x, self._origin)), shifted(z, self._origin), self._weights)

    def diagonal_block(self, z: Rows) -> FloatArray:
        return squared_norms(divided(shifted(z, self._origin), self._weights))

    def plan(self, steps: Steps, columns: IntArray) -> int:
        return steps.inner(columns, self._weights) if self._origin is None else super().plan(steps, columns)

    def to_dict(self) -> dict[str, Any] | None:
        return _with_arrays(super().to_dict(), "scales", "means")


@dataclass(frozen=True)
class Rising(Linear, stored_as="rising"):
    """`Linear` in one column, with a slope that is more likely positive: what is expected already, see `memory_models`.

    The kernel is that of a slope of either sign. `onepass.regressions.Slope` has what the sign makes of a posterior.
    """

    is_plain = False


@dataclass(frozen=True)
class Tanimoto(Kernel, stored_as="tanimoto"):
    """k(x, z) = <x, z> / (|x|^2 + |z|^2 - <x, z>): shared over present in either, for bits, counts and one-hot rows.

    The denominator is <x, z> + |x - z|^2, so that k(x, x) = 1 exactly; two rows of zeros are equal, k(0, 0) = 1.

    >>> Tanimoto()(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])).round(4).tolist()
    [[0.3333, 1.0]]
    """

    name = "Tanimoto"
    is_stationary = True

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        return _shared_over_either(inner(x, z), squared_distances(x, z))

    def diagonal_block(self, z: Rows) -> FloatArray:
        return np.ones(z.shape[0])

    def plan(self, steps: Steps, columns: IntArray) -> int:
        shared, distances = steps.inner(columns), steps.distances(columns)
        return steps.after(("tanimoto", shared), lambda done: _shared_over_either(done[shared], done[distances]))


def _shared_over_either(shared: FloatArray, distances: FloatArray) -> FloatArray:
    return np.divide(shared, shared + distances, out=np.ones_like(shared), where=distances > 0.0)


# -- kernels of the distance -------------------------------------------------------------------------------------


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
    is_stationary = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _lengthscale(self.lengthscale))
        object.__setattr__(self, "scales", _checked_scales(self.scales))
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
        own = (self.lengthscale,) if isinstance(self.lengthscale, float) else self.lengthscale
        text = "/".join(f"{scale:g}" for scale in own) if len(own) <= 6 else f"{len(own)} lengthscales"
        return f"{self.shape_name}, {text}{'' if self.relative else ' absolute'}"

    @property
    def is_fitted(self) -> bool:
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
        own = _weights_of(self, self.scales)
        if isinstance(self.lengthscale, float):
            return own
        return np.asarray((1.0 if own is None else own) / np.array(self.lengthscale))

    @cached_property
    def _square(self) -> float:
        """What squared distances of the weighted rows are divided by: (l u)^2, or u^2."""
        unit = 1.0 if self.unit is None else self.unit
        return (unit * self.lengthscale if isinstance(self.lengthscale, float) else unit) ** 2

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        own = self._weights
        if own is not None and own.size != x.shape[1]:
            raise ValueError(f"{self.name!r} is for {own.size} columns, got {x.shape[1]}")
        return self.profile(squared_distances(x, z, own) / self._square)

    def plan(self, steps: Steps, columns: IntArray) -> int:
        """Distances, which lengthscales share, and their profile."""
        if self._weights is not None and self._weights.size != columns.size:
            raise ValueError(f"{self.name!r} is for {self._weights.size} columns, got {columns.size}")
        distances = steps.distances(columns, self._weights)
        return steps.after((distances, self), lambda done: self.profile(done[distances] / self._square))

    def diagonal_block(self, z: Rows) -> FloatArray:
        return np.ones(z.shape[0])

    def to_dict(self) -> dict[str, Any] | None:
        """Its fields; scales as an array, which kernels at several lengthscales share in a database."""
        return _with_arrays(super().to_dict(), "scales")


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
        return f"Matern {int(2 * self.nu)}/2"

    def profile(self, squares: FloatArray) -> FloatArray:
        a = np.sqrt(2.0 * self.nu * squares)
        decay = np.exp(-a)
        if self.nu == 0.5:
            return np.asarray(decay)
        return np.asarray((1.0 + a) * decay if self.nu == 1.5 else (1.0 + a * (1.0 + a / 3.0)) * decay)


@dataclass(frozen=True)
class ARD(Matern, stored_as="ard"):
    """Matern 5/2 with a lengthscale per input that is learned from the rewards (automatic relevance determination).

    Inputs are divided by their ranges over the candidates, and log l_k = c + e_k: an `EvidenceMixture` integrates over
    lengthscales and noise by particles, see `estimation/onepass/particles.py`. As a kernel by itself, for algorithms
    that do not learn lengthscales, it has the prior's median for every input, 0.5 exp(sqrt(2)) sqrt(d).

    >>> ARD().fitted(np.array([[0.0, 7.0], [4.0, 9.0]])).scales
    (4.0, 2.0)
    """

    nu: float = 2.5
    name = "Matern 5/2, a lengthscale per input"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu != 2.5 or not self.relative:
            raise ValueError("a kernel with learned lengthscales is Matern 5/2, in units of the candidates' ranges")

    @staticmethod
    def median(d: int) -> float:
        """The prior's median lengthscale of d inputs, in units of their ranges."""
        return 0.5 * exp(sqrt(2.0)) * sqrt(max(d, 1))

    def fitted(self, x: Rows) -> Self:
        """With the columns' ranges over the candidates x (N, d)."""
        if self.is_fitted:
            return self
        varying = np.array(column_scales(x)) > 0.0
        low, high = np.full(x.shape[1], inf), np.full(x.shape[1], -inf)
        for rows in dense_blocks(x):
            low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
        ranges = np.where(varying, high - low, 0.0)
        return self.replaced(scales=tuple(ranges.tolist()), unit=1.0, lengthscale=self.median(int(varying.sum())))

    @property
    def input_weights(self) -> FloatArray:
        """1 / range of each input, (d,), zero for constant ones."""
        return reciprocals(self.scales or ())


@dataclass(frozen=True)
class RBF(Stationary, stored_as="rbf"):
    """Gaussian kernel f(r) = exp(-r^2 / 2): functions that have all derivatives, often too smooth for real ones.

    >>> RBF(1.0, relative=False)(np.zeros((1, 1)), np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.6065]]
    """

    lengthscale: float | tuple[float, ...] = 1.0
    shape_name = "RBF"

    def profile(self, squares: FloatArray) -> FloatArray:
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


# -- scales and means of columns ---------------------------------------------------------------------------------


def _checked_scales(scales: Iterable[float] | None) -> Scales | None:
    """Scales as a tuple, or raise unless they are numbers of zero or more."""
    if scales is None:
        return None
    numbers = tuple(float(s) for s in scales)
    if not numbers or not all(np.isfinite(s) and s >= 0.0 for s in numbers):
        raise ValueError("scales must be one number per column, positive or zero for columns that do not count")
    return numbers


def _checked_means(means: Iterable[float] | None, scales: Scales | None) -> tuple[float, ...] | None:
    """Means as a tuple, or raise unless they are finite numbers, one for each of the scales."""
    if means is None:
        return None
    numbers = tuple(float(m) for m in means)
    if scales is None or len(numbers) != len(scales) or not all(np.isfinite(numbers)):
        raise ValueError("means must be one finite number per column, beside scales")
    return numbers


def _with_arrays(described: dict[str, Any] | None, *names: str) -> dict[str, Any] | None:
    """A description of a kernel with some fields of numbers as arrays."""
    if described is not None:
        numbers = {name: described["fields"][name] for name in names}
        described["fields"] |= {name: np.array(one) for name, one in numbers.items() if one is not None}
    return described


def _weights_of(kernel: Kernel, scales: Scales | None) -> FloatArray | None:
    """What columns are multiplied by, shape (d,); None for ones. Raises where the kernel still has to be fitted."""
    if not kernel.is_fitted:
        raise ValueError(
            f"{kernel.name!r} is relative to the candidates: use kernel.fitted(X) with the (N, d) candidates first"
        )
    return None if scales is None else reciprocals(scales)


# -- user code: a Gram matrix, or a function ---------------------------------------------------------------------


class Precomputed(Kernel, stored_as="precomputed"):
    """The user's own Gram matrix over L things, shape (L, L); the model's only column holds the things' numbers.

    Symmetric and positive semidefinite up to rounding, which is checked; of more than 2,000 things on 2,000 of them.

    >>> Precomputed([[1.0, 0.5], [0.5, 1.0]])(np.array([[1.0]]), np.array([[0.0], [1.0], [1.0]])).tolist()
    [[0.5, 1.0, 1.0]]
    """

    def __init__(self, gram: ArrayLike, label: str = "precomputed") -> None:
        values = matrix("the Gram matrix", gram)
        if values.shape[0] != values.shape[1]:
            raise ValueError(f"the Gram matrix must be square, got shape {values.shape}")
        check_gram("the Gram matrix", values)
        self._gram = 0.5 * (values + values.T)
        self._gram.flags.writeable = False
        self._label = str(label)

    @property
    def gram(self) -> FloatArray:
        """K, shape (L, L)."""
        return self._gram

    @property
    def name(self) -> str:
        return self._label

    @cached_property
    def _key(self) -> str:
        return fingerprint(self._gram)

    def _attributes(self) -> dict[str, object]:
        return super()._attributes() | {"_gram": self._key}  # a large matrix is hashed once

    def __repr__(self) -> str:
        return f"Precomputed({self._gram.shape[0]} x {self._gram.shape[0]}, {self._label!r})"

    def _numbers(self, rows: Rows) -> IntArray:
        if rows.shape[1] != 1:
            raise ValueError(f"a Gram matrix is looked up by one column of numbers, got {rows.shape[1]} columns")
        values = dense(rows)[:, 0]
        numbers = values.astype(np.int64)
        if np.any(numbers != values) or (numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self._gram)):
            raise ValueError(f"the numbers of the things must be whole and within 0..{len(self._gram) - 1}")
        return numbers

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        return self._gram[self._numbers(x)[:, None], self._numbers(z)]

    def diagonal_block(self, z: Rows) -> FloatArray:
        return np.asarray(self._gram.diagonal()[self._numbers(z)])

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": self._stored_as, "fields": {"gram": self._gram, "label": self._label}}

    @classmethod
    def from_fields(cls, described: dict[str, Any]) -> Self:
        return cls(**described)


class Function(Kernel, stored_as="function"):
    """A function of the user's own, k(X, Z) -> matrix of shape (n, m), for X (n, d) and Z (m, d).

    Like feature maps it is code of the user's own, which is never stored: a study needs the models again. `label` names
    it.
    """

    def __init__(self, function: Callable[[AnyArray, AnyArray], ArrayLike], label: str | None = None) -> None:
        if not callable(function):
            raise TypeError(f"a kernel of your own must be callable as k(X, Z), got {type(function).__name__}")
        self.function = function
        self._label = label or str(getattr(function, "__name__", type(function).__name__)).strip("<>")

    @property
    def name(self) -> str:
        return self._label

    def __repr__(self) -> str:
        return f"Function({self._label})"

    def fitted(self, x: Rows) -> Function:
        """The kernel itself, after checking it on some of the candidates."""
        some = dense(x[spread(x.shape[0], _LOOKED_AT)])
        check_gram(f"what kernel {self._label!r} gives for some candidates", self.block(some, some))
        return self

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        parts = [_matrix_of(self.function(x, part), (len(x), len(part)), self._label) for part in dense_blocks(z)]
        return np.hstack(parts) if len(parts) > 1 else parts[0]


def _matrix_of(values: ArrayLike, shape: tuple[int, int], label: str) -> FloatArray:
    """The result of a user's kernel; raises unless it is a finite matrix of this shape."""
    out = np.asarray(values, dtype=np.float64)
    if out.shape != shape:
        raise ValueError(f"kernel {label!r} must return shape {shape} for k(X, Z), got {out.shape}")
    if not np.all(np.isfinite(out)):
        raise ValueError(f"kernel {label!r} returned a number that is not finite")
    return out


def check_gram(what: str, values: FloatArray) -> None:
    """Raise unless a square matrix is symmetric and positive semidefinite up to rounding, and not zero."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        raise ValueError(f"{what} must not be zero everywhere")
    if float(np.abs(values - values.T).max()) > _SYMMETRY * largest:
        raise ValueError(f"{what} must be symmetric, K[i, k] = K[k, i]")
    part = values[:_MOST_DECOMPOSED, :_MOST_DECOMPOSED]
    lowest = float(np.linalg.eigvalsh(part)[0])
    if lowest < -_TOLERANCE * largest * part.shape[0]:
        raise ValueError(
            f"{what} must be positive semidefinite, its smallest eigenvalue is {lowest:.3g}; similarities become a "
            "kernel when negative eigenvalues are set to zero, or by K @ K"
        )


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
    return {kind._stored_as: kind for kind in subclasses(Kernel) if not isabstract(kind)}


def kernel_from_dict(data: object) -> Kernel:
    """Rebuild a kernel from what its `to_dict` stored; nothing is imported but what installed packages announce."""
    kind = data.get("kernel") if isinstance(data, Mapping) else None
    known = kernel_classes()
    if isinstance(kind, str) and "." in kind and kind not in known:
        load_installed()
        known = kernel_classes()
    if not isinstance(kind, str) or kind not in known:
        remedy = "; import the module that defines it first" if isinstance(kind, str) and "." in kind else ""
        raise ValueError(f"unknown kind of kernel {kind!r}{remedy}; known are {', '.join(known)}")
    assert isinstance(data, Mapping)
    try:
        return known[kind].from_fields(data["fields"])
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the stored kernel {kind!r} is damaged: {error}") from error


# -- signatures, to compare kernels with stored ones -------------------------------------------------------------


class KernelSignature(NamedTuple):
    """The kinds of kernels as text, and their numbers one after the other.

    On another machine or library version a median may differ in its last bit: the numbers are then close, not equal. An
    array is represented by two fixed linear combinations along its last axis.
    """

    kinds: str
    numbers: FloatArray


def kernel_signature(kernels: Sequence[Kernel | None], groups: Sequence[IntArray], table: Rows) -> KernelSignature:
    """The signature of the kernels of all models, on the candidates' rows (N, P)."""
    kinds: list[str] = []
    numbers: list[FloatArray] = []
    rows = table[spread(table.shape[0], _PROBES)]
    for kernel, group in zip(kernels, groups, strict=True):
        described = None if kernel is None else kernel.to_dict()
        if kernel is not None and (described is None or _names_code(described)):
            some = dense(take(rows, group))
            described = {"kernel": described or type(kernel).__name__, "values": kernel(some, some).ravel()}
        for path, value in _walk(described):
            kinds.append(path)
            if value is not None:
                numbers.append(value)
    return KernelSignature("\n".join(kinds), np.concatenate([np.empty(0), *numbers]))


def _names_code(described: object) -> bool:
    """Whether a description names a class of the user's, module and all, anywhere in it."""
    if isinstance(described, Mapping):
        return "." in str(described.get("kernel", "")) or any(_names_code(item) for item in described.values())
    return isinstance(described, list) and any(_names_code(item) for item in described)


def _walk(value: object, path: str = "") -> Iterator[tuple[str, FloatArray | None]]:
    """What a description says, in order of its keys: words with their places, and numbers."""
    if isinstance(value, Mapping):
        for key, item in sorted(value.items()):
            yield from _walk(item, f"{path}.{key}")
    elif isinstance(value, list | tuple) and not (value and all(isinstance(item, float) for item in value)):
        for k, item in enumerate(value):
            yield from _walk(item, f"{path}[{k}]")
    elif isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value, dtype=np.float64)
        yield f"{path}: {array.shape}", (array @ directions(array.shape[-1])).ravel()
    elif isinstance(value, float):
        yield path, np.array([value])
    else:
        yield f"{path}: {value}", None


def directions(size: int) -> FloatArray:
    """Two fixed directions without symmetry, shape (size, 2), from formulas that no library version changes."""
    k = np.arange(1, size + 1, dtype=np.float64)
    return np.stack([np.cos(0.7 * k) + 1.5, np.sin(1.3 * k + 0.2) - 1.5], axis=1)
