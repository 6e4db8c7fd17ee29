"""ModelClass: a dictionary of P features and M groups of its columns. A model is a set of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import comb
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arguments import explains_keywords
from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.backends import ComputeDevice, check_device
from alexp.common.codec import State
from alexp.common.validation import check_sizes, count
from alexp.problem.contextual import (
    Blocks,
    CommonMap,
    ContextFeatures,
    ContextMaps,
    ContextualMap,
    Crossings,
    FeatureSet,
    PerArm,
    Unit,
    shared_features,
)
from alexp.problem.dictionaries import (
    Dictionary,
    FeatureMap,
    Fourier,
    Legendre,
    Maps,
    Polynomial,
    RandomFourier,
    distinct,
)
from alexp.problem.domains import Arms, Box, ContextualDomain, Domain, FiniteSet, Interval
from alexp.problem.groups import MOST_LISTED, AllSubsets, ColumnGroups, SubsetNames, compress
from alexp.problem.kernel_models import (
    LINEAR,
    Component,
    KernelChoice,
    KernelModels,
    Subsets,
    as_choice,
    factorial_models,
    input_columns,
    kernel_models,
    subset_models,
)
from alexp.problem.kernels import (
    Kernel,
    KernelSignature,
    Linear,
    Matern,
    Precomputed,
    Stationary,
    kernel_from_dict,
    kernel_signature,
)
from alexp.problem.matrices import FeatureTable, Matrices
from alexp.problem.rows import RemoteRows, Rows, dense, take

_T = TypeVar("_T")

ANYWHERE = "any"  # in place of a device: a GPU if there is one
_MOST_CROSSED = 256


@explains_keywords
class ModelClass:
    """M candidate feature maps phi_j(x) = dictionary(x)[groups[j]] / scales[j].

    Parameters
    ----------
    dictionary
        P scalar features of a point.
    groups
        One sequence of column numbers per model; groups may overlap and differ in size.
    names
        One distinct name per model; by default from the column names.
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
    subset_size : the size of all groups where these are all subsets of one size, in order; None otherwise.
    enumerated_on : the device that enumerates all subsets in every round; None where they are listed.
    encoding : how an `alexp.Table` made features of its columns, as plain data; None for models from elsewhere.

    >>> models = ModelClass.legendre(degree=10, size=3)
    >>> models.n_models, models.n_columns, models.names[0], models.groups[1].tolist()
    (165, 11, 'P0+P1+P2', [0, 1, 3])
    """

    kernels: tuple[Kernel | None, ...] | None
    encoding: State | None = None
    _names: list[str] | None
    _listed: tuple[IntArray, IntArray] | None  # `columns_flat` and `offsets`, once they are needed
    _scales: FloatArray | None
    _log_prior: FloatArray | None
    _families: IntArray | None
    _dimension: int | None  # read in every round

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
        self._set(dictionary, bool(intercept))
        self._listed = compress(groups, dictionary.n_columns)
        m = self.n_models
        self._names = None if names is None else distinct(names, m)
        self._scales = None if scales is None else _positive(scales, m)
        self.kernels = None if kernels is None else _checked_kernels(kernels, m)
        self._log_prior = None if log_prior is None else _normalised(log_prior, m)
        self._families = None if families is None else _whole(families, m)

    def _set(
        self,
        dictionary: Dictionary,
        intercept: bool,
        names: list[str] | None = None,
        subset_size: int | None = None,
        enumerated_on: str | None = None,
    ) -> None:
        self.dictionary, self.intercept = dictionary, intercept
        self.subset_size, self.enumerated_on = subset_size, enumerated_on
        self._names = names
        self.kernels = self._listed = self._scales = self._log_prior = self._families = self._dimension = None

    # -- constructors: families of features --------------------------------------------------------------------

    @classmethod
    def subsets(
        cls, dictionary: Dictionary, size: int, *, intercept: bool = False, device: str | None = None
    ) -> ModelClass:
        """All C(P, size) models that use exactly `size` columns of the dictionary.

        With `device`, "cuda" or "cpu", they are enumerated there in every round and never listed: a hundred million of
        them take some megabytes, and a step on a GPU some milliseconds. For `EvidenceMixture` with rule "ids" or "ucb";
        methods that need a list make one of up to 50 million.
        """
        p = dictionary.n_columns
        if count("size", size) > p:
            raise ValueError(f"size must be at most the {p} columns of the dictionary, got {size}")
        if device is None and (m := comb(p, size)) > MOST_LISTED:
            raise ValueError(
                f"{m} models are too many to list; lower size or the number of columns ({p}), or pass device= to have "
                "them enumerated"
            )
        return cls._all_subsets(dictionary, size, bool(intercept), None if device is None else check_device(device))

    @classmethod
    def _all_subsets(cls, dictionary: Dictionary, size: int, intercept: bool, device: str | None) -> ModelClass:
        out = cls.__new__(cls)
        out._set(dictionary, intercept, subset_size=size, enumerated_on=device)
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

    # -- constructors: tables of candidates --------------------------------------------------------------------

    @classmethod
    def from_matrices(
        cls,
        matrices: Mapping[str, ArrayLike | Precomputed],
        *,
        kernels: KernelChoice = LINEAR,
        intercept: bool | None = None,
        device: str | ComputeDevice | None = None,
    ) -> ModelClass:
        """One model per feature matrix, (N, d_j) each, and kernel, for a FiniteSet of N candidates.

        Tables have an intercept unless `intercept=False`, so that rewards need not be centred. A constant column in a
        matrix does not matter beside it.

        `kernels` is "linear"; "auto", which looks at each matrix (linear and Tanimoto for bits, one-hot rows and
        counts; linear and Matern 5/2 at four lengthscales on standardised columns for descriptors; for several
        matrices also the sum of all kernels); a kernel; or {name: kernel or list of kernels}. Every matrix has the same
        prior mass, divided equally among its kernels: see `log_prior`. In place of a matrix there may be a kernel
        `Precomputed(K)` over the candidates.

        `device="cuda"` moves the matrices to a GPU, in the precision they have; arrays of PyTorch and CuPy that live on
        one stay there without it. Values at all candidates are then kept and computed with there: for linear models and
        `EvidenceMixture`. A Dask array stays on its cluster, and features of `alexp.Parquet` and `alexp.Combinations`
        are read or computed in parts: for `EvidenceMixture`, kernels included.

        >>> models = ModelClass.from_matrices({"a": np.eye(4), "b": np.ones((4, 2))})
        >>> models.dimension, ModelClass.from_matrices({"bits": np.eye(4)}, kernels="auto").names
        (4, ['bits: linear', 'bits: Tanimoto'])
        """
        constant = intercept is None or bool(intercept)
        features, choice = as_choice(non_empty(matrices, "matrices"), kernels)
        dictionary = Matrices(features, device)
        in_parts = any(isinstance(block, RemoteRows) and block.is_in_parts for block in dictionary.blocks)
        if dictionary.device is not None and choice != LINEAR and not in_parts:
            raise ValueError("kernels are computed on the CPU: leave device out, or take linear models on the device")
        if choice == LINEAR:
            return cls._side_by_side(dictionary, list(matrices), constant)
        blocks = dict(zip(map(str, matrices), dictionary.blocks, strict=True))
        return cls.from_kernels(dictionary, kernel_models(blocks, choice), constant)

    @classmethod
    def from_inputs(
        cls,
        inputs: ArrayLike | Box | Interval,
        kernel: Kernel | None = None,
        *,
        subsets: Subsets = True,
        lengthscales: Sequence[float] | None = (0.35, 0.7, 1.4, 2.8),
        max_size: int | None = None,
        intercept: bool = True,
    ) -> ModelClass:
        """A kernel on subsets of the inputs: model selection finds which inputs matter.

        Parameters
        ----------
        inputs : (N, d), one row per candidate of a FiniteSet, or a Box or Interval. Columns of a DataFrame name them.
        kernel : Matern() by default; at each of `lengthscales`, in units of the median distance, if it has one.
        subsets : "all" subsets, whose number doubles with every input; "few": each input alone, each pair, all inputs
            but one, and all inputs; False for all inputs together only. True, the default, is "all" for up to six
            inputs (252 models at four lengthscales) and "few" for more (ten inputs: 264 models in place of 4,092), with
            a warning.
        max_size : all subsets of up to so many inputs.

        There are at most 4,096 models: "few" leaves the pairs out where there would be more (44 inputs at four
        lengthscales), the other choices raise. The prior is uniform over sizes of subsets, then over subsets of a size,
        then over lengthscales.

        >>> models = ModelClass.from_inputs(np.arange(12.0).reshape(4, 3) ** 2)
        >>> models.n_models, models.names[-1], round(float(np.exp(models.log_prior).sum()), 9)
        (28, 'x0+x1+x2: Matern 5/2, 2.8', 1.0)
        """
        dictionary, values, first = input_columns(inputs)
        names = list(dictionary.names)[first:]
        models = subset_models(values, names, kernel or Matern(), subsets, lengthscales, max_size, first)
        return cls.from_kernels(dictionary, models, bool(intercept))

    @classmethod
    def from_components(
        cls,
        components: Mapping[str, Component],
        kernel: Stationary | None = None,
        *,
        lengthscales: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
        draws: int = 48,
        intercept: bool = True,
    ) -> ModelClass:
        """Models of composed candidates, such as reactions: products and sums of a kernel on each component,
        and one kernel on all descriptors together.

        Parameters
        ----------
        components : {component: description, or {name: description}}. A description has one row per candidate: numbers,
            (N, d) or (N,), or text, which tells only same from different.
        kernel : of one component; Matern() by default, in units of the median distance between its values.
        lengthscales, draws : products take `draws` combinations of these, one for each component, fixed and evenly
            spread; sums and joined descriptors take one for all.

        Every description has the same prior mass: two fifths for products, as much for joined descriptors, the rest for
        sums. A component without the description of that name takes its first.

        >>> reactions = {"solvent": ["DMF", "DMF", "water", "water"], "celsius": [90, 105, 90, 105]}
        >>> models = ModelClass.from_components(reactions, lengthscales=[1.0, 2.0])
        >>> models.n_models, models.n_columns, models.names[1]
        (8, 4, 'product, 1/2')
        """
        composed = factorial_models(components, kernel, lengthscales, draws)
        dictionary = Matrices.from_table(composed.columns, composed.names, composed.sizes)
        return cls.from_kernels(dictionary, composed.models, bool(intercept))

    @classmethod
    def from_kernels(cls, dictionary: Dictionary, models: KernelModels, intercept: bool = True) -> ModelClass:
        """Kernel models with their prior weights, on the columns of a dictionary."""
        return cls(
            dictionary,
            models.groups,
            numbered(models.names),
            intercept=intercept,
            kernels=models.kernels,
            log_prior=models.log_prior,
            families=models.families,
        )

    def remembering(self, memories: Mapping[str, ArrayLike], trust: Mapping[str, float] | None = None) -> ModelClass:
        """These models, and further ones for every memory: what is expected of the N candidates already, (N,).

        That is the posterior mean of an old campaign, or a simulation; see `alexp.problem.memory_models`.
        """
        from alexp.problem.memory_models import memory_models

        return memory_models(self, memories, trust)

    @classmethod
    def _side_by_side(
        cls, dictionary: Maps | Matrices | Blocks | ContextMaps | PerArm, names: Sequence[str], intercept: bool
    ) -> ModelClass:
        """One model per map, matrix, block or set of features; sizes may not be known yet."""
        out = cls.__new__(cls)
        out._set(dictionary, intercept, names=distinct(names, len(names)))
        return out

    # -- constructors: contextual rounds -----------------------------------------------------------------------

    @classmethod
    def from_blocks(cls, blocks: Mapping[str, int], *, intercept: bool = False, example: object = None) -> ModelClass:
        """One model per block of columns, for rounds that bring their features along: `ask(features=...)`.

        `blocks` says how many columns each block has; `example` has features of typical candidates, (n, P) or a dict
        of blocks (n, size). It holds no code and can be stored.

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

    @classmethod
    def per_arm(
        cls,
        features: Mapping[str, FeatureSet],
        arms: int | Arms | Sequence[str],
        *,
        intercept: bool = True,
        unions: bool = False,
        shared: FeatureSet | None = None,
        common: CommonMap | None = None,
        correlation: float = 0.0,
        example: object = None,
    ) -> ModelClass:
        """One model per set of features of the context, with coefficients of their own for every arm.

        Model j says that the expected reward of arm a in context z is b_a + f_j(z)'theta_a: the disjoint linear models
        of LinUCB (Li et al. 2010), and with `common` the hybrid ones. For `alexp.Arms`.

        Parameters
        ----------
        features : {name: f}, where f is a list of places in the context vector; a list of keys of the context; a whole
            number d, for a context that has a vector of d numbers under the name; a callable f(context) -> (d,); or a
            fitted scikit-learn transformer, which sees the context as a table of one row. Code cannot be stored.
        arms : how many, their names, or the `Arms`.
        intercept : a constant for every arm, unpenalised. Rewards of arms have levels that no context explains.
        unions : a model for every union of the sets besides; for more than four sets, of each two and of all. In a
            model with several sets, listed as one or joined here, each of them has the same prior variance, however
            many features it has. What belongs together is read off the sets: features that no model has apart.
        shared : features of the context, given like any of `features`, with one coefficient for all arms, in every
            model and practically unpenalised (their prior variance is 10,000 times that of others). They are the same
            for all arms of a round, so that they decide nothing; they explain how good a round is for all.
        common : a callable (context, names of arms) -> (K, q) whose features have coefficients common to all arms, in
            every model and penalised like the others: arms then learn from each other. `arms` must be names.
        correlation : prior correlation of a feature's coefficients in two arms, in 0..1. What is said of one arm is
            then said of the others in part: prompts that are hard for one model are mostly hard for all.
        example : a context, a list or a table of contexts, which tells the sizes of features that are code; without it
            the first round does. Ten contexts or more also tell prior scales, which otherwise come from the first
            rewards.

        Without `shared`, `common` and `correlation` arms have nothing in common, and the posterior is kept arm by arm.
        With them it is kept for all K p columns together: K times the time and memory per model.

        >>> models = ModelClass.per_arm({"clinical": [0, 1, 2], "genes": [3, 4]}, arms=3)
        >>> models.n_models, models.n_columns, models.arm_blocks
        (2, 18, (3, 6))
        """
        own, extra = ContextFeatures(features, example, bool(unions)), shared_features(shared, example)
        dictionary = PerArm(own, _arm_names(arms), bool(intercept), extra, common, correlation)
        if dictionary.awaits_round:
            return cls._side_by_side(dictionary, own.names_of_sets, bool(intercept))
        return cls(dictionary, dictionary.groups, own.names_of_sets, intercept=intercept)

    @classmethod
    def crossed(
        cls,
        context: Sequence[str],
        action: Sequence[str],
        order: int = 2,
        *,
        units: Mapping[str, Unit] | None = None,
        intercept: bool = True,
        max_models: int = _MOST_CROSSED,
    ) -> ModelClass:
        """Which features of the context change the reward of an action: one model per set of products.

        Every model has the features of the action, those of the context (practically unpenalised: they are the same for
        all candidates of a round), and some products of different features, at least one of them the action's. Models
        are all sets of products, a product of three only with its products of two, if these are at most `max_models`:
        up to eight products for 256. Otherwise they are: none; all; those up to each order; all of context with action;
        all of one feature; one at a time; two at a time, as many as there is room for, in this order. The prior is
        uniform over the numbers of products, then over the sets with as many.

        Parameters
        ----------
        context, action : names of features. A context is a mapping or a vector of its features, candidates are an array
            (n, A), a list of mappings or a DataFrame.
        order : most factors of a product. Squares are not among them: give dose^2 as a feature of its own if rewards
            bend.
        units : {name: scale} or {name: (centre, scale)}; features enter as (value - centre) / scale. Without them
            features should be of size one, products included.

        It holds no code and can be stored.

        >>> models = ModelClass.crossed(context=["age", "bmi"], action=["dose"], units={"age": (50, 15)})
        >>> list(models.names)
        ['no crossing', 'age*dose', 'bmi*dose', 'age*dose+bmi*dose']
        """
        dictionary = Crossings(context, action, order, units)
        groups, names, log_prior = dictionary.models(count("max_models", max_models, 2))
        return cls(dictionary, groups, names, intercept=intercept, log_prior=log_prior)

    # -- derived model classes ---------------------------------------------------------------------------------

    def _copy(self) -> ModelClass:
        out = self.__class__.__new__(self.__class__)
        out.__dict__.update(self.__dict__)
        return out

    def with_arms(self, arms: int | Arms | Sequence[str]) -> ModelClass:
        """The same models for other arms; earlier arms keep their places. Models without columns of arms stay."""
        if not isinstance(self.dictionary, PerArm):
            return self
        dictionary = self.dictionary.with_arms(_arm_names(arms))
        if dictionary.awaits_round:
            return self._side_by_side(dictionary, list(self.names), self.intercept)
        groups = dictionary.in_every_arm(self.dictionary.of_an_arm(self.groups))
        out = type(self)(dictionary, groups, list(self.names), intercept=self.intercept)
        out._scales, out._log_prior, out._families = self._scales, self._log_prior, self._families
        return out

    def head(self, n: int) -> ModelClass:
        """The same models on the first n candidates of feature matrices."""
        if not isinstance(self.dictionary, Matrices):
            raise TypeError("only models from matrices have a list of candidates")
        out = self._copy()
        out.dictionary = self.dictionary.head(n)
        return out

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

    def as_listed(self) -> ModelClass:
        """The same models in a list, where they are enumerated."""
        if self.enumerated_on is None or self.subset_size is None:
            return self
        self.require_list("this")
        return ModelClass.subsets(self.dictionary, self.subset_size, intercept=self.intercept)

    def normalized(self, domain: Domain) -> ModelClass:
        """The same models with max_x ||phi_j(x)|| = 1 over the domain; the divisors are in `scales`.

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
        out = self._copy()
        out._scales, out.subset_size, out.enumerated_on = scales, None, None
        return out

    # -- groups, names, weights --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        known = self._listed is not None or self.subset_size is not None
        size = f", {self.n_columns} columns" if known else ""
        constant = ", intercept" if self.intercept else ""
        n_kernels = 0 if self.kernels is None else sum(kernel is not None for kernel in self.kernels)
        kernels = "" if n_kernels == 0 else f", {n_kernels} of them kernels"
        m = self.n_models
        return f"ModelClass({m} model{'s' * (m != 1)}{kernels}{size}{constant})"

    def _layout(self) -> tuple[IntArray, IntArray]:
        """`columns_flat` and `offsets`, computed when first needed."""
        if self._listed is None:
            if self.subset_size is not None:
                self.require_list("this")
                self._listed = compress(self._subsets.listed(), self.n_columns)
            elif (groups := getattr(self.dictionary, "groups", None)) is not None:
                self._listed = compress(groups, self.dictionary.n_columns)
            else:  # maps side by side: sizes are known once they have been evaluated
                sizes = np.asarray(self.dictionary.sizes, dtype=np.int64)  # type: ignore[attr-defined]
                if np.any(sizes == 0):
                    raise ValueError(f"model {self.names[int(np.argmin(sizes))]!r} has no features")
                self._listed = np.arange(sizes.sum()), np.concatenate([[0], np.cumsum(sizes)])
        return self._listed

    @property
    def columns_flat(self) -> IntArray:
        """Column indices of all models one after the other, shape (sum of sizes,)."""
        return self._layout()[0]

    @property
    def offsets(self) -> IntArray:
        """Model j owns columns_flat[offsets[j]:offsets[j+1]]; shape (M + 1,)."""
        return self._layout()[1]

    @property
    def _subsets(self) -> AllSubsets:
        assert self.subset_size is not None
        return AllSubsets(self.n_columns, self.subset_size)

    @property
    def groups(self) -> Sequence[IntArray]:
        """Column indices of each model."""
        return ColumnGroups(*self._layout()) if self.enumerated_on is None else self._subsets

    @property
    def names(self) -> Sequence[str]:
        """One name per model."""
        return self._names if self._names is not None else SubsetNames(self.dictionary.names, self.groups)

    @property
    def n_models(self) -> int:
        """M."""
        if self.subset_size is not None:
            return len(self._subsets)
        return len(self._names) if self._listed is None and self._names else self.offsets.size - 1

    @property
    def n_columns(self) -> int:
        """P, the size of the dictionary."""
        return self.dictionary.n_columns

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

    @property
    def is_listable(self) -> bool:
        """Whether there may be an array with something for every model."""
        return self.enumerated_on is None or self._subsets.is_listable

    def require_list(self, caller: str) -> None:
        """Raise if `caller` needs all models one by one and they are too many to list."""
        if not self.is_listable:
            raise ValueError(
                f"{caller} needs a list of the models, and {self.n_models} subsets are enumerated, never listed: "
                'EvidenceMixture takes them with rule="ids" or "ucb", and likeliest(n) names the most probable ones'
            )

    def require_linear(self, caller: str, why: str) -> None:
        """Raise if a model is a kernel, where `caller` needs columns for the reason `why`."""
        if self.kernels is not None:
            j = next(j for j, kernel in enumerate(self.kernels) if kernel is not None)
            raise ValueError(
                f"{caller} needs models that are linear in their columns: {why}; model {self.names[j]!r} is a kernel. "
                "EvidenceMixture takes kernels; kernels='linear' makes every map a linear model"
            )

    @property
    def listing(self) -> list[AnyArray]:
        """The arrays that identify the groups, and the scales."""
        if self.enumerated_on is not None:
            return [np.array([self.n_columns, self._subsets.size]), np.ones(1)]
        return [self.columns_flat, self.offsets, self.scales]

    # -- features ----------------------------------------------------------------------------------------------

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
        if isinstance(domain, ContextualDomain) or self.is_contextual:
            raise TypeError("contextual rounds have no table of candidates: their features are known in the round only")
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be an Interval, a Box or a FiniteSet, got {type(domain).__name__}")
        if isinstance(self.dictionary, Matrices):
            self.dictionary.check_domain(domain)
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

    @property
    def is_in_parts(self) -> bool:
        """Whether no one memory has the features of all candidates."""
        known = self.dictionary.tables if isinstance(self.dictionary, Matrices) else []
        return any(isinstance(part.rows, RemoteRows) and part.rows.is_in_parts for part in known)

    def tables(self, domain: Domain) -> list[FeatureTable]:
        """The same in the pieces it is kept in: large matrices are neither copied nor converted."""
        if not isinstance(self.dictionary, Matrices):
            return [FeatureTable(self.matrix(domain), np.arange(self.n_columns))]
        self.dictionary.check_domain(domain)
        return self.dictionary.tables

    def rows(self, domain: Domain, x: Action) -> tuple[FloatArray, bool]:
        """The dictionary at the action(s) `x` of a domain, shape (n, P), and whether `x` was a single action."""
        points, single = domain.batch(x)
        if isinstance(domain, FiniteSet) and not isinstance(self.dictionary, Matrices):
            return self.matrix(domain)[np.asarray(points)], single
        return self.columns(points), single

    @property
    def device(self) -> str | None:
        """Where the features are computed with, if that is a device: "cpu", or the name of a card."""
        device = self.dictionary.device if isinstance(self.dictionary, Matrices) else None
        return None if device is None else device.name

    @property
    def batches(self) -> tuple[int, ...]:
        """How many candidates came first, and how many were added each time after; empty if all came at once."""
        return self.dictionary.batches if isinstance(self.dictionary, Matrices) else ()

    @property
    def origin(self) -> FloatArray | None:
        """What may be taken off the columns, (P,), without a difference but to rounding: see `Matrices.origin`.

        None for no difference at all, and without an intercept, which takes up the constant.
        """
        return getattr(self.dictionary, "origin", None) if self.intercept else None

    # -- features of contextual rounds -------------------------------------------------------------------------

    @property
    def is_contextual(self) -> bool:
        """Whether features belong to the candidates of a round, see `alexp.problem.contextual`."""
        return hasattr(type(self.dictionary), "offered")

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """The dictionary at the n candidates of a round, shape (n, P); contextual models only."""
        if not self.is_contextual:
            raise TypeError("these models are not contextual: their features are those of an action, columns(x)")
        rows: FloatArray = self.dictionary.offered(context, candidates)  # type: ignore[attr-defined]
        return rows

    @property
    def awaits_round(self) -> bool:
        """Whether contextual maps have not been evaluated yet, so that the number of features is unknown."""
        return bool(getattr(self.dictionary, "awaits_round", False))

    @property
    def example_rows(self) -> FloatArray | None:
        """The dictionary at the example that contextual models were given, (E, P); None if they were given none."""
        return getattr(self.dictionary, "example_rows", None)

    @property
    def identifying_rows(self) -> FloatArray:
        """The rows of the example of contextual models, (E, P), by which a stored study identifies them."""
        known = getattr(self.dictionary, "identifying_rows", self.example_rows)
        return np.empty((0, self.n_columns)) if known is None else known

    @property
    def arm_blocks(self) -> tuple[int, int] | None:
        """(K, p) where every one of K arms has p columns of its own and there are no others; None elsewhere."""
        return getattr(self.dictionary, "arm_blocks", None)

    @property
    def free_columns(self) -> IntArray | None:
        """Columns that are practically unpenalised, because their values are multiplied by 100; None for none."""
        return getattr(self.dictionary, "free_columns", None)

    @property
    def joined_sets(self) -> IntArray | None:
        """Which set of features each column is of, (P,), -1 for none; None where no model is a union of several."""
        return getattr(self.dictionary, "joined_sets", None)

    # -- kernels -----------------------------------------------------------------------------------------------

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

    def _compared(self, kernel: Kernel, j: int, rows: Rows, others: Rows) -> FloatArray:
        group = self.groups[j]
        return np.asarray(kernel(dense(take(rows, group)), take(others, group)) / self.scales[j] ** 2)

    def variances(self, j: int, rows: Rows) -> FloatArray:
        """k_j(x, x) / scales[j]^2 at rows of the dictionary (n, P); shape (n,)."""
        kernel = self.kernel(j) or Linear()
        return np.asarray(kernel.diagonal(take(rows, self.groups[j])) / self.scales[j] ** 2)

    def kernel_signature(self, rows: Rows) -> KernelSignature | None:
        """The signature of kernels and prior weights, on the candidates' rows (N, P); None if there are none."""
        if self.kernels is None and self._log_prior is None:
            return None
        own = kernel_signature(self.kernels or [None] * self.n_models, self.groups, rows)
        if self._log_prior is None:
            return own
        return KernelSignature(own.kinds, np.concatenate([own.numbers, self._log_prior]))

    # -- storage -----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any] | None:
        """A description from which `from_dict` rebuilds the class, or None if it holds user code."""
        dictionary = self.dictionary.to_dict()
        if dictionary is None:
            return None
        data: dict[str, Any] = {"dictionary": dictionary, "intercept": self.intercept, "subset_size": self.subset_size}
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
        if self.encoding is not None:
            data["encoding"] = self.encoding
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ModelClass:
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
        out.encoding = data.get("encoding")
        return out


