"""Extremes over many ridge ellipsoids at once, without a models x candidates array.

Model j believes that its coefficients lie in { theta : ||theta - theta_j||_{V_j} <= radius_j }.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.mixture.mixture import split_candidates
from alexp.estimation.ridge import _moments as mixing
from alexp.estimation.ridge.bank import RidgeBank


class Envelope(NamedTuple):
    """Lower and upper ends (n,), and the model that attains each upper end (n,); -1 where there is none."""

    lower: FloatArray
    upper: FloatArray
    model: IntArray


def envelope(bank: RidgeBank, active: IntArray, radii: FloatArray, table: FloatArray) -> Envelope:
    """Smallest and largest reward of any model of ``active`` (K,) with its coefficients within ``radii`` (K,).

    min_j and max_j of mu_j(x) -/+ radius_j ||phi_j(x)||_{V_j^-1} at the candidates of ``table`` (P, n).
    """
    n = table.shape[1]
    out = Envelope(np.full(n, np.inf), np.full(n, -np.inf), np.full(n, -1, dtype=np.int64))
    theta, constants = bank.coefficients()
    layout = (bank._factor, bank._starts, bank._columns, bank._offsets, bank._lead)
    split_candidates(
        lambda low, high: mixing.add_band(*layout, theta, constants, active, radii, table, low, high, *out),
        n, active.size * n * 8, bank._threads,
    )  # fmt: skip
    return out


def largest_gaps(
    bank: RidgeBank, active: IntArray, radii: FloatArray, table: FloatArray, reference: int
) -> tuple[FloatArray, FloatArray]:
    """By how much some candidate can beat candidate ``reference`` under each model of ``active``, shapes (K,).

    First with any coefficients within ``radii`` (K,), then with the estimated ones.  Differences of rewards under
    one model are bounded directly, which is sharper than the difference of two ends of a band.
    """
    differences = np.ascontiguousarray(table - table[:, reference : reference + 1])
    theta, _ = bank.coefficients()
    gaps, estimates = np.empty(active.size), np.empty(active.size)
    layout = (bank._factor, bank._starts, bank._columns, bank._offsets, bank._lead)
    mixing.certified_gaps(*layout, theta, active, radii, differences, gaps, estimates)
    return gaps, estimates
