"""Methods of the paper's comparison, what is tried of their constants, and the choice by one rule.

A method has *values*, the constants that a table names (gamma_0, n_0, ...), and `settings_of` turns them into settings
of its algorithm on a scenario; whatever is not among the values is as the paper prints it.

Tried are twenty settings of every method on every problem, along the axes of the paper's appendix:

- ALExp, as printed and as released: 20 log-uniform draws of (gamma_0, eta_0) from [1e-4, 1e-1] x [1, 100]. The paper's.
- Corral, all three readings: 20 draws from the same box, with gamma = gamma_0 / n, eta = eta_0 sqrt(M / n). Paper: 10.
- ETC and ETS: n_0 at 20 values in [2, 80]. Paper: 10.
- Oracle and Naive UCB: lambda-tilde at 20 values in [1e-3, 1], among them the paper's three, 0.01, 0.1 and 0.5.
- EXP4-IX, which the paper does not have: eta at 20 values in [0.1, 100].

The second stage takes what the first has chosen and tries five values of what the paper holds fixed: the width beta of
every UCB (2 in the paper), and for ETC, which has none, the scale lambda_0 of its Lasso (0.009 in the paper). lambda_0
itself is not chosen: ALExp, ETC and ETS have the paper's. A sweep of 20 values in [1e-5, 1] shows its effect on ALExp.

The rule: per problem and method, the setting with the least *mean* regret over the tuning seeds, which no reported
figure uses; the first tried, if several have it. The paper tunes means, too. A few stuck runs make the choice noisy,
but they are part of what a setting costs: a median would choose rates with which up to half of the runs get stuck.
data/sweep.csv has every setting that was tried, with median and number of stuck runs, and says which were
chosen; figures read it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from math import sqrt
from pathlib import Path

import numpy as np

from alexp.common.files import write_text
from alexp.common.style import DASHES, METHOD_COLOURS
from alexp_experiments.core.scenarios import SCENARIOS, Json, Scenario, Settings, scenario_named
from alexp_experiments.core.statistics import MeanEstimate, estimate, interval, is_stuck
from alexp_experiments.core.tasks import Record, Task

LAMBDA_0 = 0.009  # scale of every Lasso's regularisation, as printed
BETA = 2.0  # width of every UCB, as printed

Values = Mapping[str, float]
SIGNS = {"gamma": "gamma_0", "eta": "eta_0", "n0": "n_0", "ridge": "lambda~", "lambda": "lambda_0", "beta": "beta"}


@dataclass(frozen=True)
class Method:
    """One curve of a figure; `algorithm` is the name of its tasks."""

    name: str
    algorithm: str
    label: str
    colour: str
    dashes: str | tuple[int, tuple[int, ...]]


_LOOKS = [
    ("alexp", "ALExp", 0),
    ("oracle", "Oracle UCB", 1),
    ("naive", "Naive UCB", 4),
    ("etc", "ETC", 2),
    ("ets", "ETS", 5),
    ("corral", "Corral (shared data)", 3),
    ("corral-own", "Corral (own data)", 6),
    ("corral-released", "Corral (released code)", 7),
    ("exp4-ix", "EXP4-IX", 1),
    ("alexp-released", "ALExp (released code)", 3),
    ("mixture", "EvidenceMixture (noise not given)", 0),
    ("mixture-told", "EvidenceMixture (noise given)", 3),
]
PAPER = ("alexp", "oracle", "naive", "etc", "ets", "corral")  # the curves of the paper's figures
EXTRA = ("corral-own", "corral-released", "exp4-ix", "alexp-released")
MIXTURES = ("mixture", "mixture-told")  # what the second set of figures adds; they have no constants
CORRALS = ("corral", "corral-own", "corral-released")
METHODS = {
    name: Method(name, algorithm, label, METHOD_COLOURS[algorithm], DASHES[d])
    for name, label, d in _LOOKS
    for algorithm in ["evidence-mixture" if name in MIXTURES else name]
}


def settings_of(method: str, values: Values, scenario: Scenario) -> Settings:
    """Settings of a method with the constants that `values` names.

    gamma, eta: of ALExp's schedules; Corral's gamma is gamma / n and its eta eta sqrt(M / n), but in the released code,
    which did not scale it; EXP4-IX has eta alone. n0: rounds of exploration. ridge: lambda-tilde of UCB. lambda: scale
    of the Lasso's regularisation. beta: width of UCB, for every method that plays it.
    """
    if method in MIXTURES:
        return {} if method == "mixture-told" else {"noise_std": None}
    lam, n = values.get("lambda", LAMBDA_0), scenario.steps
    agent: dict[str, Json] = {"kind": "UCB", **{key: values[key] for key in ("ridge", "beta") if key in values}}
    if agent.get("beta") == BETA:  # the default, left out so that the same run has the same settings
        del agent["beta"]
    agents: Settings = {} if len(agent) == 1 else {"agents": agent}
    if method in ("alexp", "alexp-released"):
        constants: dict[str, Json] = {"gamma": values["gamma"], "eta": values["eta"], "lam": lam}
        kind: Settings = {"kind": "Schedules"} if method == "alexp" else {"kind": "ReleasedSchedules", "horizon": n}
        return {"schedules": {**kind, **constants}, **agents}
    if method in CORRALS:
        scale = 1.0 if method == "corral-released" else sqrt(scenario.n_models / n)
        return {"gamma": values["gamma"] / n, "eta": values["eta"] * scale, **agents}
    if method == "exp4-ix":
        return {"eta": values["eta"], **agents}
    one: Settings = {} if len(agent) == 1 else {"agent": agent}
    if method in ("oracle", "naive"):
        return one
    return {"n_explore": int(values["n0"]), "lam": lam, **(one if method == "ets" else {})}


def task_of(method: str, values: Values, scenario: Scenario, seed: int) -> Task:
    """One run of a method."""
    return Task(scenario, METHODS[method].algorithm, settings_of(method, values, scenario), seed)


TUNING_SEEDS = tuple(range(10_000, 10_020))
MAIN_SCENARIOS = ("easy", "hard-printed", "hard-meant", "large")
TUNED_SCENARIOS = (*MAIN_SCENARIOS, "scaling-9", "scaling-11", "scaling-12", "scaling-13")
LONGER = ", longer"  # the same problem over LENGTHENED times as many rounds
LENGTHENED = 4
LAMBDA_SCENARIOS = ("easy", "hard-meant", "large")
N_SETTINGS = 20

BOX = {"gamma": (1e-4, 1e-1), "eta": (1.0, 1e2)}
MIDDLE = {"gamma": 0.01, "eta": 10.0}  # about the middle of the box on a log scale
LAMBDAS = tuple(np.logspace(-5.0, 0.0, N_SETTINGS).tolist())
WIDTHS = (0.125, 0.25, 0.5, 1.0, BETA)
LASSO_SCALES = tuple(LAMBDA_0 * factor for factor in (0.01, 0.1, 1.0, 10.0, 100.0))


def _draws(seed: int) -> tuple[Values, ...]:
    """Log-uniform (gamma_0, eta_0) from the box."""
    low, high = np.log10(list(BOX.values())).T
    exponents = np.random.default_rng(seed).uniform(low, high, (N_SETTINGS, 2))
    return tuple({"gamma": float(10.0**g), "eta": float(10.0**e)} for g, e in exponents)


def _rounded(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


_RATES, _CORRAL_RATES = _draws(1), _draws(2)
_EXPLORATIONS = tuple({"n0": float(n)} for n in np.linspace(2, 80, N_SETTINGS).round())
_RIDGES = tuple({"ridge": r} for r in sorted([*_rounded(np.logspace(-3.0, 0.0, N_SETTINGS - 1)), 0.5]))
_ETAS = tuple({"eta": e} for e in _rounded(np.logspace(-1.0, 2.0, N_SETTINGS)))

SETTINGS: dict[str, tuple[Values, ...]] = {
    "alexp": _RATES,
    "oracle": _RIDGES,
    "naive": _RIDGES,
    "etc": _EXPLORATIONS,
    "ets": _EXPLORATIONS,
    **dict.fromkeys(CORRALS, _CORRAL_RATES),
    "exp4-ix": _ETAS,
    "alexp-released": _RATES,
}


@dataclass(frozen=True)
class Try:
    """A setting to be tried; `stage` is "grid", "width" (what the paper holds fixed) or "lambda" (only shown)."""

    stage: str
    scenario: str
    method: str
    values: Values


@dataclass(frozen=True)
class Grid:
    """How much is tried, the same number of settings for every method; by default all of it."""

    size: int = N_SETTINGS
    n_widths: int = len(WIDTHS)
    seeds: tuple[int, ...] = TUNING_SEEDS
    scenarios: tuple[str, ...] = TUNED_SCENARIOS
    shrink: Mapping[str, int] | None = None  # fields of every scenario to replace, for tests

    def scenario(self, name: str) -> Scenario:
        """A scenario by name, longer if the name says so, shrunk if the grid says so."""
        one = scenario_named(name.removesuffix(LONGER)).with_(**(self.shrink or {}))
        return one.with_(steps=LENGTHENED * one.steps) if name.endswith(LONGER) else one

    def methods(self, name: str) -> tuple[str, ...]:
        """Which methods are tuned on a scenario: all on the main ones, those of the paper elsewhere."""
        return (*PAPER, *EXTRA) if name in MAIN_SCENARIOS else PAPER

    def tries(self) -> list[Try]:
        """The first stage, and ALExp with middling rates at every lambda_0."""
        every = N_SETTINGS // self.size
        first = [
            Try("grid", name, method, values)
            for name in self.scenarios
            for method in self.methods(name)
            for values in SETTINGS[method][::every][: self.size]
        ]
        names = [name for name in LAMBDA_SCENARIOS if name in self.scenarios]
        shown = LAMBDAS[::every][: self.size]
        return first + [Try("lambda", name, "alexp", MIDDLE | {"lambda": lam}) for name in names for lam in shown]

    def widths(self, chosen: Mapping[str, Mapping[str, Values]]) -> list[Try]:
        """The second stage on the main problems, around what the first has chosen (by scenario and method)."""
        return [
            Try("width", name, method, {**chosen[name][method], key: value})
            for name in self.scenarios
            if name in MAIN_SCENARIOS
            for method in self.methods(name)
            for key, tried in [("lambda", LASSO_SCALES) if method == "etc" else ("beta", WIDTHS)]
            for value in tried[-self.n_widths :]
        ]


Sweep = Callable[[Sequence[Task], str], list[Record]]
Key = tuple[str, str, str]  # stage, scenario, method

_CONSTANTS = ("gamma", "eta", "n0", "ridge", "lambda", "beta")
_FIELDS = ("stage", "scenario", "method", *_CONSTANTS, "mean", "error", "median", "stuck", "first", "chosen")


@dataclass(frozen=True)
class Attempt:
    """A setting that was tried on the tuning seeds.

    `regret` is the mean of R(n), `median` its median, `stuck` how many runs were stuck at the end, and `first` R(n)
    under the first seed, by which one can see whether today's code still plays the run that was stored.
    """

    tried: Try
    regret: MeanEstimate
    median: float
    stuck: int
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
        final, stuck = curves[:, -1], int(is_stuck(curves).sum())
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
        scenario = scenario.removesuffix(LONGER)
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
        row = {"stage": t.stage, "scenario": t.scenario, "method": t.method, "stuck": one.stuck}
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


def load_attempts() -> list[Attempt]:
    """The stored sweep."""
    return [
        Attempt(
            try_of(row),
            interval(float(row["mean"]), float(row["error"]), len(TUNING_SEEDS)),
            float(row["median"]),
            int(row["stuck"]),
            float(row["first"]),
        )
        for row in stored_rows()
    ]


def load_tuned() -> Tuned:
    """The stored choice."""
    tries = [try_of(row) for row in stored_rows() if row["chosen"] == "1"]
    return Tuned.of({(t.stage, t.scenario, t.method): t for t in tries})
