"""Hyper-parameters as in the paper's appendix, on seeds that no reported figure uses.

lambda_0: 20 values in [1e-5, 1], one choice for all problems. (gamma_0, eta_0) of ALExp: 20 log-uniform draws from
[1e-4, 1e-1] x [1, 100], per problem. n_0 of ETC and ETS: 10 values in [2, 80], per problem. (gamma_0, eta_0) of
Corral: 10 draws from the same box, with gamma = gamma_0 / n and eta = eta_0 sqrt(M / n), per problem. The choice is
the smallest mean regret over the tuning seeds, kept in data/tuned.json, which the figures read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import sqrt
from pathlib import Path
from typing import TypedDict

import numpy as np

from alexp.common.files import write_text
from alexp.experiments.core.plain import Settings
from alexp.experiments.core.scenarios import SCENARIOS, Scenario, scenario_named
from alexp.experiments.core.statistics import MeanEstimate, estimate
from alexp.experiments.core.tasks import Record, Task

TUNING_SEEDS = tuple(range(10_000, 10_020))
LAMBDA_SCENARIOS = ("easy", "hard-meant", "large")
TUNED_SCENARIOS = (
    "easy", "hard-printed", "hard-meant", "large", "scaling-9", "scaling-11", "scaling-12", "scaling-13",
)  # fmt: skip
MAIN_SCENARIOS = TUNED_SCENARIOS[:4]
CORRALS = ("corral", "corral-own", "corral-released")
RELEASED_SCENARIOS = ("easy", "large")  # where the released code's ALExp is tuned

LAMBDAS = tuple(np.logspace(-5.0, 0.0, 20).tolist())
EXPLORATIONS = tuple(int(n) for n in np.linspace(2, 80, 10).round())

Choice = TypedDict("Choice", {"settings": Settings, "values": dict[str, float], "mean regret": float})
Chosen = dict[str, dict[str, Choice]]  # by scenario and method
Setting = tuple[str, str, dict[str, float], Settings]  # scenario, method, values for figures, settings
Sweep = Callable[[Sequence[Task], str], list[Record]]


def _draws(n: int, seed: int) -> tuple[tuple[float, float], ...]:
    """Log-uniform (gamma_0, eta_0) from [1e-4, 1e-1] x [1, 1e2]."""
    exponents = np.random.default_rng(seed).uniform([-4.0, 0.0], [-1.0, 2.0], (n, 2))
    return tuple((float(10.0**g), float(10.0**e)) for g, e in exponents)


RATES = _draws(20, seed=1)
CORRAL_RATES = _draws(10, seed=2)


@dataclass(frozen=True)
class Attempt:
    """One setting that was tried: what it is called in a figure, its settings, and its regret on the tuning seeds."""

    scenario: str
    method: str
    values: dict[str, float]
    settings: Settings
    regret: MeanEstimate


def alexp_settings(gamma: float, eta: float, lam: float) -> Settings:
    """Settings of ALExp with the given constants of its schedules."""
    return {"schedules": {"kind": "Schedules", "gamma": gamma, "eta": eta, "lam": lam}}


def released_settings(gamma: float, eta: float, scenario: Scenario) -> Settings:
    """Settings of the released code's ALExp, with its own lambda_0."""
    constants = {"gamma": gamma, "eta": eta, "lam": 0.009, "horizon": scenario.steps}
    return {"schedules": {"kind": "ReleasedSchedules"} | constants}


def corral_settings(gamma: float, eta: float, scenario: Scenario, method: str = "corral") -> Settings:
    """Settings of Corral with the paper's rates; the released code did not scale eta with sqrt(M / n)."""
    n = scenario.steps
    scale = 1.0 if method == "corral-released" else sqrt(scenario.n_models / n)
    return {"gamma": gamma / n, "eta": eta * scale}


@dataclass(frozen=True)
class Grid:
    """What is tried; the defaults are the paper's."""

    lambdas: tuple[float, ...] = LAMBDAS
    rates: tuple[tuple[float, float], ...] = RATES
    explorations: tuple[int, ...] = EXPLORATIONS
    corral_rates: tuple[tuple[float, float], ...] = CORRAL_RATES
    seeds: tuple[int, ...] = TUNING_SEEDS
    scenarios: tuple[str, ...] = TUNED_SCENARIOS
    shrink: Mapping[str, int] | None = None  # fields of every scenario to replace, for tests

    def scenario(self, name: str) -> Scenario:
        """A scenario by name, shrunk if the grid says so."""
        return scenario_named(name).with_(**(self.shrink or {}))

    def methods(self, name: str) -> tuple[str, ...]:
        """Which methods are tuned on a scenario: the variants on the main ones only."""
        released = ("alexp-released",) if name in RELEASED_SCENARIOS else ()
        return ("alexp", *released, "etc", "ets", *(CORRALS if name in MAIN_SCENARIOS else CORRALS[:1]))

    def attempts_at_lambda(self) -> list[Setting]:
        """ALExp with its default rates at every lambda_0."""
        names = [name for name in LAMBDA_SCENARIOS if name in self.scenarios]
        middle = (0.01, 10.0)  # about the middle of the box on a log scale
        return [
            (name, "alexp", {"lambda": lam}, alexp_settings(*middle, lam)) for name in names for lam in self.lambdas
        ]

    def attempts(self, lam: float) -> list[Setting]:
        """Everything else, with lambda_0 chosen."""
        return [
            (name, method, values, settings)
            for name in self.scenarios
            for method in self.methods(name)
            for values, settings in self._tried(method, self.scenario(name), lam)
        ]

    def _tried(self, method: str, scenario: Scenario, lam: float) -> list[tuple[dict[str, float], Settings]]:
        if method == "alexp":
            return [({"gamma": g, "eta": e}, alexp_settings(g, e, lam)) for g, e in self.rates]
        if method == "alexp-released":
            return [({"gamma": g, "eta": e}, released_settings(g, e, scenario)) for g, e in self.rates]
        if method in CORRALS:
            return [({"gamma": g, "eta": e}, corral_settings(g, e, scenario, method)) for g, e in self.corral_rates]
        return [({"n0": n}, {"n_explore": n, "lam": lam}) for n in self.explorations]


