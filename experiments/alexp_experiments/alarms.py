"""How often `check_models` raises an alarm when it should not, how soon when it should, and how many runs are misled.

``python -m alexp_experiments.alarms`` prints the table of docs/certificates-results.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from alexp.algorithms import LMUCB, AssumptionWarning, Certified, EvidenceMixture
from alexp.problem import FiniteSet, ModelClass
from alexp.simulation import Environment

_SIZES, _CANDIDATES, _NOISE, _BOUND = {"a": 4, "b": 6, "c": 8}, 300, 0.1, 4.0


@dataclass(frozen=True)
class World:
    """A way in which the world is, or is not, as stated.

    Attributes
    ----------
    noise : the noise as a multiple of what is stated.
    outside : size of a component outside all models, as a multiple of the signal's.
    repeats : whether a candidate may be played again.
    """

    name: str
    noise: float = 1.0
    outside: float = 0.0
    repeats: bool = True


SETTINGS = (
    World("all as stated"),
    World("noise three times as large", noise=3.0),
    World("half outside, repeats", outside=0.5),
    World("half outside, no repeats", outside=0.5, repeats=False),
)
KINDS: tuple[type[Certified], ...] = (LMUCB, EvidenceMixture)  # who chooses the actions, in turn
_LOOKS = 10  # rounds between two looks at the stop report


class AlarmRun(NamedTuple):
    """One run: number of rewards at the first alarm, if any, and whether a certified stop report was ever false."""

    alarm: int | None
    misled: bool


@dataclass(frozen=True)
class Alarms:
    """What happened in some runs."""

    setting: World
    runs: list[AlarmRun]

    def __str__(self) -> str:
        found = [run.alarm for run in self.runs if run.alarm is not None]
        when = f"{np.median(found):.0f}" if found else "-"
        misled, n = sum(run.misled for run in self.runs), len(self.runs)
        return f"| {self.setting.name} | {_share(len(found), n)} | {when} | {_share(misled, n)} |"


def interval(k: int, n: int) -> tuple[float, float]:
    """95% interval of a probability after k successes in n runs (Clopper and Pearson)."""
    low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
    return low, float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0


def _share(k: int, n: int) -> str:
    low, high = interval(k, n)
    return f"{k} of {n} | {k / n:.3f} ({low:.3f} to {high:.3f})"


def problem_of(setting: World, seed: int) -> tuple[ModelClass, Environment]:
    """Three random maps on 300 candidates; the reward is linear in the second, of standard deviation about one."""
    rng = np.random.default_rng([2, seed])
    maps = {name: rng.standard_normal((_CANDIDATES, size)) for name, size in _SIZES.items()}
    theta = rng.standard_normal(_SIZES["b"])
    rewards = maps["b"] @ theta / np.linalg.norm(theta)
    beyond = rng.standard_normal(_CANDIDATES)
    rewards *= min(1.0, _BOUND / np.abs(rewards).max())
    rewards += setting.outside * beyond * rewards.std() / beyond.std()
    domain = FiniteSet(list(range(_CANDIDATES)))
    return ModelClass.from_matrices(maps), Environment(
        domain, rewards, noise_std=setting.noise * _NOISE, random_state=seed
    )


def play(setting: World, seed: int, rounds: int = 100, delta: float = 0.05) -> AlarmRun:
    """One adaptive run, whose stop report is looked at every ten rounds."""
    models, environment = problem_of(setting, seed)
    kind = KINDS[seed % len(KINDS)]
    algorithm = kind(models, environment.domain, noise_std=_NOISE, reward_bound=_BOUND, random_state=seed)
    free, misled = np.ones(_CANDIDATES, dtype=bool), False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        for t in range(1, rounds + 1):
            trial = algorithm.ask(available=None if setting.repeats else free)
            free[trial.index] = False
            algorithm.tell(trial, environment.observe_index(trial.index))
            if t % _LOOKS == 0:
                report = algorithm.stop_report(delta)
                gap = environment.best_value - environment.rewards[report.index]
                misled |= report.certified and bool(gap > report.epsilon + 1e-9)
    return AlarmRun(algorithm.check_models(delta).at, misled)


def measure(setting: World, runs: int, rounds: int = 100, delta: float = 0.05) -> Alarms:
    """`runs` runs with seeds 0, 1, ..."""
    return Alarms(setting, [play(setting, seed, rounds, delta) for seed in range(runs)])


def to_markdown(measured: Sequence[Alarms]) -> str:
    """The table of docs/certificates-results.md."""
    head = "| | alarms within 100 rounds | share, 95% interval | median round | misled | share, 95% interval |"
    head += "\n|---|---|---|---|---|---|"
    return "\n".join([head, *map(str, measured)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="runs in which all is as stated; a tenth of the others")
    runs = parser.parse_args().runs
    print(to_markdown([measure(s, runs if s == SETTINGS[0] else max(runs // 10, 1)) for s in SETTINGS]))


if __name__ == "__main__":
    main()
