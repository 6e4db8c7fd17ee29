"""The evidence of models whose noise and scale are unknown and integrated out: the one place of its formula.

Component c = (j, r) says: model j is true, the coefficients of its divided features have the prior N(0, s^2 I), the
noise has variance r s^2, and s^2 ~ IG(a0, b0), an inverse gamma distribution. V_c = Phi_j'Phi_j + r I is a ridge
regression with penalised residual F_c = min_theta ||y - Phi_j theta||^2 + r ||theta||^2. Given s, t rewards have the
density

    (2 pi r s^2)^(-t/2) det(V_c / r)^(-1/2) exp(-F_c / (2 r s^2)),

and its integral over the prior of s^2 is, up to a constant common to all components,

    log evidence = -(a0 + t/2) log(b0 + F_c / (2 r)) - (t log r + log det(V_c / r)) / 2,
    s^2 | data ~ IG(a0 + t/2, b0 + F_c / (2 r)).

With an intercept its flat prior takes one degree of freedom: t - 1 instead of t; if every arm has an intercept, as many
as arms have had a reward. Predictions are multivariate t with 2 a0 + t degrees of freedom and scale matrices of
E[s^2] r ||phi||^2_{V_c^-1}, where E[s^2] stands for 1 / E[1/s^2] = (b0 + F_c / (2 r)) / (a0 + t/2), since the mean
itself is infinite before the first reward. a0 = 1 everywhere; `reward_unit` says what b0 is.

`device.subsets.law.UnknownNoise` has the same formula as terms for kernels on a device.

Noise below the smallest ratio of a grid: with Phi Phi' = U diag(l) U' for the features told so far, or the Gram matrix
of a kernel, z = U'y and q what is left of y outside of U, a ratio r has

    F(r) = r sum_i z_i^2 / (l_i + r) + ||q||^2,     log det(V / r) = sum_i log(1 + l_i / r),

so that one decomposition serves all ratios. With an intercept all of it is about the means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.problem.kernels import Kernel

SHAPE = 1.0  # a0
STEPS = 0.1 ** np.arange(27)  # what the smallest ratio is multiplied by: noise down to 1e-15 of the rewards
MOST = 64  # models that are decomposed
_EPS = float(np.finfo(np.float64).eps)
_AFFORDABLE = 2e9  # multiplications of one decomposition


class StudentEvidence(NamedTuple):
    """The formula after some rewards: `freedom` is t less what constants take, `unit` is b0.

    Ratios r have shape (R,), residuals F and determinants log det(V / r) shape (R, M).
    """

    freedom: float
    unit: float

    @property
    def shape(self) -> float:
        """a0 + t/2."""
        return SHAPE + 0.5 * self.freedom

    def log_evidence(self, ratios: FloatArray, residuals: FloatArray, determinants: FloatArray) -> FloatArray:
        """Log evidence of every component, (R, M), up to a constant: b0's logarithm is left out."""
        volumes = self.freedom * np.log(ratios)[:, None] + determinants
        return np.asarray(-self.shape * np.log1p(self._excess(ratios, residuals)) - 0.5 * volumes)

    def noise_variances(self, ratios: FloatArray, residuals: FloatArray) -> FloatArray:
        """r E[s^2] of every component, (R, M)."""
        return np.asarray(ratios[:, None] * (self.unit * (1.0 + self._excess(ratios, residuals)) / self.shape))

    def _excess(self, ratios: FloatArray, residuals: FloatArray) -> FloatArray:
        """F / (2 r b0): exactly the same for units of rewards that differ by a power of two."""
        return residuals / self.unit / (2.0 * ratios[:, None])


def reward_unit(squares: float, mean: float, mass: float) -> float:
    """b0: the variance of the rewards so far, so that their unit drops out and, with an intercept, their level.

    `squares` is the sum of squares about the `mean`, `mass` the sum of the rewards' weights. Where the variance is
    zero, b0 is the square of the one value that was seen; if that is zero too, or nothing was seen, b0 = 1 and nothing
    depends on it but the unit of predictions.
    """
    if squares > 0.0:
        return SHAPE * squares / mass
    return SHAPE * mean**2 or 1.0


def flat_prior_weights(residuals: FloatArray, determinants: FloatArray, freedom: int) -> FloatArray:
    """Posterior probability of every (ridge, model), (R, M), in the limit a0 = b0 = 0: F^(-t/2) det(V / r)^(-1/2).

    The powers of r in the formula cancel. A perfect fit has infinite evidence; it counts as one that leaves the square
    root of the rounding unit.
    """
    positive = residuals[residuals > 0.0]
    if positive.size == 0:
        logs = np.zeros_like(residuals)
    else:  # ratios first: their logarithms do not depend on the unit of the rewards
        smallest = float(positive.min()) if np.all(residuals > 0.0) else 1e-16 * float(positive.min())
        logs = np.log(np.maximum(residuals, smallest) / smallest)
    scores = -0.5 * freedom * logs - 0.5 * determinants
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


class Spectrum(NamedTuple):
    """Eigenvalues l (k,), squares of z (k,), and ||q||^2."""

    eigenvalues: FloatArray
    squares: FloatArray
    rest: float

    def at(self, ratios: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F and log det(V / r) at some ratios, shapes (R,)."""
        r = ratios[:, None]
        residuals = (self.squares * (r / (self.eigenvalues + r))).sum(axis=1) + self.rest
        return residuals, np.log1p(self.eigenvalues / r).sum(axis=1)


def spectrum(kernel: Kernel | None, features: FloatArray, rewards: FloatArray, intercept: bool) -> Spectrum | None:
    """Of one model, from the features (t, d) of its rewards (t,), in units of the prior; None where it takes too long.

    What rounding cannot tell from zero among the eigenvalues is zero.
    """
    t, d = features.shape
    if (t * d * min(t, d) if kernel is None else t**3) > _AFFORDABLE:
        return None
    y = rewards - rewards.mean() if intercept else rewards
    if kernel is None:
        phi = features - features.mean(axis=0) if intercept else features
        vectors, roots, _ = np.linalg.svd(phi, full_matrices=False)
        kept, values = roots > max(t, d) * _EPS * roots.max(initial=0.0), roots**2
    else:
        gram = kernel(features, features)
        if intercept:
            gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
        values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        kept = values > t * _EPS * values.max(initial=0.0)
    span = vectors[:, kept]
    z = span.T @ y
    rest = y - span @ z
    rest = rest - span @ (span.T @ rest)
    return Spectrum(values[kept], z**2, float(rest @ rest))
