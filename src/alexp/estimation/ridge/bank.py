"""Ridge posteriors of all M agents, kept as triangular factors and searched in one fused pass."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray, IntArray, NarrowArray
from alexp.estimation.posteriors import CandidateMoments, Envelope, feature_major
from alexp.estimation.ridge import _kernels as kernels
from alexp.estimation.ridge import _moments as moments
from alexp.estimation.ridge import _points
from alexp.estimation.ridge import _screen as screens
from alexp.estimation.ridge import _sweep as sweeps
from alexp.estimation.ridge._roots import covariance_roots
from alexp.estimation.ridge.factors import PackedFactors, float_vector, per_model
from alexp.estimation.ridge.threads import pool, run_parts
from alexp.problem.candidates import Choices

# Handing work to a thread costs tens of microseconds; below these sizes one thread is faster.
_THREADED_SWEEP = 10_000_000  # floats of factor times candidates, about a millisecond of work
_THREADED_CANDIDATES = 2_000_000  # candidates times factor entries


class RidgeBank(PackedFactors):
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
    forget : weight of a reward for each one that came after it: Phi_j'W Phi_j + ridge_j^2 I with W = forget^age.

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
        forget: float | None = None,
    ) -> None:
        super().__init__(columns, offsets, ridge, intercept, threads, forget)
        self._winners = np.full(self.n_models, -1, dtype=np.int64)  # of the last sweep, where the next one starts
        self._screened: tuple[FloatArray, NarrowArray, FloatArray] | None = None  # the last table, see _prepared

    def believing(self, rows: FloatArray, members: IntArray | None = None) -> RidgeBank:
        """A bank of all models, or of ``members`` (K,), that has absorbed ``rows`` (k, P) at its own means.

        Means stay, and a row p takes (phi_x'V^-1 phi_p)^2 / (1 + phi_p'V^-1 phi_p) from every s_j^2(x).
        """
        if members is None or members.size == self.n_models:
            out = copy(self)
            out._factor = self._factor.copy()
        else:
            offsets = np.append(0, np.cumsum(np.diff(self._offsets)[members]))
            columns = self._columns[_pieces(self._offsets, members)]
            out = RidgeBank(columns, offsets, self._ridge[members], self.intercept, self._threads)
            out._factor, out.n_observations = self._factor[_pieces(self._starts, members)], self.n_observations
        out.believe(rows)
        return out

    # -- one model ---------------------------------------------------------------------------------------------

    def mean(self, j: int, features: Choices | npt.ArrayLike) -> FloatArray:
        """mu_j at n points, shape (n,); ``features`` (n, P) are rows of the dictionary, or choices."""
        return self._posterior(j, features)[0]

    def width(self, j: int, features: Choices | npt.ArrayLike) -> FloatArray:
        """s_j = ||phi_j||_{V_j^-1} at n points, shape (n,), never negative; ``features`` (n, P).

        With an intercept the norm is that of (1, phi_j); before any observation the constant's infinite variance,
        common to all points, is left out, and choices are compared as `levelled` says.
        """
        return self._posterior(j, features)[1]

    def draw(self, j: int, table: FloatArray, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the candidates of ``table`` (P, n) under one draw of model j's coefficients, shape (n,).

        ``normals`` (d_j,) are independent standard normals and are overwritten; the covariance is scale^2 V_j^-1. The
        constant of an intercept, common to all candidates, is left out.
        """
        packed, own = self._packed(j), self._own(j)
        rows = self._lead + own.size + 1
        theta = np.empty(own.size)
        kernels.one_deviation(packed, rows, self._lead, normals)
        kernels.one_mean(packed, rows, self._lead, theta)
        return np.asarray((theta + scale * normals) @ table[own])

    # -- every model's best candidate --------------------------------------------------------------------------

    def argmax_ucb(self, choices: Choices | FloatArray, width: npt.ArrayLike) -> IntArray:
        """Index of the best candidate of every agent, argmax_i mu_j(x_i) + width_j s_j(x_i), shape (M,).

        A table (P, N), C-contiguous, holds feature p at candidate i; ``width`` (M,) >= 0 or a number.  The first
        of equal candidates wins.  The intercept shifts all of a model's scores alike and is left out of them.
        """
        self._check_table(feature_major(choices))
        table = self.levelled(choices)
        widths = per_model("width", width, self.n_models)
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
        theta = float_vector("coefficients", coefficients, len(self._columns))
        if intercepts is not None:
            float_vector("intercepts", intercepts, self.n_models)
        return self._search(table, sweeps.sweep_linear, (self._columns, self._offsets, theta))

    def argmax_mean(self, choices: Choices) -> IntArray:
        """Index of the best candidate of every agent by its mean, shape (M,)."""
        return self.argmax_linear(choices.table, *self.coefficients())

    def argmax_draw(self, choices: Choices, rng: np.random.Generator, scale: float) -> IntArray:
        """Index of the best candidate of every agent under one draw of its coefficients, shape (M,)."""
        return self.argmax_linear(choices.table, self.sample(rng.standard_normal(len(self._columns)), scale))

    # -- all models together -----------------------------------------------------------------------------------

    def at(self, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean mu_j and squared width ||phi_j||^2_{V_j^-1} of every model at one dictionary row (P,), shapes (M,)."""
        mean, quadratic = np.empty(self.n_models), np.empty(self.n_models)
        moments.point_posteriors(*self._layout(), *self.coefficients(), row, mean, quadratic)
        return mean, quadratic

    def values(
        self, rows: FloatArray, members: IntArray, unknown: float = 0.0, normals: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, squared width and R_j^-T normals_j of some models at few dictionary rows (n, P), shapes (K, n).

        `normals` (K, widest) are those of every member, the intercept's first; the third result is empty without. Of a
        constant that has seen no reward, `unknown` is the standard deviation in units of the noise's.
        """
        mean, quadratic = np.empty((2, members.size, len(rows)))
        given = np.empty((0, 0)) if normals is None else normals
        noise = np.empty((0, 0) if normals is None else mean.shape)
        _points.values_at(*self._layout(), members, rows, unknown, given, mean, quadratic, noise)
        return mean, quadratic, noise

    def envelope(self, members: IntArray, radii: FloatArray, choices: Choices | FloatArray) -> Envelope:
        """Smallest and largest reward of any of ``members`` (K,) with its coefficients within ``radii`` (K,).

        min_j and max_j of mu_j(x) -/+ radius_j ||phi_j(x)||_{V_j^-1} at the choices, or at a table (P, n).
        """
        table = self.levelled(choices)
        n = table.shape[1]
        out = Envelope(np.full(n, np.inf), np.full(n, -np.inf), np.full(n, -1, dtype=np.int64))
        fits = (*self._layout(), *self.coefficients(), members, radii, table)
        self._over_candidates(lambda low, high: moments.add_band(*fits, low, high, *out), n, members.size * n * 8)
        return out

    def largest_gaps(
        self, members: IntArray, radii: FloatArray, choices: Choices | FloatArray, reference: int
    ) -> tuple[FloatArray, FloatArray]:
        """By how much some candidate can beat candidate ``reference`` under each of ``members``, shapes (K,).

        First with any coefficients within ``radii`` (K,), then with the estimated ones. Differences of rewards under
        one model are bounded directly, which is sharper than the difference of two ends of a band.
        """
        table = feature_major(choices)
        differences = np.ascontiguousarray(table - table[:, reference : reference + 1])
        theta, _ = self.coefficients()
        gaps, estimates = np.empty(members.size), np.empty(members.size)
        moments.certified_gaps(*self._layout(), theta, members, radii, differences, gaps, estimates)
        return gaps, estimates

    def add_coefficients(self, members: IntArray, shares: FloatArray, out: FloatArray) -> None:
        """Add the weighted coefficients of some models to ``out`` (P,), with the constant last if there is one."""
        grouping = (self._columns, self._offsets, self._lead)
        moments.add_mean_coefficients(*grouping, *self.coefficients(), members, shares, out)

    def add_second_moments(
        self,
        members: IntArray,
        shares: FloatArray,
        variances: FloatArray,
        reference: FloatArray,
        support: IntArray,
        out: FloatArray,
    ) -> None:
        """Add weighted second moments of some models' coefficients about ``reference`` to ``out``, (P, P) or one more.

        ``support`` are the nonzero entries of the reference; model j's covariance is variances_j V_j^-1.
        """
        fits = (*self._layout(), *self.coefficients(), members, shares)
        moments.add_second_moments(*fits, variances, reference, support, out)

    def merge_moments(
        self,
        into: CandidateMoments,
        members: IntArray,
        shares: FloatArray,
        variances: FloatArray,
        choices: Choices | FloatArray,
    ) -> None:
        """Merge weighted means and variances of some models' rewards into the moments at all candidates (P, n)."""
        table = feature_major(choices)
        n = table.shape[1]
        fits = (*self._layout(), *self.coefficients(), members, shares, variances, table)
        target = (into.total, into.mean, into.within, into.between)
        self._over_candidates(partial(_merge, fits, target), n, members.size * n * 8)
        into.total += float(shares.sum())

    def roots(self, members: IntArray, table: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
        """Means (m, n) of some models at candidates (P, n), intercepts left out, and R_j^-T phi_j (m, n, width).

        Rows are padded with zeros; roots[k] roots[k]' = Phi_j V_j^-1 Phi_j'.
        """
        means, roots = np.empty((members.size, table.shape[1])), np.empty((members.size, table.shape[1], width))
        covariance_roots(*self._layout(), members, table, means, roots)
        return means, roots

    def levelled(self, choices: Choices | FloatArray) -> FloatArray:
        """The table (P, n) that widths at candidates are taken of: less its mean, as long as the constant is unknown.

        The constant's infinite variance is the same for all candidates, and is left out. What is left is the variance
        of the differences to the mean of them. One candidate, and points that are none, have nothing to differ from.
        """
        table = feature_major(choices)
        known = not self.intercept or self.n_observations > 0 or self._factor[0] != 0.0
        if known or table.shape[1] < 2 or not isinstance(choices, Choices) or choices.indices is None:
            return table
        out = np.ascontiguousarray(table - table.mean(axis=1, keepdims=True))
        out.flags.writeable = False
        return out

    # -- inside ------------------------------------------------------------------------------------------------

    def _layout(self) -> tuple[FloatArray, IntArray, IntArray, IntArray, int]:
        return self._factor, self._starts, self._columns, self._offsets, self._lead

    def _packed(self, j: int) -> FloatArray:
        return self._factor[self._starts[j] : self._starts[j + 1]]

    def _own(self, j: int) -> IntArray:
        return self._columns[self._offsets[j] : self._offsets[j + 1]]

    def _posterior(self, j: int, features: Choices | npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        if not 0 <= j < self.n_models:
            raise IndexError(f"model index must lie in 0..{self.n_models - 1}, got {j}")
        points = self.levelled(features).T if isinstance(features, Choices) else np.asarray(features, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] < self._n_columns:
            raise ValueError(f"features must have shape (n, P) with P >= {self._n_columns}, got {points.shape}")
        own = self._own(j)
        gathered = np.ascontiguousarray(points[:, own].T)
        packed = self._packed(j)
        theta, mean, width = np.empty(len(own)), np.empty(len(points)), np.empty(len(points))
        kernels.one_mean(packed, self._lead + len(own) + 1, self._lead, theta)
        sweeps.model_posterior(packed, self._lead, gathered, theta, mean, width)
        if self.intercept:
            mean += kernels.model_intercept(packed, len(own) + 2, theta)
        return mean, width

    def _check_table(self, table: FloatArray) -> None:
        if not isinstance(table, np.ndarray) or table.dtype != np.float64 or not table.flags.c_contiguous:
            raise ValueError("table must be a C-contiguous float64 array of shape (P, N); see np.ascontiguousarray")
        if table.ndim != 2 or table.shape[0] < self._n_columns or table.shape[1] == 0:
            raise ValueError(f"table must have shape (P, N) with P >= {self._n_columns} and N >= 1, got {table.shape}")

    def _search(self, table: FloatArray, kernel: Callable[..., None], state: tuple[object, ...]) -> IntArray:
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
                pool(threads).submit(kernel, *state, 0, self.n_models, low, high, indices[part], values[part])
                for part, (low, high) in enumerate(pairwise(cuts))
            ]
            for job in jobs:
                job.result()
            # argmax takes the first of equal parts, and parts are in candidate order.
            index = indices[values.argmax(axis=0), np.arange(self.n_models)]
        self._winners = index
        return index.copy()

    def _prepared(self, table: FloatArray) -> tuple[FloatArray, NarrowArray, FloatArray]:
        """The table and what the sweep's screen needs of it; for a table that cannot change, only made once."""
        if self._screened is None or self._screened[0] is not table or table.flags.writeable:
            self._screened = (table, *screens.narrow_table(table))
        return self._screened

    def _over_candidates(self, task: Callable[[int, int], None], n: int, work: int) -> None:
        """Run task(low, high) over all candidates, in parallel when there is enough work."""
        parts = self._threads if work > _THREADED_CANDIDATES else 1
        if parts == 1:
            task(0, n)
        else:
            run_parts(task, [n * part // parts for part in range(parts + 1)], parts)


def _pieces(starts: IntArray, members: IntArray) -> IntArray:
    """Numbers of the entries starts[j]..starts[j + 1] - 1 of some j, one after the other."""
    sizes = starts[members + 1] - starts[members]
    ends = np.cumsum(sizes)
    return np.asarray(np.repeat(starts[members] - (ends - sizes), sizes) + np.arange(ends[-1] if ends.size else 0))


def _merge(fits: tuple[Any, ...], target: tuple[Any, ...], low: int, high: int) -> None:
    moments.add_candidate_moments(*fits, low, high, *target)  # type: ignore[call-arg]
