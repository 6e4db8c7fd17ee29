"""Public group Lasso solvers, called the same way, here or in an environment of their own.

A rival may need what this package does not: adelie wants NumPy below 2. So nothing of this package is imported here,
and ``python -I solvers.py adelie`` serves a rival from any environment that has it, over its standard input and
output: a line of JSON, then arrays as their bytes. It takes its own time, so that neither its start nor the transfer
counts. See `Worker` in remote.py for the other side.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import IO, TypedDict

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# solve(expanded, y, lam, size, start, tol) -> theta for (1/t) ||y - Phi theta||^2 + 2 lam sum ||theta_j||, with groups
# of one size side by side in `expanded` (t, M d), and the duality gap of half of this that the solver certifies itself,
# or infinity; `start` (M d,) is the solution of the step before.
Solve = Callable[[FloatArray, FloatArray, float, int, FloatArray, float], tuple[FloatArray, float]]


class Hello(TypedDict):
    """What a worker says first: the version of its rival, or what is wrong."""

    version: str | None
    error: str


class Answer(TypedDict):
    """What a worker says before the coefficients: seconds (wall, process, thread), and the gap, None for infinity."""

    lap: tuple[float, float, float]
    gap: float | None


def celer(
    expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
) -> tuple[FloatArray, float]:
    """celer's path of one lambda."""
    from celer import celer_path

    _, path, gaps = celer_path(
        expanded, y, "grouplasso", alphas=np.array([lam]), groups=size, coef_init=start.copy(), tol=tol,
        max_iter=20, max_epochs=5_000, prune=1,
    )  # fmt: skip
    return np.ascontiguousarray(path[:, 0]), float(gaps[0])


def skglm(
    expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
) -> tuple[FloatArray, float]:
    """skglm's block coordinate descent."""
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


def adelie(
    expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
) -> tuple[FloatArray, float]:
    """adelie's path of one lambda."""
    import adelie as library

    n_columns = expanded.shape[1]
    with library.logger.logger_level(logging.CRITICAL):  # it logs every early stop; the gap says so, too
        state = library.grpnet(
            expanded, library.glm.gaussian(y), groups=np.arange(0, n_columns, size),
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


SOLVERS: dict[str, Solve] = {"celer": celer, "skglm": skglm, "adelie": adelie}


def found(name: str) -> tuple[str | None, str]:
    """Version of a solver's library, and what is wrong if it cannot be imported."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(name)
        return version(name), ""
    except ModuleNotFoundError as error:
        return None, "not installed" if error.name == name else f"{type(error).__name__}: {error}"
    except Exception as error:  # a broken installation must not stop the benchmark of the others
        return None, f"{type(error).__name__}: {error}"
    finally:
        if cores is not None:  # importing adelie pins the process, and all that it starts later, to one core
            os.sched_setaffinity(0, cores)


def send(stream: IO[bytes], message: Mapping[str, object], *arrays: FloatArray) -> None:
    """A line of JSON and the bytes of arrays of float64, column by column."""
    stream.write(json.dumps(message).encode() + b"\n")
    for array in arrays:
        stream.write(array.tobytes(order="F"))
    stream.flush()


def receive(stream: IO[bytes], *shape: int) -> FloatArray:
    """An array of that shape, from its bytes."""
    flat = np.frombuffer(stream.read(8 * int(np.prod(shape))), dtype=np.float64)
    return flat.reshape(shape, order="F").copy(order="F")


def serve(name: str, stream: IO[bytes], out: IO[bytes]) -> None:
    """Answer until the other side hangs up: a problem, then solutions of it at any tolerance."""
    number, wrong = found(name)
    hello: Hello = {"version": number, "error": wrong}
    send(out, hello)
    expanded = y = start = np.empty(0)
    while line := stream.readline():
        task = json.loads(line)
        if "tol" not in task:
            expanded, y = receive(stream, task["rows"], task["columns"]), receive(stream, task["rows"])
            start = receive(stream, task["columns"])
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rivals warn when they stop early; the gap says so, too
            wall, cpu, thread = time.perf_counter(), time.process_time(), time.thread_time()
            theta, gap = SOLVERS[name](expanded, y, task["lam"], task["size"], start, task["tol"])
            lap = time.perf_counter() - wall, time.process_time() - cpu, time.thread_time() - thread
        answer: Answer = {"lap": lap, "gap": None if np.isinf(gap) else gap}
        send(out, answer, np.asarray(theta, dtype=np.float64))


if __name__ == "__main__":
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between the answers
    serve(sys.argv[1], sys.stdin.buffer, channel)
