"""Public group Lasso solvers to race against; each is optional, and may live in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from alexp.common.arrays import FloatArray
from alexp_experiments.bench.lasso import solvers
from alexp_experiments.bench.lasso.solvers import Solve
from alexp_experiments.bench.records import Lap, timed
from alexp_experiments.bench.worker import one_blas_thread_environment

VARIABLE = "ALEXP_RIVALS_PYTHON"
_FOLDER = Path(".venv-rivals/bin/python")


def rivals_python(chosen: Path | None = None) -> Path | None:
    """Interpreter of the environment with the rivals that do not fit into this one, or None.

    That is `chosen`; or $ALEXP_RIVALS_PYTHON; or .venv-rivals/bin/python, which `make rivals` creates, in the current
    folder or beside the project's sources. One that is named but not there is an error.
    """
    named = chosen or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if named is not None:
        if not named.exists():
            raise ValueError(f"there is no interpreter {named}; `make rivals` creates {_FOLDER}")
        return named
    project = Path(__file__).parents[4]
    return next((root / _FOLDER for root in (Path.cwd(), project) if (root / _FOLDER).exists()), None)


class Worker:
    """A process that solves problems with one rival.

    Attributes
    ----------
    version : of the rival, or None if it is not there.
    error : why it is not there.
    """

    def __init__(self, python: Path, name: str) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [str(python), "-I", solvers.__file__, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=one_blas_thread_environment(),
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._problem: tuple[FloatArray, FloatArray, FloatArray] | None = None
        hello: solvers.Hello = json.loads(self._line())
        self.version, self.error = hello["version"], hello["error"]

    def solve(
        self, expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
    ) -> tuple[tuple[FloatArray, float], Lap]:
        """A solution as `solvers.Solve` has it, and what it cost over there; the same arrays are sent once."""
        problem = (expanded, y, start)
        try:
            if self._problem is None or any(a is not b for a, b in zip(problem, self._problem, strict=True)):
                rows, columns = expanded.shape
                solvers.send(self._to, {"rows": rows, "columns": columns}, *problem)
                self._problem = problem
            solvers.send(self._to, {"lam": lam, "size": size, "tol": tol})
        except BrokenPipeError as error:
            raise self._died() from error
        answer: solvers.Answer = json.loads(self._line())
        theta = solvers.receive(self._from, start.size)
        gap = float("inf") if answer["gap"] is None else answer["gap"]
        return (theta, gap), Lap(*answer["lap"])

    def close(self) -> None:
        """Hang up, and wait for the process to end."""
        self._to.close()
        self._process.wait()
        self._from.close()
        self._errors.close()

    def _line(self) -> bytes:
        line = self._from.readline()
        if not line:
            raise self._died()
        return line

    def _died(self) -> RuntimeError:
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")[-2000:]
        return RuntimeError(f"the process of {self.name} ended with status {self._process.returncode}:\n{said}")


@dataclass(frozen=True)
class Rival:
    """A solver and where its own tolerance starts: the loosest worth trying, before it is tightened step by step.

    Attributes
    ----------
    loosest : a function of (primal, y, lam), where primal is the optimal value of ||r||^2/2 + lam t sum_j ||theta_j||.
    share : this rival's share of the time for a benchmark, relative to others.
    version : of its library.
    worker : its process, if it lives in another environment.
    """

    name: str
    solve: Solve
    loosest: Callable[[float, FloatArray, float], float]
    share: float = 1.0
    version: str = ""
    worker: Worker | None = None

    def run(
        self, expanded: FloatArray, y: FloatArray, lam: float, size: int, start: FloatArray, tol: float
    ) -> tuple[tuple[FloatArray, float], Lap]:
        """A solution and what it cost, on the clock of the process that found it."""
        if self.worker is not None:
            return self.worker.solve(expanded, y, lam, size, start, tol)
        return timed(partial(self.solve, expanded, y, lam, size, start, tol))

    def close(self) -> None:
        """End its process, if it has one."""
        if self.worker is not None:
            self.worker.close()


def _share_of_gap(primal: float, y: FloatArray, lam: float) -> float:
    """celer stops at a gap of tol ||y||^2/n for ||r||^2/(2n) + lam sum: this is 4^3 times the gap that is asked for."""
    return 64e-6 * primal / max(float(y @ y), 1e-300)


RIVALS = (
    Rival("celer", solvers.celer, _share_of_gap, share=10.0),  # the yardstick, so on as many steps as possible
    Rival("skglm", solvers.skglm, lambda primal, y, lam: 0.1 * lam),
    Rival("adelie", solvers.adelie, lambda primal, y, lam: 1e-4),
)


def installed(python: Path | None = None) -> tuple[list[Rival], dict[str, str]]:
    """The rivals that are there, and for the others what is wrong.

    A rival that cannot be imported is looked for in the environment of `python` (see `rivals_python`), and then runs
    in a process of that environment. Close them in the end.
    """
    other = rivals_python(python)
    found, missing = [], {}
    for rival in RIVALS:
        version, wrong = solvers.found(rival.name)
        if version is not None:
            found.append(replace(rival, version=version))
            continue
        worker = None if other is None else Worker(other, rival.name)
        if worker is not None and worker.version is not None:
            found.append(replace(rival, version=worker.version, worker=worker))
            continue
        missing[rival.name] = wrong
        if worker is not None:
            missing[rival.name] = f"{wrong}; {worker.error} in the other environment"
            worker.close()
    return found, missing
