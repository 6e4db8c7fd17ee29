"""Everything the figures and claims are made of: the runs of the paper at some number of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.experiments.core.scenarios import BEYOND_DEGREES, SCALING_DEGREES, Scenario
from alexp.experiments.core.tasks import Record, Task
from alexp.experiments.paper.methods import EXTRA, PAPER
from alexp.experiments.paper.tuning import MAIN_SCENARIOS, Attempt, Grid, Sweep, Tuned, load_tuned, tune

FIGURES = ("1", "2", "3", "4", "5", "6", "7")


@dataclass(frozen=True)
class Scope:
    """How much to run: seeds, how far to scale, which hyper-parameters to try."""

    seeds: tuple[int, ...] = tuple(range(20))
    beyond: tuple[int, ...] = BEYOND_DEGREES
    grid: Grid = field(default_factory=Grid)

    @classmethod
    def quick(cls) -> Scope:
        """Three seeds, fewer sizes, and every second or third hyper-parameter."""
        full = Grid()
        grid = Grid(
            full.lambdas[::3], full.rates[::2], full.explorations[::2], full.corral_rates[::2], full.seeds[:3],
            ("easy", "hard-meant", "large"),
        )  # fmt: skip
        return cls(tuple(range(3)), BEYOND_DEGREES[:2], grid)

    def scenario(self, name: str) -> Scenario:
        """A scenario by name, shrunk if the grid says so."""
        return self.grid.scenario(name)


def scaling_names(degrees: Sequence[int]) -> list[str]:
    """Names of the scenarios with s = 2 and the given largest degrees."""
    return [f"scaling-{p}" for p in degrees]


def needed_runs(figures: Sequence[str], scope: Scope) -> list[tuple[str, str]]:
    """(scenario, method) pairs that some figures are drawn from, without repetition."""
    wanted: list[tuple[str, str]] = []
    if "1" in figures:
        wanted += [(name, method) for name in MAIN_SCENARIOS[:3] for method in PAPER]
    if "2" in figures:
        wanted += [("large", method) for method in PAPER]
    if "3" in figures:
        wanted += [(name, method) for name in scaling_names((*SCALING_DEGREES, *scope.beyond)) for method in PAPER]
    if "4" in figures:
        wanted += [("large", "alexp"), ("large", "corral")]
    if "6" in figures:
        wanted += [(name, method) for name in MAIN_SCENARIOS for method in (*PAPER, *EXTRA)]
    return list(dict.fromkeys(wanted))


@dataclass
class Results:
    """Records of the runs, and the attempts of the tuning."""

    scope: Scope
    tuned: Tuned
    runs: dict[tuple[str, str], list[Record]]
    attempts: list[Attempt]

    def curves(self, scenario: str, method: str) -> FloatArray:
        """Cumulative regret, shape (seeds, n)."""
        return np.array([record.regret for record in self.runs[scenario, method]])

    def final(self, scenario: str, method: str) -> FloatArray:
        """R(n) of every seed, shape (seeds,)."""
        return self.curves(scenario, method)[:, -1]

    def tried(self, method: str, parameter: str) -> list[Attempt]:
        """Trials of the tuning of one parameter of one method."""
        return [attempt for attempt in self.attempts if attempt.method == method and parameter in attempt.values]


def collect(figures: Sequence[str], scope: Scope, sweep: Sweep, retune: bool = False) -> Results:
    """Run what the figures need; with `retune`, choose the hyper-parameters anew instead of reading the stored ones."""
    tuned, attempts = (None, []) if not (retune or "7" in figures) else tune(scope.grid, sweep)
    if tuned is None or not retune:
        tuned = load_tuned()
    pairs = needed_runs(figures, scope)
    tasks = [
        Task(scope.scenario(name), method, tuned.settings(method, name), seed)
        for name, method in pairs
        for seed in scope.seeds
    ]
    records = sweep(tasks, "runs of the paper")
    n = len(scope.seeds)
    runs = {pair: records[i * n : (i + 1) * n] for i, pair in enumerate(pairs)}
    return Results(scope, tuned, runs, attempts)
