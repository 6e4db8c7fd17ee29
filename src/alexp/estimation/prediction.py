"""Fitted values on a table of candidates."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class LinearFit(Protocol):
    """Coefficients of the P dictionary columns, and a constant."""

    @property
    def beta(self) -> NDArray[np.float64]:
        """Coefficients, shape (P,)."""

    @property
    def intercept(self) -> float:
        """The constant."""


def predict(fit: LinearFit, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """intercept + beta . features of n candidates, shape (n,); table is feature-major, shape (P, n).

    Group Lasso coefficients are sparse, so only the columns in use are read.
    """
    active = np.flatnonzero(fit.beta)
    return np.asarray(fit.beta[active] @ table[active] + fit.intercept)
