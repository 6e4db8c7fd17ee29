"""Fitted values on a table of candidates."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numba import njit
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
    return np.asarray(_combination(np.ascontiguousarray(fit.beta), np.ascontiguousarray(table)) + fit.intercept)


@njit(cache=True, nogil=True)
def _combination(beta: NDArray[np.float64], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """beta . table, shape (n,), summed in the order of the columns.

    Small products like this one gain nothing from a threaded library, lose milliseconds when other programs keep the
    cores busy, and would depend on the number of cores in their last bits.
    """
    out = np.zeros(table.shape[1])
    for i in range(beta.shape[0]):
        if beta[i] != 0.0:
            for k in range(out.shape[0]):
                out[k] += beta[i] * table[i, k]
    return out
