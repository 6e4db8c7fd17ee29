"""The grid of `alexp compare` as data: which problems, which algorithms, and which of their constants are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt

from alexp_experiments.comparison.problems import TableScenario, with_true_model
from alexp_experiments.core.scenarios import Json, Scenario, Settings
from alexp_experiments.core.tasks import Task

N = 201  # candidates on the interval; regret hardly changes beyond, run time does


def legendre(size: int, noise_std: float) -> Scenario:
    """Subsets of `size` Legendre polynomials of degree up to 10."""
    return Scenario(size=size, noise_std=noise_std, resolution=N)


def maps(noise_std: float) -> Scenario:
    """Fifty independent maps of five Gaussian features on 500 candidates."""
    return Scenario(family="gaussian", size=5, n_maps=50, resolution=500, noise_std=noise_std)


WELL_SPECIFIED: dict[str, Scenario] = {
    "s=2 σ=.01": legendre(2, 0.01),
    "s=3 σ=.01": legendre(3, 0.01),
    "s=9 σ=.01": legendre(9, 0.01),
    "s=2 σ=.1": legendre(2, 0.1),
    "s=3 σ=.1": legendre(3, 0.1),
    "s=9 σ=.1": legendre(9, 0.1),
    "s=3 σ=.3": legendre(3, 0.3),
    "s=9 σ=.3": legendre(9, 0.3),
    "s=2 σ=.5": legendre(2, 0.5),
    "s=3 σ=.5": legendre(3, 0.5),
    "M=4495 σ=.1": legendre(3, 0.1).with_(degree=30),
    "50 maps σ=.1": maps(0.1),
    "50 maps σ=.3": maps(0.3),
}

# The twelve on which algorithms are held against agents that are told the true model. The first measurement of the kind
# has not named its twelve of these thirteen; without this one its regrets of both UCB agents and of ALExp are met best.
TWELVE: dict[str, Scenario] = {name: one for name, one in WELL_SPECIFIED.items() if name != "s=9 σ=.01"}


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


Constants = Settings  # an entrant's own numbers, in units that mean the same on every scenario
N_TRIED = 8  # settings that are tried for every entrant that has something to try, its defaults among them


def _ucb(scenario: Scenario, beta: float = 2.0, ridge: float = 1.0) -> Settings:
    """An agent that knows the stated noise: ridge x sigma / B, width beta x sigma, whatever the ridge."""
    return {"kind": "UCB", "ridge": ridge * scenario.noise_std * scenario.stated_noise, "beta": beta / ridge}


def _agent(scenario: Scenario, **constants: float) -> Settings:
    return {"agent": _ucb(scenario, **constants)}


def _agents(scenario: Scenario, **constants: Json) -> Settings:
    """Agents as above, and constants that are the same on every scenario."""
    return {"agents": _ucb(scenario), **constants}


def _ranged(scenario: Scenario, **constants: Json) -> Settings:
    return {**_agents(scenario), "loss_range": "$reward_range", **constants}


def _corral(scenario: Scenario, eta: float = 1.0, gamma: float = 1.0) -> Settings:
    """Rates as multiples of sqrt(M / n) and 1 / n."""
    n = scenario.steps
    return {**_agents(scenario), "eta": eta * sqrt(scenario.n_models / n), "gamma": gamma / n}


def _smoothed(scenario: Scenario, **constants: Json) -> Settings:
    return {**_ranged(scenario), "horizon": "$steps", **constants}


def _schedules(scenario: Scenario, **constants: float) -> Settings:
    """Agents as above; constants are those of `Schedules`."""
    return {**_agents(scenario), "schedules": {"kind": "Schedules", **constants}}


def _own(scenario: Scenario, **constants: Json) -> Settings:
    return constants


def _lm_ucb(scenario: Scenario, ridge: float = 1.0, **constants: Json) -> Settings:
    return {"ridge": ridge * scenario.noise_std * scenario.stated_noise, **constants}


def _mixture(**settings: Json) -> Callable[..., Settings]:
    """A mixture that is told the size of the coefficients, as it is told the noise."""
    return lambda scenario, **constants: _with_rule({"reward_bound": 1.0} | settings | constants)


def _with_rule(settings: dict[str, Json]) -> Settings:
    """Constants of the mixture's rule become a rule."""
    kinds = {"ids": "rules.IDS", "ucb": "rules.UCB"}
    if "beta" in settings:
        kind = kinds[str(settings.pop("rule", "ids"))]
        settings["rule"] = {"kind": kind, "beta": settings.pop("beta")}
    if "draws" in settings:
        settings["rule"] = {"kind": "rules.Thompson", "draws": settings.pop("draws")}
    return settings


