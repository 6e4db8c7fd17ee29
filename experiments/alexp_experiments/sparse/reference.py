"""Regrets of the sparse bandits where their authors' released codes were measured: `python -m ...sparse.reference`.

Each entry of `INSTANCES` has the constants that the released code was run with and its mean cumulative regret at 100,
500 and 1000 rounds over a few seeds. Ours plays the same kind of instance with other seeds. Coefficients are drawn by
the seed, so that a mean over few of them is uncertain by itself: the verdict allows 25%, as for a port on other
instances, and two standard errors of the difference on top.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np

from alexp.algorithms.assumptions import AssumptionWarning
from alexp.algorithms.base import Algorithm
from alexp.algorithms.registry import algorithm_named
from alexp.common.arrays import FloatArray
from alexp.problem.domains import FiniteSet
from alexp.problem.models import ModelClass
from alexp.simulation import Environment, simulate
from alexp_experiments.sparse.environments import Common, GaussianContexts, SparseContexts, UniformContexts

STEPS = 1000
ROUNDS = (100, 500, 1000)
BAND = 0.25


@dataclass(frozen=True)
class Measured:
    """Mean regret of a released code at `ROUNDS`, with its standard error at the last, and the constants it had."""

    regret: tuple[float, float, float]
    error: float
    settings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """One kind of contexts, and who was measured on it. Settings are ours: lambdas in units of the noise."""

    title: str
    K: int
    p: int
    s0: int
    rho2: float | None
    noise_std: float
    methods: Mapping[str, Measured]
    theta: tuple[float, float] = (0.0, 1.0)

    def environment(self, method: str, seed: int) -> SparseContexts:
        """The instance of a seed, as a method wants it: those of TH Lasso fit no constant, LASSO Bandit stacks arms."""
        shared: Common = {"noise_std": self.noise_std, "theta": self.theta, "random_state": seed}
        shared["stacked"], shared["intercept"] = method == "lasso-bandit", method in ("sa-lasso", "dr-lasso")
        if self.rho2 is None:
            return UniformContexts(self.K, self.p, self.s0, **shared)
        return GaussianContexts(self.K, self.p, self.s0, self.rho2, **shared)


_DR = {"clip": 3.0}  # lam1 = 1, lam2 = .5, ten even rounds are the defaults
INSTANCES = (
    Instance("K=20 p=100 s0=5 rho2=.7 sigma=.5", 20, 100, 5, 0.7, 0.5, {
        "uniform": Measured((139, 674, 1342), 106), "dr-lasso": Measured((89, 220, 318), 30, _DR),
        "sa-lasso": Measured((28, 32, 34), 4, {"lam": 0.8}), "th-lasso": Measured((35, 38, 39), 3, {"lam": 0.1}),
    }),
    Instance("the same with U[-1,1] contexts", 20, 100, 5, None, 0.5, {
        "uniform": Measured((137, 683, 1374), 108), "dr-lasso": Measured((138, 685, 1360), 108, _DR),
        "sa-lasso": Measured((86, 138, 153), 13, {"lam": 0.8}), "th-lasso": Measured((41, 50, 52), 5, {"lam": 0.1}),
    }),
    Instance("K=20 p=100 s0=5 rho2=.3 sigma=.5", 20, 100, 5, 0.3, 0.5, {
        "uniform": Measured((172, 871, 1731), 202), "dr-lasso": Measured((152, 595, 928), 218, _DR),
        "lasso-bandit": Measured((177, 754, 1189), 138, {"lam1": 0.04, "lam2": 0.5}),
        "sa-lasso": Measured((40, 47, 50), 10, {"lam": 0.8}), "th-lasso": Measured((56, 60, 60), 9, {"lam": 0.1}),
    }),
    Instance("K=100 p=100 s0=5 rho2=.7 sigma=.05", 100, 100, 5, 0.7, 0.05, {
        "uniform": Measured((173, 893, 1784), 138), "dr-lasso": Measured((108, 271, 388), 41, _DR),
        "sa-lasso": Measured((26, 26, 26), 3, {"lam": 2.0}), "th-lasso": Measured((26, 26, 26), 6, {"lam": 0.4}),
    }),
    Instance("K=10 p=100 s0=5 rho2=.7 sigma=.05", 10, 100, 5, 0.7, 0.05, {
        "uniform": Measured((84, 459, 932), 104), "dr-lasso": Measured((58, 150, 209), 27, _DR),
        "lasso-bandit": Measured((93, 304, 319), 53),
        "sa-lasso": Measured((12, 12, 12), 1, {"lam": 2.0}), "th-lasso": Measured((12, 12, 12), 3, {"lam": 0.4}),
    }),
    Instance("K=2 p=1000 s0=20 rho2=.7 sigma=1, theta U(1,2)", 2, 1000, 20, 0.7, 1.0, {
        "uniform": Measured((223, 1086, 2141), 0), "sa-lasso": Measured((225, 236, 237), 0, {"lam": 0.32}),
        "th-lasso": Measured((98, 121, 121), 0, {"lam": 0.02}),
    }, (1.0, 2.0)),
)  # fmt: skip
CASE_2 = {"popart": (3370.0, 631.0), "estc": (4678.0, 533.0)}  # mean and standard deviation of 10 runs


class Row(NamedTuple):
    """What was measured beside what the released code had."""

    title: str
    method: str
    seeds: int
    means: FloatArray  # (3,)
    error: float
    known: Measured

    @property
    def within(self) -> bool:
        """Whether the final regret lies in the band, chance allowed for."""
        allowed = BAND * self.known.regret[-1] + 2.0 * hypot(self.error, self.known.error)
        return bool(abs(self.means[-1] - self.known.regret[-1]) <= allowed)

    def text(self) -> str:
        """A line of the table."""
        ours, theirs = (" / ".join(f"{value:.0f}" for value in values) for values in (self.means, self.known.regret))
        measured = f"{ours} +-{self.error:.0f} | {theirs} +-{self.known.error:.0f}"
        verdict = f"{self.means[-1] / self.known.regret[-1]:.2f} | {'yes' if self.within else 'no'}"
        return f"| {self.title} | {self.method} | {self.seeds} | {measured} | {verdict} |"


def measure(instance: Instance, method: str, seeds: Sequence[int]) -> Row:
    """Play one method on the instances of some seeds."""
    known = instance.methods[method]
    curves = np.array([play(instance, method, known.settings, seed) for seed in seeds])
    final = curves[:, ROUNDS[-1] - 1]
    error = float(final.std(ddof=1) / sqrt(len(seeds))) if len(seeds) > 1 else 0.0
    return Row(instance.title, method, len(seeds), curves.mean(axis=0)[np.array(ROUNDS) - 1], error, known)


def play(instance: Instance, method: str, settings: Mapping[str, float], seed: int, steps: int = STEPS) -> FloatArray:
    """Cumulative regret of one run, (steps,)."""
    environment, make = instance.environment(method, seed), _maker(method)
    stated = {"noise_std": instance.noise_std, "reward_bound": 1.0, "random_state": seed}
    opt = make(environment.models, environment.domain, log_features="none", **stated, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # constants are as if rewards were of size one
        return simulate(opt, environment, steps).regret


def case_2(method: str, seed: int, *, n: int = 10_000, p: int = 30, actions: int = 90) -> float:
    """Final regret of PopArt or ESTC on unit vectors with two coefficients of one; delta = .05, sigma = .1."""
    rng = np.random.default_rng([20, seed])
    rows = rng.standard_normal((actions, p))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    theta = np.zeros(p)
    theta[rng.choice(p, 2, replace=False)] = 1.0
    domain = FiniteSet(list(range(actions)))
    environment = Environment(domain, rows @ theta, noise_std=0.1, random_state=seed)
    largest = float(np.abs(environment.rewards).max())
    models = ModelClass.from_matrices({"x": rows}, intercept=False)
    stated = {"noise_std": 0.1, "reward_bound": largest, "random_state": seed}
    opt = _maker(method)(models, domain, horizon=n, sparsity=2, **stated)
    return float(simulate(opt, environment, n, record_probabilities=False).regret[-1])


def _maker(method: str) -> Callable[..., Algorithm]:
    return algorithm_named(method)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10, help="instances of each row")
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 2, 3, 4, 5, 6], help="which of the six instances")
    parser.add_argument("--methods", nargs="*", help="names of algorithms; all that were measured by default")
    parser.add_argument("--case-2", type=int, default=0, metavar="RUNS", help="runs of PopArt and ESTC on Case 2")
    chosen = parser.parse_args(arguments)
    print("| instance | method | seeds | regret at 100 / 500 / 1000 | released code | ratio | in the band |")
    print("|---|---|---|---|---|---|---|")
    missed = 0
    for number in chosen.rows:
        instance = INSTANCES[number - 1]
        for method in [name for name in instance.methods if chosen.methods is None or name in chosen.methods]:
            row = measure(instance, method, range(chosen.seeds))
            missed += not row.within
            print(row.text(), flush=True)
    for method, (mean, spread) in CASE_2.items() if chosen.case_2 else ():
        finals = np.array([case_2(method, seed) for seed in range(chosen.case_2)])
        own = float(finals.std(ddof=1))
        apart = (float(finals.mean()) - mean) / hypot(spread / sqrt(10.0), own / sqrt(finals.size))
        missed += abs(apart) > 2.0
        ours = f"{finals.mean():.0f} (sd {own:.0f}, {finals.size} runs)"
        print(f"{method}: {ours}, released code {mean:.0f} (sd {spread:.0f}), {apart:+.1f} standard errors", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
