"""What a preflight looks at, one function per question; plain arrays in, plain values out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray

Pair = tuple[int, int]

_PARALLEL = 1.0 - 1e-10  # cosine from which two columns count as proportional
_PAIRS = 60  # spans are compared pair by pair up to this many models


def column_classes(features: FloatArray) -> IntArray:
    """A label for each column of (N, P) such that proportional columns share one, shape (P,)."""
    lengths = np.linalg.norm(features, axis=0)
    unit = features / np.where(lengths > 0.0, lengths, 1.0)
    labels = np.arange(features.shape[1])
    for column in range(1, features.shape[1]):
        cosines = np.abs(unit[:, :column].T @ unit[:, column])
        alike = np.flatnonzero(cosines > _PARALLEL)
        if alike.size:
            labels[column] = labels[alike[0]]
    return labels


def equal_models(labels: IntArray, groups: Sequence[IntArray]) -> list[list[int]]:
    """Models with the same columns up to the scale of each column, as lists of at least two."""
    members: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for j, group in enumerate(groups):
        members[tuple(sorted(labels[group].tolist()))].append(j)
    return [models for models in members.values() if len(models) > 1]


def span_relations(features: FloatArray, groups: Sequence[IntArray]) -> tuple[list[Pair], list[Pair]]:
    """Pairs of models that span the same functions on the domain, and pairs (a, b) with a strictly inside b.

    Empty beyond 60 models, where comparing every pair would take too long.
    """
    equal: list[Pair] = []
    inside: list[Pair] = []
    if len(groups) > _PAIRS:
        return equal, inside
    bases = [_basis(features[:, group]) for group in groups]
    for (a, first), (b, second) in combinations(enumerate(bases), 2):
        common = float(((first.T @ second) ** 2).sum())
        fits_a, fits_b = common > first.shape[1] - 1e-8, common > second.shape[1] - 1e-8
        if fits_a and fits_b:
            equal.append((a, b))
        elif fits_a:
            inside.append((a, b))
        elif fits_b:
            inside.append((b, a))
    return equal, inside


def model_norms(features: FloatArray, groups: Sequence[IntArray], scales: FloatArray) -> FloatArray:
    """max_x ||phi_j(x)|| of each model, shape (M,)."""
    squares = [np.einsum("ij,ij->i", features[:, g], features[:, g]).max() for g in groups]
    return np.asarray(np.sqrt(squares) / scales, dtype=np.float64)


def deficient_models(features: FloatArray, groups: Sequence[IntArray]) -> list[int]:
    """Models whose own columns are linearly dependent on the domain."""
    lengths = np.linalg.norm(features, axis=0)
    unit = features / np.where(lengths > 0.0, lengths, 1.0)
    found = []
    for j, group in enumerate(groups):
        values = np.linalg.eigvalsh(unit[:, group].T @ unit[:, group])
        if values[0] < 1e-12 * values[-1] or np.any(lengths[group] == 0.0):
            found.append(j)
    return found


def _basis(columns: FloatArray) -> FloatArray:
    """Orthonormal basis of the column space, (N, rank)."""
    lengths = np.linalg.norm(columns, axis=0)
    left, values, _ = np.linalg.svd(columns / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    return np.asarray(left[:, values > 1e-10 * values[0]], dtype=np.float64)
