"""Ridge confidence sets of the oracle agent, and bands for the reward over all models that remain plausible."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from alexp.algorithms.certified import Band
from alexp.common.arrays import FloatArray
from alexp.common.renaming import renamed
from alexp.common.validation import count, fraction, non_negative, positive
from alexp.decision.widths import model_radii, ucb_width

__all__ = [
    "coefficient_radius",
    "log_determinant_bound",
    "model_radii",
    "plausible_band",
    "ridge_radius_bound",
    "triangle_width",
    "ucb_width",
]


def log_determinant_bound(t: ArrayLike, dimension: int, penalty: float, feature_bound: float = 1.0) -> FloatArray:
    """log det(V_t / penalty) <= d log(1 + t L^2 / (penalty d)) for V_t = penalty I + sum phi phi', ||phi|| <= L."""
    size = count("dimension", dimension)
    ratio = positive("feature_bound", feature_bound) ** 2 / (positive("penalty", penalty) * size)
    return np.asarray(size * np.log1p(np.asarray(t, dtype=np.float64) * ratio), dtype=np.float64)


@renamed(reward_bound="norm_bound")
def triangle_width(
    log_determinant: ArrayLike, ridge: float, noise_std: float, norm_bound: float, delta: float
) -> FloatArray:
    """The textbook width: noise_std sqrt(log det(V/ridge^2) + 2 log(1/delta)) + ridge S (Abbasi-Yadkori et al. 2011).

    Never below `ucb_width`, which is the one to use.
    """
    level = np.asarray(log_determinant, dtype=np.float64) - 2.0 * np.log(fraction("delta", delta))
    noise = non_negative("noise_std", noise_std) * np.sqrt(level)
    return np.asarray(noise + positive("ridge", ridge) * non_negative("norm_bound", norm_bound))


@renamed(reward_bound="norm_bound")
def ridge_radius_bound(
    t: ArrayLike,
    dimension: int,
    ridge: float,
    noise_std: float,
    norm_bound: float,
    delta: float,
    feature_bound: float = 1.0,
) -> FloatArray:
    """`ucb_width` with the determinant replaced by its largest value at time t: a width known before any data."""
    penalty = positive("ridge", ridge) ** 2
    return ucb_width(log_determinant_bound(t, dimension, penalty, feature_bound), ridge, noise_std, norm_bound, delta)


def coefficient_radius(width: ArrayLike, smallest_eigenvalue: ArrayLike) -> FloatArray:
    """||b_hat - theta||_2 <= width / sqrt(lambda_min(V)), the oracle agent's proposition; V = Phi'Phi + ridge^2 I."""
    eigenvalue = np.asarray(smallest_eigenvalue, dtype=np.float64)
    if np.any(eigenvalue <= 0.0):
        raise ValueError("smallest_eigenvalue must be positive; it includes the ridge penalty")
    return np.asarray(np.asarray(width, dtype=np.float64) / np.sqrt(eigenvalue), dtype=np.float64)


def plausible_band(means: FloatArray, norms: FloatArray, squared_radii: FloatArray) -> Band:
    """Band for the reward over all models that are not ruled out.

    [min_j mean_j(x) - rad_j ||phi_j(x)||_{V_j^-1}, max_j mean_j(x) + rad_j ||phi_j(x)||_{V_j^-1}] over the models with
    rad_j^2 >= 0 from `model_radii`; it holds for all x and all t at once with probability 1 - delta. If no model is
    left (the noise level, the bound or every model is wrong) the band is the whole line.

    Parameters
    ----------
    means : ridge estimate of each model at n points, shape (M, n).
    norms : ||phi_j(x)||_{V_j^-1}, shape (M, n).
    squared_radii : rad_j^2, shape (M,).
    """
    alive = np.flatnonzero(squared_radii >= 0.0)
    if alive.size == 0:
        return Band(np.full(means.shape[1], -np.inf), np.full(means.shape[1], np.inf))
    half = np.sqrt(squared_radii[alive])[:, None] * norms[alive]
    return Band((means[alive] - half).min(axis=0), (means[alive] + half).max(axis=0))
