"""Curves that a martingale crosses with small probability at any time, ever.

S_t is sub-gamma with variance process V_t and scale c if exp(l S_t - l^2 V_t / (2 (1 - c l))) is bounded by a
supermartingale that starts at one, for every l in [0, 1/c); c = 0 is sub-Gaussian. A boundary u satisfies
P(exists t: S_t >= u(V_t)) <= alpha. Two-sided statements spend alpha / 2 on each side.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp.common.validation import fraction, non_negative, positive

__all__ = [
    "azuma_boundary",
    "bernoulli_bernstein_boundary",
    "bernoulli_boundary",
    "exploration_count_radius",
    "normal_mixture_boundary",
    "normal_mixture_rho",
    "paper_boundary",
    "self_normalised_boundary",
    "simplified_boundary",
    "squared_noise_boundary",
    "stitched_boundary",
]


def stitched_boundary(
    v: ArrayLike, alpha: float, c: float = 0.0, s: float = 2.0, eta: float = math.e, m: float = 1.0
) -> FloatArray:
    """Polynomial stitched boundary of a sub-gamma process (Howard, Ramdas, McAuliffe, Sekhon 2021, Theorem 1).

    S_alpha(v) = sqrt(k1^2 v l + k2^2 c^2 l^2) + k2 c l,
    l(v) = s log log(eta v / m) + log(zeta(s) / (alpha log^s eta)),
    k1 = (eta^(1/4) + eta^(-1/4)) / sqrt 2,   k2 = (sqrt eta + 1) / 2,   evaluated at max(v, m).

    Parameters
    ----------
    v : variance process, any shape.
    alpha : probability of ever crossing.
    c : scale of the sub-gamma process; 0 for sub-Gaussian.
    s : exponent of the weights over epochs, above 1.
    eta : ratio of successive epochs, above 1.
    m : variance below which the boundary is flat. Multiplying v, m by a^2 and c by a multiplies the result by a.

    >>> stitched_boundary([1, 10, 1e3], alpha=0.05).round(3).tolist()
    [2.726, 11.188, 127.405]
    """
    from scipy.special import zeta  # slow to import, and importing alexp imports this module

    fraction("alpha", alpha)
    non_negative("c", c)
    if s <= 1.0 or eta <= 1.0:
        raise ValueError(f"s and eta must be above 1, got s={s!r} and eta={eta!r}")
    time = np.maximum(_variance(v), positive("m", m))
    k1, k2 = (eta**0.25 + eta**-0.25) / np.sqrt(2.0), (np.sqrt(eta) + 1.0) / 2.0
    level = s * np.log(np.log(eta * time / m)) + np.log(zeta(s) / (alpha * np.log(eta) ** s))
    return np.asarray(np.sqrt(k1**2 * time * level + (k2 * c * level) ** 2) + k2 * c * level, dtype=np.float64)


def paper_boundary(v: ArrayLike, alpha: float, c: float = 0.0) -> FloatArray:
    """The paper's simplification, as printed: (5/2) sqrt(max(v, 1) w) + 3 c w, w = (log log ev)_+ + log(2/alpha).

    Valid for c = 0. For c > 0 it drops one c k2 l of the stitched boundary and can fall below it (c = 40, v = 10);
    `simplified_boundary` is the valid curve of this shape.
    """
    level = _iterated(v) + np.log(2.0 / fraction("alpha", alpha))
    return np.asarray(2.5 * np.sqrt(np.maximum(_variance(v), 1.0) * level) + 3.0 * non_negative("c", c) * level)


def simplified_boundary(v: ArrayLike, alpha: float, c: float = 0.0) -> FloatArray:
    """Valid replacement of the paper's simplification: 2.07 sqrt(max(v, 1) w) + 5.3 c w, same w.

    With s = 2 and eta = e, l <= 2 w, sqrt(2) k1 <= 2.07 and 4 k2 <= 5.3, so it lies above the stitched boundary for
    every v, c and alpha.
    """
    level = _iterated(v) + np.log(2.0 / fraction("alpha", alpha))
    return np.asarray(2.07 * np.sqrt(np.maximum(_variance(v), 1.0) * level) + 5.3 * non_negative("c", c) * level)


def normal_mixture_rho(v_opt: float, alpha: float) -> float:
    """rho that makes `normal_mixture_boundary` tightest near V_t = v_opt.

    rho = v_opt / (2 log(1/alpha) + log(1 + 2 log(1/alpha))), an accurate closed form of the exact optimum.
    """
    twice = -2.0 * np.log(fraction("alpha", alpha))
    return float(positive("v_opt", v_opt) / (twice + np.log1p(twice)))


def normal_mixture_boundary(v: ArrayLike, alpha: float, rho: float) -> FloatArray:
    """Two-sided boundary |S_t| < sqrt((v + rho) (log(1 + v/rho) + 2 log(1/alpha))) of a sub-Gaussian process.

    Robbins (1970); tighter than stitching near the v that `rho` is tuned for, looser by sqrt(log v) far away.
    """
    time = _variance(v)
    level = np.log1p(time / positive("rho", rho)) - 2.0 * np.log(fraction("alpha", alpha))
    return np.asarray(np.sqrt((time + rho) * level), dtype=np.float64)


def azuma_boundary(t: ArrayLike, bound: float, delta: float) -> FloatArray:
    """Time-uniform Azuma-Hoeffding: sums of t martingale differences in [-bound, bound] stay below this.

    Sub-Gaussian with V_t = t bound^2 (Hoeffding's lemma; an interval of length 2 bound). One-sided. Unlike the
    printed curve it scales with ``bound`` exactly and holds from t = 1 on however small t bound^2 is.
    """
    scale = positive("bound", bound)
    return scale * stitched_boundary(t, delta)


def bernoulli_boundary(t: ArrayLike, delta: float) -> FloatArray:
    """Two-sided radius for |sum_s (X_s - gamma_s)|, X_s Bernoulli with predictable means: V_t = t/4 (Hoeffding).

    The printed lemma uses V_t = t and lacks an e inside log log; this is about half as wide.
    """
    return 0.5 * stitched_boundary(t, 0.5 * fraction("delta", delta))


def bernoulli_bernstein_boundary(variance: ArrayLike, delta: float) -> FloatArray:
    """Two-sided radius for |sum_s (X_s - gamma_s)| from the variance sum_s gamma_s (1 - gamma_s): c = 1/3 (Bernstein).

    With gamma_t of order t^(-1/4) this is O(t^(3/8)), which the restricted-eigenvalue lemma needs and the Hoeffding
    version does not give.
    """
    return stitched_boundary(variance, 0.5 * fraction("delta", delta), c=1.0 / 3.0)


def exploration_count_radius(expected: ArrayLike, delta: float) -> FloatArray:
    """Delta_t with |t' - Gamma_t| <= Delta_t for all t w.p. 1 - delta/2: t' explored rounds, Gamma_t = sum gamma_s.

    Delta_t = 2.07 sqrt(max(Gamma_t, 1) w) + 1.8 w, w = (log log(e Gamma_t))_+ + log(8/delta): the simplified Bernstein
    form. The paper prints a rate for the average where the sum is meant.
    """
    level = _iterated(expected) + np.log(8.0 / fraction("delta", delta))
    return np.asarray(2.07 * np.sqrt(np.maximum(_variance(expected), 1.0) * level) + 1.8 * level, dtype=np.float64)


def squared_noise_boundary(
    sum_of_squares: ArrayLike, largest: float, delta: float, constants: Literal["sharp", "printed"] = "sharp"
) -> FloatArray:
    """Time-uniform Bernstein: sum_i (xi_i^2 - 1) v_i stays below this, xi_i conditionally 1-sub-Gaussian.

    The weights 0 <= v_i <= largest may be chosen from the past; ``sum_of_squares`` is sum_i v_i^2. "sharp" uses
    V = 2 sum v^2, c = 2 largest (from E exp(l xi^2) <= (1 - 2l)^(-1/2); Laurent and Massart 2000) in the stitched
    boundary; "printed" is the paper's curve with V = 4 sum v^2, c = 4 largest.
    """
    squares, top = _variance(sum_of_squares), positive("largest", largest)
    if constants == "sharp":
        return stitched_boundary(2.0 * squares, delta, c=2.0 * top, m=2.0 * top**2)
    if constants == "printed":
        return paper_boundary(4.0 * squares, delta, c=4.0 * top)
    raise ValueError(f'constants must be "sharp" or "printed", got {constants!r}')


def self_normalised_boundary(log_determinant: ArrayLike, noise_std: float, delta: float) -> FloatArray:
    """||S_t||_{V_t^-1} stays below noise_std sqrt(log det(V_t / rho) + 2 log(1/delta)) for all t.

    S_t = sum_s phi_s eps_s with noise_std-sub-Gaussian eps_s, predictable phi_s, and V_t = rho I + sum_s phi_s phi_s'
    (Abbasi-Yadkori, Pal, Szepesvari 2011, Theorem 1).
    """
    level = np.asarray(log_determinant, dtype=np.float64) - 2.0 * np.log(fraction("delta", delta))
    return np.asarray(non_negative("noise_std", noise_std) * np.sqrt(level), dtype=np.float64)


def _variance(v: ArrayLike) -> FloatArray:
    values = np.asarray(v, dtype=np.float64)
    if np.any(values < 0.0) or np.any(np.isnan(values)):
        raise ValueError("the variance process must not be negative or NaN")
    return values


def _iterated(v: ArrayLike) -> FloatArray:
    """(log log(e v))_+, zero for v <= 1."""
    return np.asarray(np.log(np.log(math.e * np.maximum(_variance(v), 1.0))), dtype=np.float64)
