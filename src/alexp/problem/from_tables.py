"""Classes of models from tables of features, inputs and components, with kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from numpy.typing import ArrayLike

from alexp.common.devices.places import Place
from alexp.problem.checks import distinct, non_empty, numbered
from alexp.problem.contextual.blocks import Blocks
from alexp.problem.contextual.maps import ContextMaps
from alexp.problem.contextual.per_arm import PerArm
from alexp.problem.dictionaries import Dictionary, Maps
from alexp.problem.domains import Box, Interval
from alexp.problem.kernels import Kernel, Matern, Precomputed
from alexp.problem.kernels.choosing import LINEAR, KernelChoice, KernelModels, kernel_models
from alexp.problem.kernels.factorial import Component, factorial_models
from alexp.problem.kernels.inputs import as_choice, input_columns
from alexp.problem.kernels.stationary import Stationary
from alexp.problem.kernels.subsets import Subsets, subset_models
from alexp.problem.layout import Layout
from alexp.problem.tables.matrices import Matrices


class FromTables(Layout):
    """Constructors of `ModelClass` from tables."""

    @classmethod
    def from_matrices(
        cls,
        matrices: Mapping[str, ArrayLike | Precomputed],
        *,
        kernels: KernelChoice = LINEAR,
        intercept: bool | None = None,
        device: str | Place | None = None,
    ) -> Self:
        """One model per feature matrix, (N, d_j) each, and kernel, for a FiniteSet of N candidates.

        Unlike families that contain a constant, tables have an intercept unless `intercept=False`: measurements have a
        level that no descriptor explains. A constant column in a matrix does no harm beside it.

        `kernels` is "linear"; "auto", which looks at each matrix (linear and Tanimoto for bits, one-hot rows and
        counts; linear and Matern 5/2 at four lengthscales on standardised columns for descriptors; for several
        matrices also the sum of all kernels); a kernel; or {name: kernel or list of kernels}. Every matrix has the same
        prior mass, divided equally among its kernels: see `log_prior`. In place of a matrix there may be a kernel
        `Precomputed(K)` over the candidates.

        `device="cuda"` moves the matrices to a GPU, in the precision they have; arrays of PyTorch and CuPy that live on
        one stay there without it. Values at all candidates are then kept and computed with there: for linear models and
        `EvidenceMixture`.

        >>> import numpy as np
        >>> from alexp.problem.models import ModelClass
        >>> models = ModelClass.from_matrices({"a": np.eye(4), "b": np.ones((4, 2))})
        >>> models.dimension, ModelClass.from_matrices({"bits": np.eye(4)}, kernels="auto").names
        (4, ['bits: linear', 'bits: Tanimoto'])
        """
        constant = intercept is None or bool(intercept)
        given = as_choice(non_empty(matrices, "matrices"), kernels)
        dictionary = Matrices(given.matrices, device)
        if dictionary.place is not None and given.kernels != LINEAR:
            raise ValueError("kernels are computed on the CPU: leave device out, or take linear models on the device")
        if given.kernels == LINEAR:
            return cls._side_by_side(dictionary, list(matrices), constant)
        blocks = dict(zip(map(str, matrices), dictionary.blocks, strict=True))
        return cls._from_kernels(dictionary, kernel_models(blocks, given.kernels), constant)

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
    ) -> Self:
        """A kernel on subsets of the inputs: which inputs matter is found out like any other question of models.

        Parameters
        ----------
        inputs : (N, d), one row per candidate of a FiniteSet, or a Box or Interval. Columns of a DataFrame name them.
        kernel : Matern() by default; at each of `lengthscales`, in units of the median distance, if it has one.
        subsets : "all" subsets, whose number doubles with every input; "few": each input alone, each pair, all inputs
            but one, and all inputs; False for all inputs together only. True, the default, is "all" for up to six
            inputs (252 models at four lengthscales) and "few" for more (ten inputs: 264 models in place of 4,092), with
            a warning that says so.
        max_size : all subsets of up to so many inputs.

        There are at most 4,096 models: "few" leaves the pairs out where there would be more (44 inputs at four
        lengthscales), the other choices raise. The prior is uniform over sizes of subsets, then over subsets of a size,
        then over lengthscales.

        >>> import numpy as np
        >>> from alexp.problem.models import ModelClass
        >>> models = ModelClass.from_inputs(np.arange(12.0).reshape(4, 3) ** 2)
        >>> models.n_models, models.names[-1], round(float(np.exp(models.log_prior).sum()), 9)
        (28, 'x0+x1+x2: Matern 5/2, 2.8', 1.0)
        """
        dictionary, values, first = input_columns(inputs)
        names = list(dictionary.names)[first:]
        made = subset_models(values, names, kernel or Matern(), subsets, lengthscales, max_size, first)
        return cls._from_kernels(dictionary, made, bool(intercept))

    @classmethod
    def from_components(
        cls,
        components: Mapping[str, Component],
        kernel: Stationary | None = None,
        *,
        lengthscales: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
        draws: int = 48,
        intercept: bool = True,
    ) -> Self:
        """Models of composed candidates, such as reactions: products and sums of a kernel on each component,
        and one kernel on all descriptors together.

        Parameters
        ----------
        components : {component: description, or {name: description}}. A description has one row per candidate: numbers,
            (N, d) or (N,), or text, which says no more than same or different.
        kernel : of one component; Matern() by default, in units of the median distance between its values.
        lengthscales, draws : products take `draws` combinations of these, one for each component, fixed and evenly
            spread; sums and joined descriptors take one for all.

        Every description has the same prior mass: two fifths for products, as much for joined descriptors, the rest for
        sums. A component without the description of that name takes its first.

        >>> from alexp.problem.models import ModelClass
        >>> reactions = {"solvent": ["DMF", "DMF", "water", "water"], "celsius": [90, 105, 90, 105]}
        >>> models = ModelClass.from_components(reactions, lengthscales=[1.0, 2.0])
        >>> models.n_models, models.n_columns, models.names[1]
        (8, 4, 'product, 1/2')
        """
        made = factorial_models(components, kernel, lengthscales, draws)
        dictionary = Matrices.from_table(made.columns, made.names, made.sizes)
        return cls._from_kernels(dictionary, made.models, bool(intercept))

    @classmethod
    def _from_kernels(cls, dictionary: Dictionary, made: KernelModels, intercept: bool) -> Self:
        return cls(
            dictionary,
            made.groups,
            numbered(made.names),
            intercept=intercept,
            kernels=made.kernels,
            log_prior=made.log_prior,
            families=made.families,
        )

    @classmethod
    def _side_by_side(
        cls, dictionary: Maps | Matrices | Blocks | ContextMaps | PerArm, names: Sequence[str], intercept: bool
    ) -> Self:
        out = cls.__new__(cls)
        out.dictionary, out.intercept, out.subset_size = dictionary, intercept, None
        out._names, out._scales = distinct([str(name) for name in names], len(names)), None
        return out
