"""Where the columns of each model are, what models are called, and what kernels they have on their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.problem.checks import checked_kernels, distinct, normalised, positive_vector, whole_vector
from alexp.problem.dictionaries import Dictionary
from alexp.problem.groups import AllSubsets, ColumnGroups, SubsetNames, compress
from alexp.problem.kernels import Kernel, Linear
from alexp.problem.kernels.recognising import Marks, marks
from alexp.problem.kernels.rows import Rows, dense, take

MOST_LISTED = 50_000_000  # models
ANYWHERE = "any"  # in place of a device: a GPU if there is one


class Layout:
    """M groups of the columns of a dictionary, with names, scales, kernels and prior weights."""

    dictionary: Dictionary
    intercept: bool
    subset_size: int | None  # where groups are all subsets of one size, in order, which are listed when first needed
    _names: list[str] | None
    _scales: FloatArray | None
    _dimension: int | None = None  # asked for in every round
    kernels: tuple[Kernel | None, ...] | None = None
    _log_prior: FloatArray | None = None
    _families: IntArray | None = None
    enumerated_on: str | None = None  # the device that makes all subsets in every round; None where they are listed

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
        self.subset_size = None
        self._set_groups(*compress(groups, dictionary.n_columns))
        self._names = None if names is None else distinct(names, self.n_models)
        self._scales = None if scales is None else positive_vector(scales, self.n_models)
        self.kernels = None if kernels is None else checked_kernels(kernels, self.n_models)
        self._log_prior = None if log_prior is None else normalised(log_prior, self.n_models)
        self._families = None if families is None else whole_vector(families, self.n_models)

    def _set_groups(self, columns: IntArray, offsets: IntArray) -> None:
        self._columns_flat, self._offsets = columns, offsets

    def _layout(self) -> tuple[IntArray, IntArray]:
        if not hasattr(self, "_offsets") and self.subset_size is not None:
            self.require_list("this")
            self._set_groups(*compress(self._subsets.listed(), self.n_columns))
        if not hasattr(self, "_offsets") and (groups := getattr(self.dictionary, "groups", None)) is not None:
            self._set_groups(*compress(groups, self.dictionary.n_columns))
        elif not hasattr(self, "_offsets"):  # maps side by side: sizes are known once they have been evaluated
            sizes = np.asarray(self.dictionary.sizes, dtype=np.int64)  # type: ignore[attr-defined]
            if np.any(sizes == 0):
                raise ValueError(f"model {self.names[int(np.argmin(sizes))]!r} has no features")
            self._set_groups(np.arange(sizes.sum()), np.concatenate([[0], np.cumsum(sizes)]))
        return self._columns_flat, self._offsets

    @property
    def device(self) -> str | None:
        """What the features are computed with on, if that is a device: "cpu", or the name of a card."""
        place = getattr(self.dictionary, "place", None)
        return None if place is None else str(place.mark)

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
        if self.subset_size is not None:
            return len(self._subsets)
        return len(self._names) if not hasattr(self, "_offsets") and self._names else self.offsets.size - 1

    @property
    def _subsets(self) -> AllSubsets:
        assert self.subset_size is not None
        return AllSubsets(self.n_columns, self.subset_size)

    @property
    def is_listable(self) -> bool:
        """Whether there may be an array with something for every model."""
        return self.enumerated_on is None or self.n_models <= MOST_LISTED

    def require_list(self, who: str) -> None:
        """Raise if `who` needs all models one by one and they are too many to list."""
        if not self.is_listable:
            raise ValueError(
                f"{who} needs a list of the models, and {self.n_models} subsets are enumerated, never listed: "
                'EvidenceMixture takes them with rule="ids" or "ucb", and likeliest(n) names the most probable ones'
            )

    @property
    def listing(self) -> list[AnyArray]:
        """What the groups are recognised by, and their scales."""
        if self.enumerated_on is not None:
            return [np.array([self.n_columns, self._subsets.size]), np.ones(1)]
        return [self.columns_flat, self.offsets, self.scales]

    @property
    def n_columns(self) -> int:
        """P, the size of the dictionary."""
        return self.dictionary.n_columns

    @property
    def is_contextual(self) -> bool:
        """Whether features belong to the candidates of a round, see `alexp.problem.contextual`."""
        return hasattr(type(self.dictionary), "offered")

    @property
    def awaits_round(self) -> bool:
        """Whether contextual maps have not been evaluated yet, so that nobody knows how many features there are."""
        return bool(getattr(self.dictionary, "awaits_round", False))

    @property
    def example_rows(self) -> FloatArray | None:
        """The dictionary at the example that contextual models were given, (E, P); None if they were given none."""
        return getattr(self.dictionary, "example_rows", None)

    @property
    def marks(self) -> FloatArray:
        """Rows that contextual models are recognised by, (E, P): those of all they were given as an example."""
        known = getattr(self.dictionary, "marks", self.example_rows)
        return np.empty((0, self.n_columns)) if known is None else known

    @property
    def arm_blocks(self) -> tuple[int, int] | None:
        """(K, p) where every one of K arms has p columns of its own and there are no others; None elsewhere."""
        return getattr(self.dictionary, "arm_blocks", None)

    @property
    def free_columns(self) -> IntArray | None:
        """Columns whose values are multiplied by so much that they are practically unpenalised; None for none."""
        return getattr(self.dictionary, "free_columns", None)

    @property
    def origin(self) -> FloatArray | None:
        """What may be taken off the columns, (P,), without a difference but to rounding: see `Matrices.origin`.

        None for no difference at all, and without an intercept, which takes up the constant.
        """
        return getattr(self.dictionary, "origin", None) if self.intercept else None

    @property
    def dimension(self) -> int:
        """d, the size of the largest model."""
        if self.subset_size is not None:
            return self.subset_size
        if self._dimension is None:
            self._dimension = int(np.diff(self.offsets).max())
        return self._dimension

    def sizes(self) -> tuple[FloatArray, FloatArray]:
        """Sizes of models, and how many have each; subsets of one size are not listed for that."""
        if self.subset_size is not None:
            return np.array([float(self.subset_size)]), np.array([float(self.n_models)])
        sizes, counts = np.unique(np.diff(self.offsets), return_counts=True)
        return sizes.astype(np.float64), counts.astype(np.float64)

    @property
    def groups(self) -> Sequence[IntArray]:
        """Column indices of each model."""
        return ColumnGroups(*self._layout()) if self.enumerated_on is None else self._subsets

    @property
    def names(self) -> Sequence[str]:
        """One name per model."""
        return self._names if self._names is not None else SubsetNames(self.dictionary.names, self.groups)

    @property
    def scales(self) -> FloatArray:
        """What the features of each model are divided by, shape (M,); ones unless normalised."""
        self.require_list("one scale for each model")
        return np.ones(self.n_models) if self._scales is None else self._scales

    @property
    def log_prior(self) -> FloatArray:
        """Logarithms of the models' prior weights, shape (M,); zeros, up to a constant, unless stated."""
        self.require_list("one prior weight for each model")
        return np.zeros(self.n_models) if self._log_prior is None else self._log_prior

    @property
    def families(self) -> IntArray:
        """The map that each model belongs to, shape (M,); 0, 1, ... unless several models share one."""
        return np.arange(self.n_models) if self._families is None else self._families

    @property
    def roots(self) -> FloatArray:
        """Square roots of the models' sizes, (M,): coefficients of variance 1/d have norm one. One for kernels."""
        roots = np.sqrt(np.diff(self.offsets))
        for j, kernel in enumerate(self.kernels or ()):
            roots[j] = roots[j] if kernel is None else 1.0
        return roots

    def kernel(self, j: int) -> Kernel | None:
        """The kernel of model j; None where it is linear."""
        return None if self.kernels is None else self.kernels[j]

    def gram(self, j: int, rows: Rows, others: Rows) -> FloatArray:
        """k_j between rows of the dictionary, (n, P) and (m, P), divided by scales[j]^2; shape (n, m)."""
        return self._compared(self.kernel(j) or Linear(), j, rows, others)

    def similarity(self, j: int) -> Kernel:
        """The kernel that model j is fitted with: its own, or of linear models that of the columns less the origin."""
        kernel, origin = self.kernel(j), self.origin
        if kernel is not None or origin is None:
            return kernel or Linear()
        own = origin[self.groups[j]]
        return Linear(scales=(1.0,) * own.size, means=tuple(own.tolist())) if own.any() else Linear()

    def similarities(self, j: int, rows: Rows, others: Rows) -> FloatArray:
        """The same as `gram`, by the kernel that model j is fitted with."""
        return self._compared(self.similarity(j), j, rows, others)

    def _compared(self, own: Kernel, j: int, rows: Rows, others: Rows) -> FloatArray:
        return np.asarray(own(dense(take(rows, self.groups[j])), take(others, self.groups[j])) / self.scales[j] ** 2)

    def variances(self, j: int, rows: Rows) -> FloatArray:
        """k_j(x, x) / scales[j]^2 at rows of the dictionary (n, P); shape (n,)."""
        own = self.kernel(j) or Linear()
        return np.asarray(own.diagonal(take(rows, self.groups[j])) / self.scales[j] ** 2)

    def require_linear(self, who: str, why: str) -> None:
        """Raise if a model is a kernel, in the name of `who` needs columns, and for the reason `why`."""
        if self.kernels is not None:
            j = next(j for j, kernel in enumerate(self.kernels) if kernel is not None)
            raise ValueError(
                f"{who} needs models that are linear in their columns: {why}; model {self.names[j]!r} is a kernel. "
                "EvidenceMixture takes kernels; kernels='linear' makes every map a linear model"
            )

    def kernel_marks(self, rows: Rows) -> Marks | None:
        """What kernels and prior weights are recognised by, on the candidates' rows (N, P); None if there are none."""
        if self.kernels is None and self._log_prior is None:
            return None
        own = marks(self.kernels or [None] * self.n_models, self.groups, rows)
        return own if self._log_prior is None else Marks(own.kinds, np.concatenate([own.numbers, self._log_prior]))
