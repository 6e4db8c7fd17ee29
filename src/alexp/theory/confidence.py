"""Confidence sets at every moment: of the anytime Lasso, and of the ridge fits of the oracle agent.

Everything about the Lasso refers to the paper's objective (1/t)||y - Phi theta||^2 + 2 lambda sum_j ||theta_j||_2. Its
guarantees hold on the event

    A:  ||(Phi_t' eps)_j||_2 / t <= lambda_t / 2   for all t >= 1 and all models j.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.statements import Band
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, fraction, non_negative, positive
from alexp.decision.schedules import anytime_lasso_lambda
from alexp.decision.widths import ucb_width
from alexp.estimation.lasso.group_lasso import LassoFit


def printed_lambda(
    t: ArrayLike, noise_std: float, n_models: int, dimension: int, delta: float, feature_bound: float = 1.0
) -> FloatArray:
    """lambda_t as the theorem prints it; see `alexp.decision.schedules.anytime_lasso_lambda`.

    ``feature_bound`` is max_j,x ||phi_j(x)||, which the theorem takes to be one. The constants carry two spurious
    1/sqrt 2, and no curve of the form const / sqrt t can hold for all t (law of the iterated logarithm); at practical
    times it is safe nevertheless, because its constants are generous.
    """
    first = anytime_lasso_lambda(1, noise_std, n_models, dimension, delta)
    return np.asarray(positive("feature_bound", feature_bound) * first / np.sqrt(_times(t)), dtype=np.float64)


def corrected_lambda(
    t: ArrayLike, noise_std: float, n_models: int, dimension: int, delta: float, feature_bound: float = 1.0
) -> FloatArray:
    """What the printed proof gives once its arithmetic is repaired.

    (2 sigma / sqrt t) sqrt(1 + 5 sqrt(d w) + 12 w),  w = log(2M/delta) + log log(4 e d).

    Larger than the printed value. It holds for each t and a fixed design; the "for all t" and adaptive parts of the
    printed proof do not survive (the eigenvalues of Phi Phi'/t change with t, so the sum is not the process that the
    Bernstein lemma speaks of). `self_normalised_lambda` is the version that is proved.
    """
    models, size = count("n_models", n_models), count("dimension", dimension)
    w = np.log(2.0 * models / fraction("delta", delta)) + np.log(np.log(4.0 * math.e * size))
    factor = 2.0 * non_negative("noise_std", noise_std) * positive("feature_bound", feature_bound)
    return np.asarray(factor * np.sqrt(1.0 + 5.0 * np.sqrt(size * w) + 12.0 * w) / np.sqrt(_times(t)))


def self_normalised_lambda(
    grams: Sequence[FloatArray] | FloatArray, t: int, noise_std: float, delta: float, penalty: float = 2.0
) -> float:
    """Data-dependent lambda_t for which event A is proved, for adaptively chosen actions and all t at once.

    (2 sigma / t) max_j sqrt( lambda_max(V_j) (log det(V_j / penalty) + 2 log(M / delta)) ),  V_j = penalty I + G_j:
    the self-normalised bound of Abbasi-Yadkori et al. (2011) for each model, a union over the M models, and
    ||S||_2 <= sqrt(lambda_max(V)) ||S||_{V^-1}. Any fixed ``penalty`` > 0 is valid; twice the squared feature bound
    max ||phi_j(x)||^2 is a good one (the default is meant for features bounded by one).

    Parameters
    ----------
    grams : G_j = Phi_j'Phi_j of each model, one (d_j, d_j) array per model or an array (M, d, d).
    t : number of observations.
    noise_std : sub-Gaussian parameter of the noise.
    delta : probability of failure, strictly between 0 and 1.
    penalty : what is added to the diagonals.
    """
    level = 2.0 * np.log(len(grams) / fraction("delta", delta))
    worst = 0.0
    for gram in grams:
        spectrum = np.maximum(np.linalg.eigvalsh(gram), 0.0)
        log_determinant = float(np.log1p(spectrum / positive("penalty", penalty)).sum())
        worst = max(worst, float(penalty + spectrum[-1]) * (log_determinant + level))
    return float(2.0 * non_negative("noise_std", noise_std) / count("t", t) * np.sqrt(worst))


def self_normalised_lambda_bound(
    t: ArrayLike,
    noise_std: float,
    n_models: int,
    dimension: int,
    delta: float,
    feature_bound: float = 1.0,
    penalty: float | None = None,
) -> FloatArray:
    """Largest value that `self_normalised_lambda` can take on any data with ||phi_j|| <= feature_bound.

    The trace of G_j is at most T = t feature_bound^2. With largest eigenvalue a the determinant is largest when the
    others are equal, so the worst case is the maximum over a in [T/d, T] of

        (penalty + a) ( log(1 + a/penalty) + (d-1) log(1 + (T-a)/((d-1) penalty)) + 2 log(M/delta) ),

    whose logarithm is concave in a: found by golden-section search. ``penalty`` defaults to
    2 feature_bound^2. Bounding the eigenvalue and the determinant apart overestimates by up to a fifth.
    """
    times, size = _times(t), count("dimension", dimension)
    square = positive("feature_bound", feature_bound) ** 2
    rho = 2.0 * square if penalty is None else positive("penalty", penalty)
    level = 2.0 * np.log(count("n_models", n_models) / fraction("delta", delta))

    def objective(a: FloatArray) -> FloatArray:
        rest = (size - 1) * np.log1p((times * square - a) / (max(size - 1, 1) * rho))
        return np.asarray((rho + a) * (np.log1p(a / rho) + rest + level), dtype=np.float64)

    largest = times * square
    worst = objective(largest) if size == 1 else _maximum(objective, largest / size, largest)
    return np.asarray(2.0 * non_negative("noise_std", noise_std) / times * np.sqrt(worst), dtype=np.float64)


def lasso_radius(lambda_t: ArrayLike, kappa_squared: ArrayLike) -> FloatArray:
    """Radius of the anytime Lasso theorem: ||theta_hat_t - theta||_2 <= 4 sqrt(10) lambda_t / kappa^2(Phi_t, 2) on A.

    A lower bound on kappa^2 gives a valid, larger radius; kappa^2 = 0 gives infinity.
    """
    return _ratio(4.0 * np.sqrt(10.0) * np.asarray(lambda_t, dtype=np.float64), kappa_squared)


def lasso_band(estimate: ArrayLike, feature_norms: ArrayLike, lambda_t: float, kappa_squared: float) -> Band:
    """Band for the reward on event A, from the cone condition alone.

    |<theta_hat - theta, phi(x)>| <= 16 lambda_t / kappa^2 x max_j ||phi_j(x)||: the error D lies in the cone
    sum_j ||D_j|| <= 4 ||D_{j*}||, and ||D_{j*}|| <= 4 lambda_t / kappa^2(Phi_t, 1). Needs neither ||phi(x)|| <= 1 for
    the concatenation nor a smallest signal; kappa^2(Phi_t, 1) suffices and is never below kappa^2(Phi_t, 2).

    Parameters
    ----------
    estimate : theta_hat . phi(x), shape (n,).
    feature_norms : max_j ||phi_j(x)||, shape (n,).
    lambda_t : the regularisation used, one for which event A is believed.
    kappa_squared : kappa^2(Phi_t, 1) or a lower bound on it.
    """
    centre = np.asarray(estimate, dtype=np.float64)
    half = np.asarray(feature_norms, dtype=np.float64) * _ratio(16.0 * lambda_t, kappa_squared)
    return Band(centre - half, centre + half)


def distinct_columns_band(
    estimate: ArrayLike,
    rows: FloatArray,
    gram: FloatArray,
    t: int,
    lambda_used: float,
    lambda_valid: float,
    cover: float,
) -> Band:
    """Band for the reward when models share columns, where kappa is zero, and for any regularisation in use.

    On the P distinct columns with moments G = F'F/t the penalty is the latent norm Omega(w), the least sum of group
    norms that adds up to w; its dual norm is max_j ||u_{S_j}||. Event A for ``lambda_valid`` and the optimality of
    theta_hat at ``lambda_used`` give ||Delta||_G^2 <= (lambda_valid + 2 lambda_used) Omega(Delta), and
    Omega(Delta) <= sqrt(cover) ||Delta||_2 with ``cover`` from `column_cover`. Hence

        |<Delta, f(x)>| <= ||f(x)||_{G^-1} (lambda_valid + 2 lambda_used) sqrt(cover / lambda_min(G)).

    Infinite until the columns seen have full rank.

    Parameters
    ----------
    estimate : estimated reward at n points, shape (n,).
    rows : distinct features f at those points, shape (n, P).
    gram : F'F of the t observations, shape (P, P).
    t : number of observations.
    lambda_used : what the Lasso was run with.
    lambda_valid : a lambda for which event A is believed, e.g. `self_normalised_lambda`.
    cover : sum of squared scales of models that together contain every column.
    """
    centre = np.asarray(estimate, dtype=np.float64)
    eigenvalues, vectors = np.linalg.eigh(gram / count("t", t))
    if eigenvalues[0] <= 1e-12 * max(eigenvalues[-1], np.finfo(np.float64).tiny):
        half = np.full(centre.shape, np.inf)
    else:
        norms = np.sqrt(((rows @ vectors) ** 2 / eigenvalues).sum(axis=1))
        half = norms * (lambda_valid + 2.0 * lambda_used) * np.sqrt(positive("cover", cover) / eigenvalues[0])
    return Band(centre - half, centre + half)


def column_cover(groups: Sequence[IntArray], n_columns: int, scales: ArrayLike | None = None) -> float:
    """Sum of squared scales of models that together contain every column, chosen greedily.

    Without scales it is the number of such models. Columns that no model contains are left out.

    >>> column_cover([np.array([0, 1]), np.array([1, 2]), np.array([2, 3])], n_columns=4)
    2.0
    """
    squares = np.ones(len(groups)) if scales is None else np.asarray(scales, dtype=np.float64) ** 2
    missing = np.zeros(n_columns, dtype=bool)
    for group in groups:
        missing[group] = True
    total = 0.0
    while missing.any():
        gains = np.array([np.count_nonzero(missing[group]) for group in groups]) / squares
        best = int(np.argmax(gains))
        missing[groups[best]] = False
        total += float(squares[best])
    return total


def _times(t: ArrayLike) -> FloatArray:
    times = np.asarray(t, dtype=np.float64)
    if np.any(~(times >= 1.0)):
        raise ValueError("t must be at least 1")
    return times


def _ratio(top: ArrayLike, bottom: ArrayLike) -> FloatArray:
    with np.errstate(divide="ignore"):
        below = np.maximum(np.asarray(bottom, dtype=np.float64), 0.0)
        return np.asarray(np.where(below > 0.0, np.divide(top, below), np.inf), dtype=np.float64)


def _maximum(objective: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Maximum of a quasi-concave function over [low, high], elementwise, by golden-section search."""
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    for _ in range(50):
        left, right = high - golden * (high - low), low + golden * (high - low)
        keep_left = objective(left) > objective(right)
        low, high = np.where(keep_left, low, left), np.where(keep_left, right, high)
    return np.asarray(objective(0.5 * (low + high)), dtype=np.float64)


