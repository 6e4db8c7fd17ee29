"""Online mirror descent with the log-barrier regulariser, the master step of Corral (Agarwal et al. 2017)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray

_MOST_STEPS = 100


def log_barrier_omd(p: npt.ArrayLike, losses: npt.ArrayLike, rates: npt.ArrayLike) -> FloatArray:
    """One step from p, shape (..., M): the q with 1/q_j = 1/p_j + rates_j (losses_j - xi) that sums to one.

    `losses` and `rates` broadcast against p; losses may be negative, only their differences matter. Several
    distributions, one per leading index, are moved at once.

    With poles b_j = losses_j + 1/(rates_j p_j) and u = min_j b_j - xi > 0, q_j = 1/(rates_j (b_j - min b + u)).
    The sum g(u) of these terms falls from at least 1 at u = 1/rates_argmin to at most 1 at u = sum_j 1/rates_j,
    and 1/g is concave, so Newton's method on 1/g = 1 climbs from the left end without ever overshooting. Working
    with the distance u to the nearest pole, instead of xi, keeps full relative precision however large the
    losses are.

    >>> log_barrier_omd([0.5, 0.5], [1.0, 0.0], 1.0).round(4).tolist()
    [0.382, 0.618]
    """
    start, cost, rate = _checked(p, losses, rates)
    poles = cost + 1.0 / (rate * start)
    nearest = np.argmin(poles, axis=-1, keepdims=True)
    distance = poles - np.take_along_axis(poles, nearest, axis=-1)
    u = 1.0 / np.take_along_axis(rate, nearest, axis=-1)
    for _ in range(_MOST_STEPS):
        terms = 1.0 / (rate * (distance + u))
        total = terms.sum(axis=-1, keepdims=True)
        slope = (rate * terms * terms).sum(axis=-1, keepdims=True)
        step = np.maximum(total * (total - 1.0) / slope, 0.0)
        u = u + step
        if np.all(step <= 4.0 * np.finfo(np.float64).eps * u):
            break
    q = 1.0 / (rate * (distance + u))
    return np.asarray(q / q.sum(axis=-1, keepdims=True))


def _checked(
    p: npt.ArrayLike, losses: npt.ArrayLike, rates: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    start = np.asarray(p, dtype=np.float64)
    if start.ndim < 1 or start.shape[-1] < 1:
        raise ValueError(f"p must have shape (..., M) with M >= 1, got {start.shape}")
    if not (np.all(np.isfinite(start)) and np.all(start > 0.0)):
        raise ValueError("p must be positive and finite; the log-barrier is infinite at zero")
    if not np.allclose(start.sum(axis=-1), 1.0, rtol=0.0, atol=1e-6):
        raise ValueError(f"p must sum to one, got {start.sum(axis=-1)}")
    try:
        cost = np.broadcast_to(np.asarray(losses, dtype=np.float64), start.shape)
        rate = np.broadcast_to(np.asarray(rates, dtype=np.float64), start.shape)
    except ValueError as error:
        raise ValueError(
            f"losses and rates must broadcast to the shape {start.shape} of p, got {np.shape(losses)} and "
            f"{np.shape(rates)}"
        ) from error
    if not np.all(np.isfinite(cost)):
        raise ValueError("losses must be finite")
    if not (np.all(np.isfinite(rate)) and np.all(rate > 0.0)):
        raise ValueError("rates must be positive and finite")
    return start, cost, rate
