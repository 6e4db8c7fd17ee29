"""What a user may hand in as groups, checked before anything is kept."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.lasso._subsets import binomial_table
from alexp.estimation.lasso._working import Groups


def explicit_groups(
    n_columns: int, columns: npt.ArrayLike | None, offsets: npt.ArrayLike | None, weights: npt.ArrayLike | None
) -> Groups:
    """Return the groups as checked arrays; equal weights of 1 if none are given."""
    if columns is None or offsets is None:
        raise ValueError("columns and offsets are required unless subset_size is given")
    flat = np.array(columns, dtype=np.int64)
    bounds = np.array(offsets, dtype=np.int64)
    if flat.ndim != 1 or bounds.ndim != 1 or bounds.size < 2 or bounds[0] != 0 or bounds[-1] != flat.size:
        raise ValueError("offsets must be one-dimensional, start at 0, end at len(columns) and define a group")
    sizes = np.diff(bounds)
    if (sizes < 1).any():
        raise ValueError(f"group {int(np.argmax(sizes < 1))} is empty; offsets must increase strictly")
    if flat.min() < 0 or flat.max() >= n_columns:
        raise ValueError(f"columns must lie in 0..{n_columns - 1}, got {flat.min()}..{flat.max()}")
    keys = np.sort(np.repeat(np.arange(sizes.size), sizes) * n_columns + flat)
    repeated = keys[1:][keys[1:] == keys[:-1]]
    if repeated.size:
        raise ValueError(f"group {repeated[0] // n_columns} holds column {repeated[0] % n_columns} twice")
    values = np.ones(sizes.size) if weights is None else np.array(weights, dtype=np.float64)
    if values.shape != (sizes.size,):
        raise ValueError(f"weights must have shape ({sizes.size},), got {values.shape}")
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise ValueError("weights must be positive and finite")
    return Groups(flat, bounds, values)


def least_weights(groups: Groups, n_columns: int) -> FloatArray:
    """The least weight of a group with each column, (P,); zero for columns in no group."""
    out = np.full(n_columns, np.inf)
    np.minimum.at(out, groups.columns, np.repeat(groups.weights, np.diff(groups.offsets)))
    return np.where(np.isfinite(out), out, 0.0)


def subset_groups(n_columns: int, size: int, weights: npt.ArrayLike | None) -> tuple[Groups, IntArray]:
    """Return the single columns as groups, each with the common weight, and the table that ranks subsets."""
    if not 1 <= size <= n_columns:
        raise ValueError(f"subset_size must lie in 1..{n_columns}, got {size!r}")
    values = np.ones(1) if weights is None else np.array(weights, dtype=np.float64).ravel()
    if values.size == 0 or (values != values[0]).any() or not (math.isfinite(values[0]) and values[0] > 0.0):
        raise ValueError("with subset_size the weights must be equal, positive and finite")
    singles = Groups(np.arange(n_columns), np.arange(n_columns + 1), np.full(n_columns, values[0]))
    return singles, binomial_table(n_columns, size)
