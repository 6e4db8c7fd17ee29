"""Public group Lasso solvers behind one face; each is optional."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np

from alexp.common.arrays import FloatArray

# solve(expanded, y, lam, size, start, tol) -> theta for (1/t) ||y - Phi theta||^2 + 2 lam sum ||theta_j||, with groups
# of one size side by side in `expanded` (t, M d), and the duality gap of half of this that the solver certifies itself,
# or infinity; `start` (M d,) is the solution of the step before.
Solve = Callable[[FloatArray, FloatArray, float, int, FloatArray, float], tuple[FloatArray, float]]


@dataclass(frozen=True)
class Rival:
    """A solver and where its own tolerance starts: the loosest worth trying, before it is tightened step by step.

    `loosest(primal, y, lam)` gets the optimal value of ||r||^2/2 + lam t sum_j ||theta_j||. `share` is this rival's
    share of the time for a benchmark, relative to others.
    """

    name: str
    solve: Solve
    loosest: Callable[[float, FloatArray, float], float]
    share: float = 1.0


def _celer(
    expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
) -> tuple[FloatArray, float]:
    from celer import celer_path

    _, path, gaps = celer_path(
        expanded, y, "grouplasso", alphas=np.array([lam]), groups=size, coef_init=start.copy(), tol=tol,
        max_iter=20, max_epochs=5_000, prune=1,
    )  # fmt: skip
    return np.ascontiguousarray(path[:, 0]), float(gaps[0])


def _skglm(
    expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
) -> tuple[FloatArray, float]:
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.jit_compilation import compiled_clone

    n_columns = expanded.shape[1]
    bounds = np.arange(0, n_columns + 1, size, dtype=np.int32)
    order = np.arange(n_columns, dtype=np.int32)
    datafit = compiled_clone(QuadraticGroup(bounds, order))
    penalty = compiled_clone(WeightedGroupL2(lam, np.ones(n_columns // size), bounds, order))
    used = np.flatnonzero(start)
    fitted = expanded[:, used] @ start[used]
    solver = GroupBCD(tol=tol, max_iter=200, max_epochs=500)
    theta: FloatArray = solver.solve(expanded, y, datafit, penalty, start.copy(), fitted)[0]
    return theta, np.inf


def _adelie(
    expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
) -> tuple[FloatArray, float]:
    import adelie

    n_columns = expanded.shape[1]
    with adelie.logger.logger_level(logging.CRITICAL):  # it logs every early stop; the gap says so, too
        state = adelie.grpnet(
            expanded, adelie.glm.gaussian(y), groups=np.arange(0, n_columns, size),
            penalty=np.ones(n_columns // size), lmda_path=np.array([lam]), tol=tol, intercept=False,
            early_exit=False, progress_bar=False, n_threads=1, max_iters=200_000,
            warm_start=_adelie_start(expanded, y, lam, size, start),
        )  # fmt: skip
    if state.betas.shape[0] == 0:
        return start, np.inf
    return np.asarray(state.betas[-1].toarray()).ravel(), np.inf


def _adelie_start(expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray) -> SimpleNamespace:
    """The state from which adelie continues: the solution of the step before, on the rows of this step."""
    n, n_columns = expanded.shape
    blocks = start.reshape(-1, size)
    active = np.flatnonzero((blocks != 0.0).any(axis=1))
    used = np.flatnonzero(np.repeat((blocks != 0.0).any(axis=1), size))
    residual = y - expanded[:, used] @ start[used]
    variance = float(y @ y) / n
    numbers = np.empty(n_columns // size, dtype=int)
    numbers[: active.size] = np.arange(active.size)
    gradient = expanded.T @ residual / n
    return SimpleNamespace(
        lmda=lam, lmda_max=None, screen_set=active, screen_beta=start[used],
        screen_is_active=np.ones(active.size, dtype=bool), active_set_size=active.size, active_set=numbers,
        X_means=expanded.mean(axis=0), y_mean=float(y.mean()), y_var=variance,
        rsq=variance - float(residual @ residual) / n, resid=residual, resid_sum=float(residual.mean()), grad=gradient,
    )  # fmt: skip


def _share_of_gap(primal: float, y: FloatArray, lam: float) -> float:
    """celer stops at a gap of tol ||y||^2/n for ||r||^2/(2n) + lam sum: this is 4^3 times the gap that is asked for."""
    return 64e-6 * primal / max(float(y @ y), 1e-300)


RIVALS = (
    Rival("celer", _celer, _share_of_gap, share=10.0),  # the yardstick, so on as many steps as possible
    Rival("skglm", _skglm, lambda primal, y, lam: 0.1 * lam),
    Rival("adelie", _adelie, lambda primal, y, lam: 1e-4),
)


def installed() -> tuple[list[Rival], dict[str, str]]:
    """The rivals that can be imported, and for the others what went wrong."""
    found, missing = [], {}
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    for rival in RIVALS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import_module(rival.name)
            found.append(rival)
        except Exception as error:  # a broken installation must not stop the benchmark of the others
            missing[rival.name] = f"{type(error).__name__}: {error}"
    if cores is not None:  # importing adelie pins the process, and all that it starts later, to one core
        os.sched_setaffinity(0, cores)
    return found, missing


def version_of(name: str) -> str:
    """Version of an installed rival."""
    return version(name)
