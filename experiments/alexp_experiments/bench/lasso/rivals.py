"""Public group Lasso solvers to race against; each is optional, and may live in an environment of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from alexp.common.arrays import FloatArray
from alexp_experiments.bench.lasso import solvers
from alexp_experiments.bench.lasso.remote import Worker, rivals_python
from alexp_experiments.bench.lasso.solvers import Solve
from alexp_experiments.bench.records import Lap, timed


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
