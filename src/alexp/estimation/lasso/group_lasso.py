"""Online group Lasso: rows arrive one by one, lambda changes, and every solve is warm and certified.

The problem on t observations, in the scaling of "Anytime Model Selection in Linear Bandits" (NeurIPS 2023), is

    min over theta of  (1/t) ||y - Phi theta||^2 + 2 lambda sum_j w_j ||theta_j||_2,

where block j of Phi holds the columns S_j of a dictionary B (t, P). Groups may share columns, repeat and differ in
size. A prediction needs only beta (P,), the sum of all theta_j scattered to their columns. Of many minimisers the
canonical one has the least norm; it depends on no order of columns, groups or observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import floats, number, record, whole
from alexp.common.validation import LARGEST
from alexp.common.warning import caution
from alexp.estimation.estimate import Estimate
from alexp.estimation.lasso._linalg import centre_row, rotate_in
from alexp.estimation.lasso._newton import Groups
from alexp.estimation.lasso._solve_groups import solve as solve_groups
from alexp.estimation.lasso._solve_subsets import solve_subsets, subset_of
from alexp.problem.groups import MOST_NUMBERED, binomial_table

if TYPE_CHECKING:
    from alexp.problem.models import ModelClass


# Up to this many columns the P x P factor and Gram matrix pay for themselves (see docs/solver.md).
GRAM_COLUMNS = 256
_FIRST_ROWS = 16
# Twice what the ridge that singles out a minimiser may be of the penalty, and what it may add to the gap. A tenth of it
# would leave ten times more in beta of the order of columns and groups.
_KAPPA = 5e-7
_FINE = 1e-12  # the gap at which little is left in beta of the start; one Newton step more than 1e-6, as a rule

Solution = tuple[FloatArray, IntArray, FloatArray, float, int]  # beta, active groups, their eta, gap, iterations

_NO_GROUPS: IntArray = np.empty(0, dtype=np.int64)
_NO_MAGNITUDES: FloatArray = np.empty(0)


class ConvergenceWarning(UserWarning):
    """The group Lasso was solved at a larger lambda than asked for, the next that double precision can certify."""


@dataclass(frozen=True, eq=False)
class LassoFit(Estimate):
    """A certified solution of the group Lasso.

    Attributes
    ----------
    groups, magnitudes : (k,) the active groups and their eta_j, equal to ||theta_j|| / w_j at the optimum.
    lam : the lambda it solves; larger than what was asked for where that could not be certified.
    gap : (P - D) / P for the primal value P of this solution and the dual value D of its rescaled residual, both of the
        problem as stated, at ``lam``.
    iterations : steps of the solver.
    """

    lam: float
    gap: float
    iterations: int


@dataclass(frozen=True)
class GroupLasso:
    """Specification of the regression: stop at a certified relative duality gap of ``tol``.

    ``regime`` says how the data are kept: ``"gram"`` (a P x P triangular factor and Gram matrix; P small),
    ``"rows"`` (the observations themselves; P large) or ``"auto"``.

    Where there are many minimisers, the ``canonical`` one is that of least sum_i (w_i beta_i)^2, w_i being the least
    weight of a group with column i: the limit of a ridge on beta that vanishes. It is found with a ridge of less than a
    millionth of the penalty, and solved further than to ``tol``, so that little is left in beta of the order of columns
    and groups; the gap is that of the problem without the ridge. If not canonical, any minimiser is returned.
    """

    tol: float = 1e-6
    max_iter: int = 1000
    regime: Literal["auto", "gram", "rows"] = "auto"
    canonical: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tol) and self.tol > 0.0):
            raise ValueError(f"tol must be positive and finite, got {self.tol!r}")
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}")
        if self.regime not in ("auto", "gram", "rows"):
            raise ValueError(f'regime must be "auto", "gram" or "rows", got {self.regime!r}')

    def bind(self, models: ModelClass) -> GroupLassoPath:
        """Return an empty data set for these models."""
        if models.enumerated_on is not None:  # their number is all that matters
            return self.bind_groups(models.n_columns, None, None, None, models.intercept, models.subset_size)
        return self.bind_groups(
            models.n_columns, models.columns_flat, models.offsets, models.scales, models.intercept, models.subset_size
        )

    def bind_groups(
        self,
        n_columns: int,
        columns: npt.ArrayLike | None,
        offsets: npt.ArrayLike | None,
        weights: npt.ArrayLike | None = None,
        intercept: bool = False,
        subset_size: int | None = None,
    ) -> GroupLassoPath:
        """Return an empty data set for these groups.

        Group j holds ``columns[offsets[j]:offsets[j + 1]]`` of the ``n_columns`` dictionary columns and weight
        ``weights[j]`` (1 if not given). With ``subset_size=s`` the groups are all size-s subsets of the columns in
        lexicographic order, with equal weights; ``columns`` and ``offsets`` are then not used.
        """
        if n_columns < 1:
            raise ValueError(f"n_columns must be at least 1, got {n_columns!r}")
        if subset_size is None:
            groups, binomial = explicit_groups(n_columns, columns, offsets, weights), None
        else:
            groups, binomial = subset_groups(n_columns, subset_size, weights)
        gram = self.regime == "gram" or (self.regime == "auto" and n_columns <= GRAM_COLUMNS)
        return GroupLassoPath(self, n_columns, groups, binomial, intercept, gram)


class GroupLassoPath:
    """The observations so far; :meth:`append` adds one, :meth:`solve` changes nothing."""

    def __init__(
        self,
        spec: GroupLasso,
        n_columns: int,
        groups: Groups,
        binomial: IntArray | None,
        intercept: bool,
        keeps_gram: bool,
    ) -> None:
        self.spec = spec
        self.n_columns = n_columns
        self.n_observations = 0
        self._weight = 0.0  # of all observations together
        self.n_groups = int(groups.weights.size if binomial is None else binomial[-1, -1])
        self._groups = groups
        self._binomial = binomial
        self._intercept = intercept
        self._keeps_gram = keeps_gram
        self._mean = np.zeros(n_columns + 1)
        self._rho = np.zeros(1)
        self._n_rows = 0  # columns of xt and entries of z in use
        self._warned = False
        self._squares = least_weights(groups, n_columns) ** 2
        self._allocate(n_columns if keeps_gram else _FIRST_ROWS)
        self._gram = np.zeros((n_columns, n_columns)) if keeps_gram else np.zeros((0, 0))

    def append(self, row: npt.ArrayLike, y: float, weight: float = 1.0) -> None:
        """Add the observation y with dictionary row ``row`` (P,); ``weight`` > 0 multiplies its squared error."""
        row = np.ascontiguousarray(row, dtype=np.float64)
        y = float(y)
        if row.shape != (self.n_columns,):
            raise ValueError(f"row must have shape ({self.n_columns},), got {row.shape}")
        if not (abs(y) <= LARGEST and (np.abs(row) <= LARGEST).all()):
            raise ValueError(f"row and y must be finite and at most {LARGEST:g} in size")
        if weight != 1.0 and not (math.isfinite(weight) and weight > 0.0):
            raise ValueError(f"weight must be positive and finite, got {weight!r}")
        self.n_observations += 1
        self._weight += weight
        if self._intercept:
            row, y = centre_row(row, y, self._mean, self._weight / weight)
        if weight != 1.0:
            row, y = math.sqrt(weight) * row, math.sqrt(weight) * y
        if self._keeps_gram:
            self._n_rows = rotate_in(self._xt, self._z, self._rho, self._gram, row, y)
        else:
            self._store(row, y)

    def _store(self, row: FloatArray, y: float) -> None:
        """Keep the row itself; past 2 P rows, replace them by their triangular factor, which says the same."""
        if self._n_rows >= 2 * self.n_columns:
            data = np.column_stack([self._xt[:, : self._n_rows].T, self._z[: self._n_rows]])
            factor: FloatArray = np.linalg.qr(data, mode="r")  # type: ignore[assignment]
            self._n_rows = self.n_columns
            self._xt[:, : self._n_rows] = factor[:-1, :-1].T
            self._z[: self._n_rows] = factor[:-1, -1]
            self._rho[0] = math.hypot(self._rho[0], factor[-1, -1])
        if self._n_rows == self._z.size:
            xt, z = self._xt, self._z
            self._allocate(2 * z.size)
            self._xt[:, : z.size], self._z[: z.size] = xt, z
        self._xt[:, self._n_rows] = row
        self._z[self._n_rows] = y
        self._n_rows += 1

    def solve(self, lam: float, start: Estimate | None = None) -> LassoFit:
        """Return the solution at ``lam`` > 0, started from ``start`` (a fit of these groups on any data) if given.

        Where data span so many digits that no solution at ``lam`` can be certified, the one at the smallest lambda at
        which it can be is returned, with a :class:`ConvergenceWarning` the first time; its ``lam`` tells.
        """
        lam = float(lam)
        if not (math.isfinite(lam) and lam > 0.0):
            raise ValueError(f"lam must be positive and finite, got {lam!r}")
        if self.n_observations == 0:
            raise ValueError("no observations yet; append one before solving")
        if start is None:
            groups, magnitudes = _NO_GROUPS, _NO_MAGNITUDES
        else:
            groups, magnitudes = start.groups, start.magnitudes
            if groups.size and not 0 <= groups[0] <= groups[-1] < self.n_groups:
                raise ValueError(f"start has groups outside 0..{self.n_groups - 1}; it is not a fit of these groups")
        data = SolverData(self._xt, self._n_rows, self._z, float(self._rho[0]), self._gram)
        found = self._attempt(data, lam * self.n_observations, groups, magnitudes)
        if not found[3] <= self.spec.tol:
            found, lam = self._solve_graded(data, lam)
        beta, active, eta, gap, iterations = found
        intercept = float(self._mean[-1] - self._mean[:-1] @ beta) if self._intercept else 0.0
        return LassoFit(beta, intercept, active, eta, lam, gap, iterations)

    def _attempt(
        self, data: SolverData, mu: float, groups: IntArray = _NO_GROUPS, magnitudes: FloatArray = _NO_MAGNITUDES
    ) -> Solution:
        """Solve at ``mu`` = lambda t; certified if the gap says so."""
        problem = data.xt, data.n, data.z, data.rho**2, data.gram, self._groups
        tol = fine = self.spec.tol
        kappa = 0.0
        if self.spec.canonical:  # half of tol with the ridge; the gap without it is larger by at most kappa
            kappa, tol, fine = min(_KAPPA, 0.5 * tol), 0.5 * tol, min(0.5 * tol, _FINE)
        start, until = (mu, self._squares, kappa, groups, magnitudes), (tol, fine, self.spec.max_iter)
        if self._binomial is None:
            return solve_groups(*problem, *start, *until)
        return solve_subsets(*problem, self._binomial, self._groups.weights[0], *start, *until)

    def _solve_graded(self, data: SolverData, lam: float) -> tuple[Solution, float]:
        """A certified solution at ``lam`` in graded coordinates, or else at the smallest larger one that has one."""
        t, largest = self.n_observations, float(np.abs(data.xt[:, : data.n]).max(initial=0.0))
        data, unit = graded(data)
        zero = least_zero(data, self._groups, 1 if self._binomial is None else self._binomial.shape[1] - 1)
        for mu in penalties(lam * t / unit, zero):
            beta, active, eta, gap, iterations = self._attempt(data, mu)
            if gap <= self.spec.tol:
                solved = lam if mu == lam * t / unit else mu * unit / t
                break
        else:  # here zero is the solution, exactly
            beta, active, eta, gap, iterations = np.zeros(self.n_columns), _NO_GROUPS, _NO_MAGNITUDES, 0.0, 0
            solved = zero * unit / t
        if solved != lam and not self._warned:
            size = float(np.abs(data.z).max(initial=data.rho))
            self._warned = caution(
                f"rewards of up to {size:.2g} with features of up to {largest:.2g} span too many digits for the group "
                f"Lasso at lambda = {lam:.2g}; it is solved at {solved:.2g}, the next that can be certified. If a "
                "reward is a typing error, amend or retract it",
                ConvergenceWarning,
            )
        return (beta / unit, active, eta / unit, gap, iterations), solved

    def least_squares(self, columns: IntArray) -> Estimate:
        """Return the least-squares fit on some columns (k,), the one of least norm where there are several.

        Its groups are these columns, its magnitudes their coefficients' sizes; no part of it is certified.
        """
        beta = np.zeros(self.n_columns)
        if columns.size:  # the triangular factor, or the rows: both have the inner products of the data
            beta[columns] = np.linalg.lstsq(self._xt[columns, : self._n_rows].T, self._z[: self._n_rows], rcond=None)[0]
        intercept = float(self._mean[-1] - self._mean[:-1] @ beta) if self._intercept else 0.0
        return Estimate(beta, intercept, np.sort(columns), np.abs(beta[np.sort(columns)]))

    def read(self, state: State) -> LassoFit:
        """Invert ``LassoFit.state``."""
        return LassoFit.from_state(state, self.n_columns, self.n_groups)

    def group_coefficients(self, fit: LassoFit) -> dict[int, FloatArray]:
        """Return theta_j of every active group: eta_j beta / d on S_j, where d_i sums eta over the groups of i."""
        members = {int(j): self.members(int(j)) for j in fit.groups}
        total = np.zeros(self.n_columns)
        for (_, columns), eta in zip(members.items(), fit.magnitudes, strict=True):
            total[columns] += eta
        slope = np.divide(fit.beta, total, out=np.zeros(self.n_columns), where=total > 0.0)
        return {j: eta * slope[columns] for (j, columns), eta in zip(members.items(), fit.magnitudes, strict=True)}

    def members(self, j: int) -> IntArray:
        """Return the dictionary columns of group ``j``."""
        if self._binomial is None:
            return self._groups.columns[self._groups.offsets[j] : self._groups.offsets[j + 1]]
        size = self._binomial.shape[1] - 1
        subset = np.empty(size, dtype=np.int64)
        subset_of(j, self._binomial, size, subset)
        return subset

    def state(self) -> State:
        """Return everything needed to continue bit for bit, as arrays and integers."""
        return {
            "n_observations": self.n_observations,
            "weight": self._weight,
            "mean": self._mean.copy(),
            "rho": self._rho.copy(),
            "xt": self._xt[:, : self._n_rows].copy(),
            "z": self._z[: self._n_rows].copy(),
            "gram": self._gram.copy(),
        }

    def restore(self, state: State) -> None:
        """Continue from :meth:`state` of a path bound to the same groups."""
        n_rows = len(record("data", state, {"z": floats(None)})["z"])
        if self._keeps_gram and n_rows > self.n_columns:
            raise ValueError(f"data['z'] must have shape ({self.n_columns},) or be shorter, got ({n_rows},)")
        checks = {
            "n_observations": whole(low=int(n_rows > 0)),
            "weight": number(low=0.0),
            "mean": floats(*self._mean.shape),
            "rho": floats(1, low=0.0),
            "xt": floats(self.n_columns, n_rows),
            "z": floats(n_rows),
            "gram": floats(*self._gram.shape),
        }
        arrays = record("data", state, checks)
        square = arrays["xt"] @ arrays["xt"].T if self._keeps_gram else arrays["gram"]
        if not np.allclose(arrays["gram"], square, rtol=1e-6, atol=1e-9 * np.max(square, initial=0.0)):
            raise ValueError("data['gram'] must be the square of data['xt']: one of them is of other data, or damaged")
        self.n_observations = arrays["n_observations"]
        self._weight = arrays["weight"]
        self._mean, self._rho, self._gram = arrays["mean"], arrays["rho"], arrays["gram"]
        self._n_rows = n_rows
        self._allocate(self.n_columns if self._keeps_gram else max(n_rows, _FIRST_ROWS))
        self._xt[:, :n_rows], self._z[:n_rows] = arrays["xt"], arrays["z"]

    def _allocate(self, capacity: int) -> None:
        self._xt, self._z = np.zeros((self.n_columns, capacity)), np.zeros(capacity)


def explicit_groups(
    n_columns: int, columns: npt.ArrayLike | None, offsets: npt.ArrayLike | None, weights: npt.ArrayLike | None
) -> Groups:
    """Return the groups as checked arrays; equal weights of 1 if none are given."""
    if columns is None or offsets is None:
        raise ValueError("columns and offsets are required unless subset_size is given")
    flat = np.array(columns, dtype=np.int64)
    bounds = np.array(offsets, dtype=np.int64)
    if flat.ndim != 1 or bounds.ndim != 1 or bounds.size < 2 or bounds[0] != 0 or bounds[-1] != flat.size:
        raise ValueError("offsets must be one-dimensional, start at 0, end at len(columns) and define a group")
    sizes = np.diff(bounds)
    if (sizes < 1).any():
        raise ValueError(f"group {int(np.argmax(sizes < 1))} is empty; offsets must increase strictly")
    if flat.min() < 0 or flat.max() >= n_columns:
        raise ValueError(f"columns must lie in 0..{n_columns - 1}, got {flat.min()}..{flat.max()}")
    keys = np.sort(np.repeat(np.arange(sizes.size), sizes) * n_columns + flat)
    repeated = keys[1:][keys[1:] == keys[:-1]]
    if repeated.size:
        raise ValueError(f"group {repeated[0] // n_columns} holds column {repeated[0] % n_columns} twice")
    values = np.ones(sizes.size) if weights is None else np.array(weights, dtype=np.float64)
    if values.shape != (sizes.size,):
        raise ValueError(f"weights must have shape ({sizes.size},), got {values.shape}")
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise ValueError("weights must be positive and finite")
    return Groups(flat, bounds, values)


def least_weights(groups: Groups, n_columns: int) -> FloatArray:
    """The least weight of a group with each column, (P,); zero for columns in no group."""
    out = np.full(n_columns, np.inf)
    np.minimum.at(out, groups.columns, np.repeat(groups.weights, np.diff(groups.offsets)))
    return np.where(np.isfinite(out), out, 0.0)


def subset_groups(n_columns: int, size: int, weights: npt.ArrayLike | None) -> tuple[Groups, IntArray]:
    """Return the single columns as groups, each with the common weight, and the table that ranks subsets."""
    if not 1 <= size <= n_columns:
        raise ValueError(f"subset_size must lie in 1..{n_columns}, got {size!r}")
    values = np.ones(1) if weights is None else np.array(weights, dtype=np.float64).ravel()
    if values.size == 0 or (values != values[0]).any() or not (math.isfinite(values[0]) and values[0] > 0.0):
        raise ValueError("with subset_size the weights must be equal, positive and finite")
    if math.comb(n_columns, size) > MOST_NUMBERED:
        raise ValueError(
            f"subset_size={size} of n_columns={n_columns} gives more than 2**63 groups; use a smaller size"
        )
    singles = Groups(np.arange(n_columns), np.arange(n_columns + 1), np.full(n_columns, values[0]))
    return singles, binomial_table(n_columns, size)


# Lambdas to try, as shares of the largest, 2^-k. Of random problems that a plain solve fails on, four in five end at
# the first of these, and all at the fourth.
_DEPTHS = (80, 65, 50, 35, 20, 10)


class SolverData(NamedTuple):
    """What the solver sees of the data: ||y - B beta||^2 = ||z - xt' beta||^2 + rho^2, on the first ``n`` entries."""

    xt: FloatArray  # (P, >= n)
    n: int
    z: FloatArray  # (>= n,)
    rho: float
    gram: FloatArray  # (P, P), or empty where it is not kept


