"""Ridge refit on the groups that the group Lasso selects: how the authors' released code scores its agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.schema import anything, floats, record, same
from alexp.estimation.estimate import Estimate
from alexp.estimation.lasso.group_lasso import GroupLasso, GroupLassoPath

if TYPE_CHECKING:
    from alexp.problem.models import ModelClass

_LOST = 1e-14  # share of the Gram matrix below which the ridge is lost in it


@dataclass(frozen=True)
class PostLasso:
    """Regression oracle: group Lasso for selection, then a ridge regression on the selected groups.

    The refit's kernel is the sum of the selected groups' kernels, so a column in c of them has prior weight c.
    If nothing is selected the estimate is zero (the released code stops with an error there).
    """

    tol: float = 1e-6
    ridge: float = 0.01

    def bind(self, models: ModelClass) -> PostLassoPath:
        """An empty data set for these models."""
        return PostLassoPath(GroupLasso(self.tol, canonical=False).bind(models), self.ridge)


class PostLassoPath:
    """The observations so far."""

    def __init__(self, selection: GroupLassoPath, ridge: float) -> None:
        self._selection, self._ridge = selection, ridge
        self._rows: list[FloatArray] = []
        self._rewards: list[float] = []

    @property
    def n_observations(self) -> int:
        return self._selection.n_observations

    def append(self, row: FloatArray, y: float, weight: float = 1.0) -> None:
        """Add one observation; the released code knows no weights."""
        if weight != 1.0:
            raise ValueError(f"PostLasso takes observations of weight 1 only, got {weight!r}")
        self._selection.append(row, y)
        self._rows.append(np.array(row))
        self._rewards.append(y)

    def solve(self, lam: float, start: Estimate | None = None) -> Estimate:
        """The refit on what the Lasso selects; no longer certified, but a warm start for the next selection."""
        fit = self._selection.solve(lam, start)
        votes = np.zeros(self._selection.n_columns)
        for j in fit.groups:
            votes[self._selection.members(int(j))] += 1.0
        used = np.flatnonzero(votes)
        beta = np.zeros_like(votes)
        if used.size:
            roots = np.sqrt(votes[used])
            rows, y = np.array(self._rows)[:, used], np.array(self._rewards)
            if fit.intercept:
                rows, y = rows - rows.mean(axis=0), y - y.mean()
            beta[used] = roots * _ridge_fit(rows * roots, y, self._ridge)
        mean = np.mean(self._rewards) - np.mean(self._rows, axis=0) @ beta if fit.intercept else 0.0
        return Estimate(beta, float(mean), fit.groups, fit.magnitudes)

    def read(self, state: State) -> Estimate:
        return Estimate.from_state(state, self._selection.n_columns, self._selection.n_groups)

    def state(self) -> State:
        rows = np.array(self._rows).reshape(-1, self._selection.n_columns)
        return {"selection": self._selection.state(), "rows": rows, "rewards": np.array(self._rewards)}

    def restore(self, state: State) -> None:
        checks = {"rows": floats(None, self._selection.n_columns), "rewards": floats(None)}
        known = record("data", state, checks | {"selection": anything})
        self._selection.restore(known["selection"])
        for name in ("rows", "rewards"):
            same(f"length of data[{name!r}]", len(known[name]), self.n_observations, "the number of observations")
        self._rows, self._rewards = list(known["rows"]), known["rewards"].tolist()


def _ridge_fit(rows: FloatArray, y: FloatArray, ridge: float) -> FloatArray:
    """argmin ||y - rows b||^2 + ridge^2 ||b||^2, shape (d,).

    By the normal equations, as the released code does it, unless these have lost the ridge to rounding: then from the
    singular values of the rows on top of the ridge. (A product with a copy, since a matrix times its own transpose is
    computed otherwise, in the last bit.)
    """
    size = rows.shape[1]
    gram = rows.T @ rows.copy("K") + ridge**2 * np.eye(size)
    if np.trace(gram) * _LOST < ridge**2:
        return np.asarray(np.linalg.solve(gram, rows.T @ y))
    whole = np.vstack([rows, ridge * np.eye(size)])
    return np.asarray(np.linalg.lstsq(whole, np.concatenate([y, np.zeros(size)]), rcond=None)[0])
