"""Hyper-parameters by one rule, on seeds that no reported figure uses, and the sweep they come from.

The rule: per problem and method, the setting with the least *mean* regret over the tuning seeds; the first tried, if
several have it. The paper tunes means, too. A mean hangs on the few runs that lock, which makes the choice noisy; but
those runs are what a setting costs, and a median would choose rates that lock up to half of the runs. So the mean
chooses, and the sweep keeps median and number of locked runs beside it, to see where the median would have chosen
otherwise. data/sweep.csv has every setting that was tried, and says which were chosen; figures read it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from pathlib import Path

import numpy as np

from alexp.common.files import write_text
from alexp_experiments.core.scenarios import SCENARIOS
from alexp_experiments.core.statistics import MeanEstimate, estimate, locked
from alexp_experiments.core.tasks import Record, Task
from alexp_experiments.paper.grids import Grid, Try
from alexp_experiments.paper.methods import Values, task_of

Sweep = Callable[[Sequence[Task], str], list[Record]]
Key = tuple[str, str, str]  # stage, scenario, method

_CONSTANTS = ("gamma", "eta", "n0", "ridge", "lambda", "beta")
_FIELDS = ("stage", "scenario", "method", *_CONSTANTS, "mean", "error", "median", "locked", "first", "chosen")


@dataclass(frozen=True)
class Attempt:
    """A setting that was tried on the tuning seeds.

    `regret` is the mean of R(n), `median` its median, `locked` how many runs were stuck at the end, and `first` R(n)
    under the first seed, by which one can see whether today's code still plays the run that was stored.
    """

    tried: Try
    regret: MeanEstimate
    median: float
    locked: int
    first: float

    @property
    def key(self) -> Key:
        """What it competes in: one choice is made per stage, scenario and method."""
        return self.tried.stage, self.tried.scenario, self.tried.method


def attempt(tries: Sequence[Try], grid: Grid, sweep: Sweep, title: str) -> list[Attempt]:
    """Run every setting under every tuning seed."""
    tasks = [task_of(t.method, t.values, grid.scenario(t.scenario), seed) for t in tries for seed in grid.seeds]
    records, n = sweep(tasks, title), len(grid.seeds)
    out = []
    for i, one in enumerate(tries):
        curves = np.array([record.regret for record in records[i * n : (i + 1) * n]])
        final, stuck = curves[:, -1], int(locked(curves).sum())
        out.append(Attempt(one, estimate(final), float(np.median(final)), stuck, float(final[0])))
    return out


def choose(attempts: Iterable[Attempt], cost: Callable[[Attempt], float] = lambda a: a.regret.mean) -> dict[Key, Try]:
    """The setting of least cost per stage, scenario and method; the first, if several have it.

    Nothing is chosen from the stage that only shows what lambda_0 does.
    """
    best: dict[Key, Attempt] = {}
    for one in attempts:
        if one.tried.stage == "lambda":
            continue
        if one.key not in best or cost(one) < cost(best[one.key]):
            best[one.key] = one
    return {key: one.tried for key, one in best.items()}


@dataclass(frozen=True)
class Tuned:
    """Chosen constants: by scenario and method, as the paper tunes, and with the constant that it holds fixed."""

    grid: Mapping[str, Mapping[str, Values]]
    width: Mapping[str, Mapping[str, Values]]

    @classmethod
    def of(cls, chosen: Mapping[Key, Try]) -> Tuned:
        """From the choice of all stages."""
        stages: dict[str, dict[str, dict[str, Values]]] = {"grid": {}, "width": {}}
        for (stage, scenario, method), one in chosen.items():
            stages[stage].setdefault(scenario, {})[method] = one.values
        return cls(stages["grid"], stages["width"])

    def values(self, method: str, scenario: str, wide: bool = False) -> Values:
        """Constants of a method on a scenario; scenarios that were not tuned take those of the nearest size.

        `wide` asks for the choice that includes the width, which was made on the main problems only.
        """
        table = self.width if wide else self.grid
        return table.get(self._nearest(scenario), {}).get(method, {})

    def _nearest(self, scenario: str) -> str:
        if scenario == "scaling-10":
            return "easy"
        if scenario in self.grid or scenario not in SCENARIOS:
            return scenario
        wanted = SCENARIOS[scenario]
        sizes = {name: abs(np.log(SCENARIOS[name].n_models / wanted.n_models)) for name in self.grid}
        same = {name: gap for name, gap in sizes.items() if SCENARIOS[name].size == wanted.size}
        return min(same or sizes, key=lambda name: (same or sizes)[name])


def tune(grid: Grid, sweep: Sweep) -> tuple[Tuned, list[Attempt]]:
    """Try everything and choose; returns the choice and every attempt."""
    first = attempt(grid.tries(), grid, sweep, "tuning")
    second = attempt(grid.widths(Tuned.of(choose(first)).grid), grid, sweep, "tuning widths")
    attempts = [*first, *second]
    return Tuned.of(choose(attempts)), attempts


def save_sweep(attempts: Sequence[Attempt], path: Path) -> None:
    """Write every attempt as CSV, the chosen ones marked."""
    chosen = {id(one) for one in choose(attempts).values()}
    text = StringIO()
    writer = csv.DictWriter(text, _FIELDS, lineterminator="\n")
    writer.writeheader()
    for one in attempts:
        t = one.tried
        numbers = {"mean": one.regret.mean, "error": one.regret.error, "median": one.median, "first": one.first}
        row = {"stage": t.stage, "scenario": t.scenario, "method": t.method, "locked": one.locked}
        row |= {name: f"{number:.9g}" for name, number in numbers.items()}
        writer.writerow(row | {k: repr(v) for k, v in t.values.items()} | {"chosen": int(id(t) in chosen)})
    write_text(path, text.getvalue())


def stored_rows() -> list[dict[str, str]]:
    """The stored sweep, row by row as text."""
    text = files("alexp_experiments.paper").joinpath("data/sweep.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def try_of(row: Mapping[str, str]) -> Try:
    """The setting behind a row of the stored sweep."""
    values = {name: float(row[name]) for name in _CONSTANTS if row[name]}
    return Try(row["stage"], row["scenario"], row["method"], values)


def load_tuned() -> Tuned:
    """The stored choice."""
    tries = [try_of(row) for row in stored_rows() if row["chosen"] == "1"]
    return Tuned.of({(t.stage, t.scenario, t.method): t for t in tries})