def graded(data: SolverData) -> tuple[SolverData, float]:
    """The same data in graded coordinates, with xt divided by a power of two, and that power.

    A certificate needs X'r to a relative accuracy of tol. Of a column x with ||x|| ||r|| >> lambda t only the rounding
    of x'r may be left. In graded coordinates, those of a QR decomposition whose columns come in the order of their
    size, the largest column has one entry, the next two, and so on: x'r is then a sum over few entries of r, each of
    which is accurate by itself. The power of two is exact, and keeps squares from overflowing. Dividing columns one by
    one would change nothing: the solver sees sqrt(d_i) x_i only, and d_i adapts.
    """
    rows, z = data.xt[:, : data.n].T, data.z[: data.n]
    unit = power_of_two(float(np.abs(rows).max(initial=0.0)))
    rows = rows / unit
    order = np.argsort(-np.square(rows).sum(axis=0), kind="stable")
    factor: FloatArray = np.linalg.qr(np.column_stack([rows[:, order], z]), mode="r")  # type: ignore[assignment]
    n = min(factor.shape[0], order.size)
    xt = np.zeros((order.size, n))
    xt[order] = factor[:n, :-1].T
    rho = math.hypot(data.rho, factor[n, -1]) if factor.shape[0] > n else data.rho
    gram = xt @ xt.T if data.gram.size else data.gram
    return SolverData(xt, n, np.ascontiguousarray(factor[:n, -1]), rho, gram), unit