# -- checks of arguments with one entry per model ---------------------------------------------------------------


def _arm_names(arms: int | Arms | Sequence[str]) -> int | list[str]:
    """How many arms there are, or their names if they have any."""
    if isinstance(arms, str | bytes):
        raise TypeError(f"arms must be a number of arms, their names, or alexp.Arms, got {arms!r}")
    names = getattr(arms, "names", arms)
    return count("arms", names) if not isinstance(names, Sequence) else [str(name) for name in names]


def numbered(names: Sequence[str]) -> list[str]:
    """Names that differ: the second model of a name has " (2)" behind it.

    >>> numbered(["a: mine", "b: mine", "a: mine"])
    ['a: mine', 'b: mine', 'a: mine (2)']
    """
    taken: set[str] = set()
    out: list[str] = []
    for name in names:
        own, number = name, 1
        while own in taken or (number > 1 and own in names):
            number += 1
            own = f"{name} ({number})"
        taken.add(own)
        out.append(own)
    return out


def _positive(scales: ArrayLike, n_models: int) -> FloatArray:
    """Scales as an array, or an error unless there is a positive one for each model."""
    vector = np.asarray(scales, dtype=np.float64)
    if vector.shape != (n_models,) or not np.all(np.isfinite(vector)) or np.any(vector <= 0.0):
        raise ValueError(f"scales must be {n_models} positive numbers")
    return vector


