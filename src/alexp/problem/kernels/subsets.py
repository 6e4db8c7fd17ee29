"""Models of inputs: a kernel on all subsets of them, or on few. Which inputs matter is a question about models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Final, Literal

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import count, positive
from alexp.common.warning import caution
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.choosing import KernelModels
from alexp.problem.kernels.rows import take
from alexp.problem.kernels.stationary import Stationary, fitted_together

Subsets = bool | Literal["all", "few"]
ALL: Final = "all"
FEW: Final = "few"
MOST_MODELS = 4096
MOST_INPUTS = 6  # up to which all subsets are taken by default: their number doubles with every input


def subset_models(
    inputs: FloatArray,
    names: Sequence[str],
    kernel: Kernel,
    subsets: Subsets,
    lengthscales: Sequence[float] | None,
    max_size: int | None,
    first: int = 0,
) -> KernelModels:
    """One model per subset of the columns of `inputs` (N, d) and lengthscale; see `ModelClass.from_inputs`.

    The inputs are columns `first`, `first` + 1, ... of the dictionary; `names` are theirs.
    """
    kernels = _at_lengthscales(kernel, lengthscales)
    d = inputs.shape[1]
    sizes = _sizes(d, len(kernels), subsets, max_size)
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


def _sizes(d: int, per_subset: int, subsets: Subsets, max_size: int | None) -> list[int]:
    """Sizes of the subsets that models are made for, smallest first."""
    if subsets not in (ALL, FEW) and not isinstance(subsets, bool | np.bool_):
        raise ValueError(f'subsets must be True, False, "all" or "few", got {subsets!r}')
    if not subsets:
        return [d]
    if max_size is not None and subsets == FEW:
        raise ValueError('max_size means all subsets of up to so many inputs; leave it out, or subsets="few"')
    every = list(range(1, d + 1 if max_size is None else min(count("max_size", max_size), d) + 1))
    if max_size is not None or subsets == ALL:
        return _checked(d, every, per_subset, 'lower max_size, use fewer lengthscales or subsets="few"')
    total = _n_models(d, every, per_subset)
    if subsets != FEW and d <= MOST_INPUTS and total <= MOST_MODELS:
        return every
    few = sorted({1, 2, d - 1, d} & set(every))
    if _n_models(d, few, per_subset) > MOST_MODELS:
        few = sorted({1, d - 1, d} & set(every))
    _checked(d, few, per_subset, "use subsets=False or fewer lengthscales")
    if subsets != FEW:
        pairs = ", of two inputs" if 2 in few else ""
        every_one = f'subsets="all" for all of them ({total:,} models), ' if total <= MOST_MODELS else ""
        caution(
            f"{d} inputs have {2**d - 1:,} subsets: {_n_models(d, few, per_subset):,} models are made, of one input"
            f'{pairs}, of all inputs but one and of all inputs. State subsets="few" to choose this, {every_one}'
            "max_size for all subsets of up to so many inputs, or subsets=False for all inputs together",
            UserWarning,
        )
    return few


def _n_models(d: int, sizes: Sequence[int], per_subset: int) -> int:
    return per_subset * sum(comb(d, size) for size in sizes)


def _checked(d: int, sizes: list[int], per_subset: int, remedy: str) -> list[int]:
    models = _n_models(d, sizes, per_subset)
    if models > MOST_MODELS:
        raise ValueError(
            f"subsets of up to {sizes[-1]} of {d} inputs make {models:,} models, more than {MOST_MODELS:,}; {remedy}"
        )
    return sizes
