"""Prior scales where there is no table of candidates: from the first rows told.

A mixture without stated sizes divides the features of model j by c_j, so that the mean of ||phi_j||^2 / c_j^2 over the
candidates is one. Where candidates are new in every round, the rows told stand in for them: after 1, 2, 4, ..., 64
rewards the posteriors are made anew with the divisors of the rows so far, and fed with the rewards so far. From then on
the divisors stay. All of it is a function of rows and rewards in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import anything, floats, record, same
from alexp.common.validation import VANISHING
from alexp.estimation.posteriors import Component, PosteriorGrid, Score
from alexp.problem.candidates import NOTHING, Choices, Pending

LAST = 64  # rewards after which divisors stay

Divisors = Callable[[FloatArray], FloatArray]


class CalibratingGrid:
    """A `PosteriorGrid` whose divisors come from the rows of the first 64 rewards.

    Parameters
    ----------
    make : the empty grid of models with given divisors (M,).
    divisors : gives (M,) divisors for the rows (t, P) told so far, see `row_divisors`.
    n_models, n_columns : M and P.
    """

    def __init__(
        self, make: Callable[[FloatArray], PosteriorGrid], divisors: Divisors, n_models: int, n_columns: int
    ) -> None:
        self._make, self._measure = make, divisors
        self.divisors: FloatArray = np.ones(n_models)
        self.inner = make(self.divisors)
        self._rows: FloatArray = np.empty((0, n_columns))  # none any more once divisors stay
        self._rewards: FloatArray = np.empty(0)

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""
        return self.inner.n_observations

    @property
    def n_constants(self) -> int:
        """Degrees of freedom that flat constants have taken."""
        return self.inner.n_constants

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward, and make everything anew where it is time to."""
        self.inner.update(row, y)
        t = self.n_observations
        if t > LAST:
            return
        self._rows, self._rewards = np.vstack([self._rows, row]), np.append(self._rewards, y)
        if t & (t - 1) == 0:
            self._calibrate()
        if t == LAST:
            self._rows, self._rewards = self._rows[:0], self._rewards[:0]

    def _calibrate(self) -> None:
        self.divisors = self._measure(self._rows)
        self.inner = self._make(self.divisors)
        for row, y in zip(self._rows, self._rewards, strict=True):
            self.inner.update(row, float(y))

    # -- what the posteriors know ------------------------------------------------------------------------------

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """Log evidence of every component, (cells, M)."""
        return self.inner.evidence(score, reach)

    def residuals(self) -> FloatArray:
        """Penalised residuals of every component, (cells, M)."""
        return self.inner.residuals()

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at the choices, shapes (n,)."""
        return self.inner.moments(weights, variances, choices, pending)

    def components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending = NOTHING,
        least: float = 0.0,
    ) -> Iterator[Component]:
        """The components of weight above `least`, one by one."""
        return self.inner.components(weights, variances, choices, pending, least)

    def n_normals(self, model: int) -> int:
        """How many standard normals a draw takes."""
        return self.inner.n_normals(model)

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices under one draw of a component."""
        return self.inner.draw(cell, model, choices, normals, scale)

    def root_width(self, n: int) -> int | None:
        """The width of the roots at n choices."""
        return self.inner.root_width(n)

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means (m, n) and square roots (m, n, D) of the covariances of some models."""
        return self.inner.roots(cell, members, choices)

    # -- storing -----------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Everything that rewards have changed."""
        return {
            "divisors": self.divisors, "rows": self._rows, "rewards": self._rewards, "inner": self.inner.state(),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        checks = {
            "divisors": floats(self.divisors.size, low=VANISHING),
            "rows": floats(None, self._rows.shape[1]),
            "rewards": floats(None),
            "inner": anything,
        }
        known = record("grid", state, checks)
        inner = self._make(known["divisors"])
        inner.restore(known["inner"])
        t = inner.n_observations
        for name in ("rows", "rewards"):
            same(f"number of grid[{name!r}]", len(known[name]), t if t < LAST else 0, "those of the first 64 rewards")
        self.inner, self.divisors = inner, known["divisors"]
        self._rows, self._rewards = known["rows"], known["rewards"]


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
