"""A slope that is more likely positive: what that makes of a Gaussian posterior.

A model f(x) = a + b m(x) + g(x) has a column m with a slope b (`kernels.Rising`). With b ~ N(0, s^2) alone both signs
are equally likely. Here b has (1 + PREFERENCE) / 2 of its prior weight above zero:

    p(b) = N(b; 0, s^2) (1 + PREFERENCE sign(b)).

Where rewards are the negatives of what is told, because that is to be made small, or there are several objectives, of
which the column tells one, PREFERENCE is multiplied by -1 or 0 below.

Let b be N(mu, v) and have the covariances C(x, b) after some rewards without the preference, and alpha = mu / sqrt(v).
With the preference the evidence is multiplied by 1 + PREFERENCE (2 Phi(alpha) - 1), and means become

    mean(x) + lambda C(x, b) / sqrt(v),     lambda = 2 PREFERENCE phi(alpha) / (1 + PREFERENCE (2 Phi(alpha) - 1)).

Variances would fall by at most 64% of C(x, b)^2 / v; they are left as they are. Before the first reward means follow
the column, in the unit of the prior. Once rewards tell the sign, nothing is left of the preference.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.problem.kernels import Kernel, Restricted, Rising, Sum

PREFERENCE = 0.8


class Slope(NamedTuple):
    """What rewards say of b in every cell, in units of the prior.

    Attributes
    ----------
    mean, variance : (cells,) of b without the preference.
    level, weights : (cells,) and (cells, D): C(x, b) is m(x) - level - weights'k(x), with similarities k(x) (D,).
    """

    mean: FloatArray
    variance: FloatArray
    level: FloatArray
    weights: FloatArray
    preference: float

    def shift(self, scale: FloatArray, column: FloatArray, similarities: FloatArray | None) -> FloatArray:
        """What the preference adds to the means at n points, (cells, n).

        Their `column` is m (n,), their `similarities` to the points told are (D, n), and ``scale`` (cells,) is s.
        """
        covariances = column - self.level[:, None]
        if similarities is not None:
            covariances -= self.weights @ similarities
        alpha, factor = self._alpha(scale)
        density = np.exp(-0.5 * alpha**2) / sqrt(2.0 * pi)
        return np.asarray(
            (2.0 * self.preference * density / factor * scale / np.sqrt(self.variance))[:, None] * covariances
        )

    def log_preference(self, scale: FloatArray) -> FloatArray:
        """Logarithm of what the preference multiplies the evidence by, (cells,)."""
        return np.log(self._alpha(scale)[1])

    def _alpha(self, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """alpha, and 1 + preference (2 Phi(alpha) - 1), (cells,) each."""
        from scipy.special import erf  # slow to import, and needed here only

        alpha = self.mean / (scale * np.sqrt(self.variance))
        return alpha, 1.0 + self.preference * erf(alpha / sqrt(2.0))


def rising_column(kernel: Kernel | None) -> int | None:
    """The number of the column whose slope is more likely positive; None where there is none."""
    if isinstance(kernel, Sum):
        return next((column for term in kernel.terms if (column := rising_column(term)) is not None), None)
    if isinstance(kernel, Restricted):
        return None if rising_column(kernel.kernel) is None else kernel.columns[0]
    return 0 if isinstance(kernel, Rising) else None
