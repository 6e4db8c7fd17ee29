"""Ridge posteriors of all M agents, kept as triangular factors and searched in one fused pass."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.estimation.ridge import _kernels as kernels
from alexp.estimation.ridge import _screen as screens
from alexp.estimation.ridge import _sweep as sweeps

# Handing work to a thread costs tens of microseconds; below these sizes one thread is faster.
_THREADED_FACTOR = 400_000  # floats of factor touched by an update
_THREADED_SWEEP = 10_000_000  # floats of factor times candidates, about a millisecond of work

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_pid = 0


def _pool(threads: int) -> ThreadPoolExecutor:
    """Shared pool of ``threads`` workers, made on first use and again in a forked child (threads do not fork)."""
    global _pools_pid
    if _pools_pid != os.getpid():
        _pools.clear()
        _pools_pid = os.getpid()
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="alexp-ridge")
    return _pools[threads]


class RidgeBank:
    """M ridge regressions on column subsets of one dictionary, updated together.

    Model j uses the columns S_j = ``columns[offsets[j]:offsets[j+1]]`` of a dictionary of P features.  With Phi_j
    the (t, d_j) features seen so far, V_j = Phi_j'Phi_j + ridge_j^2 I, its posterior mean and width are

        mu_j(x) = phi_j(x)' V_j^-1 Phi_j'y,        s_j(x) = ||phi_j(x)||_{V_j^-1}.

    ``intercept=True`` adds an unpenalised constant to every model.  Each model keeps the R-factor of
    [1? | Phi_j | y] stacked on its ridge rows and absorbs an observation by Givens rotations: O(d_j^2) per
    observation, backward stable, no periodic refactorisation.

    Parameters
    ----------
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows.
    ridge : float (M,) or a number, the square root of the ridge penalty, > 0.
    intercept : whether every model has an unpenalised constant.
    threads : most threads to use for large problems; all cores by default.  Results do not depend on it.

    Example
    -------
    >>> bank = RidgeBank(np.array([0, 1]), np.array([0, 1, 2]), ridge=np.array([1.0, 1.0]))
    >>> bank.update(np.array([1.0, 3.0]), 2.0)
    >>> bank.coefficients()[0].round(3).tolist()
    [1.0, 0.6]
    """

    def __init__(
        self,
        columns: npt.ArrayLike,
        offsets: npt.ArrayLike,
        ridge: npt.ArrayLike,
        intercept: bool = False,
        threads: int | None = None,
    ) -> None:
        self._columns = _index_vector("columns", columns)
        self._offsets = _index_vector("offsets", offsets)
        _check_groups(self._columns, self._offsets)
        self.n_models = len(self._offsets) - 1
        self._ridge = _per_model("ridge", ridge, self.n_models)
        squared = self._ridge * self._ridge
        if not (np.all(self._ridge > 0) and np.all(squared >= np.finfo(np.float64).tiny)):
            raise ValueError("ridge must be positive, with a square that does not underflow")
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1 or None, got {threads}")
        self.intercept = bool(intercept)
        self.n_observations = 0
        self._threads = threads if threads is not None else os.cpu_count() or 1
        self._lead = int(self.intercept)
        self._n_columns = int(self._columns.max()) + 1 if len(self._columns) else 0
        rows = np.diff(self._offsets) + (self._lead + 1)
        self._starts = np.zeros(self.n_models + 1, dtype=np.int64)
        np.cumsum(rows * (rows + 1) // 2, out=self._starts[1:])
        self._factor = kernels.initial_factor(self._starts, self._offsets, self._lead, self._ridge)
        self._winners = np.full(self.n_models, -1, dtype=np.int64)  # of the last sweep, where the next one starts
        self._screened: tuple[FloatArray, Any, FloatArray] | None = None  # the last table, see _prepared

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
        state = (self._factor, self._starts, self._columns, self._offsets, self._lead, features, reward)
        self._over_models(lambda first, last: kernels.absorb(*state, first, last), len(self._factor) > _THREADED_FACTOR)
        self.n_observations += 1

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
        noise = _float_vector("normals", normals, len(self._columns))
        factors = _per_model("scale", scale, self.n_models)
        draws = np.empty(len(self._columns))
        state = (self._factor, self._starts, self._offsets, self._lead)
        self._over_models(
            lambda first, last: kernels.posterior_draws(*state, first, last, noise, factors, draws),
            len(self._factor) > _THREADED_FACTOR,
        )
        return draws

    def mean(self, j: int, features: npt.ArrayLike) -> FloatArray:
        """mu_j at n points, shape (n,); ``features`` (n, P) are rows of the dictionary."""
        return self._posterior(j, features)[0]

    def width(self, j: int, features: npt.ArrayLike) -> FloatArray:
        """s_j = ||phi_j||_{V_j^-1} at n points, shape (n,), never negative; ``features`` (n, P).

        With an intercept the norm is that of (1, phi_j); before any observation the constant's infinite variance,
        common to all points, is left out.
        """
        return self._posterior(j, features)[1]

    def argmax_ucb(self, table: FloatArray, width: npt.ArrayLike) -> IntArray:
        """Index of the best candidate of every agent, argmax_i mu_j(x_i) + width_j s_j(x_i), shape (M,).

        ``table`` (P, N), C-contiguous, holds feature p at candidate i; ``width`` (M,) >= 0 or a number.  The first
        of equal candidates wins.  The intercept shifts all of a model's scores alike and is left out of them.
        """
        self._check_table(table)
        widths = _per_model("width", width, self.n_models)
        if widths.min() < 0.0:
            raise ValueError(f"width must not be negative, got {widths.min()}")
        state = (self._factor, self._starts, self._columns, self._offsets, self._lead, widths)
        return self._search(table, sweeps.sweep_ucb, state)

    def argmax_linear(
        self, table: FloatArray, coefficients: npt.ArrayLike, intercepts: npt.ArrayLike | None = None
    ) -> IntArray:
        """Index of the best candidate of every agent under given coefficients (nnz,), shape (M,).

        argmax_i phi_j(x_i)'coefficients_j, the first of equal candidates; ``intercepts`` (M,) shift all of a
        model's scores alike, so they are checked and left out.
        """
        self._check_table(table)
        theta = _float_vector("coefficients", coefficients, len(self._columns))
        if intercepts is not None:
            _float_vector("intercepts", intercepts, self.n_models)
        return self._search(table, sweeps.sweep_linear, (self._columns, self._offsets, theta))

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

    def state(self) -> dict[str, AnyArray | int]:
        """Everything that observations have changed; ``restore`` on an equal bank continues bit for bit."""
        return {"factor": self._factor.copy(), "n_observations": self.n_observations}

    def restore(self, state: dict[str, AnyArray | int]) -> None:
        """Take over a ``state()`` of a bank with the same groups, ridge and intercept."""
        missing = {"factor", "n_observations"} - set(state)
        if missing:
            raise ValueError(f"state lacks {sorted(missing)}; pass what state() returned")
        factor = _float_vector("state['factor']", state["factor"], len(self._factor)).copy()
        count = int(state["n_observations"])
        if count < 0:
            raise ValueError(f"state['n_observations'] must not be negative, got {count}")
        self._factor, self.n_observations = factor, count

    def _posterior(self, j: int, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        if not 0 <= j < self.n_models:
            raise IndexError(f"model index must lie in 0..{self.n_models - 1}, got {j}")
        points = np.asarray(features, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] < self._n_columns:
            raise ValueError(f"features must have shape (n, P) with P >= {self._n_columns}, got {points.shape}")
        own = self._columns[self._offsets[j] : self._offsets[j + 1]]
        gathered = np.ascontiguousarray(points[:, own].T)
        packed = self._factor[self._starts[j] : self._starts[j + 1]]
        theta, mean, width = np.empty(len(own)), np.empty(len(points)), np.empty(len(points))
        kernels.model_coefficients(packed, self._lead + len(own) + 1, self._lead, theta)
        sweeps.model_posterior(packed, self._lead, gathered, theta, mean, width)
        if self.intercept:
            mean += kernels.model_intercept(packed, len(own) + 2, theta)
        return mean, width

    def _check_table(self, table: FloatArray) -> None:
        if not isinstance(table, np.ndarray) or table.dtype != np.float64 or not table.flags.c_contiguous:
            raise ValueError("table must be a C-contiguous float64 array of shape (P, N); see np.ascontiguousarray")
        if table.ndim != 2 or table.shape[0] < self._n_columns or table.shape[1] == 0:
            raise ValueError(f"table must have shape (P, N) with P >= {self._n_columns} and N >= 1, got {table.shape}")

    def _search(self, table: FloatArray, kernel: Callable[..., None], state: tuple[Any, ...]) -> IntArray:
        """Run a sweep over all models and candidates, split by models or, with few models, by candidates."""
        candidates = table.shape[1]
        state = (*state, *self._prepared(table))
        threads = self._threads if len(self._factor) * candidates > _THREADED_SWEEP else 1
        index, value = self._winners.copy(), np.empty(self.n_models)
        if threads == 1 or self.n_models >= 4 * threads:
            self._over_models(lambda first, last: kernel(*state, first, last, 0, candidates, index, value), threads > 1)
        else:
            cuts = [candidates * part // threads for part in range(threads + 1)]
            indices, values = np.tile(index, (threads, 1)), np.empty((threads, self.n_models))
            jobs = [
                _pool(threads).submit(kernel, *state, 0, self.n_models, low, high, indices[part], values[part])
                for part, (low, high) in enumerate(pairwise(cuts))
            ]
            for job in jobs:
                job.result()
            # argmax takes the first of equal parts, and parts are in candidate order.
            index = indices[values.argmax(axis=0), np.arange(self.n_models)]
        self._winners = index
        return index.copy()

    def _prepared(self, table: FloatArray) -> tuple[FloatArray, Any, FloatArray]:
        """The table and what the sweep's screen needs of it; for a table that cannot change, only made once."""
        if self._screened is None or self._screened[0] is not table or table.flags.writeable:
            self._screened = (table, *screens.narrow_table(table))
        return self._screened

    def _over_models(self, task: Callable[[int, int], None], threaded: bool) -> None:
        """Run task(first, last) over all models, in chunks of equal factor size when threaded."""
        if not threaded or self._threads == 1:
            task(0, self.n_models)
            return
        marks = np.linspace(0, len(self._factor), 4 * self._threads + 1)
        cuts = np.searchsorted(self._starts, marks).tolist()
        for job in [_pool(self._threads).submit(task, first, last) for first, last in pairwise(cuts)]:
            job.result()


def _index_vector(name: str, values: npt.ArrayLike) -> IntArray:
    vector = np.asarray(values)
    if vector.ndim != 1 or (vector.size and not np.issubdtype(vector.dtype, np.integer)):
        raise ValueError(f"{name} must be a vector of integers, got shape {vector.shape}, dtype {vector.dtype}")
    return np.ascontiguousarray(vector, dtype=np.int64)


def _check_groups(columns: IntArray, offsets: IntArray) -> None:
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(columns) or np.any(np.diff(offsets) < 0):
        raise ValueError("offsets must start at 0, never decrease, end at len(columns) and describe at least one model")
    if len(columns) and columns.min() < 0:
        raise ValueError(f"columns must not be negative, got {columns.min()}")


def _float_vector(name: str, values: Any, size: int) -> FloatArray:
    vector = np.ascontiguousarray(values, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {np.shape(values)}")
    if not kernels.all_finite(vector):
        raise ValueError(f"{name} must hold finite numbers only, got NaN or infinity")
    return vector


def _per_model(name: str, values: npt.ArrayLike, n_models: int) -> FloatArray:
    if np.ndim(values) == 0:
        values = np.full(n_models, values, dtype=np.float64)
    return _float_vector(name, values, n_models)
