"""A kernel."""

from dataclasses import dataclass

import numpy as np

from alexp.extend import FloatArray, Kernel, Rows, dense


@dataclass(frozen=True)
class Cauchy(Kernel):
    """prod_c 1 / (1 + ((x_c - z_c) / width)^2): alike in every column, with long tails."""

    width: float = 1.0

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """k(x_i, z_j), shape (n, m)."""
        return np.asarray(np.prod(1.0 / (1.0 + ((x[:, None, :] - dense(z)) / self.width) ** 2), axis=2))
