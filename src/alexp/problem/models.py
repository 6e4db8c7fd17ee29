"""ModelClass: a dictionary of P features and M groups of its columns. A model is a set of columns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import comb

import numpy as np

from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.devices import check_device
from alexp.common.validation import check_sizes, count
from alexp.problem.checks import non_empty
from alexp.problem.contextual.blocks import Blocks
from alexp.problem.contextual.constructors import FromContexts
from alexp.problem.contextual.domains import ContextualDomain
from alexp.problem.contextual.maps import ContextMaps, ContextualMap
from alexp.problem.descriptions import Description
from alexp.problem.dictionaries import Dictionary, FeatureMap, Fourier, Legendre, Maps
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.kernels import kernel_from_dict
from alexp.problem.labels import check_labels
from alexp.problem.layout import ANYWHERE, MOST_LISTED
from alexp.problem.storage import dictionary_from_dict
from alexp.problem.tables.blocks import FeatureTable
from alexp.problem.tables.matrices import Matrices


class ModelClass(FromContexts):
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

    # -- constructors ------------------------------------------------------------------------------------------

    @classmethod
    def subsets(
        cls, dictionary: Dictionary, size: int, *, intercept: bool = False, device: str | None = None
    ) -> ModelClass:
        """All C(P, size) models that use exactly `size` columns of the dictionary.

        With `device`, "cuda" or "cpu", they are enumerated there in every round and never listed: a hundred million of
        them take some megabytes, and a step on a GPU some milliseconds. For `EvidenceMixture` with rule "ids" or "ucb";
        what needs a list has one made of up to 50 million.
        """
        p = dictionary.n_columns
        if count("size", size) > p:
            raise ValueError(f"size must be at most the {p} columns of the dictionary, got {size}")
        m = comb(p, size)
        if device is not None:
            return cls._all_subsets(dictionary, size, bool(intercept), check_device(device))
        if m > MOST_LISTED:
            raise ValueError(
                f"{m} models are too many to list; lower size or the number of columns ({p}), or pass device= to have "
                "them enumerated"
            )
        return cls._all_subsets(dictionary, size, bool(intercept), None)

    @classmethod
    def _all_subsets(cls, dictionary: Dictionary, size: int, intercept: bool, device: str | None) -> ModelClass:
        out = cls.__new__(cls)
        out.dictionary, out.intercept, out.subset_size, out.enumerated_on = dictionary, intercept, size, device
        out._names, out._scales = None, None
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
        cls,
        maps: Mapping[str, FeatureMap] | Mapping[str, ContextualMap],
        *,
        contextual: bool = False,
        intercept: bool = False,
        example: object = None,
    ) -> ModelClass:
        """One model per feature map: callables on points, or fitted scikit-learn transformers.

        A callable takes the domain's points, `(n,)` for an Interval, `(n, dim)` for a Box, the table itself for a
        FiniteSet, and returns `(n, d)`. Sizes become known at the first evaluation, or now if `example` points
        are given.

        With `contextual` a callable takes the context and the candidates of a round and returns `(n, d)`, a transformer
        takes the candidates alone, and `example` is a pair (context, candidates) or a list of such pairs.

        >>> maps = {"line": lambda x: x[:, None], "parabola": lambda x: np.stack([x, x**2], axis=1)}
        >>> ModelClass.from_maps(maps, example=np.zeros(1)).n_columns
        3
        """
        dictionary = (ContextMaps if contextual else Maps)(non_empty(maps, "maps"), example)  # type: ignore[arg-type]
        return cls._side_by_side(dictionary, list(maps), intercept)

    @classmethod
    def from_blocks(cls, blocks: Mapping[str, int], *, intercept: bool = False, example: object = None) -> ModelClass:
        """One model per block of columns, for rounds that bring their features along: `ask(features=...)`.

        `blocks` says how many columns each block has; `example` has features of typical candidates, (n, P) or a dict
        of blocks (n, size). Nothing of it is code, so that it can be stored.

        >>> ModelClass.from_blocks({"user": 5, "item": 8, "cross": 40}).n_columns
        53
        """
        return cls._side_by_side(Blocks(blocks, example), list(blocks), intercept)

    @classmethod
    def coordinates(cls, dim: int) -> ModelClass:
        """One model per coordinate of a point of `alexp.Ball(dim)`.

        >>> ModelClass.coordinates(3).names
        ['x0', 'x1', 'x2']
        """
        return cls.from_blocks({f"x{k}": 1 for k in range(count("dim", dim))})

    def __repr__(self) -> str:
        known = hasattr(self, "_offsets") or self.subset_size is not None
        size = f", {self.n_columns} columns" if known else ""
        constant = ", intercept" if self.intercept else ""
        own = 0 if self.kernels is None else sum(kernel is not None for kernel in self.kernels)
        kernels = "" if own == 0 else f", {own} of them kernels"
        return f"ModelClass({_plural(self.n_models, 'model')}{kernels}{size}{constant})"

    # -- evaluation --------------------------------------------------------------------------------------------

    def columns(self, x: Action) -> FloatArray:
        """The dictionary at n points, shape (n, P)."""
        return self.dictionary(x)

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """The dictionary at the n candidates of a round, shape (n, P); contextual models only."""
        if not self.is_contextual:
            raise TypeError("these models know nothing of contexts: their features are those of an action, columns(x)")
        rows: FloatArray = self.dictionary.offered(context, candidates)  # type: ignore[attr-defined]
        return rows

    def features(self, j: int, x: Action) -> FloatArray:
        """phi_j at n points, shape (n, d_j)."""
        if self.kernel(j) is not None:
            raise ValueError(
                f"model {self.names[j]!r} is a kernel: its features are infinitely many or not known; use gram(j, x, z)"
            )
        return np.asarray(self.columns(x)[:, self.groups[j]] / self.scales[j])

    def matrix(self, domain: Domain) -> FloatArray:
        """The dictionary on all candidates of a domain, shape (N, P)."""
        if isinstance(domain, ContextualDomain) or self.is_contextual:
            raise TypeError("contextual rounds have no table of candidates: their features are known in the round only")
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be an Interval, a Box or a FiniteSet, got {type(domain).__name__}")
        if isinstance(self.dictionary, Matrices):
            _check_rows(self.dictionary, domain)
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
        if self.subset_size is None:
            self._layout()
        return columns

    def tables(self, domain: Domain) -> list[FeatureTable]:
        """The same in the pieces it is kept in: large matrices are neither copied nor converted."""
        if not isinstance(self.dictionary, Matrices):
            return [FeatureTable(self.matrix(domain), np.arange(self.n_columns))]
        _check_rows(self.dictionary, domain)
        return self.dictionary.tables

    def head(self, n: int) -> ModelClass:
        """The same models on the first n candidates of feature matrices."""
        if not isinstance(self.dictionary, Matrices):
            raise TypeError("only models made from matrices have a list of candidates")
        out = self.__class__.__new__(self.__class__)
        out.__dict__.update(self.__dict__)
        out.dictionary = self.dictionary.head(n)
        return out

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

    def as_listed(self) -> ModelClass:
        """The same models in a list, where they are enumerated."""
        if self.enumerated_on is None or self.subset_size is None:
            return self
        self.require_list("this")
        return ModelClass.subsets(self.dictionary, self.subset_size, intercept=self.intercept)

    def pooled(self, columns: IntArray) -> ModelClass:
        """The class whose only model has all of these columns, linearly."""
        return ModelClass(self.dictionary, [columns], intercept=self.intercept)

    def normalized(self, domain: Domain) -> ModelClass:
        """The same models with max_x ||phi_j(x)|| = 1 over the domain; the divisors are in `scales`.

        >>> from alexp.problem.domains import Interval
        >>> ModelClass.legendre(2, 2).normalized(Interval()).scales.round(4).tolist()
        [1.4142, 1.4142, 1.4142]
        """
        self.require_list("normalized")
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
        out._scales, out.subset_size, out.enumerated_on = scales, None, None
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
        if self.enumerated_on is not None:
            data["enumerated"] = True  # wherever it is taken up again
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
        if data.get("enumerated"):
            return cls._all_subsets(dictionary, int(data["subset_size"]), bool(data["intercept"]), ANYWHERE)
        if data["subset_size"] is not None:
            return cls.subsets(dictionary, data["subset_size"], intercept=data["intercept"])
        flat, offsets = np.asarray(data["columns"]), np.asarray(data["offsets"])
        groups = [flat[a:b] for a, b in pairwise(offsets)]
        kernels = data.get("kernels")
        out = cls(
            dictionary,
            groups,
            data["names"],
            intercept=data["intercept"],
            scales=data["scales"],
            kernels=None if kernels is None else [None if one is None else kernel_from_dict(one) for one in kernels],
            log_prior=data.get("log_prior"),
            families=data.get("families"),
        )
        if out._log_prior is not None:  # weights that sum to one up to rounding are not divided by that sum again
            stored = np.asarray(data["log_prior"], dtype=np.float64)
            out._log_prior = stored if np.allclose(stored, out._log_prior, rtol=0.0, atol=1e-12) else out._log_prior
        return out


def _check_rows(matrices: Matrices, domain: Domain) -> None:
    if matrices.n_rows != domain.n_candidates:
        raise ValueError(
            f"the feature matrices have {matrices.n_rows} rows but the domain has {domain.n_candidates} candidates; "
            "they must match row by row"
        )
    if matrices.labels is not None and isinstance(domain, FiniteSet):
        check_labels(matrices.labels, domain.candidates)


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
