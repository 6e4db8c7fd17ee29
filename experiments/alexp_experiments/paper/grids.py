"""What is tried: twenty settings of every method on every problem, and then five of the constant the paper holds fixed.

Along the axes of the paper's appendix, with as many settings for everybody as the paper has for ALExp:

- ALExp, as printed and as released: 20 log-uniform draws of (gamma_0, eta_0) from [1e-4, 1e-1] x [1, 100]. The paper's.
- Corral, all three readings: 20 draws from the same box, with gamma = gamma_0 / n, eta = eta_0 sqrt(M / n). Paper: 10.
- ETC and ETS: n_0 at 20 values in [2, 80]. Paper: 10.
- Oracle and Naive UCB: lambda-tilde at 20 values in [1e-3, 1], among them the paper's three, 0.01, 0.1 and 0.5.
- EXP4-IX, which the paper does not have: eta at 20 values in [0.1, 100].

The second stage takes what the first has chosen and tries five values of what the paper holds fixed: the width beta of
every UCB (2 in the paper), and for ETC, which has none, the scale lambda_0 of its Lasso (0.009 in the paper).

lambda_0 itself is not chosen: it is the paper's 0.009 for ALExp, ETC and ETS alike. That ALExp hardly depends on it is
shown at 20 values in [1e-5, 1], from which nothing is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from alexp_experiments.core.scenarios import Scenario, scenario_named
from alexp_experiments.paper.methods import BETA, CORRALS, EXTRA, LAMBDA_0, PAPER, Values

TUNING_SEEDS = tuple(range(10_000, 10_020))
MAIN_SCENARIOS = ("easy", "hard-printed", "hard-meant", "large")
TUNED_SCENARIOS = (*MAIN_SCENARIOS, "scaling-9", "scaling-11", "scaling-12", "scaling-13")
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
        """A scenario by name, shrunk if the grid says so."""
        return scenario_named(name).with_(**(self.shrink or {}))

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
