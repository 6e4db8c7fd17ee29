"""The methods of the paper's comparison: what they are called, how they are drawn, and the settings behind values.

A method has *values*, the constants that a table names (gamma_0, n_0, ...), and `settings_of` turns them into settings
of its algorithm on a scenario; whatever is not among the values is as the paper prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from alexp.common.style import DASHES, METHOD_COLOURS
from alexp_experiments.core.plain import Json, Settings
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.core.tasks import Task

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
    ("mixture", "EvidenceMixture (nothing stated)", 0),
    ("mixture-told", "EvidenceMixture (noise stated)", 3),
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
    of the Lasso's regularisation. beta: width of UCB, whoever plays it.
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
