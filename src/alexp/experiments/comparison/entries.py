"""The grid of `alexp compare` as data: which problems, and which algorithms with which settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from alexp.experiments.core.plain import Json, Settings
from alexp.experiments.core.scenarios import Scenario
from alexp.experiments.core.tables import TableScenario
from alexp.experiments.core.tasks import Task
from alexp.experiments.core.well_specified import WELL_SPECIFIED, legendre, maps

MIS_STATED: dict[str, Scenario] = {
    "misfit 10%": legendre(3, 0.1).with_(misfit=0.1),
    "noise stated ×3": legendre(3, 0.1).with_(stated_noise=3.0),
    "noise stated ÷3": legendre(3, 0.1).with_(stated_noise=1.0 / 3.0),
    "Student t noise": legendre(3, 0.3).with_(noise="student-t"),
    "offset 1": legendre(3, 0.1).with_(offset=1.0),
    "offset 1, intercept": legendre(3, 0.1).with_(offset=1.0, intercept=True),
}
LONG: dict[str, Scenario] = {
    "s=3 σ=.1 n=1000": legendre(3, 0.1).with_(steps=1000),
    "s=3 σ=.5 n=1000": legendre(3, 0.5).with_(steps=1000),
    "50 maps σ=.3 n=1000": maps(0.3).with_(steps=1000),
    "s=3 σ=.3 n=10000": legendre(3, 0.3).with_(steps=10_000),
}
REAL: dict[str, Scenario] = {
    "diabetes": TableScenario(family="diabetes"),
    "digits": TableScenario(family="digits", resolution=600),
}
SCENARIOS: dict[str, Scenario] = WELL_SPECIFIED | MIS_STATED | LONG | REAL
SHORT = (*WELL_SPECIFIED, *MIS_STATED)  # n = 100: what geometric means are taken over
QUICK = ("s=3 σ=.01", "s=3 σ=.1", "s=3 σ=.5", "50 maps σ=.1", "noise stated ÷3", "diabetes")


def _ridge(scenario: Scenario) -> Settings:
    """Agents that know the stated noise: ridge sigma / B, width 2 sigma. No worse for anyone than the fixed default."""
    return {"kind": "UCB", "ridge": scenario.noise_std * scenario.stated_noise}


def _agents(scenario: Scenario) -> Settings:
    return {"agents": _ridge(scenario)}


def _agent(scenario: Scenario) -> Settings:
    return {"agent": _ridge(scenario)}


def _balanced(scenario: Scenario) -> Settings:
    return {**_agents(scenario), "loss_range": "$reward_range"}


def _nothing(scenario: Scenario) -> Settings:
    return {}


def _mixture(**settings: Json) -> Callable[[Scenario], Settings]:
    """A mixture that is told the size of the coefficients, as it is told the noise."""
    return lambda _: {"reward_bound": 1.0} | settings


@dataclass(frozen=True)
class Entrant:
    """One row of the comparison.

    Attributes
    ----------
    algorithm : name of a task's algorithm.
    settings : its settings on a scenario.
    long : whether it also plays the long scenarios.
    """

    algorithm: str
    settings: Callable[[Scenario], Settings] = _nothing
    long: bool = False

    def task(self, scenario: Scenario, seed: int) -> Task:
        """The run of this entrant under one seed."""
        return Task(scenario, self.algorithm, dict(self.settings(scenario)), seed)


ENTRANTS: dict[str, Entrant] = {
    "oracle": Entrant("oracle", _agent, long=True),
    "naive": Entrant("naive", _agent, long=True),
    "evidence-mixture": Entrant("evidence-mixture", _mixture(), long=True),
    "evidence-mixture, light": Entrant("evidence-mixture", _mixture(light=True), long=True),
    "evidence-mixture, ucb": Entrant("evidence-mixture", _mixture(rule="ucb")),
    "evidence-mixture, ucb, misfit": Entrant("evidence-mixture", _mixture(rule="ucb", misfit_grid=[0.3])),
    "evidence-mixture, noise unknown": Entrant("evidence-mixture", _mixture(noise_std=None)),
    "evidence-mixture, nothing stated": Entrant("evidence-mixture", lambda _: {"noise_std": None}, long=True),
    "mixture-thompson": Entrant("mixture-thompson", _mixture(), long=True),
    "evidence-sampling": Entrant("evidence-sampling", long=True),
    "lm-ucb": Entrant("lm-ucb", long=True),
    "alexp": Entrant("alexp", _agents, long=True),
    "alexp, default ridge": Entrant("alexp"),
    "alexp, evidence oracle": Entrant("alexp", lambda s: {**_agents(s), "oracle": {"kind": "Evidence"}}, long=True),
    "alexp, retrospective": Entrant("alexp", lambda s: {**_agents(s), "returns": "retrospective"}),
    "exp4-ix": Entrant("exp4-ix", _agents),
    "corral": Entrant("corral", _agents),
    "ets": Entrant("ets"),
    "etc": Entrant("etc"),
    "d3rb": Entrant("d3rb", _balanced),
    "ed2rb": Entrant("ed2rb", _balanced),
    "squarecb": Entrant("squarecb", _agents),
    "fs-scb": Entrant("fs-scb", _agents),
    "o2cs-ew": Entrant("o2cs-ew"),
    "uniform": Entrant("uniform"),
}


def seeds_for(scenario: Scenario, seeds: int) -> int:
    """Fewer seeds where a run is long: a tenth of them, but at least four, for ten thousand rounds."""
    return max(min(seeds, 4), seeds * 1000 // max(1000, scenario.steps)) if scenario.steps > 1000 else seeds


def entrants_for(scenario: Scenario) -> list[str]:
    """Who plays a scenario: everybody the short ones, the anytime algorithms the long ones."""
    return [name for name, entrant in ENTRANTS.items() if entrant.long or scenario.steps <= 100]
