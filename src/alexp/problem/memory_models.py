"""Memory as models: what is expected of the candidates already is one more column, alone and beside every map."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import matrix, share
from alexp.problem.kernel_models import prior_variance
from alexp.problem.kernels import ARD, Kernel, Linear, Scaled, Sum
from alexp.problem.matrices import Matrices
from alexp.problem.models import ModelClass, non_empty, numbered
from alexp.problem.rows import first_rows, take

WEIGHT = 0.5  # prior weight of the models of one memory beside all models without one
_ALONE = 0.5  # share of its column alone


def memory_models(
    models: ModelClass, memories: Mapping[str, ArrayLike], trust: Mapping[str, float] | None = None
) -> ModelClass:
    """The models, and further ones for every memory m, (N,) in any unit, with a value for each candidate.

    "name" says that rewards are a + b m(x), "name + map j" that they are a + b m(x) + f_j(x), with a function f_j of
    model j. Offset a and scale b are learned. Before that, b m varies over the candidates as f_j does, times `trust` r:
    the share of what it is about that the memory knows, one unless stated. Models without a memory keep their numbers;
    beside their prior weight of 1 those of a memory have r WEIGHT / (1 - WEIGHT) together. One that is worth
    nothing costs at most log 2 of evidence, and less if it knows little.

    Kernels whose hyper-parameters are particles (`ARD`) have no sum with another, and stay without a memory.

    >>> models = ModelClass.from_matrices({"bits": np.eye(4)}, kernels="auto")
    >>> memory_models(models, {"2023": [1, 2, 3, 5]}).names
    ['bits: linear', 'bits: Tanimoto', '2023', '2023 + bits: linear', '2023 + bits: Tanimoto']
    """
    dictionary = models.dictionary
    if not isinstance(dictionary, Matrices) or dictionary.device is not None:
        raise TypeError("memories are about a list of candidates: models of matrices or of a table can have them")
    table, n_first = dictionary.table, dictionary.n_first
    own = np.exp(models.log_prior) / np.exp(models.log_prior).sum()
    blocks, groups, names, families = [table], list(models.groups), list(models.names), models.families.tolist()
    kernels, masses = [models.kernel(j) for j in range(models.n_models)], own.tolist()
    varies = [
        prior_variance(models.kernel(j) or Linear(), first_rows(take(table, group), n_first))
        for j, group in enumerate(models.groups)
    ]
    for name, values in non_empty(memories, "memories").items():
        known = share("trust", (trust or {}).get(name, 1.0))
        first, family = sum(block.shape[1] for block in blocks), max(families) + 1
        odds = known * WEIGHT / (1.0 - WEIGHT)
        columns = [sqrt(known) * _standardised(f"memory {name!r}", values, len(table), n_first)]
        further: list[tuple[str, IntArray, Kernel | None, int, float]] = []
        for j, group in enumerate(models.groups):
            kernel, title = models.kernel(j), f"{name} + {models.names[j]}"
            if isinstance(kernel, ARD) or varies[j] == 0.0:
                continue
            joined: Kernel | None = None
            column = first
            if models.kernels is None:  # linear, with a column that is as large as its features together
                column += len(columns)
                columns.append(columns[0] * sqrt(varies[j]))
            else:
                scaled = Scaled.of(kernel or Linear(), 1.0 / varies[j]).on(range(group.size))
                joined = Sum((scaled, Linear().on([group.size], name)))
            further.append((title, np.append(group, column), joined, family + 1 + int(models.families[j]), own[j]))
        alone = _ALONE if further else 1.0
        for title, group, joined, number, mass in [(name, np.array([first]), None, family, alone), *further]:
            names.append(title)
            groups.append(group)
            kernels.append(joined)
            families.append(number)
            masses.append(odds * (alone if title == name else (1.0 - alone) * mass))
        blocks.append(np.stack(columns, axis=1))
    widths = [block.shape[1] for block in blocks[1:]]
    titles = [f"{name}[{k}]" for name, width in zip(memories, widths, strict=True) for k in range(width)]
    larger = Matrices.from_table(
        np.hstack(blocks), [*dictionary.names, *titles], [*dictionary.sizes, *widths], batches=dictionary.batches
    )
    return ModelClass(
        larger,
        groups,
        numbered(names),
        intercept=models.intercept,
        kernels=kernels,
        log_prior=np.log(masses),
        families=families,
    )


def memories_of(models: ModelClass, n_memories: int) -> list[IntArray]:
    """Numbers of the models of each memory, where the last `n_memories` blocks of columns are memories."""
    assert isinstance(models.dictionary, Matrices)
    sizes = models.dictionary.sizes
    edges = np.cumsum([0, *sizes])[len(sizes) - n_memories :]
    last = np.array([int(group[-1]) for group in models.groups])  # the column of a memory is the last of its group
    return [np.flatnonzero((last >= low) & (last < high)) for low, high in pairwise(edges)]


def _standardised(name: str, values: ArrayLike, n_rows: int, n_first: int | None) -> FloatArray:
    """A column (N,) less its mean, in standard deviations, over the first candidates; an error unless it varies."""
    column = matrix(name, np.asarray(values, dtype=np.float64).reshape(-1, 1), n_rows)[:, 0]
    column = column - column[:n_first].mean()
    deviation = float(column[:n_first].std())
    if deviation == 0.0:
        raise ValueError(f"{name} expects the same of all candidates, and tells nothing; leave it out")
    return np.asarray(column / deviation)
