"""ModelClass: a dictionary of P features and M groups of its columns. A model is a set of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from math import comb
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.validation import check_sizes, count
from alexp.problem.descriptions import Description
from alexp.problem.dictionaries import (
    Dictionary,
    FeatureMap,
    Fourier,
    Legendre,
    Maps,
    Matrices,
    Polynomial,
    RandomFourier,
)
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.groups import ColumnGroups, SubsetNames, compress
from alexp.problem.labels import check_labels

_T = TypeVar("_T")


class ModelClass:
    """M candidate feature maps phi_j(x) = dictionary(x)[groups[j]] / scales[j].

    Parameters
    ----------
    dictionary
        P scalar features of a point.
    groups
        One sequence of column numbers per model; groups may overlap and differ in size.
    names
        One distinct name per model; made from the column names if absent.
    intercept
        Give every model a constant that is neither penalised nor counted in its size.
    scales
        Positive divisors of the models' features, shape (M,); see `normalized`.

    >>> models = ModelClass.legendre(degree=10, size=3)
    >>> models.n_models, models.n_columns, models.names[0], models.groups[1].tolist()
    (165, 11, 'P0+P1+P2', [0, 1, 3])
    """

    def __init__(
        self,
        dictionary: Dictionary,
        groups: Sequence[Sequence[int] | IntArray] | AnyArray,
        names: Sequence[str] | None = None,
        *,
        intercept: bool = False,
        scales: ArrayLike | None = None,
    ) -> None:
        self.dictionary, self.intercept = dictionary, bool(intercept)
        self.subset_size: int | None = None  # set when the groups are all subsets of one size, in order
        self._set_groups(*compress(groups, dictionary.n_columns))
        self._names = None if names is None else _distinct(names, self.n_models)
        self._scales = None if scales is None else _positive_vector(scales, self.n_models)

    _dimension: int | None = None  # asked for in every round

    def _set_groups(self, columns: IntArray, offsets: IntArray) -> None:
        self._columns_flat, self._offsets = columns, offsets

    # -- constructors ------------------------------------------------------------------------------------------

    @classmethod
    def subsets(cls, dictionary: Dictionary, size: int, *, intercept: bool = False) -> ModelClass:
        """All C(P, size) models that use exactly `size` columns of the dictionary."""
        p = dictionary.n_columns
        if count("size", size) > p:
            raise ValueError(f"size must be at most the {p} columns of the dictionary, got {size}")
        m = comb(p, size)
        if m > 50_000_000:
            raise ValueError(f"{m} models are too many to list; lower size or the number of columns ({p})")
        flat = np.fromiter((i for group in combinations(range(p), size) for i in group), np.int64, m * size)
        out = cls(dictionary, flat.reshape(m, size), intercept=intercept)
        out.subset_size = size
        return out

    @classmethod
    def legendre(
        cls, degree: int, size: int, *, lower: float = -1.0, upper: float = 1.0, intercept: bool = False
    ) -> ModelClass:
        """The paper's class: all `size`-subsets of the Legendre polynomials P_0..P_degree on [lower, upper]."""
        return cls.subsets(Legendre(degree, lower, upper), size, intercept=intercept)

    @classmethod
    def fourier(cls, frequencies: int, size: int, *, period: float = 2.0, intercept: bool = False) -> ModelClass:
        """All `size`-subsets of 1, cos, sin, ..., up to the given number of frequencies."""
        return cls.subsets(Fourier(frequencies, period), size, intercept=intercept)

    @classmethod
    def from_maps(
        cls, maps: Mapping[str, FeatureMap], *, intercept: bool = False, example: object = None
    ) -> ModelClass:
        """One model per feature map: callables on points, or fitted scikit-learn transformers.

        A callable takes the domain's points, `(n,)` for an Interval, `(n, dim)` for a Box, the table itself for a
        FiniteSet, and returns `(n, d)`. Sizes become known at the first evaluation, or now if `example` points
        are given.

        >>> maps = {"line": lambda x: x[:, None], "parabola": lambda x: np.stack([x, x**2], axis=1)}
        >>> ModelClass.from_maps(maps, example=np.zeros(1)).n_columns
        3
        """
        return cls._side_by_side(Maps(_non_empty(maps, "maps"), example), list(maps), intercept)

    @classmethod
    def from_matrices(cls, matrices: Mapping[str, ArrayLike], *, intercept: bool | None = None) -> ModelClass:
        """One model per feature matrix, (N, d_j) each, for a FiniteSet of N candidates.

        Unlike families that contain a constant, tables have an intercept unless `intercept=False`: measurements have a
        level that no descriptor explains. A constant column in a matrix does no harm beside it.

        >>> ModelClass.from_matrices({"a": np.eye(4), "b": np.ones((4, 2))}).dimension
        4
        """
        dictionary = Matrices(_non_empty(matrices, "matrices"))
        return cls._side_by_side(dictionary, list(matrices), intercept is None or bool(intercept))

    @classmethod
    def _side_by_side(cls, dictionary: Maps | Matrices, names: Sequence[str], intercept: bool) -> ModelClass:
        out = cls.__new__(cls)
        out.dictionary, out.intercept, out.subset_size = dictionary, intercept, None
        out._names, out._scales = _distinct([str(name) for name in names], len(names)), None
        return out

    def __repr__(self) -> str:
        size = "" if not hasattr(self, "_offsets") else f", {self.n_columns} columns"
        constant = ", intercept" if self.intercept else ""
        return f"ModelClass({_plural(self.n_models, 'model')}{size}{constant})"

    # -- shape -------------------------------------------------------------------------------------------------

    def _layout(self) -> tuple[IntArray, IntArray]:
        if not hasattr(self, "_offsets"):  # maps side by side: sizes are known once they have been evaluated
            sizes = np.asarray(self.dictionary.sizes, dtype=np.int64)  # type: ignore[attr-defined]
            if np.any(sizes == 0):
                raise ValueError(f"model {self.names[int(np.argmin(sizes))]!r} has no features")
            self._set_groups(np.arange(sizes.sum()), np.concatenate([[0], np.cumsum(sizes)]))
        return self._columns_flat, self._offsets

    @property
    def columns_flat(self) -> IntArray:
        """Column indices of all models one after the other, shape (sum of sizes,)."""
        return self._layout()[0]

    @property
    def offsets(self) -> IntArray:
        """Model j owns columns_flat[offsets[j]:offsets[j+1]]; shape (M + 1,)."""
        return self._layout()[1]

    @property
    def n_models(self) -> int:
        """M."""
        return len(self._names) if not hasattr(self, "_offsets") and self._names else self.offsets.size - 1

    @property
    def n_columns(self) -> int:
        """P, the size of the dictionary."""
        return self.dictionary.n_columns

    @property
    def dimension(self) -> int:
        """d, the size of the largest model."""
        if self._dimension is None:
            self._dimension = int(np.diff(self.offsets).max())
        return self._dimension

    @property
    def groups(self) -> Sequence[IntArray]:
        """Column indices of each model."""
        return ColumnGroups(*self._layout())

    @property
    def names(self) -> Sequence[str]:
        """One name per model."""
        return (
            self._names
            if self._names is not None
            else SubsetNames(self.dictionary.names, ColumnGroups(*self._layout()))
        )

    @property
    def scales(self) -> FloatArray:
        """What the features of each model are divided by, shape (M,); ones unless normalised."""
        return np.ones(self.n_models) if self._scales is None else self._scales

    # -- evaluation --------------------------------------------------------------------------------------------

    def columns(self, x: Action) -> FloatArray:
        """The dictionary at n points, shape (n, P)."""
        return self.dictionary(x)

    def features(self, j: int, x: Action) -> FloatArray:
        """phi_j at n points, shape (n, d_j)."""
        return np.asarray(self.columns(x)[:, self.groups[j]] / self.scales[j])

    def matrix(self, domain: Domain) -> FloatArray:
        """The dictionary on all candidates of a domain, shape (N, P)."""
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be an Interval, a Box or a FiniteSet, got {type(domain).__name__}")
        if isinstance(self.dictionary, Matrices):
            if self.dictionary.n_rows != domain.n_candidates:
                raise ValueError(
                    f"the feature matrices have {self.dictionary.n_rows} rows but the domain has "
                    f"{domain.n_candidates} candidates; they must match row by row"
                )
            if self.dictionary.labels is not None and isinstance(domain, FiniteSet):
                check_labels(self.dictionary.labels, domain.candidates)
            return self.dictionary.table
        if isinstance(self.dictionary, Legendre):
            self.dictionary.check_covers(domain.points)
        columns = self.columns(domain.points)
        if columns.shape != (domain.n_candidates, self.n_columns) or not np.all(np.isfinite(columns)):
            raise ValueError(
                f"the dictionary must give finite features of shape ({domain.n_candidates}, {self.n_columns}) on "
                f"the domain, got shape {columns.shape}"
            )
        check_sizes("the dictionary", columns)
        self._layout()
        return columns

    def rows(self, domain: Domain, x: Action) -> tuple[FloatArray, bool]:
        """The dictionary at the action(s) `x` of a domain, shape (n, P), and whether `x` was a single action."""
        points, single = domain.batch(x)
        if isinstance(domain, FiniteSet) and not isinstance(self.dictionary, Matrices):
            return self.matrix(domain)[np.asarray(points)], single
        return self.columns(points), single

    def only(self, j: int) -> ModelClass:
        """The class whose only model is model j."""
        return ModelClass(self.dictionary, [self.groups[j]], intercept=self.intercept, scales=[self.scales[j]])

    def pooled(self, columns: IntArray) -> ModelClass:
        """The class whose only model has all of these columns."""
        return ModelClass(self.dictionary, [columns], intercept=self.intercept)

    def normalized(self, domain: Domain) -> ModelClass:
        """The same models with max_x ||phi_j(x)|| = 1 over the domain; the divisors are in `scales`.

        >>> from alexp.problem.domains import Interval
        >>> ModelClass.legendre(2, 2).normalized(Interval()).scales.round(4).tolist()
        [1.4142, 1.4142, 1.4142]
        """
        squares = self.matrix(domain) ** 2
        flat, offsets = self._layout()
        scales = np.array([np.sqrt(squares[:, flat[a:b]].sum(axis=1).max()) for a, b in pairwise(offsets)])
        if np.any(scales == 0.0):
            raise ValueError(f"model {self.names[int(np.argmin(scales))]!r} is zero on the whole domain")
        out = self.__class__.__new__(self.__class__)
        out.__dict__.update(self.__dict__)
        out._scales, out.subset_size = scales, None
        return out

    # -- storage -----------------------------------------------------------------------------------------------

    def to_dict(self) -> Description | None:
        """Description from which `from_dict` rebuilds the class, or None if it holds user code."""
        dictionary = self.dictionary.to_dict()
        if dictionary is None:
            return None
        data: Description = {"dictionary": dictionary, "intercept": self.intercept, "subset_size": self.subset_size}
        if self.subset_size is None:
            data |= {"columns": self.columns_flat, "offsets": self.offsets}
        data["names"] = None if self._names is None else list(self._names)
        data["scales"] = self._scales
        return data

    @classmethod
    def from_dict(cls, data: Description) -> ModelClass:
        """Rebuild a class from what `to_dict` stored."""
        dictionary = dictionary_from_dict(data["dictionary"])
        if data["subset_size"] is not None:
            return cls.subsets(dictionary, data["subset_size"], intercept=data["intercept"])
        flat, offsets = np.asarray(data["columns"]), np.asarray(data["offsets"])
        groups = [flat[a:b] for a, b in pairwise(offsets)]
        return cls(dictionary, groups, data["names"], intercept=data["intercept"], scales=data["scales"])


