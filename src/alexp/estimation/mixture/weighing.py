"""Weights of models whose noise is unknown and integrated out."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray


def unknown_noise_weights(losses: FloatArray, levels: FloatArray, freedom: int) -> FloatArray:
    """Posterior probability of every (ridge, model), shape (R, M), from F_j and log det(V_j / ridge^2), (R, M) each."""
    positive_losses = losses[losses > 0.0]
    if positive_losses.size == 0:
        ratios = np.zeros_like(losses)
    else:
        # Ratios first: logarithms of ratios do not depend on the unit of the rewards. A perfect fit has
        # infinite evidence; it counts as one that leaves the square root of the rounding unit.
        smallest = float(positive_losses.min()) if np.all(losses > 0.0) else 1e-16 * float(positive_losses.min())
        ratios = np.log(np.maximum(losses, smallest) / smallest)
    scores = -0.5 * freedom * ratios - 0.5 * levels
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())
