"""Dictionaries: P scalar features of an action, evaluated together.

A dictionary maps n points to an (n, P) matrix. Everything else (models, Gram matrices, sweeps) works on its
columns, so a feature that many models share is computed and stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import Action, FloatArray
from alexp.common.validation import count, finite, matrix, positive


class Transformer(Protocol):
    """A fitted scikit-learn transformer, or anything with its `transform`."""

    def transform(self, x: Action) -> Any:
        """Features of n points, shape (n, d), dense or sparse."""


FeatureMap = Callable[[Any], Any] | Transformer  # points in the user's own form to features


@runtime_checkable
class Dictionary(Protocol):
    """P named scalar features of a point."""

    @property
    def n_columns(self) -> int:
        """P, the number of features."""

    @property
    def names(self) -> Sequence[str]:
        """One short name per feature."""

    def __call__(self, x: Action) -> FloatArray:
        """Features of n points, shape (n, P)."""

    def to_dict(self) -> dict[str, Any] | None:
        """A JSON-safe description from which the dictionary can be rebuilt, or None if it holds user code."""


def distinct(names: Sequence[str], n: int) -> list[str]:
    """Names as text, n of them, or an error unless all differ."""
    out = [str(name) for name in names]
    if len(out) != n:
        raise ValueError(f"names must have one entry per model ({n}), got {len(out)}")
    if len(set(out)) != len(out):
        twice = next(name for name in out if out.count(name) > 1)
        raise ValueError(f"names must be distinct, {twice!r} is used more than once")
    return out


def _scalars(x: ArrayLike, family: str) -> FloatArray:
    points = matrix(f"x of the {family} dictionary", x)
    if points.shape[1] != 1:
        raise ValueError(
            f"the {family} dictionary is for one-dimensional domains, got points with {points.shape[1]} coordinates; "
            "use Polynomial or RandomFourier for a Box"
        )
    return points[:, 0]


def _points(x: ArrayLike, family: str, dim: int) -> FloatArray:
    points = matrix(f"x of the {family} dictionary", x)
    if points.shape[1] != dim:
        raise ValueError(f"x must have {dim} coordinates per point, got {points.shape[1]}")
    return points


class Legendre:
    """Legendre polynomials P_0, ..., P_degree on [lower, upper] (mapped to [-1, 1]), not normalised.

    >>> Legendre(2)(np.array([-1.0, 0.0, 1.0])).tolist()
    [[1.0, -1.0, 1.0], [1.0, 0.0, -0.5], [1.0, 1.0, 1.0]]
    """

    def __init__(self, degree: int, lower: float = -1.0, upper: float = 1.0) -> None:
        self.degree = count("degree", degree, 0)
        self.lower, self.upper = finite("lower", lower), finite("upper", upper)
        if self.lower >= self.upper:
            raise ValueError(f"lower must be below upper, got [{lower}, {upper}]")
        self.n_columns = self.degree + 1
        self.names = [f"P{i}" for i in range(self.n_columns)]

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Features of n points, shape (n, P), by the three-term recurrence (exactly even or odd in x)."""
        z = (2.0 * _scalars(x, "Legendre") - (self.lower + self.upper)) / (self.upper - self.lower)
        out = np.ones((z.size, self.n_columns))
        if self.degree >= 1:
            out[:, 1] = z
        for k in range(1, self.degree):
            out[:, k + 1] = ((2 * k + 1) * z * out[:, k] - k * out[:, k - 1]) / (k + 1)
        return out

    def check_covers(self, x: ArrayLike) -> None:
        """Raise unless all points lie in [lower, upper]."""
        points = _scalars(x, "Legendre")
        slack = 1e-9 * (self.upper - self.lower)
        if points.size and not (self.lower - slack <= points.min() and points.max() <= self.upper + slack):
            raise ValueError(
                f"these Legendre polynomials live on [{self.lower:g}, {self.upper:g}] and explode outside, but the "
                f"points reach from {points.min():g} to {points.max():g}; pass lower={points.min():g}, "
                f"upper={points.max():g}"
            )

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe description."""
        return {"family": "legendre", "degree": self.degree, "lower": self.lower, "upper": self.upper}


class Fourier:
    """1, cos(w x), sin(w x), ..., cos(f w x), sin(f w x) with w = 2 pi / period.

    >>> Fourier(1, period=4.0)(np.array([0.0, 1.0])).round(12).tolist()
    [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    def __init__(self, frequencies: int, period: float = 2.0) -> None:
        self.frequencies = count("frequencies", frequencies, 0)
        self.period = positive("period", period)
        self.n_columns = 2 * self.frequencies + 1
        self.names = ["1"] + [f"{wave}{k}" for k in range(1, self.frequencies + 1) for wave in ("cos", "sin")]

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Features of n points, shape (n, P)."""
        angle = _scalars(x, "Fourier")[:, None] * (2.0 * np.pi / self.period * np.arange(1, self.frequencies + 1))
        out = np.ones((angle.shape[0], self.n_columns))
        out[:, 1::2], out[:, 2::2] = np.cos(angle), np.sin(angle)
        return out

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe description."""
        return {"family": "fourier", "frequencies": self.frequencies, "period": self.period}


class Polynomial:
    """All monomials of `dim` coordinates up to total degree `degree`, the constant first; P = C(dim + degree, degree).

    >>> Polynomial(2, dim=2).names
    ['1', 'x0', 'x1', 'x0^2', 'x0*x1', 'x1^2']
    """

    def __init__(self, degree: int, dim: int = 1) -> None:
        self.degree, self.dim = count("degree", degree, 0), count("dim", dim)
        self._terms = [term for k in range(degree + 1) for term in combinations_with_replacement(range(dim), k)]
        self.n_columns = len(self._terms)

    @property
    def names(self) -> list[str]:
        """Monomials as text."""

        def text(term: tuple[int, ...]) -> str:
            powers = {i: term.count(i) for i in term}
            return "*".join(f"x{i}" if k == 1 else f"x{i}^{k}" for i, k in powers.items()) or "1"

        return [text(term) for term in self._terms]

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Features of n points, shape (n, P)."""
        points = _points(x, "polynomial", self.dim)
        return np.column_stack([np.prod(points[:, list(term)], axis=1) for term in self._terms])

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe description."""
        return {"family": "polynomial", "degree": self.degree, "dim": self.dim}


class RandomFourier:
    """Random Fourier features of a Gaussian kernel: sqrt(2/P) cos(w_i.x/lengthscale + b_i) (Rahimi & Recht 2007).

    >>> RandomFourier(4, dim=2, seed=0)(np.zeros((3, 2))).shape
    (3, 4)
    """

    def __init__(self, n_features: int, dim: int = 1, lengthscale: float = 1.0, seed: int = 0) -> None:
        self.n_features, self.dim = count("n_features", n_features), count("dim", dim)
        self.lengthscale, self.seed = positive("lengthscale", lengthscale), count("seed", seed, 0)
        rng = np.random.default_rng(self.seed)
        self._weights = rng.standard_normal((self.dim, self.n_features)) / self.lengthscale
        self._phases = rng.uniform(0.0, 2.0 * np.pi, self.n_features)
        self.n_columns = self.n_features
        self.names = [f"rff{i}" for i in range(self.n_features)]

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Features of n points, shape (n, P)."""
        points = _points(x, "random Fourier", self.dim)
        return np.asarray(np.sqrt(2.0 / self.n_features) * np.cos(points @ self._weights + self._phases))

    def curvature(self) -> FloatArray:
        """Largest size of each feature's second derivative in any direction, shape (P,)."""
        return np.asarray(np.sqrt(2.0 / self.n_features) * np.square(self._weights).sum(axis=0))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe description."""
        own = {name: getattr(self, name) for name in ("n_features", "dim", "lengthscale", "seed")}
        return {"family": "random-fourier", **own}


class EvaluatedMaps:
    """Maps side by side, each a callable or a fitted transformer; sizes are known once they have been evaluated."""

    _missing: ClassVar[str]  # what to do where sizes are unknown

    def __init__(self, maps: Mapping[str, Callable[..., Any] | Transformer]) -> None:
        self.maps = {str(name): one for name, one in maps.items()}
        self._sizes: list[int] | None = None
        for name, one in self.maps.items():
            if not (callable(one) or hasattr(one, "transform")):
                raise TypeError(f"map {name!r} must be callable or have .transform, got {type(one).__name__}")

    @property
    def sizes(self) -> list[int]:
        """Number of features of each map."""
        if self._sizes is None:
            raise ValueError(f"the maps have not been evaluated yet, so their sizes are unknown: {self._missing}")
        return self._sizes

    @property
    def n_columns(self) -> int:
        """P, the sum of the maps' output sizes."""
        return sum(self.sizes)

    @property
    def names(self) -> list[str]:
        """map[column]."""
        return [f"{name}[{i}]" for name, d in zip(self.maps, self.sizes, strict=True) for i in range(d)]

    def _evaluated(self, n: int, rows: Callable[[], Any], *arguments: object) -> FloatArray:
        """The maps at n points side by side, (n, P): callables of the arguments, transformers of `rows()`."""
        blocks = []
        for name, one in self.maps.items():
            if hasattr(one, "transform"):
                values = one.transform(rows())
                values = values.toarray() if hasattr(values, "toarray") else values
            else:
                values = one(*arguments)
            blocks.append(matrix(f"output of map {name!r}", values, n))
        sizes = [block.shape[1] for block in blocks]
        if self._sizes is not None and sizes != self._sizes:
            raise ValueError(f"the maps returned {sizes} features now but {self._sizes} before")
        self._sizes = sizes
        return np.hstack(blocks)

    def to_dict(self) -> None:
        """User code is not stored; it must be passed again."""
        return


class Maps(EvaluatedMaps):
    """Feature maps of points, given as Python callables or fitted scikit-learn transformers, side by side.

    How many features a map returns is known once it has been evaluated: at construction when `example` points
    are given, otherwise at the first call.
    """

    _missing = "pass example=points to from_maps, or call models.matrix(domain) first"

    def __init__(self, maps: Mapping[str, FeatureMap], example: object = None) -> None:
        super().__init__(maps)
        if example is not None:
            self(example)

    def __call__(self, x: Action) -> FloatArray:
        """Features of n points, shape (n, P)."""
        is_vector = isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype != object
        return self._evaluated(len(x), lambda: x[:, None] if is_vector else x, x)
