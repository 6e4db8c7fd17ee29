"""How much the explored rounds are worth: lower bounds on eigenvalues of the data, for all t at once.

Round s explores with probability gamma_s and then plays x ~ pi; S = E_pi f f' is the design's second moment and
Gamma_t = sum_{s <= t} gamma_s. Whatever the other rounds do only adds positive semi-definite terms. Both bounds treat
coin and action as one martingale difference, so the random number of explored rounds never enters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp.common.validation import count, fraction, non_negative, positive
from alexp.theory.boundaries import stitched_boundary

__all__ = [
    "burn_in",
    "covariance_entries_radius",
    "expected_explorations",
    "explored_entries_radius",
    "explored_lambda_min_bound",
    "explored_lambda_min_slack",
    "kappa_lower_bound",
]


def expected_explorations(horizon: int, gamma: float) -> FloatArray:
    """Gamma_t = sum_{s <= t} min(1, gamma s^(-1/4)) for t = 1..horizon, shape (horizon,)."""
    rates = np.minimum(1.0, non_negative("gamma", gamma) * np.arange(1, count("horizon", horizon) + 1) ** -0.25)
    return np.cumsum(rates)


def covariance_entries_radius(n_samples: ArrayLike, n_columns: int, entry_bound: float, delta: float) -> FloatArray:
    """Radius r with max_ij |S_hat_ij - S_ij| <= r at every number of samples from pi at once, w.p. 1 - delta.

    Entries f_i f_j lie in [-L^2, L^2] for features |f_i| <= L = entry_bound; P (P + 1) / 2 distinct entries, two sides.
    The printed lemma takes a union over too few entries.
    """
    samples, square = np.asarray(n_samples, dtype=np.float64), positive("entry_bound", entry_bound) ** 2
    share = fraction("delta", delta) / (count("n_columns", n_columns) * (n_columns + 1))
    return np.asarray(square * stitched_boundary(samples, share) / samples, dtype=np.float64)


def explored_entries_radius(expected: ArrayLike, n_columns: int, entry_bound: float, delta: float) -> FloatArray:
    """Radius r with |sum_{explored s <= t} f_i f_j - Gamma_t S_ij| <= r for all entries and all t, w.p. 1 - delta.

    Bernstein with variance Gamma_t L^4 and differences below 2 L^2, so O(sqrt(Gamma_t)) = O(t^(3/8)).
    """
    gamma, square = np.asarray(expected, dtype=np.float64), positive("entry_bound", entry_bound) ** 2
    share = fraction("delta", delta) / (count("n_columns", n_columns) * (n_columns + 1))
    return np.asarray(square * stitched_boundary(gamma, share, c=2.0 / 3.0), dtype=np.float64)


def kappa_lower_bound(
    t: ArrayLike,
    expected: ArrayLike,
    kappa_design: float,
    n_columns: int,
    dimension: int,
    entry_bound: float,
    delta: float,
    sparsity: int = 2,
) -> FloatArray:
    """Lower bound on kappa^2(Phi_t, s), not below zero, for all t at once with probability 1 - delta.

    kappa^2(Phi_t, s) >= ( Gamma_t kappa~(S, s) - 16 s d r_t ) / t with r_t from `explored_entries_radius`: for b in the
    cone, ||b||_1 <= sqrt(d) sum_j ||b_j|| <= 4 sqrt(s d) ||b_J||. The printed lemma forgets the d. ``kappa_design`` is
    kappa~(S, s) or a lower bound, e.g. C_min.
    """
    slack = 16.0 * count("sparsity", sparsity) * count("dimension", dimension)
    radius = explored_entries_radius(expected, n_columns, entry_bound, delta)
    signal = np.asarray(expected, dtype=np.float64) * non_negative("kappa_design", kappa_design)
    return np.asarray(np.maximum(signal - slack * radius, 0.0) / np.asarray(t, dtype=np.float64), dtype=np.float64)


def explored_lambda_min_bound(
    expected: ArrayLike,
    lambda_min: float,
    lambda_max: float,
    n_columns: int,
    feature_bound: float,
    delta: float,
    n_models: int = 1,
) -> FloatArray:
    """Lower bound on lambda_min(Phi_t'Phi_t), not below zero, for all t (and all models) at once w.p. 1 - delta.

    Gamma_t lambda_min(S) minus `explored_lambda_min_slack`. Sharper than going through the entries unless L^2 grows
    with the number of models.

    Parameters
    ----------
    expected : Gamma_t.
    lambda_min : smallest eigenvalue of the design's second moment S (the least over the models if several).
    lambda_max : largest eigenvalue of S, at most ``feature_bound``^2.
    n_columns : size of S, the largest over the models.
    feature_bound : max_x ||f(x)||_2.
    delta : probability of failure.
    n_models : number of models the bound must hold for at the same time.
    """
    slack = explored_lambda_min_slack(expected, lambda_max, n_columns, feature_bound, delta, n_models)
    signal = np.asarray(expected, dtype=np.float64) * non_negative("lambda_min", lambda_min)
    return np.asarray(np.maximum(signal - slack, 0.0), dtype=np.float64)


def explored_lambda_min_slack(
    expected: ArrayLike, lambda_max: float, n_columns: int, feature_bound: float, delta: float, n_models: int = 1
) -> FloatArray:
    """How far lambda_min of the explored rows can fall below Gamma_t lambda_min(S), for all t at once w.p. 1 - delta.

    The sub-Gaussian stitched boundary at variance Gamma_t L^2 lambda_max(S) and level delta / (n_columns n_models): a
    matrix supermartingale, since e^{-lA} <= I - lA + l^2 A^2 / 2 for positive semi-definite A and E (ff')^2 <= L^2 S.
    """
    variance = positive("feature_bound", feature_bound) ** 2 * positive("lambda_max", lambda_max)
    share = fraction("delta", delta) / (count("n_columns", n_columns) * count("n_models", n_models))
    return np.asarray(np.sqrt(variance) * stitched_boundary(expected, share), dtype=np.float64)


def burn_in(lower_bounds: FloatArray) -> int | None:
    """First t (counted from 1) at which a sequence of lower bounds is positive, or None: before it nothing is promised.

    >>> burn_in(np.array([0.0, 0.0, 0.2]))
    3
    """
    positive_at = np.flatnonzero(lower_bounds > 0.0)
    return int(positive_at[0]) + 1 if positive_at.size else None
