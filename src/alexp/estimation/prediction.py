"""Fitted values on a table of candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def predict(
    beta: NDArray[np.float64], intercept: float, table: NDArray[np.float64]
) -> NDArray[np.float64]:
    """intercept + beta . features of n candidates, shape (n,); table is feature-major, shape (P, n).

    Group Lasso coefficients are sparse, so only the columns in use are read.

    >>> predict(np.array([0.0, 2.0]), 1.0, np.array([[1.0, 1.0], [0.0, 3.0]])).tolist()
    [1.0, 7.0]
    """
    active = np.flatnonzero(beta)
    return np.asarray(beta[active] @ table[active] + intercept)
