"""Checks of what classes of models are made from, one entry per model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.kernels import Kernel, Linear

_T = TypeVar("_T")


def distinct(names: Sequence[str], n_models: int) -> list[str]:
    """Names as text, or an error unless there is one for each model and all differ."""
    out = [str(name) for name in names]
    if len(out) != n_models:
        raise ValueError(f"names must have one entry per model ({n_models}), got {len(out)}")
    if len(set(out)) != len(out):
        twice = next(name for name in out if out.count(name) > 1)
        raise ValueError(f"names must be distinct, {twice!r} is used more than once")
    return out


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


def positive_vector(scales: ArrayLike, n_models: int) -> FloatArray:
    """Scales as an array, or an error unless there is a positive one for each model."""
    vector = np.asarray(scales, dtype=np.float64)
    if vector.shape != (n_models,) or not np.all(np.isfinite(vector)) or np.any(vector <= 0.0):
        raise ValueError(f"scales must be {n_models} positive numbers")
    return vector


def normalised(log_prior: ArrayLike, n_models: int) -> FloatArray:
    """Log prior weights, shifted so that the weights sum to one; an error unless there is a finite one per model."""
    vector = np.asarray(log_prior, dtype=np.float64)
    if vector.shape != (n_models,) or not np.all(np.isfinite(vector)):
        raise ValueError(f"log_prior must be {n_models} finite numbers, one per model")
    shifted = vector - vector.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def whole_vector(families: ArrayLike, n_models: int) -> IntArray:
    """Families as an array, or an error unless there is a number from 0 on for each model."""
    vector = np.asarray(families)
    if vector.shape != (n_models,) or not np.issubdtype(vector.dtype, np.integer) or np.any(vector < 0):
        raise ValueError(f"families must be {n_models} whole numbers from 0 on, one per model")
    return vector.astype(np.int64)


def checked_kernels(kernels: Sequence[Kernel | None], n_models: int) -> tuple[Kernel | None, ...] | None:
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
