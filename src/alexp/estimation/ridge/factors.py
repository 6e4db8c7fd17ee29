"""Packed triangular factors of many ridge regressions: what observations change, and what is read off directly."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.schema import floats, record, whole
from alexp.estimation.ridge import _kernels as kernels
from alexp.estimation.ridge.threads import run_parts

_SMALLEST_RIDGE, _LARGEST_RIDGE = 1e-153, 1e153  # their squares are neither zero nor infinite
# Handing work to a thread costs tens of microseconds; below this size one thread is faster.
_ROUNDING = 1e-9  # by which a diagonal that may only grow has ever become smaller
_THREADED_FACTOR = 400_000  # floats of factor touched by an update


class FactorState(TypedDict):
    """What observations have changed."""

    factor: FloatArray
    n_observations: int


class PackedFactors:
    """R-factors of [1? | Phi_j | y] stacked on the ridge rows, for M models; see `RidgeBank` for the parameters."""

    def __init__(
        self,
        columns: npt.ArrayLike,
        offsets: npt.ArrayLike,
        ridge: npt.ArrayLike,
        intercept: bool = False,
        threads: int | None = None,
        forget: float | None = None,
    ) -> None:
        self._columns = index_vector("columns", columns)
        self._offsets = index_vector("offsets", offsets)
        check_groups(self._columns, self._offsets)
        self.n_models = len(self._offsets) - 1
        self._ridge = per_model("ridge", ridge, self.n_models)
        if not np.all((self._ridge >= _SMALLEST_RIDGE) & (self._ridge <= _LARGEST_RIDGE)):
            raise ValueError(
                f"ridge must be positive, between {_SMALLEST_RIDGE:g} and {_LARGEST_RIDGE:g}, got "
                f"{self._ridge.min():g} to {self._ridge.max():g}: noise and coefficients are of too different a size "
                "for these features"
            )
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1 or None, got {threads}")
        self.intercept = bool(intercept)
        self.n_observations, self.forget = 0, forget
        self._threads = threads if threads is not None else os.cpu_count() or 1
        self._lead = int(self.intercept)
        self._n_columns = int(self._columns.max()) + 1 if len(self._columns) else 0
        rows = np.diff(self._offsets) + (self._lead + 1)
        self._starts = np.zeros(self.n_models + 1, dtype=np.int64)
        np.cumsum(rows * (rows + 1) // 2, out=self._starts[1:])
        self._factor = kernels.initial_factor(self._starts, self._offsets, self._lead, self._ridge)

    @property
    def counts(self) -> IntArray:
        """The number of rewards, shape (1,): all of them tell of the constant."""
        return np.array([self.n_observations])

    def update(self, row: npt.ArrayLike, y: float) -> None:
        """Absorb one observation: ``row`` (P,) is the dictionary at the action taken, ``y`` its reward."""
        features = np.ascontiguousarray(row, dtype=np.float64)
        if features.ndim != 1 or features.shape[0] < self._n_columns:
            raise ValueError(f"row must have shape (P,) with P >= {self._n_columns}, got {features.shape}")
        reward = float(y)
        if not math.isfinite(reward):
            raise ValueError(f"y must be a finite number, got {reward}")
        if not kernels.all_finite(features):
            raise ValueError("row must hold finite numbers only, got NaN or infinity")
        self.fade()
        state = (self._factor, self._starts, self._columns, self._offsets, self._lead, features, reward)
        self._over_models(lambda first, last: kernels.absorb(*state, first, last), len(self._factor) > _THREADED_FACTOR)
        self.n_observations += 1

    def fade(self) -> None:
        """Give all rewards so far the weight of those that one more has followed; nothing where they keep it."""
        if self.forget is not None:
            old = (self._factor, self._starts, self._offsets, self._lead, self._ridge, self.forget)
            self._over_models(lambda first, last: kernels.fade(*old, first, last), len(self._factor) > _THREADED_FACTOR)

    def believe(self, rows: FloatArray) -> None:
        """Absorb rows (k, P) one after the other, each with the reward that every model expects there.

        Means and residuals stay. The number of observations stays as well: nothing has been seen.
        """
        state = (self._factor, self._starts, self._columns, self._offsets, self._lead, np.ascontiguousarray(rows))
        self._over_models(
            lambda first, last: kernels.believe(*state, first, last), len(self._factor) > _THREADED_FACTOR
        )

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Posterior means V_j^-1 Phi_j'y, aligned with ``columns`` (nnz,), and intercepts (M,), zero without."""
        theta, constants = np.empty(len(self._columns)), np.empty(self.n_models)
        state = (self._factor, self._starts, self._offsets, self._lead)
        self._over_models(
            lambda first, last: kernels.posterior_means(*state, first, last, theta, constants),
            len(self._factor) > _THREADED_FACTOR,
        )
        return theta, constants

    def sample(self, normals: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
        """Coefficients plus scale_j R_j^-1 normals_j, shape (nnz,): Gaussian with covariance scale_j^2 V_j^-1.

        ``normals`` (nnz,) are independent standard normals.  With an intercept the result is the draw of the
        feature coefficients under the joint posterior, the intercept marginalised: R is upper triangular with
        the intercept first, so the features' part of a joint draw does not involve the intercept's normal.
        """
        noise = float_vector("normals", normals, len(self._columns))
        factors = per_model("scale", scale, self.n_models)
        draws = np.empty(len(self._columns))
        state = (self._factor, self._starts, self._offsets, self._lead)
        self._over_models(
            lambda first, last: kernels.posterior_draws(*state, first, last, noise, factors, draws),
            len(self._factor) > _THREADED_FACTOR,
        )
        return draws

    def solve(self, j: int, right: FloatArray) -> FloatArray:
        """V_j^-1 right for a vector (d_j,), with the intercept's entry first if there is one."""
        start, rows = int(self._starts[j]), self._lead + int(self._offsets[j + 1] - self._offsets[j]) + 1
        out = np.array(right, dtype=np.float64)
        kernels.solve_normal(self._factor[start:], rows, out)
        return out

    def triangle(self, j: int) -> FloatArray:
        """The R-factor of model j's features, preceded by the intercept's if there is one: upper triangular, square."""
        rows = self._lead + int(self._offsets[j + 1] - self._offsets[j]) + 1
        out = np.zeros((rows, rows))
        out[np.triu_indices(rows)] = self._factor[self._starts[j] : self._starts[j + 1]]
        return out[:-1, :-1]

    def log_determinants(self) -> FloatArray:
        """log det(V_j / ridge_j^2), shape (M,).

        With an intercept V_j is the Schur complement of the constant (the Gram matrix of centred features plus
        the ridge); the full determinant has the extra factor t, the same for all models.
        """
        out: FloatArray = kernels.log_determinants(self._factor, self._starts, self._offsets, self._lead, self._ridge)
        return out

    def residuals(self) -> FloatArray:
        """Penalised residual sums of squares, min over theta of RSS + ridge_j^2 ||theta||^2, shape (M,)."""
        corners: FloatArray = self._factor[self._starts[1:] - 1]
        return corners * corners

    def evidence(self, noise: float) -> FloatArray:
        """-F_j / (2 noise^2) - log det(V_j / ridge_j^2) / 2, shape (M,): the log evidence up to a common constant."""
        with np.errstate(over="ignore"):  # to minus infinity, for rewards beyond 1e150 times the noise
            return -self.residuals() / (2.0 * noise**2) - 0.5 * self.log_determinants()

    def state(self) -> FactorState:
        """Everything that observations have changed; ``restore`` on an equal bank continues bit for bit."""
        return {"factor": self._factor.copy(), "n_observations": self.n_observations}

    def restore(self, state: FactorState) -> None:
        """Take over a ``state()`` of a bank with the same groups, ridge and intercept."""
        known = record("state", state, {"factor": floats(len(self._factor)), "n_observations": whole()})
        fresh = kernels.initial_factor(self._starts, self._offsets, self._lead, self._ridge)
        diagonal = fresh > 0.0  # the ridge, which observations only add to
        if np.any(known["factor"][diagonal] < (1.0 - _ROUNDING) * fresh[diagonal]):
            raise ValueError("state['factor'] has a diagonal below the ridge: it is of other models, or damaged")
        self._factor, self.n_observations = known["factor"], known["n_observations"]

    def _over_models(self, task: Callable[[int, int], None], threaded: bool) -> None:
        """Run task(first, last) over all models, in chunks of equal factor size when threaded."""
        if not threaded or self._threads == 1:
            task(0, self.n_models)
            return
        marks = np.linspace(0, len(self._factor), 4 * self._threads + 1)
        cuts = np.searchsorted(self._starts, marks).tolist()
        run_parts(task, cuts, self._threads)


def index_vector(name: str, values: npt.ArrayLike) -> IntArray:
    """Checked vector of integers."""
    vector = np.asarray(values)
    if vector.ndim != 1 or (vector.size and not np.issubdtype(vector.dtype, np.integer)):
        raise ValueError(f"{name} must be a vector of integers, got shape {vector.shape}, dtype {vector.dtype}")
    return np.ascontiguousarray(vector, dtype=np.int64)


def check_groups(columns: IntArray, offsets: IntArray) -> None:
    """Raise unless these are groups in compressed rows."""
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(columns) or np.any(np.diff(offsets) < 0):
        raise ValueError("offsets must start at 0, never decrease, end at len(columns) and describe at least one model")
    if len(columns) and columns.min() < 0:
        raise ValueError(f"columns must not be negative, got {columns.min()}")


def float_vector(name: str, values: npt.ArrayLike, size: int) -> FloatArray:
    """Checked vector of finite numbers, shape (size,)."""
    vector = np.ascontiguousarray(values, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {np.shape(values)}")
    if not kernels.all_finite(vector):
        raise ValueError(f"{name} must hold finite numbers only, got NaN or infinity")
    return vector


def per_model(name: str, values: npt.ArrayLike, n_models: int) -> FloatArray:
    """Checked vector (M,), from one number or one per model."""
    if np.ndim(values) == 0:
        values = np.full(n_models, values, dtype=np.float64)
    return float_vector(name, values, n_models)
