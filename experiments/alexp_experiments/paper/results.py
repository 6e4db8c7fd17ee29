"""Everything the figures and claims are made of: the runs of the paper at some number of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from alexp.common.arrays import FloatArray
from alexp_experiments.core.scenarios import BEYOND_DEGREES, SCALING_DEGREES, Scenario
from alexp_experiments.core.tasks import Record
from alexp_experiments.paper.tuning import (
    EXTRA,
    LONGER,
    MAIN_SCENARIOS,
    MIXTURES,
    PAPER,
    Attempt,
    Grid,
    Sweep,
    Try,
    Tuned,
    attempt,
    load_attempts,
    load_tuned,
    task_of,
    tune,
)

FIRST_SEED = 100  # seeds 0 to 19 were looked at before the rules of the verdicts were written; no seed from here on was
FIGURES = ("1", "2", "3", "4", "5", "6", "7", "8")  # seven are the paper's, the eighth has longer runs
Runs = dict[tuple[str, str], list[Record]]  # by scenario and method, one record per seed


@dataclass(frozen=True)
class Scope:
    """How much to run: seeds, how far to scale, which hyper-parameters to try, and whether to go beyond the paper."""

    seeds: tuple[int, ...] = tuple(range(FIRST_SEED, FIRST_SEED + 40))
    far: tuple[int, ...] = BEYOND_DEGREES
    grid: Grid = field(default_factory=Grid)
    beyond: bool = False

    @classmethod
    def quick(cls) -> Scope:
        """Three seeds, fewer sizes, and every fourth setting."""
        grid = Grid(size=5, seeds=Grid.seeds[:3], scenarios=MAIN_SCENARIOS)
        return cls(cls.seeds[:3], BEYOND_DEGREES[:2], grid)

    def scenario(self, name: str) -> Scenario:
        """A scenario by name, shrunk if the grid says so."""
        return self.grid.scenario(name)

    @property
    def methods(self) -> tuple[str, ...]:
        """The curves of every figure: the paper's, and beyond it those of mixtures."""
        return (*PAPER, *MIXTURES) if self.beyond else PAPER

    @property
    def anytime(self) -> tuple[str, ...]:
        """The methods whose constants do not depend on the number of rounds: the curves of longer runs."""
        return tuple(method for method in self.methods if method in ("alexp", "oracle", "naive", *MIXTURES))


def scaling_names(degrees: Sequence[int]) -> list[str]:
    """Names of the scenarios with s = 2 and the given largest degrees."""
    return [f"scaling-{p}" for p in degrees]


def needed_runs(figures: Sequence[str], scope: Scope) -> list[tuple[str, str]]:
    """(scenario, method) pairs that some figures are drawn from, without repetition."""
    wanted: list[tuple[str, str]] = []
    if "1" in figures:
        wanted += [(name, method) for name in MAIN_SCENARIOS[:3] for method in scope.methods]
    if "2" in figures:
        wanted += [("large", method) for method in scope.methods]
    if "3" in figures:
        wanted += [(name, method) for name in scaling_names((*SCALING_DEGREES, *scope.far)) for method in scope.methods]
    if "4" in figures:
        wanted += [("large", method) for method in ("alexp", "corral", *(MIXTURES if scope.beyond else ()))]
    if "5" in figures and scope.beyond:
        wanted += [(name, method) for name in ("easy", "large", "hard-meant") for method in ("alexp", "mixture")]
    if "6" in figures:
        extra = () if scope.beyond else EXTRA
        wanted += [(name, method) for name in MAIN_SCENARIOS for method in (*scope.methods, *extra)]
    if "8" in figures:
        wanted += [(f"{name}{LONGER}", method) for name in MAIN_SCENARIOS for method in scope.anytime]
    return list(dict.fromkeys(wanted))


@dataclass
class Results:
    """Records of the runs, and the attempts of the tuning.

    Attributes
    ----------
    runs : with the constants that were chosen along the paper's axes, every UCB having the paper's width.
    wide_runs : on the main problems, with the width (ETC: the Lasso's scale) chosen as well.
    unstated : beyond the paper, mixtures on the tuning seeds, to be held against every setting of the others.
    """

    scope: Scope
    tuned: Tuned
    runs: Runs
    attempts: list[Attempt]
    wide_runs: Runs = field(default_factory=dict)
    unstated: list[Attempt] = field(default_factory=list)

    def curves(self, scenario: str, method: str) -> FloatArray:
        """Cumulative regret, shape (seeds, n)."""
        return np.array([record.regret for record in self.runs[scenario, method]])

    def final(self, scenario: str, method: str) -> FloatArray:
        """R(n) of every seed, shape (seeds,)."""
        return self.curves(scenario, method)[:, -1]

    @property
    def typical(self) -> int:
        """Position of the seed whose regret of ALExp on the large class is the median one."""
        final = self.final("large", "alexp")
        return int(np.argsort(final)[(final.size - 1) // 2])

    @property
    def sizes(self) -> dict[str, int]:
        """The scenarios of Figure 3 in order, with their numbers of models."""
        names = scaling_names((*SCALING_DEGREES, *self.scope.far))
        return {name: self.scope.scenario(name).n_models for name in names}

    def tried(self, method: str, stage: str = "grid", scenario: str | None = None) -> list[Attempt]:
        """Attempts of one stage with a method, on one scenario or on all."""
        return [
            one
            for one in self.attempts
            if (one.tried.method, one.tried.stage) == (method, stage) and scenario in (None, one.tried.scenario)
        ]

    def widened(self) -> Results:
        """The same, where every method plays the main problems with its width chosen as well."""
        return replace(self, runs=self.runs | self.wide_runs)


def collect(figures: Sequence[str], scope: Scope, sweep: Sweep, retune: bool = False, stored: bool = False) -> Results:
    """Run what the figures need.

    Constants come from the sweep of settings where it is run anyway (for Figure 7, hence for the whole), or with
    `retune`; otherwise, and with `stored`, from the stored sweep.
    """
    if not stored and (retune or "7" in figures):
        tuned, attempts = tune(scope.grid, sweep)
    else:
        tuned, attempts = load_tuned(), load_attempts()
    pairs = needed_runs(figures, scope)
    wide = [(name, m) for name in MAIN_SCENARIOS for m in (*PAPER, *EXTRA)] if tuple(figures) == FIGURES else []
    wide = [(name, m) for name, m in wide if tuned.values(m, name, wide=True)]
    n = len(scope.seeds)
    tasks = [
        task_of(method, tuned.values(method, name, with_width), scope.scenario(name), seed)
        for those, with_width in ((pairs, False), (wide, True))
        for name, method in those
        for seed in scope.seeds
    ]
    records = sweep(tasks, "runs of the paper")
    cut = [records[i : i + n] for i in range(0, len(records), n)]
    runs, wide_runs = dict(zip(pairs, cut, strict=False)), dict(zip(wide, cut[len(pairs) :], strict=True))
    unstated = [
        Try("grid", name, method, {}) for name in MAIN_SCENARIOS for method in MIXTURES
        if scope.beyond and "7" in figures
    ]  # fmt: skip
    return Results(
        scope, tuned, runs, attempts, wide_runs, attempt(unstated, scope.grid, sweep, "mixtures") if unstated else []
    )