def least_zero(data: SolverData, groups: Groups, size: int) -> float:
    """A lambda t at which every coefficient is zero, within a factor of sqrt(d) of the least one.

    The ``groups`` are single columns where all subsets of this ``size`` are meant; else it is 1.
    """
    pull = np.abs(data.xt[:, : data.n] @ data.z[: data.n])
    return size * float((np.add.reduceat(pull[groups.columns], groups.offsets[:-1]) / groups.weights).max())


def penalties(mu: float, zero: float) -> Iterator[float]:
    """Values of lambda t from ``mu`` upwards, all below the ``zero`` at which everything is zero.

    Graded coordinates have a limit, too: with coefficients rounded to 53 bits a residual of size 1e-16 ||y|| remains,
    whose square is more than tol lambda ||theta|| if lambda is below about 1e-26 of ``zero``. Every larger lambda has a
    well-defined solution.
    """
    yield mu
    yield from (larger for k in _DEPTHS if (larger := math.ldexp(zero, -k)) > mu)


def power_of_two(size: float) -> float:
    """The power of two just above ``size``; 1 for 0.

    >>> power_of_two(5.0), power_of_two(0.0)
    (8.0, 1.0)
    """
    return math.ldexp(1.0, math.frexp(size)[1]) if size > 0.0 else 1.0