def _unstated(**settings: Json) -> Callable[..., Settings]:
    """A mixture to which nothing is stated."""
    return lambda scenario, **constants: {"noise_std": None} | settings | constants


def _values(name: str, *values: Json) -> tuple[Constants, ...]:
    return tuple({name: value} for value in values)


@dataclass(frozen=True)
class Entrant:
    """One row of the comparison.

    Attributes
    ----------
    algorithm : name of a task's algorithm.
    settings : its settings on a scenario, from constants that are not left at their defaults.
    tried : what is tried beside the defaults when its constants are chosen on the tuning seeds.
    constants : what it plays with here.
    long : whether it also plays the long scenarios.
    informed : whether the true model is the only one that it gets.
    slow : whether a run takes seconds.
    tuned : whether its constants were chosen on the tuning seeds.
    """

    algorithm: str
    settings: Callable[..., Settings] = _own
    tried: tuple[Constants, ...] = ()
    constants: Constants = field(default_factory=dict)
    long: bool = False
    informed: bool = False
    slow: bool = False
    tuned: bool = False

    @property
    def grid(self) -> tuple[Constants, ...]:
        """All constants that are tried, the defaults first; nothing for an entrant without constants."""
        return ({}, *self.tried) if self.tried else ()

    def with_constants(self, constants: Constants) -> Entrant:
        """The same with constants that were tried or chosen."""
        return replace(self, constants=constants, tuned=True)

    def task(self, scenario: Scenario, seed: int) -> Task:
        """The run of this entrant under one seed."""
        settings = dict(self.settings(scenario, **self.constants))
        return Task(with_true_model(scenario) if self.informed else scenario, self.algorithm, settings, seed)


_WIDTHS: tuple[Constants, ...] = (
    *_values("beta", 0.5, 1.0, 3.0),
    *({"beta": beta, "ridge": ridge} for beta in (1.0, 2.0) for ridge in (0.5, 2.0)),
)
_LENGTHS: tuple[Constants, ...] = (*_values("n_explore", 5, 10, 15, 30, 40), *_values("lam", 0.09, 0.9))
_GAINS: tuple[Constants, ...] = (*_values("gain", 1.0, 3.0, 30.0, 100.0, 300.0, 1000.0), {"gain": 100.0, "arms": "all"})
_BALANCES: tuple[Constants, ...] = (
    {"newcomers": 1.0},
    {"newcomers": 1.0, "d_min": 0.01, "width": 0.0},
    {"d_min": 0.1, "width": 0.02},
    {"d_min": 0.01, "width": 0.02},
    {"d_min": 0.01, "width": 0.0},
    {"d_min": 0.01, "width": 0.0, "newcomers": 0.1},
    {"d_min": 0.001, "width": 0.0, "newcomers": 0.1},
)

