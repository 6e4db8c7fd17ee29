"""Memory as models: what is expected of the candidates already is one more column beside every map."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import matrix, share
from alexp.problem.kernel_models import prior_variance
from alexp.problem.kernels import ARD, Kernel, Linear, Rising, Scaled, Sum
from alexp.problem.matrices import Matrices
from alexp.problem.models import ModelClass, non_empty, numbered
from alexp.problem.rows import first_rows, take


def memory_models(
    models: ModelClass, memories: Mapping[str, ArrayLike], trust: Mapping[str, float] | None = None
) -> ModelClass:
    """The models, and further ones for every memory m, (N,) in any unit, with a value for each candidate.

    "name + map j" says that rewards are a + b m(x) + f_j(x), with a function f_j of model j. Offset a and slope b are
    learned; b is more likely positive, see `kernels.Rising`. Before that, b m varies over the candidates as f_j does,
    times `trust` r: the share of what it is about that the memory knows, one unless stated. Models without a memory
    keep their numbers; beside their prior weight of 1 those of a memory have (2 r)^3 together: next to nothing if it
    knows little, as much as they at r = 1/2.

    Kernels whose hyper-parameters are particles (`ARD`) have no sum with another, and stay without a memory.

    >>> models = ModelClass.from_matrices({"bits": np.eye(4)}, kernels="auto")
    >>> memory_models(models, {"2023": [1, 2, 3, 5]}).names
    ['bits: linear', 'bits: Tanimoto', '2023 + bits: linear', '2023 + bits: Tanimoto']
    """
    dictionary = models.dictionary
    if not isinstance(dictionary, Matrices) or dictionary.device is not None:
        raise TypeError("memories are about a list of candidates: models of matrices or of a table can have them")
    table, n_first = dictionary.table, dictionary.n_first
    prior = np.exp(models.log_prior) / np.exp(models.log_prior).sum()
    terms = dict[int, Kernel]()  # the kernels that a memory is added to, in units of their variance
    for j, group in enumerate(models.groups):
        kernel = models.kernel(j) or Linear()
        varies = 0.0 if isinstance(kernel, ARD) else prior_variance(kernel, first_rows(take(table, group), n_first))
        if varies > 0.0:
            terms[j] = Scaled.of(kernel, 1.0 / varies).on(range(group.size))
    if not terms:
        raise ValueError("a memory is added to kernels, and all models are ARD or constant: add others")
    columns, groups, names = [table], list(models.groups), list(models.names)
    kernels, masses, families = [models.kernel(j) for j in range(models.n_models)], [prior], [models.families]
    own = np.array(list(terms))
    for number, (name, values) in enumerate(non_empty(memories, "memories").items()):
        known = share("trust", (trust or {}).get(name, 1.0))
        columns.append(sqrt(known) * _standardised(f"memory {name!r}", values, len(table), n_first)[:, None])
        names += [f"{name} + {models.names[j]}" for j in terms]
        groups += [np.append(models.groups[j], table.shape[1] + number) for j in terms]
        kernels += [Sum((term, Rising().on([models.groups[j].size], name))) for j, term in terms.items()]
        masses.append((2.0 * known) ** 3 * prior[own] / prior[own].sum())
        families.append(models.families[own] + families[-1].max() + 1)
    larger = Matrices.from_table(
        np.hstack(columns),
        [*dictionary.names, *(f"{name}[0]" for name in memories)],
        [*dictionary.sizes, *[1] * len(memories)],
        batches=dictionary.batches,
    )
    return ModelClass(
        larger,
        groups,
        numbered(names),
        intercept=models.intercept,
        kernels=kernels,
        log_prior=np.log(np.concatenate(masses)),
        families=np.concatenate(families),
    )


def memories_of(models: ModelClass, n_memories: int) -> list[IntArray]:
    """Numbers of the models of each memory, where the last `n_memories` columns are memories."""
    last = np.array([int(group[-1]) for group in models.groups])  # the column of a memory is the last of its group
    return [np.flatnonzero(last == models.n_columns - n_memories + k) for k in range(n_memories)]


def _standardised(name: str, values: ArrayLike, n_rows: int, n_first: int | None) -> FloatArray:
    """A column (N,) less its mean, in standard deviations, over the first candidates; an error unless it varies."""
    column = matrix(name, np.asarray(values, dtype=np.float64).reshape(-1, 1), n_rows)[:, 0]
    column = column - column[:n_first].mean()
    deviation = float(column[:n_first].std())
    if deviation == 0.0:
        raise ValueError(f"{name} expects the same of all candidates, and tells nothing; leave it out")
    return np.asarray(column / deviation)