def _normalised(log_prior: ArrayLike, n_models: int) -> FloatArray:
    """Log prior weights, shifted so that the weights sum to one; an error unless there is a finite one per model."""
    vector = np.asarray(log_prior, dtype=np.float64)
    if vector.shape != (n_models,) or not np.all(np.isfinite(vector)):
        raise ValueError(f"log_prior must be {n_models} finite numbers, one per model")
    shifted = vector - vector.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def _whole(families: ArrayLike, n_models: int) -> IntArray:
    """Families as an array, or an error unless there is a number from 0 on for each model."""
    vector = np.asarray(families)
    if vector.shape != (n_models,) or not np.issubdtype(vector.dtype, np.integer) or np.any(vector < 0):
        raise ValueError(f"families must be {n_models} whole numbers from 0 on, one per model")
    return vector.astype(np.int64)


def _checked_kernels(kernels: Sequence[Kernel | None], n_models: int) -> tuple[Kernel | None, ...] | None:
    """Kernels of the models, None for <x, z>; None if all are that. An error unless they are fitted, one per model."""
    if len(kernels) != n_models:
        raise ValueError(f"kernels must have one entry per model ({n_models}), got {len(kernels)}")
    for j, kernel in enumerate(kernels):
        if kernel is not None and not isinstance(kernel, Kernel):
            raise TypeError(
                f"kernel {j} must be a kernel such as alexp.kernels.Matern() or None for a linear model, got "
                f"{type(kernel).__name__}; alexp.kernels.Function(k) wraps a function k(X, Z)"
            )
        if kernel is not None and not kernel.is_fitted:
            raise ValueError(
                f"kernel {j} ({kernel.name}) is relative to the candidates: pass kernel.fitted(X) with their columns"
            )
    out = tuple(None if isinstance(kernel, Linear) and kernel.is_plain else kernel for kernel in kernels)
    return None if all(kernel is None for kernel in out) else out


def non_empty(mapping: Mapping[str, _T], name: str) -> Mapping[str, _T]:
    """The mapping, or an error unless it has entries."""
    if not isinstance(mapping, Mapping) or not mapping:
        raise ValueError(f"{name} must be a non-empty dict of name -> features, got {mapping!r}")
    return mapping


def dictionary_from_dict(data: dict[str, Any]) -> Dictionary:
    """Rebuild a built-in dictionary from what its `to_dict` stored."""
    families: dict[str, Callable[..., Dictionary]] = {
        "legendre": Legendre,
        "fourier": Fourier,
        "polynomial": Polynomial,
        "random-fourier": RandomFourier,
        "matrices": Matrices.from_table,
        "per-arm": PerArm.from_lists,
        "crossed": Crossings.from_lists,
        "blocks": Blocks.from_lists,
    }
    arguments = dict(data)
    family = arguments.pop("family")
    if family not in families:
        raise ValueError(f"unknown family of features {family!r}; known are {sorted(families)}")
    return families[family](**arguments)
