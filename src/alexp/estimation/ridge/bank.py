"""Many ridge posteriors as packed triangular factors: updates, evidence, values, every model's best candidate."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import BoolArray, FloatArray, IntArray, NarrowArray
from alexp.common.schema import floats, record, same, sequence, whole
from alexp.common.ties import rules
from alexp.estimation.posteriors import (
    CandidateMoments,
    Component,
    ComponentValues,
    Envelope,
    FixedRidges,
    Score,
    feature_major,
)
from alexp.estimation.ridge import _kernels as kernels, _search as sweeps, _values as values
from alexp.estimation.ridge.threads import pool, run_parts
from alexp.problem.candidates import NOTHING, Choices, Pending, PendingBlock

_SMALLEST_RIDGE, _LARGEST_RIDGE = 1e-153, 1e153  # their squares are neither zero nor infinite
_ROUNDING = 1e-9  # by which a diagonal that may only grow has ever become smaller
# Handing work to a thread costs tens of microseconds; below these sizes one thread is faster.
_THREADED_FACTOR = 400_000  # floats of factor touched by an update
_THREADED_SWEEP = 10_000_000  # floats of factor times candidates, about a millisecond of work
_THREADED_CANDIDATES = 2_000_000  # candidates times factor entries
_LAZY = 20_000  # components from which it pays to let the negligible ones sleep
_SLEEP, _WAKE = 45.0, 32.0  # how far below the best log evidence they fall asleep, and how close they may come
_MOSTLY = 0.25  # share of a cell's components that may be awake once any of them sleeps
_CANCELLED = 1e-10  # share of the largest term of a quadratic form below which too few digits of it are left
_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions
_MANY_VALUES = 1 << 18  # components times candidates from which looking at few candidates pays


class FactorState(TypedDict):
    """What observations have changed."""

    factor: FloatArray
    n_observations: int


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
        self._winners = np.full(self.n_models, -1, dtype=np.int64)  # of the last sweep, where the next one starts
        self._screened: tuple[FloatArray, NarrowArray, FloatArray] | None = None  # the last table, see _prepared
        self._solved: tuple[FloatArray, FloatArray] | None = None  # coefficients since the factors last changed
        self.is_awake: BoolArray | None = None  # (M,), once a model sleeps; see `sleep`

    @property
    def counts(self) -> IntArray:
        """The number of rewards, shape (1,): all of them tell of the constant."""
        return np.array([self.n_observations])

    def update(self, row: npt.ArrayLike, y: float) -> None:
        """Absorb one observation: ``row`` (P,) is the dictionary at the action taken, ``y`` its reward."""
        self.absorb(*self.checked(row, y))

    def checked(self, row: npt.ArrayLike, y: float) -> tuple[FloatArray, float]:
        """An observation as `absorb` takes it; raises unless both are numbers, and of these columns."""
        features = np.ascontiguousarray(row, dtype=np.float64)
        if features.ndim != 1 or features.shape[0] < self._n_columns:
            raise ValueError(f"row must have shape (P,) with P >= {self._n_columns}, got {features.shape}")
        reward = float(y)
        if not math.isfinite(reward):
            raise ValueError(f"y must be a finite number, got {reward}")
        if not kernels.all_finite(features):
            raise ValueError("row must hold finite numbers only, got NaN or infinity")
        return features, reward

    def absorb(self, features: FloatArray, reward: float) -> None:
        """Take in an observation that was `checked`."""
        if self.forget is not None:
            self.fade()
        self._solved = None
        if self.is_awake is None:
            self._over_models(kernels.absorb, *self.layout(), features, reward)
        else:
            self._keep(features[: self._n_columns], reward)
            awake = self.awake
            self._catch_up(awake, np.full(awake.size, self.n_observations), self.n_observations + 1)
        self.n_observations += 1

    def fade(self) -> None:
        """Where rewards are forgotten, give all so far the weight of those that one more has followed."""
        assert self.forget is not None
        self._solved = None
        old = (self._factor, self._starts, self._offsets, self._lead, self._ridge, self.forget)
        self._over_models(kernels.fade, *old)

    # -- fantasies ---------------------------------------------------------------------------------------------

    def with_fantasies(
        self, rows: FloatArray, members: IntArray | None = None, older: FloatArray | None = None
    ) -> RidgeBank:
        """A bank of all models, or of ``members`` (K,), that has absorbed pending ``rows`` (k, P) at its own means.

        Each row comes with the reward that every model expects there. Means and residuals stay, and a row p takes
        (phi_x'V^-1 phi_p)^2 / (1 + phi_p'V^-1 phi_p) from every s_j^2(x). Members must be awake. Rows one after the
        other give the same bits as all at once. The number of observations stays: nothing has been seen. `older` are
        factors of rows before these, see `gathered`.
        """
        if members is None:
            out = copy(self)
            out._factor, out._solved = self._factor.copy(), None
        else:
            out = self._only(members)
        if older is not None:
            out.stack(older, believe_means=True)
        fits = (out._factor, out._starts, out._columns, out._offsets, out._lead, np.ascontiguousarray(rows))
        if len(out._factor) > _THREADED_FACTOR:
            out._over_models(kernels.believe, *fits)
        else:
            kernels.believe(*fits, 0, out.n_models)
        return out

    def _only(self, members: IntArray) -> RidgeBank:
        """A copy of ``members`` (K,)."""
        out = copy(self)
        if members.size == self.n_models:
            out._factor = self._factor.copy()
        else:
            out.n_models, out._ridge, out.is_awake = members.size, self._ridge[members], None
            out._columns, out._offsets = _taken(self._columns, self._offsets, members)
            out._factor, out._starts = _taken(self._factor, self._starts, members)
            out._winners = np.full(members.size, -1, dtype=np.int64)
        out._solved = None
        return out

    def gathered(self, rows: FloatArray, members: IntArray) -> RidgeBank:
        """The factors of [1? | Phi_j] of ``rows`` (k, P) alone: ``members`` without rewards and without a ridge."""
        out = self._only(members)
        out._factor[:] = 0.0
        out._over_models(kernels.gather, *out.layout(), np.ascontiguousarray(rows))
        return out

    def stack(self, factors: FloatArray, believe_means: bool) -> None:
        """Absorb the rows of `gathered` factors: with the reward that every model expects there, or without one."""
        self._solved = None
        fits = (self._factor, factors, self._starts, self._offsets, self._lead, believe_means)
        self._over_models(kernels.stack, *fits)

    def factors_of(self, members: IntArray) -> FloatArray:
        """The packed factors of some models, one after the other."""
        return np.asarray(_taken(self._factor, self._starts, members)[0])

    # -- sleep -------------------------------------------------------------------------------------------------

    def sleep(self, members: IntArray) -> None:
        """Leave these awake models out of updates from now on.

        The rows they miss are kept, and absorbed one after the other by `wake`: the very operations that were left out,
        so that results do not depend on which models slept when. Until then ``residuals`` and ``log_determinants`` of
        sleeping models are lower bounds, because both never fall, and their ``coefficients`` are zero.
        """
        if members.size == 0:
            return
        if self.is_awake is None:
            self.is_awake = np.ones(self.n_models, dtype=bool)
            self._seen = np.zeros(self.n_models, dtype=np.int64)  # rows that a sleeping model has absorbed
            self._rows, self._rewards = np.empty((0, self._n_columns)), np.empty(0)
        self._seen[members], self.is_awake[members], self._solved = self.n_observations, False, None

    def wake(self, members: IntArray) -> None:
        """Absorb what these sleeping models have missed."""
        if self.is_awake is None or members.size == 0:
            return
        self._catch_up(members, self._seen[members], self.n_observations)
        self.is_awake[members], self._solved = True, None
        if self.is_awake.all():
            self.is_awake = None

    @property
    def awake(self) -> IntArray:
        """Numbers of the models that are up to date."""
        return np.arange(self.n_models) if self.is_awake is None else np.flatnonzero(self.is_awake)

    def _keep(self, features: FloatArray, y: float) -> None:
        """Rows are numbered like observations; those before the first sleep are not needed and left empty."""
        needed = self.n_observations + 1
        if needed > self._rewards.size:
            rows, rewards = self._rows, self._rewards
            self._rows, self._rewards = np.empty((2 * needed, self._n_columns)), np.empty(2 * needed)
            self._rows[: len(rows)], self._rewards[: rewards.size] = rows, rewards
        self._rows[needed - 1], self._rewards[needed - 1] = features, y

    def _catch_up(self, members: IntArray, seen: IntArray, last: int) -> None:
        """Absorb the rows seen_k..last-1 into model members_k."""
        kernels.absorb_members(*self.layout(), self._rows, self._rewards, members, seen, last)

    # -- coefficients and evidence -----------------------------------------------------------------------------

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Posterior means V_j^-1 Phi_j'y, aligned with ``columns`` (nnz,), and intercepts (M,), zero without.

        They may be kept until the factors change, and must not be written to.
        """
        return self.fits()[5:]

    def fits(self) -> tuple[FloatArray, IntArray, IntArray, IntArray, int, FloatArray, FloatArray]:
        """The `layout` and the coefficients, for the kernels."""
        solved = self._solved
        if solved is None:
            solved = np.zeros(len(self._columns)), np.zeros(self.n_models)
            state = (self._factor, self._starts, self._offsets, self._lead)
            if self.is_awake is not None:
                kernels.member_means(*state, self.awake, *solved)
            elif len(self._factor) > _THREADED_FACTOR:
                self._over_models(kernels.posterior_means, *state, out=solved)
            else:
                kernels.posterior_means(*state, 0, self.n_models, *solved)
            if len(self._factor) <= _THREADED_FACTOR:  # those of large banks would take memory that factors need
                self._solved = solved
        return self._factor, self._starts, self._columns, self._offsets, self._lead, *solved

    def sample(self, normals: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
        """Coefficients plus scale_j R_j^-1 normals_j, shape (nnz,): Gaussian with covariance scale_j^2 V_j^-1.

        ``normals`` (nnz,) are independent standard normals.  With an intercept the result is the draw of the
        feature coefficients under the joint posterior, the intercept marginalised: R is upper triangular with
        the intercept first, so the features' part of a joint draw does not involve the intercept's normal.
        """
        noise = float_vector("normals", normals, len(self._columns))
        factors = per_model("scale", scale, self.n_models)
        draws = np.empty(len(self._columns))
        fits = (self._factor, self._starts, self._offsets, self._lead)
        self._over_models(kernels.posterior_draws, *fits, out=(noise, factors, draws))
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

    def log_determinants(self, members: IntArray | None = None) -> FloatArray:
        """log det(V_j / ridge_j^2) of all models or of some, shape (M,).

        With an intercept V_j is the Schur complement of the constant (the Gram matrix of centred features plus
        the ridge); the full determinant has the extra factor t, the same for all models.
        """
        members = np.arange(self.n_models) if members is None else members
        out = np.empty(members.size)
        kernels.log_determinants(self._factor, self._starts, self._offsets, self._lead, self._ridge, members, out)
        return out

    def residuals(self) -> FloatArray:
        """Penalised residual sums of squares, min over theta of RSS + ridge_j^2 ||theta||^2, shape (M,)."""
        corners: FloatArray = self._factor[self._starts[1:] - 1]
        return corners * corners

    def evidence(self, noise: float) -> FloatArray:
        """-F_j / (2 noise^2) - log det(V_j / ridge_j^2) / 2, shape (M,): the log evidence up to a common constant."""
        with np.errstate(over="ignore"):  # to minus infinity, for rewards beyond 1e150 times the noise
            return -self.residuals() / (2.0 * noise**2) - 0.5 * self.log_determinants()

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
        return self._search(table, sweeps.sweep_ucb, (*self.layout(), widths))

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
        values.point_posteriors(*self.fits(), row, mean, quadratic)
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
        values.values_at(*self.layout(), members, rows, unknown, given, mean, quadratic, noise)
        return mean, quadratic, noise

    def largest_means(self, members: IntArray, table: FloatArray) -> FloatArray:
        """The largest mean of each of some models at the candidates of a table (P, n), shape (K,)."""
        out = np.empty(members.size)
        values.largest_means(*self.fits()[2:4], *self.fits()[5:], members, table, out)
        return out

    def envelope(self, members: IntArray, radii: FloatArray, choices: Choices | FloatArray) -> Envelope:
        """Smallest and largest reward of any of ``members`` (K,) with its coefficients within ``radii`` (K,).

        min_j and max_j of mu_j(x) -/+ radius_j ||phi_j(x)||_{V_j^-1} at the choices, or at a table (P, n).
        """
        table = self.levelled(choices)
        n = table.shape[1]
        out = Envelope(np.full(n, np.inf), np.full(n, -np.inf), np.full(n, -1, dtype=np.int64))
        fits, tie = (*self.fits(), members, radii, table), rules.tie
        self._over_candidates(lambda low, high: values.add_band(*fits, low, high, tie, *out), n, members.size * n * 8)
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
        gaps, estimates = np.empty(members.size), np.empty(members.size)
        values.certified_gaps(*self.fits()[:6], members, radii, differences, gaps, estimates)
        return gaps, estimates

    def add_coefficients(self, members: IntArray, shares: FloatArray, out: FloatArray) -> None:
        """Add the weighted coefficients of some models to ``out`` (P,), with the constant last if there is one."""
        kernels.add_mean_coefficients(*self.fits()[2:], members, shares, out)

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
        fits = (*self.fits(), members, shares, variances, table)
        target = (into.total, into.mean, into.within, into.between)
        self._over_candidates(partial(_merge, fits, target), n, members.size * n * 8)
        into.total += float(shares.sum())

    def roots(self, members: IntArray, table: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
        """Means (m, n) of some models at candidates (P, n), intercepts left out, and R_j^-T phi_j (m, n, width).

        Rows are padded with zeros; roots[k] roots[k]' = Phi_j V_j^-1 Phi_j'.
        """
        means, roots = np.empty((members.size, table.shape[1])), np.empty((members.size, table.shape[1], width))
        values.covariance_roots(*self.layout(), members, table, means, roots)
        return means, roots

    def levelled(self, choices: Choices | FloatArray) -> FloatArray:
        """The table (P, n) that widths at candidates are taken of: less its mean, as long as the constant is unknown.

        The constant's infinite variance is the same for all candidates, and is left out. What is left is the variance
        of the differences to the mean of them. One candidate, and points that are none, have nothing to differ from.
        """
        table = choices.table if isinstance(choices, Choices) else choices
        known = not self.intercept or self.n_observations > 0 or self._factor[0] != 0.0
        if known or table.shape[1] < 2 or not isinstance(choices, Choices) or choices.indices is None:
            return table
        out = np.ascontiguousarray(table - table.mean(axis=1, keepdims=True))
        out.flags.writeable = False
        return out

    # -- state -------------------------------------------------------------------------------------------------

    def state(self) -> FactorState:
        """Everything that observations have changed; wakes every model.

        ``restore`` on an equal bank continues bit for bit.
        """
        if self.is_awake is not None:
            self.wake(np.flatnonzero(~self.is_awake))
        return {"factor": self._factor.copy(), "n_observations": self.n_observations}

    def restore(self, state: FactorState) -> None:
        """Take over a ``state()`` of a bank with the same groups, ridge and intercept."""
        known = record("state", state, {"factor": floats(len(self._factor)), "n_observations": whole()})
        fresh = kernels.initial_factor(self._starts, self._offsets, self._lead, self._ridge)
        diagonal = fresh > 0.0  # the ridge, which observations only add to
        if np.any(known["factor"][diagonal] < (1.0 - _ROUNDING) * fresh[diagonal]):
            raise ValueError("state['factor'] has a diagonal below the ridge: it is of other models, or damaged")
        self._factor, self.n_observations = known["factor"], known["n_observations"]
        self.is_awake, self._solved = None, None

    # -- inside ------------------------------------------------------------------------------------------------

    def layout(self) -> tuple[FloatArray, IntArray, IntArray, IntArray, int]:
        """Factors, where each begins, columns, where each group begins, and 1 with an intercept, for the kernels."""
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
        values.model_posterior(packed, self._lead, gathered, theta, mean, width)
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
            self._over_models(kernel, *state, out=(0, candidates, rules.tie, index, value), threaded=threads > 1)
        else:
            cuts = [candidates * part // threads for part in range(threads + 1)]
            indices, values = np.tile(index, (threads, 1)), np.empty((threads, self.n_models))
            jobs = [
                pool(threads).submit(
                    kernel, *state, 0, self.n_models, low, high, rules.tie, indices[part], values[part]
                )
                for part, (low, high) in enumerate(pairwise(cuts))
            ]
            for job in jobs:
                job.result()
            largest = values.argmax(axis=0)  # the first of equal parts, and parts are in candidate order
            index = indices[largest, np.arange(self.n_models)]
            top = values.max(axis=0)
            if (values >= top - 2.0 * rules.tie * np.abs(top)).argmax(axis=0).tolist() != largest.tolist():
                # An earlier part may have one that ties.
                kernel(*state, 0, self.n_models, 0, candidates, rules.tie, index, value)
        self._winners = index
        return index.copy()

    def _prepared(self, table: FloatArray) -> tuple[FloatArray, NarrowArray, FloatArray]:
        """The table and what the sweep's screen needs of it; for a table that cannot change, only made once."""
        if self._screened is None or self._screened[0] is not table or table.flags.writeable:
            self._screened = (table, *sweeps.narrow_table(table))
        return self._screened

    def _over_models(
        self, kernel: Callable[..., None], *arguments: Any, out: tuple[Any, ...] = (), threaded: bool | None = None
    ) -> None:
        """Run kernel(*arguments, first, last, *out) over all models, in chunks of equal factor size when threaded."""
        threaded = len(self._factor) > _THREADED_FACTOR if threaded is None else threaded
        if not threaded or self._threads == 1:
            kernel(*arguments, 0, self.n_models, *out)
            return
        marks = np.linspace(0, len(self._factor), 4 * self._threads + 1)
        cuts = np.searchsorted(self._starts, marks).tolist()
        run_parts(lambda first, last: kernel(*arguments, first, last, *out), cuts, self._threads)

    def _over_candidates(self, task: Callable[[int, int], None], n: int, work: int) -> None:
        """Run task(low, high) over all candidates, in parallel when there is enough work."""
        parts = self._threads if work > _THREADED_CANDIDATES else 1
        if parts == 1:
            task(0, n)
        else:
            run_parts(task, [n * part // parts for part in range(parts + 1)], parts)


@dataclass(slots=True)
class Part:
    """What one cell contributes to a mixture: some models with their shares and noise variances.

    `numbers` are those of the models, `members` their places in the bank.
    """

    cell: int
    bank: RidgeBank
    numbers: IntArray
    members: IntArray
    shares: FloatArray
    variances: FloatArray


class CondensedTrials:
    """Many pending trials: blocks of their rows are condensed to one factor each, for the models of one bank.

    Fantasies change V_j by Phi_j'Phi_j of the pending rows, and so does the R-factor of [1? | Phi_j], which has d_j + 1
    rows however many trials there are. A reward takes a trial out of one block. The factors of the others are kept, and
    are the same for all cells of a grid.
    """

    def __init__(self) -> None:
        self._members = np.empty(0, dtype=np.int64)
        self._blocks: dict[PendingBlock, RidgeBank] = {}
        self._sum: RidgeBank | None = None  # of all blocks

    def prepare(self, bank: RidgeBank, blocks: tuple[PendingBlock, ...], members: IntArray) -> None:
        """Have the factors of these blocks for `members` (K,) of the bank's models, ascending."""
        if not np.isin(members, self._members, assume_unique=True).all():
            self._members, self._blocks = np.union1d(self._members, members), {}
        elif 2 * members.size <= self._members.size:  # others have become negligible
            few = np.searchsorted(self._members, members)
            self._members, self._blocks = members, {block: one._only(few) for block, one in self._blocks.items()}
        known = self._blocks
        self._blocks = {block: known.get(block) or bank.gathered(block.rows, self._members) for block in blocks}
        self._sum = bank.gathered(np.empty((0, 0)), self._members)
        for own in self._blocks.values():
            self._sum.stack(own.layout()[0], believe_means=False)

    def factors(self, members: IntArray) -> FloatArray:
        """Of the rows of all blocks, one model after the other, as `RidgeBank.stack` takes them."""
        assert self._sum is not None
        return self._sum.factors_of(np.searchsorted(self._members, members))


class RidgeGrid(FixedRidges):
    """A `PosteriorGrid` of packed factors.

    Parameters
    ----------
    n_columns : P, columns of the dictionary.
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows.
    ridges : (M,) for each cell, the square roots of the penalties.
    intercept : whether every model has an unpenalised constant.
    precise : never take moments through the coefficients, whose quadratic forms would round small variances away.
    forget : weight of a reward for each one that came after it.
    """

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        ridges: Sequence[FloatArray],
        intercept: bool,
        precise: bool = False,
        forget: float | None = None,
    ) -> None:
        self.n_models, self.n_columns, self._lead = len(offsets) - 1, n_columns, int(intercept)
        self._sizes, self._mean_size = np.diff(offsets), len(columns) / self.n_models
        self._precise = precise
        # Models that forget never sleep: fading would have to be repeated for each missed row.
        self._lazy = forget is None and self.n_models * len(ridges) >= _LAZY
        self.cells = [RidgeBank(columns, offsets, ridge, intercept, forget=forget) for ridge in ridges]
        if self._lazy:
            self._determinants = np.zeros((len(ridges), self.n_models))  # lower bounds for sleeping models
        # Pending trials, and numbers and fits with them by cell, since the last reward.
        self._fantasies: tuple[Pending, dict[int, tuple[IntArray, RidgeBank]]] = (NOTHING, {})
        self._older = CondensedTrials()
        self._residuals: FloatArray | None = None  # since the last reward, if no model may sleep

    @property
    def n_observations(self) -> int:
        return self.cells[0].n_observations

    @property
    def n_constants(self) -> int:
        return min(self._lead, self.n_observations)

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward into every cell; it does not matter which candidate it is of."""
        self._fantasies, self._residuals = (NOTHING, {}), None
        seen = self.cells[0].checked(row, y)
        for bank in self.cells:
            bank.absorb(*seen)

    # -- evidence ----------------------------------------------------------------------------------------------

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """Log evidence of every component, (cells, M); minus infinity for sleeping ones."""
        if self._lazy:
            return self._lazy_evidence(score, reach)
        return score(self.residuals(), np.array([bank.log_determinants() for bank in self.cells]))

    def residuals(self) -> FloatArray:
        """Penalised residuals of every component, (cells, M); lower bounds for sleeping ones."""
        out = self._residuals
        if out is None or self._lazy:
            out = self._residuals = np.array([bank.residuals() for bank in self.cells])
        return out

    def _lazy_evidence(self, score: Score, reach: float) -> FloatArray:
        """The same; wakes models that may matter and lets negligible ones sleep.

        Residual and determinant of a sleeping model are lower bounds, so that its score is an upper bound.
        """
        for bank, known in zip(self.cells, self._determinants, strict=True):
            known[bank.awake] = bank.log_determinants(bank.awake)
        while True:
            out = score(self.residuals(), self._determinants)
            best = max(float(row[bank.awake].max(initial=-np.inf)) for row, bank in zip(out, self.cells, strict=True))
            if not any(self._wake(g, out[g] > best - reach * _WAKE) for g in range(len(self.cells))):
                break
        for row, bank in zip(out, self.cells, strict=True):
            awake = bank.awake
            tired = awake[row[awake] < best - reach * _SLEEP]
            if awake.size - tired.size < _MOSTLY * self.n_models:  # updating all of them at once is fast
                bank.sleep(tired)
            if bank.is_awake is not None:
                row[~bank.is_awake] = -np.inf
        return out

    def _wake(self, cell: int, close: BoolArray) -> bool:
        """Wake the models of a cell that may be close to the best; whether there were any."""
        bank = self.cells[cell]
        if bank.is_awake is None:
            return False
        stirring = np.flatnonzero(close & ~bank.is_awake)
        bank.wake(stirring)
        self._determinants[cell, stirring] = bank.log_determinants(stirring)
        return bool(stirring.size)

    # -- moments -----------------------------------------------------------------------------------------------

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and total variance (within plus between components) at the choices, shapes (n,).

        ``weights`` (cells, M) sum to one; ``variances`` (cells, M) are those of the components' noise. ``pending``
        trials shrink the variances within components; what these disagree on, weights and means, stays.
        """
        parts = self._parts(weights, variances, pending)
        table = parts[0].bank.levelled(choices)
        n_active = 0
        for part in parts:
            n_active += part.members.size
        if self._by_coefficients(n_active, table.shape[1]):
            mean, variance, terms = self._through_coefficients(parts, table)
            if np.all(variance >= _CANCELLED * terms):
                return mean, variance
        merged = CandidateMoments.empty(table.shape[1])
        for part in parts:
            part.bank.merge_moments(merged, part.members, part.shares, part.variances, table)
        return merged.mean, merged.within + merged.between

    def components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending = NOTHING,
        least: float = _NEGLIGIBLE,
    ) -> Iterator[Component]:
        for part in self._parts(weights, variances, pending, least):
            for place, j in enumerate(part.members):
                mean, width = part.bank.mean(int(j), choices), part.bank.width(int(j), choices)
                yield Component(
                    float(part.shares[place]),
                    part.cell,
                    int(part.numbers[place]),
                    mean,
                    part.variances[place] * width**2,
                )

    def values(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> ComponentValues:
        parts, rows = self._parts(weights, variances, pending, least), np.ascontiguousarray(choices.table.T)
        both = [part.bank.values(rows, part.members) for part in parts]
        spreads = [part.variances[:, None] * squares for part, (_, squares, _) in zip(parts, both, strict=True)]
        shares = np.concatenate([part.shares for part in parts])
        numbers = np.concatenate([part.cell * self.n_models + part.numbers for part in parts])
        return ComponentValues(shares, np.concatenate([mean for mean, _, _ in both]), np.concatenate(spreads), numbers)

    def prefers_few(self, weights: FloatArray, n: int) -> bool:
        """Where there are many components and candidates, and no shorter way over the coefficients."""
        n_active = int(np.count_nonzero(weights > _NEGLIGIBLE))
        return n_active * n >= _MANY_VALUES and not self._by_coefficients(n_active, n)

    def largest_means(self, weights: FloatArray, choices: Choices, least: float) -> FloatArray:
        """The largest mean of each component of weight above `least` among some choices, (K,)."""
        out = [
            self.cells[cell].largest_means(members, choices.table)
            for cell, row in enumerate(weights)
            if (members := np.flatnonzero(row > least)).size
        ]
        return np.concatenate(out)

    def _parts(
        self, weights: FloatArray, variances: FloatArray, pending: Pending = NOTHING, least: float = _NEGLIGIBLE
    ) -> list[Part]:
        """The components that matter, with shares that sum to one.

        Fits with fantasies are kept until the next reward: one pending trial more is absorbed alone, to the same bits.
        """
        parts, total = list[Part](), 0.0
        for cell, row in enumerate(weights):
            own = np.flatnonzero(row > least)
            total += float(row[own].sum())
            if own.size:
                parts.append(Part(cell, self.cells[cell], own, own, row[own], variances[cell, own]))
        for part in parts:
            part.shares /= total
        if pending.trials.size:
            known, banks = self._fantasies
            if not pending.begins_with(known) or known.older != pending.older:
                known, banks = NOTHING, {}
            is_condensed, new = False, pending.newest[len(known.newest) :]
            for part in parts:
                numbers, bank = banks.get(part.cell, (None, part.bank))
                if numbers is not None and np.array_equal(numbers, part.numbers):
                    part.bank = bank.with_fantasies(new) if len(new) else bank
                else:
                    if pending.older and not is_condensed:
                        matter = np.unique(np.concatenate([other.numbers for other in parts]))
                        self._older.prepare(self.cells[0], pending.older, matter)
                        is_condensed = True
                    older = self._older.factors(part.numbers) if pending.older else None
                    part.bank = part.bank.with_fantasies(pending.newest, part.numbers, older)
                part.members = np.arange(part.numbers.size)
            self._fantasies = pending, {part.cell: (part.numbers, part.bank) for part in parts}
        return parts

    def _by_coefficients(self, n_active: int, n_candidates: int) -> bool:
        """Whether the route over coefficients is safe and takes fewer operations."""
        if self._precise:
            return False
        d, q = self._mean_size + self._lead, self.n_columns + self._lead
        through_coefficients = n_active * (2 * d * d + d**3 / 2 + 20) + (n_candidates + 4) * q * q / 2
        return through_coefficients < n_active * n_candidates * (d * d / 2 + 2 * d + 3)

    def _through_coefficients(self, parts: list[Part], table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and covariance of the coefficient vector, then one quadratic form per candidate, and its largest term.

        Second moments are taken about the heaviest component, not about zero, before the squared mean is subtracted:
        that component is part of the mixture, so with weight w it keeps the variance above w times what is subtracted.
        """
        mean, reference = np.zeros((2, self.n_columns + self._lead))
        covariance = np.zeros((mean.size, mean.size))
        fits, heaviest, largest = [], 0, -1.0
        for k, part in enumerate(parts):
            fits.append(part.bank.fits())
            if (top := float(part.shares.max())) > largest:
                heaviest, largest = k, top
        _, _, columns, offsets, _, coefficients, constants = fits[heaviest]
        j = parts[heaviest].members[np.argmax(parts[heaviest].shares)]
        reference[columns[offsets[j] : offsets[j + 1]]] = coefficients[offsets[j] : offsets[j + 1]]
        if self._lead:
            reference[-1] = constants[j]
        support = np.flatnonzero(reference)
        for fit, part in zip(fits, parts, strict=True):
            own = (part.members, part.shares, part.variances)
            kernels.add_moments(*fit, *own, reference, support, mean, covariance)
        covariance -= np.outer(mean - reference, mean - reference)
        values, spread = mean[: self.n_columns] @ table, np.empty(table.shape[1])
        kernels.quadratic_forms(table, covariance, self._lead, 0, table.shape[1], spread)
        diagonal = np.diag(covariance)
        constant = diagonal[-1] if self._lead else 0.0
        terms = (diagonal[: self.n_columns, None] * np.square(table)).max(axis=0, initial=constant)
        return values + (mean[-1] if self._lead else 0.0), np.maximum(spread, 0.0), terms

    def n_normals(self, model: int) -> int:
        return int(self._sizes[model])

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices under one draw of a component's coefficients, shape (n,)."""
        return self.cells[cell].draw(model, choices.table, normals, scale)

    def root_width(self, n: int) -> int:
        """One for each coefficient of the largest model."""
        return int(self._sizes.max())

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means (m, n) and square roots (m, n, D) of the covariances of some models."""
        return self.cells[cell].roots(members, choices.table, self.root_width(len(choices)))

    def state(self) -> list[FactorState]:
        """Everything that rewards have changed."""
        return [bank.state() for bank in self.cells]

    def restore(self, state: list[FactorState]) -> None:
        self._fantasies, self._residuals, self._older = (NOTHING, {}), None, CondensedTrials()
        for bank, saved in zip(self.cells, sequence("cells", state, len(self.cells)), strict=True):
            bank.restore(saved)
            same("n_observations of a cell", bank.n_observations, self.cells[0].n_observations, "as in the first")


def _taken(values: Any, starts: IntArray, members: IntArray) -> tuple[Any, IntArray]:
    """Entries starts[j]..starts[j + 1] - 1 of some j, one after the other, and where each of them begins, (K + 1,)."""
    sizes = starts[members + 1] - starts[members]
    ends = np.cumsum(sizes)
    places = np.repeat(starts[members] - (ends - sizes), sizes) + np.arange(ends[-1] if ends.size else 0)
    return values[places], np.append(0, ends)


def _merge(fits: tuple[Any, ...], target: tuple[Any, ...], low: int, high: int) -> None:
    values.add_candidate_moments(*fits, low, high, *target)  # type: ignore[call-arg]


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
