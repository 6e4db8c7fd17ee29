"""Widths of ridge confidence sets that hold at every moment at once.

The ridge fit of one model with features Phi (t, d) and V = Phi'Phi + ridge^2 I is the minimiser of
||y - Phi b||^2 + ridge^2 ||b||^2. Here ``ridge`` is the paper's lambda-tilde *as in* ``UCB(ridge=...)``, so the
number added to the diagonal is ``ridge**2``; ``norm_bound`` is the bound S on the norm of the true coefficients, in
the features as they are: it says nothing about the reward unless ||phi|| is known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp.common.validation import fraction, non_negative, positive

__all__ = ["model_radii", "model_radii_with_constant", "ucb_width"]


def ucb_width(
    log_determinant: ArrayLike, ridge: float, noise_std: float, norm_bound: float, delta: float
) -> FloatArray:
    """Radius w_t of the set ||b_hat - theta||_V <= w_t, for all t at once with probability 1 - delta.

    w_t^2 = noise_std^2 (log det(V_t / ridge^2) + 2 log(1/delta)) + ridge^2 norm_bound^2

    The sum of squares, not the square of the sum: the method of mixtures with the Gaussian prior that the ridge
    penalty stands for gives this sharper form directly (Flynn et al. 2023), while Abbasi-Yadkori et al. (2011,
    Theorem 2) pass through a triangle inequality.

    Parameters
    ----------
    log_determinant : log det(V_t / ridge^2) of one or of many models, any shape.
    ridge : the paper's lambda-tilde, as in ``UCB(ridge=...)``; V = Phi'Phi + ridge^2 I.
    noise_std : sub-Gaussian parameter of the noise.
    norm_bound : bound S on the norm of the true coefficients.
    delta : probability of failure, strictly between 0 and 1.

    Returns
    -------
    The widths, of the shape of ``log_determinant``.

    >>> float(ucb_width(0.0, ridge=0.5, noise_std=0.0, norm_bound=2.0, delta=0.1))
    1.0
    """
    penalty_norm = positive("ridge", ridge) * non_negative("norm_bound", norm_bound)
    non_negative("noise_std", noise_std)
    evidence = np.asarray(log_determinant, dtype=np.float64) - 2.0 * np.log(fraction("delta", delta))
    return np.asarray(np.sqrt(noise_std**2 * evidence + penalty_norm**2), dtype=np.float64)


def model_radii(
    losses: ArrayLike,
    log_determinants: ArrayLike,
    ridge: float | FloatArray,
    noise_std: float,
    norm_bound: float | FloatArray,
    delta: float,
) -> FloatArray:
    """Squared radii of the M models' confidence sets when it is unknown which model is true.

    With F_j = min_b ||y - Phi_j b||^2 + ridge_j^2 ||b||^2 and E_j = F_j + noise_std^2 log det(V_j / ridge_j^2),

        beta_t  = -2 noise_std^2 log( (1/M) sum_j exp(-E_j / (2 noise_std^2)) ) + 2 noise_std^2 log(1/delta)
        rad_j^2 = beta_t + ridge_j^2 norm_bound_j^2 - F_j.

    With probability 1 - delta the true model has ||b_hat_j - theta||_{V_j} <= rad_j at every t (the average of the
    M mixture likelihoods over the true likelihood is a non-negative supermartingale; Ville). A model with a
    negative squared radius is therefore ruled out.

    Parameters
    ----------
    losses : F_j, shape (..., M).
    log_determinants : log det(V_j / ridge_j^2), shape (..., M).
    ridge : the paper's lambda-tilde, as in ``UCB(ridge=...)``; one number or one per model.
    noise_std : sub-Gaussian parameter of the noise, above zero.
    norm_bound : bounds S_j on the norm of the true coefficients; one number or one per model.
    delta : probability of failure, strictly between 0 and 1.

    Returns
    -------
    rad_j^2, shape (..., M); negative where model j is ruled out.
    """
    penalty_norm = _each(positive, "ridge", ridge) * _each(non_negative, "norm_bound", norm_bound)
    positive("noise_std", noise_std)
    fits = np.asarray(losses, dtype=np.float64)
    twice_variance = 2.0 * noise_std**2
    evidence = fits + noise_std**2 * np.asarray(log_determinants, dtype=np.float64)
    best = evidence.min(axis=-1, keepdims=True)  # subtracted first, so that no exponential overflows
    with np.errstate(over="ignore"):  # to minus infinity, for a model beyond all hope
        shares = np.exp((best - evidence) / twice_variance)
    mixture = best - twice_variance * np.log(shares.mean(axis=-1, keepdims=True))
    beta = mixture - twice_variance * np.log(fraction("delta", delta))
    return np.asarray(beta + penalty_norm**2 - fits, dtype=np.float64)


def model_radii_with_constant(
    losses: ArrayLike,
    log_determinants: ArrayLike,
    counts: ArrayLike,
    ridge: float | FloatArray,
    noise_std: float,
    norm_bound: float | FloatArray,
    delta: float,
) -> FloatArray:
    """`model_radii` of models with an unpenalised constant, which the first reward fixes, or with one for every arm.

    Delta is split between that reward's noise, which is within noise_std sqrt(2 log(4/delta)), and all that follows.
    Where each of K arms has a constant, the noise of every first reward is within noise_std sqrt(2 log(4 K/delta)).
    `counts` (K,) are the numbers of rewards that the constants have had. The determinants are those of centred
    features, shape (..., M); they miss the constants' own factors, the counts.
    """
    had = np.atleast_1d(np.asarray(counts))
    first = 2.0 * noise_std**2 * np.log(4.0 * had.size / fraction("delta", delta))
    levels = np.asarray(log_determinants, dtype=np.float64) + np.log(had[had > 0]).sum()
    later = model_radii(losses, levels, ridge, noise_std, norm_bound, delta / 2.0)
    return np.asarray(later + np.count_nonzero(had) * first)


def _each(check: Callable[[str, object], float], name: str, value: float | FloatArray) -> float | FloatArray:
    """A number, or one per model, each of which passes the check."""
    if np.ndim(value) == 0:
        return check(name, value)
    array = np.asarray(value, dtype=np.float64)
    check(name, float(array.min()))
    check(name, float(array.max()))
    return array