def dictionary_from_dict(data: Description) -> Dictionary:
    """Rebuild a built-in dictionary from what its `to_dict` stored."""
    families: dict[str, Callable[..., Dictionary]] = {
        "legendre": Legendre,
        "fourier": Fourier,
        "polynomial": Polynomial,
        "random-fourier": RandomFourier,
        "matrices": Matrices.from_table,
    }
    arguments = dict(data)
    family = arguments.pop("family")
    if family not in families:
        raise ValueError(f"unknown family of features {family!r}; known are {sorted(families)}")
    return families[family](**arguments)


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _distinct(names: Sequence[str], n_models: int) -> list[str]:
    out = [str(name) for name in names]
    if len(out) != n_models:
        raise ValueError(f"names must have one entry per model ({n_models}), got {len(out)}")
    if len(set(out)) != len(out):
        twice = next(name for name in out if out.count(name) > 1)
        raise ValueError(f"names must be distinct, {twice!r} is used more than once")
    return out


def _positive_vector(scales: ArrayLike, n_models: int) -> FloatArray:
    vector = np.asarray(scales, dtype=np.float64)
    if vector.shape != (n_models,) or not np.all(np.isfinite(vector)) or np.any(vector <= 0.0):
        raise ValueError(f"scales must be {n_models} positive numbers")
    return vector


def _non_empty(mapping: Mapping[str, _T], name: str) -> Mapping[str, _T]:
    if not isinstance(mapping, Mapping) or not mapping:
        raise ValueError(f"{name} must be a non-empty dict of name -> features, got {mapping!r}")
    return mapping
