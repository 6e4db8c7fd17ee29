"""Models of inputs: a kernel on every subset of them. Which inputs matter is a question about models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import count, positive
from alexp.common.warning import caution
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.choosing import KernelModels
from alexp.problem.kernels.rows import take
from alexp.problem.kernels.stationary import Stationary, fitted_together

MOST_MODELS = 4096


def subset_models(
    inputs: FloatArray,
    names: Sequence[str],
    kernel: Kernel,
    subsets: bool,
    lengthscales: Sequence[float] | None,
    max_size: int | None,
    first: int = 0,
) -> KernelModels:
    """One model per subset of the columns of `inputs` (N, d) and lengthscale; see `ModelClass.from_inputs`.

    The inputs are columns `first`, `first` + 1, ... of the dictionary; `names` are theirs.
    """
    kernels = _at_lengthscales(kernel, lengthscales)
    d = inputs.shape[1]
    sizes = [d] if not subsets else _sizes(d, len(kernels), max_size)
    groups, labels, fitted, masses = [], [], list[Kernel](), []
    for size in sizes:
        for group in combinations(range(d), size):
            columns = np.array(group)
            groups += [columns + first] * len(kernels)
            labels += [f"{'+'.join(names[c] for c in group)}: {one.name}" for one in kernels]
            fitted += fitted_together(kernels, take(inputs, columns))
            masses += [1.0 / (len(sizes) * comb(d, size) * len(kernels))] * len(kernels)
    families = np.arange(len(groups)) // len(kernels)
    return KernelModels(groups, labels, fitted, np.log(np.array(masses)), families)


def _at_lengthscales(kernel: Kernel, lengthscales: Sequence[float] | None) -> list[Kernel]:
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a kernel such as alexp.kernels.Matern(), got {type(kernel).__name__}")
    if not isinstance(kernel, Stationary) or lengthscales is None:
        return [kernel]
    scales = [positive("lengthscales", scale) for scale in lengthscales]
    if not scales or len(set(scales)) < len(scales):
        raise ValueError(f"lengthscales must be distinct positive numbers, got {list(lengthscales)}")
    return [kernel.replaced(lengthscale=scale) for scale in scales]


def _sizes(d: int, per_subset: int, max_size: int | None) -> list[int]:
    """Sizes of the subsets that are listed: all that fit, smallest first, and always all inputs together."""
    models = np.cumsum([comb(d, size) * per_subset for size in range(1, d + 1)])
    if max_size is not None:
        top = min(count("max_size", max_size), d)
        if models[top - 1] > MOST_MODELS:
            raise ValueError(
                f"subsets of up to {top} of {d} inputs make {models[top - 1]:,} models, more than {MOST_MODELS:,}; "
                "lower max_size or use fewer lengthscales"
            )
        return list(range(1, top + 1))
    if models[-1] <= MOST_MODELS:
        return list(range(1, d + 1))
    top = int(np.searchsorted(models, MOST_MODELS - per_subset, side="right"))
    if top == 0:
        raise ValueError(
            f"{d} inputs at {per_subset} lengthscales are more than {MOST_MODELS:,} models; use subsets=False"
        )
    caution(
        f"{d} inputs have {2**d - 1:,} subsets: models are made for up to {top} of them at a time, and for all of them "
        "together; state max_size to choose, or subsets=False",
        UserWarning,
    )
    return [*range(1, top + 1), d]
