"""What to do when a plain solve cannot be certified: other coordinates first, then a larger lambda.

A certificate needs X'r to a relative accuracy of tol. Of a column x with ||x|| ||r|| >> lambda t only the rounding of
x'r may be left. In *graded* coordinates, those of a QR decomposition whose columns come in the order of their size,
the largest column has one entry, the next two, and so on: x'r is then a sum over few entries of r, each of which is
accurate by itself. The whole matrix is divided by a power of two, exactly, so that no square overflows. Dividing
columns one by one would change nothing: the solver sees sqrt(d_i) x_i only, and d_i adapts.

Beyond that double precision is at its end: with coefficients rounded to 53 bits a residual of size 1e-16 ||y|| remains,
whose square is more than tol lambda ||theta|| if lambda is below about 1e-26 of the one at which all is zero. Every
larger lambda has a well-defined solution, so the path of lambdas is gone down as far as it can be certified.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.lasso._working import Groups

# Lambdas to try, as shares of the largest, 2^-k. Of random problems that a plain solve fails on, four in five end at
# the first of these, and all at the fourth.
_DEPTHS = (80, 65, 50, 35, 20, 10)


class Sight(NamedTuple):
    """What the solver sees of the data: ||y - B beta||^2 = ||z - xt' beta||^2 + rho^2, on the first ``n`` entries."""

    xt: FloatArray  # (P, >= n)
    n: int
    z: FloatArray  # (>= n,)
    rho: float
    gram: FloatArray  # (P, P), or empty where it is not kept


def graded(sight: Sight) -> tuple[Sight, float]:
    """The same data in graded coordinates, with xt divided by a power of two, and that power."""
    rows, z = sight.xt[:, : sight.n].T, sight.z[: sight.n]
    unit = power_of_two(float(np.abs(rows).max(initial=0.0)))
    rows = rows / unit
    order = np.argsort(-np.square(rows).sum(axis=0), kind="stable")
    factor: FloatArray = np.linalg.qr(np.column_stack([rows[:, order], z]), mode="r")  # type: ignore[assignment]
    n = min(factor.shape[0], order.size)
    xt = np.zeros((order.size, n))
    xt[order] = factor[:n, :-1].T
    rho = math.hypot(sight.rho, factor[n, -1]) if factor.shape[0] > n else sight.rho
    gram = xt @ xt.T if sight.gram.size else sight.gram
    return Sight(xt, n, np.ascontiguousarray(factor[:n, -1]), rho, gram), unit


def least_zero(sight: Sight, groups: Groups, size: int) -> float:
    """A lambda t at which every coefficient is zero, within a factor of sqrt(d) of the least one.

    The ``groups`` are single columns where all subsets of this ``size`` are meant; else it is 1.
    """
    pull = np.abs(sight.xt[:, : sight.n] @ sight.z[: sight.n])
    return size * float((np.add.reduceat(pull[groups.columns], groups.offsets[:-1]) / groups.weights).max())


def penalties(mu: float, zero: float) -> Iterator[float]:
    """Values of lambda t from ``mu`` upwards, all below the ``zero`` at which everything is zero."""
    yield mu
    yield from (larger for k in _DEPTHS if (larger := math.ldexp(zero, -k)) > mu)


def power_of_two(size: float) -> float:
    """The power of two just above ``size``; 1 for 0.

    >>> power_of_two(5.0), power_of_two(0.0)
    (8.0, 1.0)
    """
    return math.ldexp(1.0, math.frexp(size)[1]) if size > 0.0 else 1.0
