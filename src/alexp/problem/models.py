"""ModelClass: a dictionary of P features and M groups of its columns. A model is a set of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.validation import count
from alexp.problem.checks import checked_kernels, distinct, non_empty, normalised, positive_vector, whole_vector
from alexp.problem.descriptions import Description
from alexp.problem.dictionaries import Dictionary, FeatureMap, Fourier, Legendre, Maps, Matrices
from alexp.problem.domains import Box, Domain, FiniteSet, Interval
from alexp.problem.groups import compress
from alexp.problem.inputs import as_choice, input_columns
from alexp.problem.kernels import Kernel, Matern, Precomputed, kernel_from_dict
from alexp.problem.kernels.choosing import LINEAR, KernelChoice, KernelModels, kernel_models
from alexp.problem.kernels.subsets import subset_models
from alexp.problem.labels import check_labels
from alexp.problem.layout import Layout
from alexp.problem.storage import dictionary_from_dict


class ModelClass(Layout):
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
    kernels
        One kernel per model on the columns of its group, or None where the model is linear, <phi_j(x), phi_j(z)>.
        Kernels are fitted to the candidates, see `Kernel.fitted`.
    log_prior
        Logarithms of prior weights, shape (M,), up to a constant.
    families
        The number of the map that each model belongs to, shape (M,).

    Attributes
    ----------
    kernels : tuple of M kernels, None in place of linear ones; None if all models are linear.

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
        kernels: Sequence[Kernel | None] | None = None,
        log_prior: ArrayLike | None = None,
        families: ArrayLike | None = None,
    ) -> None:
        self.dictionary, self.intercept = dictionary, bool(intercept)
        self.subset_size: int | None = None  # set when the groups are all subsets of one size, in order
        self._set_groups(*compress(groups, dictionary.n_columns))
        self._names = None if names is None else distinct(names, self.n_models)
        self._scales = None if scales is None else positive_vector(scales, self.n_models)
        self.kernels = None if kernels is None else checked_kernels(kernels, self.n_models)
        self._log_prior = None if log_prior is None else normalised(log_prior, self.n_models)
        self._families = None if families is None else whole_vector(families, self.n_models)

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
        return cls._side_by_side(Maps(non_empty(maps, "maps"), example), list(maps), intercept)

    @classmethod
    def from_matrices(
        cls,
        matrices: Mapping[str, ArrayLike | Precomputed],
        *,
        kernels: KernelChoice = LINEAR,
        intercept: bool | None = None,
    ) -> ModelClass:
        """One model per feature matrix, (N, d_j) each, and kernel, for a FiniteSet of N candidates.

        Unlike families that contain a constant, tables have an intercept unless `intercept=False`: measurements have a
        level that no descriptor explains. A constant column in a matrix does no harm beside it.

        `kernels` is "linear"; "auto", which looks at each matrix (linear and Tanimoto for bits, one-hot rows and
        counts; linear and Matern 5/2 at four lengthscales on standardised columns for descriptors; for several
        matrices also the sum of all kernels); a kernel; or {name: kernel or list of kernels}. Every matrix has the same
        prior mass, divided equally among its kernels: see `log_prior`. In place of a matrix there may be a kernel
        `Precomputed(K)` over the candidates.

        >>> models = ModelClass.from_matrices({"a": np.eye(4), "b": np.ones((4, 2))})
        >>> models.dimension, ModelClass.from_matrices({"bits": np.eye(4)}, kernels="auto").names
        (4, ['bits: linear', 'bits: Tanimoto'])
        """
        constant = intercept is None or bool(intercept)
        given = as_choice(non_empty(matrices, "matrices"), kernels)
        dictionary = Matrices(given.matrices)
        if given.kernels == LINEAR:
            return cls._side_by_side(dictionary, list(matrices), constant)
        edges = [0, *np.cumsum(dictionary.sizes).tolist()]
        blocks = {str(name): dictionary.table[:, a:b] for name, (a, b) in zip(matrices, pairwise(edges), strict=True)}
        return cls._from_kernels(dictionary, kernel_models(blocks, given.kernels), constant)

    @classmethod
    def from_inputs(
        cls,
        inputs: ArrayLike | Box | Interval,
        kernel: Kernel | None = None,
        *,
        subsets: bool = True,
        lengthscales: Sequence[float] | None = (0.35, 0.7, 1.4),
        max_size: int | None = None,
        intercept: bool = True,
    ) -> ModelClass:
        """A kernel on every subset of the inputs: which inputs matter is found out like any other question of models.

        Parameters
        ----------
        inputs : (N, d), one row per candidate of a FiniteSet, or a Box or Interval. Columns of a DataFrame name them.
        kernel : Matern() by default; at each of `lengthscales`, in units of the median distance, if it has one.
        subsets : False for one model per lengthscale on all inputs.
        max_size : inputs in the largest subset. By default all subsets, if they make at most 4,096 models (ten inputs
            at three lengthscales); otherwise subsets up to the size that fits, and all inputs together, with a warning.

        The prior is uniform over sizes of subsets, then over subsets of a size, then over lengthscales.

        >>> models = ModelClass.from_inputs(np.arange(12.0).reshape(4, 3) ** 2)
        >>> models.n_models, models.names[-1], round(float(np.exp(models.log_prior).sum()), 9)
        (21, 'x0+x1+x2: Matern 5/2, 1.4', 1.0)
        """
        dictionary, values, first = input_columns(inputs)
        names = list(dictionary.names)[first:]
        made = subset_models(values, names, kernel or Matern(), subsets, lengthscales, max_size, first)
        return cls._from_kernels(dictionary, made, bool(intercept))

    @classmethod
    def _from_kernels(cls, dictionary: Dictionary, made: KernelModels, intercept: bool) -> ModelClass:
        return cls(
            dictionary,
            made.groups,
            made.names,
            intercept=intercept,
            kernels=made.kernels,
            log_prior=made.log_prior,
            families=made.families,
        )

    @classmethod
    def _side_by_side(cls, dictionary: Maps | Matrices, names: Sequence[str], intercept: bool) -> ModelClass:
        out = cls.__new__(cls)
        out.dictionary, out.intercept, out.subset_size = dictionary, intercept, None
        out._names, out._scales = distinct([str(name) for name in names], len(names)), None
        return out

    def __repr__(self) -> str:
        size = "" if not hasattr(self, "_offsets") else f", {self.n_columns} columns"
        constant = ", intercept" if self.intercept else ""
        return f"ModelClass({_plural(self.n_models, 'model')}{size}{constant})"

    # -- evaluation --------------------------------------------------------------------------------------------

    def columns(self, x: Action) -> FloatArray:
        """The dictionary at n points, shape (n, P)."""
        return self.dictionary(x)

    def features(self, j: int, x: Action) -> FloatArray:
        """phi_j at n points, shape (n, d_j)."""
        if self.kernel(j) is not None:
            raise ValueError(
                f"model {self.names[j]!r} is a kernel: its features are infinitely many or not known; use gram(j, x, z)"
            )
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
        return ModelClass(
            self.dictionary,
            [self.groups[j]],
            None if self.kernels is None else [self.names[j]],
            intercept=self.intercept,
            scales=[self.scales[j]],
            kernels=[self.kernel(j)],
        )

    def pooled(self, columns: IntArray) -> ModelClass:
        """The class whose only model has all of these columns, linearly."""
        return ModelClass(self.dictionary, [columns], intercept=self.intercept)

    def normalized(self, domain: Domain) -> ModelClass:
        """The same models with max_x ||phi_j(x)|| = 1 over the domain; the divisors are in `scales`.

        >>> from alexp.problem.domains import Interval
        >>> ModelClass.legendre(2, 2).normalized(Interval()).scales.round(4).tolist()
        [1.4142, 1.4142, 1.4142]
        """
        columns = self.matrix(domain)
        squares = columns**2
        flat, offsets = self._layout()
        scales = np.array([np.sqrt(squares[:, flat[a:b]].sum(axis=1).max()) for a, b in pairwise(offsets)])
        for j in [j for j, kernel in enumerate(self.kernels or ()) if kernel is not None]:
            scales[j] = self.scales[j] * np.sqrt(self.variances(j, columns).max())
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
        if self.kernels is not None:
            described = [None if kernel is None else kernel.to_dict() for kernel in self.kernels]
            if any(d is None and kernel is not None for d, kernel in zip(described, self.kernels, strict=True)):
                return None
            data["kernels"] = described
        if self._log_prior is not None:
            data["log_prior"] = self._log_prior
        if self._families is not None:
            data["families"] = self._families
        return data

    @classmethod
    def from_dict(cls, data: Description) -> ModelClass:
        """Rebuild a class from what `to_dict` stored."""
        dictionary = dictionary_from_dict(data["dictionary"])
        if data["subset_size"] is not None:
            return cls.subsets(dictionary, data["subset_size"], intercept=data["intercept"])
        flat, offsets = np.asarray(data["columns"]), np.asarray(data["offsets"])
        groups = [flat[a:b] for a, b in pairwise(offsets)]
        kernels = data.get("kernels")
        return cls(
            dictionary,
            groups,
            data["names"],
            intercept=data["intercept"],
            scales=data["scales"],
            kernels=None if kernels is None else [None if one is None else kernel_from_dict(one) for one in kernels],
            log_prior=data.get("log_prior"),
            families=data.get("families"),
        )


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
