"""How often `check_models` raises an alarm when it should not, and how soon when it should.

``python -m alexp.experiments.alarms`` prints the table of docs/certificates.md; with ``--write docs/certificates.md``
it replaces the part of that file between its marks.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import beta

from alexp.algorithms import LMUCB, AssumptionWarning, Certified, EvidenceMixture
from alexp.common.files import write_text
from alexp.experiments.core.environments import Environment
from alexp.problem import FiniteSet, ModelClass

_SIZES, _CANDIDATES, _NOISE, _BOUND = {"a": 4, "b": 6, "c": 8}, 300, 0.1, 4.0
_BEGIN, _END = "<!-- alarms: begin -->", "<!-- alarms: end -->"


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


@dataclass(frozen=True)
class Alarms:
    """First alarms of some runs: number of rewards, None where there was none."""

    setting: World
    at: list[int | None]

    @property
    def interval(self) -> tuple[float, float]:
        """Share of runs with an alarm, 95% interval after Clopper and Pearson."""
        n, k = len(self.at), sum(t is not None for t in self.at)
        low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
        return low, float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0

    def __str__(self) -> str:
        found = [t for t in self.at if t is not None]
        when = f"{np.median(found):.0f}" if found else "-"
        low, high = self.interval
        share = f"{len(found) / len(self.at):.3f} ({low:.3f} to {high:.3f})"
        return f"| {self.setting.name} | {len(found)} of {len(self.at)} | {share} | {when} |"


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


def first_alarm(setting: World, seed: int, rounds: int = 100, delta: float = 0.05) -> int | None:
    """Number of rewards after which one adaptive run is contradicted; None if it is not."""
    models, environment = problem_of(setting, seed)
    kind = KINDS[seed % len(KINDS)]
    algorithm = kind(models, environment.domain, noise_std=_NOISE, reward_bound=_BOUND, random_state=seed)
    free = np.ones(_CANDIDATES, dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        for _ in range(rounds):
            trial = algorithm.ask(available=None if setting.repeats else free)
            free[trial.index] = False
            algorithm.tell(trial, environment.observe_index(trial.index))
    return algorithm.check_models(delta).at


def measure(setting: World, runs: int, rounds: int = 100, delta: float = 0.05) -> Alarms:
    """First alarms of `runs` runs with seeds 0, 1, ..."""
    return Alarms(setting, [first_alarm(setting, seed, rounds, delta) for seed in range(runs)])


def to_markdown(measured: Sequence[Alarms]) -> str:
    """The table of docs/certificates.md."""
    head = "| | alarms within 100 rounds | share, 95% interval | median round |\n|---|---|---|---|"
    return "\n".join([head, *map(str, measured)])


def main() -> None:
    """Measure and print, or write into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="runs in which all is as stated; a tenth of the others")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    arguments = parser.parse_args()
    measured = [measure(s, arguments.runs if s == SETTINGS[0] else max(arguments.runs // 10, 1)) for s in SETTINGS]
    table = to_markdown(measured)
    print(table)
    if arguments.write is not None:
        page = arguments.write.read_text(encoding="utf-8")
        before, rest = page.split(_BEGIN)
        write_text(arguments.write, f"{before}{_BEGIN}\n{table}\n{_END}{rest.split(_END)[1]}")


if __name__ == "__main__":
    main()