def run_attempts(tried: Sequence[Setting], grid: Grid, sweep: Sweep, title: str) -> list[Attempt]:
    """Mean regret of every setting over the tuning seeds."""
    tasks = [
        Task(grid.scenario(name), method, settings, seed) for name, method, _, settings in tried for seed in grid.seeds
    ]
    final = np.array([record.regret[-1] for record in sweep(tasks, title)]).reshape(len(tried), len(grid.seeds))
    return [
        Attempt(name, method, values, settings, estimate(row))
        for (name, method, values, settings), row in zip(tried, final, strict=True)
    ]


def choose_lambda(attempts: Sequence[Attempt]) -> float:
    """lambda_0 with the smallest geometric mean, over the problems, of the mean regret."""
    logs: dict[float, list[float]] = {}
    for attempt in attempts:
        logs.setdefault(attempt.values["lambda"], []).append(np.log(max(attempt.regret.mean, 1e-3)))
    return min(logs, key=lambda lam: float(np.mean(logs[lam])))


def choose(attempts: Sequence[Attempt]) -> Chosen:
    """Settings with the smallest mean regret, per scenario and method."""
    best: dict[tuple[str, str], Attempt] = {}
    for attempt in attempts:
        key = (attempt.scenario, attempt.method)
        if key not in best or attempt.regret.mean < best[key].regret.mean:
            best[key] = attempt
    out: Chosen = {}
    for (name, method), attempt in best.items():
        out.setdefault(name, {})[method] = {
            "settings": attempt.settings, "values": attempt.values, "mean regret": round(attempt.regret.mean, 4),
        }  # fmt: skip
    return out


@dataclass(frozen=True)
class Tuned:
    """Chosen hyper-parameters."""

    lam: float
    chosen: Chosen
    seeds: tuple[int, ...]

    def settings(self, method: str, scenario: str) -> Settings:
        """Settings of a method on a scenario; scenarios that were not tuned take those of the nearest size.

        Corral's rates are restated in the units of the scenario, since they depend on the number of models.
        """
        nearest = self._nearest(scenario)
        entry = self.chosen.get(nearest, {}).get(method)
        if entry is None:
            return {"lam": self.lam} if method in ("etc", "ets") else {}
        if method in CORRALS and nearest != scenario:
            return corral_settings(entry["values"]["gamma"], entry["values"]["eta"], SCENARIOS[scenario], method)
        return dict(entry["settings"])

    def exploration(self, method: str, scenario: str) -> int:
        """Rounds that ETC or ETS explores on a scenario."""
        rounds = self.settings(method, scenario).get("n_explore", 20)
        assert isinstance(rounds, int)
        return rounds

    def _nearest(self, scenario: str) -> str:
        if scenario == "scaling-10":
            return "easy"
        if scenario in self.chosen or scenario not in SCENARIOS:
            return scenario
        wanted = SCENARIOS[scenario]
        sizes = {name: abs(np.log(SCENARIOS[name].n_models / wanted.n_models)) for name in self.chosen}
        same = {name: gap for name, gap in sizes.items() if SCENARIOS[name].size == wanted.size}
        return min(same or sizes, key=lambda name: (same or sizes)[name])

    def save(self, path: Path) -> None:
        """Write as JSON."""
        data = {"lambda_0": self.lam, "tuning seeds": [self.seeds[0], self.seeds[-1]], "chosen": self.chosen}
        write_text(path, json.dumps(data, indent=1, sort_keys=True) + "\n")


def load_tuned() -> Tuned:
    """The committed choice."""
    data = json.loads(files("alexp.experiments.paper").joinpath("data/tuned.json").read_text())
    first, last = data["tuning seeds"]
    return Tuned(data["lambda_0"], data["chosen"], tuple(range(first, last + 1)))


def tune(grid: Grid, sweep: Sweep) -> tuple[Tuned, list[Attempt]]:
    """Try everything and choose; returns the choice and every attempt."""
    by_lambda = run_attempts(grid.attempts_at_lambda(), grid, sweep, "tuning lambda_0")
    lam = choose_lambda(by_lambda)
    rest = run_attempts(grid.attempts(lam), grid, sweep, "tuning the rest")
    return Tuned(lam, choose(rest), grid.seeds), [*by_lambda, *rest]