ENTRANTS: dict[str, Entrant] = {
    "informed ids": Entrant("evidence-mixture", _unstated(rule="ids"), long=True, informed=True),
    "informed ucb": Entrant("evidence-mixture", _unstated(rule="ucb"), long=True, informed=True),
    "informed ids, stated": Entrant("evidence-mixture", _mixture(rule="ids"), long=True, informed=True),
    "informed ucb, stated": Entrant("evidence-mixture", _mixture(rule="ucb"), informed=True),
    "informed Thompson": Entrant("mixture-thompson", _unstated(), informed=True),
    "oracle": Entrant("oracle", _agent, _WIDTHS, long=True),
    "naive": Entrant("naive", _agent, _WIDTHS, long=True),
    "evidence-mixture": Entrant(
        "evidence-mixture",
        _mixture(),
        (
            *_values("beta", 1.0, 1.5, 3.0),
            {"power": 0.5},
            *({"rule": "ucb"} | beta for beta in ({}, {"beta": 1.0}, {"beta": 2.0})),
        ),
        long=True,
    ),
    "evidence-mixture, light": Entrant("evidence-mixture", _mixture(light=True), long=True),
    "evidence-mixture, ucb": Entrant("evidence-mixture", _mixture(rule="ucb")),
    "evidence-mixture, noise unknown": Entrant("evidence-mixture", _mixture(noise_std=None)),
    "evidence-mixture, nothing stated": Entrant("evidence-mixture", _unstated(), long=True),
    "mixture-thompson": Entrant(
        "mixture-thompson",
        _mixture(),
        (
            *_values("draws", 1, 32),
            *_values("power", 0.5, 2.0),
            *_values("scale_grid", [1.0], [0.5, 1.0]),
            {"noise_grid": [1.0]},
        ),
        long=True,
    ),
    "evidence-sampling": Entrant(
        "evidence-sampling",
        tried=(*_values("beta", 0.5, 1.0, 1.5, 3.0), *_values("temper", 0.5, 2.0), {"beta": 1.0, "temper": 0.5}),
        long=True,
    ),
    "lm-ucb": Entrant(
        "lm-ucb",
        _lm_ucb,
        (
            *_values("delta", 0.02, 0.5, 0.9),
            *_values("ridge", 0.3, 3.0, 10.0),
            {"delta": 0.9, "ridge": 3.0},
        ),
        long=True,
    ),
    "alexp": Entrant(
        "alexp",
        _schedules,
        (
            *_values("eta", 1.0, 10.0, 30.0),
            *_values("lam", 0.003, 0.03),
            {"gamma": 0.03},
            {"eta": 10.0, "lam": 0.03},
        ),
        long=True,
    ),
    "alexp, evidence oracle": Entrant("alexp", lambda s: _agents(s, oracle={"kind": "Evidence"}), long=True),
    "alexp, retrospective": Entrant("alexp", lambda s: _agents(s, returns="retrospective")),
    "exp4-ix": Entrant("exp4-ix", _agents, _values("eta", 0.1, 0.3, 3.0, 10.0, 30.0, 100.0, 300.0)),
    "exp4-ls": Entrant(
        "exp4-ls",
        _schedules,
        (
            *_values("eta", 0.03, 0.1, 0.3, 1.0, 10.0),
            {"eta": 0.3, "gamma": 0.1},
            {"eta": 0.3, "gamma": 0.3},
        ),
    ),
    "corral": Entrant(
        "corral",
        _corral,
        (*_values("eta", 0.1, 0.3, 3.0, 10.0, 30.0), *({"eta": eta, "gamma": 10.0} for eta in (1.0, 10.0))),
    ),
    "smoothed-corral": Entrant(
        "smoothed-corral",
        _smoothed,
        (*_values("regret", 0.01, 0.03, 0.1, 0.3, 1.0), {"regret": 3.0}, {"master": "exp3p"}),
        slow=True,
    ),
    "ets": Entrant("ets", tried=_LENGTHS),
    "etc": Entrant("etc", tried=_LENGTHS),
    "d3rb": Entrant("d3rb", _ranged, _BALANCES),
    "ed2rb": Entrant("ed2rb", _ranged, _BALANCES),
    "balancing": Entrant(
        "balancing",
        _ranged,
        (
            {"data_mode": "shared"},
            *(
                {"data_mode": "shared", "rule": rule, "scale": 0.01, "width": 0.1}
                for rule in ("balance", "eliminate", "dynamic")
            ),
            {"rule": "balance", "scale": 0.01, "width": 0.1},
            {"rule": "balance", "scale": 0.1},
            {"rule": "balance"},
        ),
        slow=True,
    ),
    "squarecb": Entrant("squarecb", _agents, _GAINS),
    "fs-scb": Entrant("fs-scb", _agents, _GAINS),
    "o2cs-ew": Entrant("o2cs-ew", tried=_values("scale", 0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005)),
    "uniform": Entrant("uniform"),
}
INFORMED = tuple(name for name, entrant in ENTRANTS.items() if entrant.informed)
STATED = ", stated"  # how informed agents' names end that know noise and bound, too
TUNABLE = tuple(name for name, entrant in ENTRANTS.items() if entrant.tried)


def seeds_for(name: str, entrant: Entrant, seeds: int) -> int:
    """How many of the seeds an entrant plays on a scenario: fewer where runs are long or many; at least two.

    Half of them on scenarios that are mis-stated or real tables, a quarter for a thousand rounds, a tenth, but four if
    there are as many, for ten thousand; and a quarter of that for entrants whose every agent has data of its own.
    """
    scenario = SCENARIOS[name]
    if scenario.steps > 1000:
        n = max(min(seeds, 4), seeds // 10)
    else:
        n = seeds // 4 if scenario.steps > 100 else seeds if name in WELL_SPECIFIED else seeds // 2
    return max(2, n // 4 if entrant.slow else n)


def plays(name: str, entrant: Entrant) -> bool:
    """Whether an entrant plays a scenario: the long ones are for some, and tuned constants are for the first kind."""
    if entrant.tuned:
        return name in WELL_SPECIFIED
    return entrant.long or SCENARIOS[name].steps <= 100
