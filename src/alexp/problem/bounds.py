"""Bounds that certificates rest on: norms of coefficients, and how far features bend between points of a grid."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.common.validation import positive
from alexp.problem.dictionaries import Dictionary, Fourier, Legendre, Polynomial, RandomFourier
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass

_DOUBTFUL = 1e-10  # squared singular values below this share of the largest are taken from the features themselves
_EPS = float(np.finfo(np.float64).eps)
_BATCH = 2_000_000  # entries of the Gram matrices that are decomposed together
_AFFORDABLE = 5e10  # multiplications of one singular value decomposition


class NormBounds(NamedTuple):
    """Bounds S_j on the norm of each model's coefficients (M,), and whether the candidates determine them (M,)."""

    values: FloatArray
    determined: BoolArray


def norm_bounds(models: ModelClass, table: FloatArray, reward_bound: float) -> NormBounds:
    """S_j = B / sqrt(lambda_min^+(Phi_j'Phi_j / N)): |r(x)| <= B on all N candidates bounds ||theta_j|| by it.

    Proof. Let r = Phi_j theta on the candidates, theta of the smallest norm among the coefficients that give this r; it
    lies in the row space of Phi_j, where ||Phi_j theta||^2 >= N lambda_min^+ ||theta||^2. And ||r||^2 <= N B^2. With an
    intercept r = c + Phi_j theta; with columns centred over the candidates, r - mean(r) = Phi_j theta and
    ||r - mean(r)||^2 <= ||r||^2 <= N B^2, while directions without variance can be moved into c.

    Where Phi_j does not have full rank the coefficients of smallest norm represent all others on the candidates, but
    not at other points: `determined` is False. Rounding is conservative: a small singular value is reduced by its
    possible error, which enlarges S_j; below that error it counts as zero, as for a repeated column.

    Parameters
    ----------
    models : the features are divided by `models.scales`, as in `ModelClass.features`.
    table : (P, N) the dictionary on the candidates, feature-major, in any order.
    reward_bound : B.

    >>> from alexp.problem.domains import Interval
    >>> models = ModelClass.legendre(degree=2, size=2)
    >>> norm_bounds(models, models.matrix(Interval(resolution=1001)).T, 1.0).values.round(2).tolist()
    [1.73, 2.23, 2.23]
    """
    bound = positive("reward_bound", reward_bound)
    centre = table.mean(axis=1) if models.intercept else np.zeros(table.shape[0])
    sizes, offsets, columns = np.diff(models.offsets), models.offsets, models.columns_flat
    smallest, determined = np.empty(models.n_models), np.ones(models.n_models, dtype=bool)
    shared = columns.size > table.shape[0] <= table.shape[1]  # else second moments have the candidates' size
    gram = _gram(table - centre[:, None]) if shared else None
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        step = max(1, _BATCH // int(size) ** 2)
        for low, high in pairwise([*range(0, members.size, step), members.size]):
            part = members[low:high]
            groups = columns[offsets[part][:, None] + np.arange(size)]
            smallest[part], determined[part] = _smallest(groups, gram, table, centre)
    with np.errstate(divide="ignore"):
        values = np.where(smallest > 0.0, bound * models.scales / np.sqrt(smallest), bound)  # zero features: any bound
    return NormBounds(values, determined)


def _gram(features: FloatArray) -> FloatArray:
    """Second moments of rows of features (d, N) over the candidates; the smaller of the two sides, if wide."""
    d, n = features.shape
    return np.asarray((features @ features.T if d <= n else features.T @ features) / n)


def _smallest(
    groups: IntArray, gram: FloatArray | None, table: FloatArray, centre: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Smallest non-zero eigenvalue of the second moments of some groups (m, d), and whether all are non-zero."""
    size, n = groups.shape[1], table.shape[1]
    if gram is None or size > n:
        gram_of = [_gram(table[group] - centre[group, None]) for group in groups]
        eigenvalues = np.array([np.linalg.eigvalsh(one) for one in gram_of])
    else:
        eigenvalues = np.linalg.eigvalsh(gram[groups[:, :, None], groups[:, None, :]])
    largest = eigenvalues[:, -1]
    error = 10.0 * size * _EPS * largest
    out = np.maximum(eigenvalues[:, 0] - error, 0.0)
    full = np.full(len(groups), size <= n) & (eigenvalues[:, 0] > 2.0 * error)
    for k in np.flatnonzero((eigenvalues[:, 0] < _DOUBTFUL * largest) | ~full):
        if largest[k] <= 0.0:
            out[k], full[k] = 0.0, False
        elif n * size * min(n, size) <= _AFFORDABLE:
            values = np.linalg.svd(table[groups[k]] - centre[groups[k], None], compute_uv=False)
            tolerance = max(n, size) * _EPS * values[0]
            kept = values[values > 2.0 * tolerance]
            out[k], full[k] = (kept[-1] - tolerance) ** 2 / n, kept.size == size
        else:
            kept = eigenvalues[k][eigenvalues[k] > 2.0 * error[k]]
            out[k], full[k] = kept[0] - error[k], kept.size == size
    return out, full


def curvature_bounds(dictionary: Dictionary, interval: Interval) -> FloatArray | None:
    """Bounds on |phi_k''(x)| over an interval, shape (P,); None for families that have no such formula here.

    |P_n''| <= P_n''(1) = (n-1) n (n+1) (n+2) / 8 on [-1, 1]; (k w)^2 for waves; n (n-1) R^(n-2) for x^n, |x| <= R.

    Between two neighbours at distance h a function with |f''| <= c stays within c h^2 / 8 of the straight line.

    >>> curvature_bounds(Legendre(3), Interval(-1.0, 1.0)).tolist()
    [0.0, 0.0, 3.0, 15.0]
    """
    if isinstance(dictionary, Legendre):
        if interval.lower < dictionary.lower or interval.upper > dictionary.upper:
            return None
        n = np.arange(dictionary.n_columns, dtype=np.float64)
        slope = 2.0 / (dictionary.upper - dictionary.lower)
        return np.asarray(np.abs(n - 1.0) * n * (n + 1.0) * (n + 2.0) / 8.0 * slope**2)
    if isinstance(dictionary, Fourier):
        waves = 2.0 * np.pi / dictionary.period * np.arange(1, dictionary.frequencies + 1)
        return np.concatenate([[0.0], np.repeat(waves**2, 2)])
    if isinstance(dictionary, Polynomial) and dictionary.dim == 1:
        n, reach = np.arange(dictionary.n_columns, dtype=np.float64), max(abs(interval.lower), abs(interval.upper))
        return np.asarray(n * (n - 1.0) * reach ** np.maximum(n - 2.0, 0.0))
    if isinstance(dictionary, RandomFourier) and dictionary.dim == 1:
        return dictionary.curvature()
    return None
