"""Ridge refit on the groups that the group Lasso selects: how the authors' released code scores its agents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alexp.estimation.lasso.group_lasso import GroupLasso, GroupLassoPath, LassoFit


@dataclass(frozen=True)
class PostLasso:
    """Regression oracle: group Lasso for selection, then a ridge regression on the selected groups.

    The refit's kernel is the sum of the selected groups' kernels, so a column in c of them has prior weight c.
    If nothing is selected the estimate is zero (the released code stops with an error there).
    """

    tol: float = 1e-6
    ridge: float = 0.01

    def bind(self, *problem: Any) -> PostLassoPath:
        """An empty data set; the arguments are those of `GroupLasso.bind`."""
        return PostLassoPath(GroupLasso(self.tol).bind(*problem), self.ridge)


class PostLassoPath:
    """The observations so far."""

    def __init__(self, selection: GroupLassoPath, ridge: float) -> None:
        self._selection, self._ridge = selection, ridge
        self._rows: list[NDArray[np.float64]] = []
        self._rewards: list[float] = []

    def append(self, row: NDArray[np.float64], y: float) -> None:
        """Add one observation."""
        self._selection.append(row, y)
        self._rows.append(np.array(row))
        self._rewards.append(y)

    def solve(self, lam: float, start: LassoFit | None = None) -> LassoFit:
        """The Lasso fit with its coefficients replaced by the refit's."""
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
            gram = (rows * roots).T @ (rows * roots) + self._ridge**2 * np.eye(used.size)
            beta[used] = roots * np.linalg.solve(gram, (rows * roots).T @ y)
        mean = np.mean(self._rewards) - np.mean(self._rows, axis=0) @ beta if fit.intercept else 0.0
        return replace(fit, beta=beta, intercept=float(mean))

    def state(self) -> dict[str, Any]:
        """Everything needed to continue."""
        rows = np.array(self._rows).reshape(-1, self._selection.n_columns)
        return {"selection": self._selection.state(), "rows": rows, "rewards": np.array(self._rewards)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._selection.restore(state["selection"])
        self._rows, self._rewards = list(state["rows"]), state["rewards"].tolist()
