"""What users hand in to make kernel models of: matrices or Gram matrices, tables of inputs, boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp.common.validation import matrix
from alexp.problem.dictionaries import Dictionary, Polynomial
from alexp.problem.domains import Box, Interval
from alexp.problem.kernels.choosing import Choice, KernelChoice
from alexp.problem.kernels.own import Precomputed
from alexp.problem.tables.matrices import Matrices


class Given(NamedTuple):
    """Matrices, and kernels for them."""

    matrices: Mapping[str, ArrayLike]
    kernels: KernelChoice


def as_choice(matrices: Mapping[str, ArrayLike | Precomputed], kernels: KernelChoice) -> Given:
    """Gram matrices become a column of candidate numbers, with the kernel that looks them up."""
    grams = {name: block for name, block in matrices.items() if isinstance(block, Precomputed)}
    if not grams:
        return Given({n: b for n, b in matrices.items() if not isinstance(b, Precomputed)}, kernels)
    columns: dict[str, ArrayLike] = {}
    choices: dict[str, Choice] = {}
    for name, block in matrices.items():
        if isinstance(block, Precomputed):
            columns[name], choices[name] = np.arange(float(len(block.gram))), block
        else:
            columns[name] = block
            choices[name] = kernels.get(name, "") if isinstance(kernels, Mapping) else kernels
    if isinstance(kernels, Mapping) and (clash := [name for name in kernels if name in grams]):
        raise ValueError(f"{clash[0]!r} is a Gram matrix, which is a kernel already; leave it out of kernels")
    return Given(columns, choices)


def input_columns(inputs: ArrayLike | Box | Interval) -> tuple[Dictionary, FloatArray, int]:
    """A dictionary that has the inputs as columns, their values (N, d) on the candidates, and the first such column."""
    if isinstance(inputs, Box | Interval):
        points = np.asarray(inputs.points, dtype=np.float64)
        points = points[:, None] if points.ndim == 1 else points
        return Polynomial(1, points.shape[1]), points, 1
    kinds = getattr(inputs, "dtypes", None)
    names = [str(name) for name in inputs.columns] if hasattr(inputs, "columns") else None
    if names is not None and kinds is not None:
        for name, kind in zip(names, kinds, strict=True):
            if getattr(kind, "kind", "O") not in "biuf":
                raise TypeError(f"inputs must be numbers, but column {name!r} holds {kind}; encode it, or leave it out")
    values = matrix("inputs", inputs)
    names = names or [f"x{c}" for c in range(values.shape[1])]
    if len(set(names)) < len(names):
        raise ValueError(f"inputs must have distinct names, got {names}")
    return Matrices.from_table(values, names, [1] * len(names)), values, 0
