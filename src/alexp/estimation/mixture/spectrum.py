"""Evidence at any ratio of noise to prior variance, from one decomposition of the features of all rewards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.problem.kernels import Kernel

_EPS = float(np.finfo(np.float64).eps)
_AFFORDABLE = 2e9  # multiplications of one decomposition


class Spectrum(NamedTuple):
    """Evidence at any ratio from one decomposition, for noise below the smallest ratio of a grid.

    With Phi Phi' = U diag(l) U' for the features of the rewards so far, or the Gram matrix of a kernel, z = U'y, and q
    what is left of y outside of U, a ratio r has

        F(r) = r sum_i z_i^2 / (l_i + r) + ||q||^2,     log det(V / r) = sum_i log(1 + l_i / r).

    With an intercept all of it is about the means. Fields: l (k,), squares of z (k,), ||q||^2.
    """

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