def lasso_confidence(opt: ALExp, x: object, delta: float = 0.1) -> Band:
    """Band of the noiseless reward at the action or actions ``x``, for all t and x at once w.p. 1 - delta.

    `ALExp.confidence` certifies through the ridge fits and is usually narrower. This band needs no bound on the
    coefficients, and is about the estimate that drives the model selection.

    `distinct_columns_band` around the current group Lasso estimate, with the lambda_t it was run with and the
    self-normalised one at ``delta``; the features' scale sets the penalty inside the latter. Infinitely wide until the
    actions played span all columns. Models with an unpenalised intercept are not covered by the theorem.

    Returns
    -------
    Lower and upper ends, shape (n,) (n = 1 for a single action), in the user's direction.
    """
    fraction("delta", delta)
    models, fit = opt.models, opt.fit
    if models.intercept:
        raise ValueError("the anytime Lasso theorem does not cover models with an unpenalised intercept")
    if not isinstance(fit, LassoFit):
        raise ValueError("lasso_confidence needs at least one reward, and the GroupLasso oracle")
    features = models.matrix(opt.domain)
    told = [i for i, reward in zip(opt.log.index, opt.log.reward, strict=True) if not np.isnan(reward)]
    groups, scales = list(models.groups), models.scales
    used = np.unique(models.columns_flat)
    played, rows = features[told], models.rows(opt.domain, x)[0]
    gram = played.T @ played
    grams = [gram[np.ix_(g, g)] / s**2 for g, s in zip(groups, scales, strict=True)]
    square = max(float((features[:, g] ** 2).sum(axis=1).max()) / s**2 for g, s in zip(groups, scales, strict=True))
    valid = self_normalised_lambda(grams, len(told), opt.noise_std, delta, penalty=2.0 * square)
    cover = column_cover(groups, models.n_columns, scales)
    seen = gram[np.ix_(used, used)]
    band = distinct_columns_band(rows @ fit.beta, rows[:, used], seen, len(told), fit.lam, valid, cover)
    return band if opt.direction == "maximize" else Band(-band.upper, -band.lower)


def log_determinant_bound(t: ArrayLike, dimension: int, penalty: float, feature_bound: float = 1.0) -> FloatArray:
    """log det(V_t / penalty) <= d log(1 + t L^2 / (penalty d)) for V_t = penalty I + sum phi phi', ||phi|| <= L."""
    size = count("dimension", dimension)
    ratio = positive("feature_bound", feature_bound) ** 2 / (positive("penalty", penalty) * size)
    return np.asarray(size * np.log1p(np.asarray(t, dtype=np.float64) * ratio), dtype=np.float64)


def triangle_width(
    log_determinant: ArrayLike, ridge: float, noise_std: float, norm_bound: float, delta: float
) -> FloatArray:
    """The textbook width: noise_std sqrt(log det(V/ridge^2) + 2 log(1/delta)) + ridge S (Abbasi-Yadkori et al. 2011).

    Never below `ucb_width`, which is the one to use.
    """
    level = np.asarray(log_determinant, dtype=np.float64) - 2.0 * np.log(fraction("delta", delta))
    noise = non_negative("noise_std", noise_std) * np.sqrt(level)
    return np.asarray(noise + positive("ridge", ridge) * non_negative("norm_bound", norm_bound))


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
