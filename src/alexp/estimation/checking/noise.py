"""A quick look at how large the noise seems to be."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.problem.models import ModelClass

_MOST_WORK = 3e7  # squared sizes of all models times rewards; well below a second
_MOST_MODELS = 3000
_SPARE = 8  # rewards beyond twice the size of a model, below which its residuals say little


def residual_noise(models: ModelClass, rows: FloatArray, rewards: FloatArray) -> float | None:
    """Standard deviation of the residuals of the model that fits t rewards best, by least squares; rows (t, P).

    None where some model is a kernel or too large for so few rewards, or the models too many for a quick look.
    """
    t, sizes = len(rewards), np.diff(models.offsets) + int(models.intercept)
    if models.kernels is not None or t < 2 * int(sizes.max()) + _SPARE or models.n_models > _MOST_MODELS:
        return None
    if float(np.square(sizes, dtype=np.float64).sum()) * t > _MOST_WORK:
        return None
    rows = rows - rows.mean(axis=0) if models.intercept else rows
    rewards = rewards - rewards.mean() if models.intercept else rewards
    smallest = np.inf
    for group in models.groups:
        left, values, _ = np.linalg.svd(rows[:, group], full_matrices=False)
        left = left[:, values > 1e-10 * values[:1]]
        rest = rewards - left @ (left.T @ rewards)
        smallest = min(smallest, float(rest @ rest) / (t - left.shape[1] - int(models.intercept)))
    return float(np.sqrt(smallest))
