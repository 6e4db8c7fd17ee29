"""Prior scales: what the features of each model are divided by.

A mixture without stated sizes divides the features of model j by c_j, so that the mean of ||phi_j||^2 / c_j^2 over the
candidates is one. On a table that mean is known (`trace_divisors`, `prior_divisors`). Where candidates are new in every
round, the rows told stand in for them: after 1, 2, 4, ..., 64 rewards the posteriors are made anew with the divisors of
the rows so far, and fed with the rewards so far. From then on the divisors stay. All of it is a function of rows and
rewards in the order in which they came.

Where models are unions of sets of features, the columns are divided by units first, so that each set has the same size:
4 counts beside an embedding of 256 numbers would otherwise have a sixty-fourth of the prior variance, and be unheard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import anything, floats, record, same
from alexp.common.validation import VANISHING
from alexp.estimation.posteriors import PosteriorGrid
from alexp.problem.kernel_models import varying_part
from alexp.problem.matrices import Block, ModelOnTable
from alexp.problem.rows import dense, first_rows, spread

LAST = 64  # rewards after which divisors stay
_MOST = 300  # candidates between which the similarity under a kernel is averaged


class Scaling(NamedTuple):
    """What columns are divided by first, (P,), None for nothing; and then the features of every model, (M,)."""

    divisors: FloatArray
    units: FloatArray | None = None


Measure = Callable[[FloatArray], Scaling]


class Calibration:
    """Divisors of the models from the rows of the first 64 rewards.

    Parameters
    ----------
    make : the empty grid of models with given divisors (M,).
    measure : gives units and divisors for the rows (t, P) told so far, see `set_units` and `row_divisors`.
    scaling : those before the first reward.
    n_columns : P.
    """

    def __init__(
        self, make: Callable[[FloatArray], PosteriorGrid], measure: Measure, scaling: Scaling, n_columns: int
    ) -> None:
        self._make, self._measure, self.scaling = make, measure, scaling
        self._rows: FloatArray = np.empty((0, n_columns))  # none any more once divisors stay
        self._rewards: FloatArray = np.empty(0)

    def after(self, grid: PosteriorGrid, row: FloatArray, y: float) -> PosteriorGrid:
        """The grid to go on with once this one has absorbed a reward: itself, or one with new divisors."""
        t = grid.n_observations
        if t > LAST:
            return grid
        self._rows, self._rewards = np.vstack([self._rows, row]), np.append(self._rewards, y)
        if t & (t - 1) == 0:
            self.scaling = self._measure(self._rows)
            grid, units = self._make(self.scaling.divisors), self.scaling.units
            rows = self._rows if units is None else self._rows / units
            for told, reward in zip(rows, self._rewards, strict=True):
                grid.update(told, float(reward))
        if t == LAST:
            self._rows, self._rewards = self._rows[:0], self._rewards[:0]
        return grid

    def state(self, grid: PosteriorGrid) -> State:
        """Everything that rewards have changed, in the grid as well."""
        divisors, units = self.scaling
        own = {} if units is None else {"units": units}
        return own | {"divisors": divisors, "rows": self._rows, "rewards": self._rewards, "inner": grid.state()}

    def restored(self, state: State) -> PosteriorGrid:
        """Continue from `state`; the grid."""
        checks = {
            "divisors": floats(self.scaling.divisors.size, low=VANISHING),
            "rows": floats(None, self._rows.shape[1]),
            "rewards": floats(None),
            "inner": anything,
        }
        if (units := self.scaling.units) is not None:
            checks["units"] = floats(units.size, low=VANISHING)
        known = record("grid", state, checks)
        grid = self._make(known["divisors"])
        grid.restore(known["inner"])
        t = grid.n_observations
        for name in ("rows", "rewards"):
            same(f"number of grid[{name!r}]", len(known[name]), t if t < LAST else 0, "those of the first 64 rewards")
        self.scaling = Scaling(known["divisors"], known.get("units"))
        self._rows, self._rewards = known["rows"], known["rewards"]
        return grid


def row_divisors(
    rows: FloatArray,
    columns: IntArray,
    offsets: IntArray,
    centred: bool,
    arms: tuple[int, int] | None = None,
    free: IntArray | None = None,
) -> FloatArray:
    """What makes the mean of ||phi_j||^2 over rows (t, P) equal one, shape (M,).

    `centred` takes the columns' means off first, as an intercept does; a model whose features have not varied so far
    gets the divisor for its size as it is, and one for a model that has been zero. `arms` = (K, p) says that a row has
    p columns per arm, and zeros for all arms but one: means are then over what was seen of a feature in any arm. `free`
    columns are not penalised, and do not count.
    """
    if free is not None and free.size:
        rows = rows.copy()
        rows[:, free] = 0.0
    where = columns
    if arms is not None:
        rows, where = rows.reshape(len(rows), *arms).sum(axis=1), columns % arms[1]
    whole = np.mean(np.square(rows), axis=0)
    varying = np.mean(np.square(rows - rows.mean(axis=0)), axis=0) if centred else whole
    varying = np.where(varying > 1e-28 * whole, varying, 0.0)  # a constant leaves nothing but rounding
    shares = 1 if arms is None else arms[0]  # every arm has the same features
    traces, sizes = (np.add.reduceat(squares[where], offsets[:-1]) / shares for squares in (varying, whole))
    traces = np.where(traces > 0.0, traces, sizes)
    return np.asarray(np.sqrt(np.where(traces > VANISHING**2, traces, 1.0)))


def set_units(rows: FloatArray, sets: IntArray, centred: bool, arms: tuple[int, int] | None = None) -> FloatArray:
    """What makes the mean over rows (t, P) of the squared norm of each set of columns equal one, shape (P,).

    `sets` (P,) has the number of each column's set, from 0; -1 for columns that stay as they are. `centred` and `arms`
    as in `row_divisors`; a set that has been zero stays as it is.
    """
    numbers = sets
    if arms is not None:
        rows, numbers = rows.reshape(len(rows), *arms).sum(axis=1), sets[: arms[1]]
    squares = np.mean(np.square(rows - rows.mean(axis=0) if centred else rows), axis=0)
    traces = np.bincount(numbers + 1, squares)
    traces[0] = 1.0
    return np.asarray(np.sqrt(np.where(traces > VANISHING**2, traces, 1.0))[sets + 1])


def prior_scales(ratios: Sequence[float]) -> tuple[float, ...]:
    """Prior standard deviations of the coefficients, in units of the noise: r^(-1/2)."""
    return tuple(float(ratio) ** -0.5 for ratio in ratios)


def trace_divisors(table: FloatArray, columns: IntArray, offsets: IntArray, centred: bool) -> FloatArray:
    """What makes the mean over candidates of ||phi_j||^2 equal one, shape (M,); one for models that are zero there.

    ``table`` (P, N) holds the columns on all candidates; ``centred`` takes their means off first, as an intercept does.
    """
    squares = np.array([_mean_square(column, centred) for column in table])
    traces = np.add.reduceat(squares[columns], offsets[:-1])
    return np.asarray(np.sqrt(np.where(traces > VANISHING**2, traces, 1.0)))


def prior_divisors(tables: Sequence[ModelOnTable], centred: bool, n: int) -> FloatArray:
    """The same for models on tables, shape (M,), kernels among them; over the first n candidates."""
    traces = np.array([_trace(model, centred, n) for model in tables])
    return np.asarray(np.sqrt(np.where(traces > VANISHING**2, traces, 1.0)))


def _trace(model: ModelOnTable, centred: bool, n: int) -> float:
    """Mean over the first n candidates of the prior variance; of what is left of it beside an intercept, if centred.

    Functions of a kernel with a long lengthscale are nearly constant, and the intercept is the constant: what they vary
    by, mean k(x, x) - mean k(x, z), must be as large as it is for a short one, or they would explain noise only.
    """
    first = Block(first_rows(model.block.rows, n))
    if model.kernel is None:
        return first.mean_square(centred)
    remote = first.on_device
    whole = float(np.mean(model.kernel.diagonal(first.rows))) if remote is None else remote.mean_diagonal(model.kernel)
    if not centred:
        return whole
    some = dense(first.rows[spread(n, _MOST)])
    return varying_part(model.kernel, some, whole)


def _mean_square(column: FloatArray, centred: bool) -> float:
    whole = float(column @ column) / column.size
    if not centred:
        return whole
    rest = column - column.mean()
    varying = float(rest @ rest) / column.size
    return varying if varying > 1e-28 * whole else 0.0  # a constant leaves nothing but the rounding of its mean
