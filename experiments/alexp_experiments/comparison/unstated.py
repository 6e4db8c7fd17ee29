"""What stating nothing costs, and whether units matter: `python -m alexp_experiments.comparison.unstated`.

`price` compares EvidenceMixture with nothing stated with the one that knows noise and size of the coefficients, on the
scenarios of `alexp compare` with n = 100; this is the part "unstated" of docs/less-regret.md. `right_models` (`--units`)
plays one problem in several units and asks whether the true model has the largest probability in the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, sqrt

import numpy as np

from alexp.algorithms import EvidenceMixture
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.problem import FiniteSet, ModelClass
from alexp.simulation import Environment
from alexp_experiments.comparison.contest import FIRST_SEED
from alexp_experiments.comparison.entries import ENTRANTS, SCENARIOS, SHORT, WELL_SPECIFIED
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.statistics import MeanEstimate

INFORMED, UNINFORMED = "evidence-mixture", "evidence-mixture, nothing stated"
SEEDS = 100
_DRAWS = 2000  # of the bootstrap


@dataclass(frozen=True)
class Price:
    """Final regrets on one scenario, seed by seed, with noise and bound stated and unstated, shapes (n,)."""

    scenario: str
    stated: FloatArray
    unstated: FloatArray

    def log_ratio(self, picks: slice | IntArray = slice(None)) -> float:
        """Logarithm of the ratio of mean regrets."""
        return float(np.log(np.mean(self.unstated[picks]) / np.mean(self.stated[picks])))


def price(
    seeds: int = SEEDS,
    first_seed: int = FIRST_SEED,
    scenarios: Sequence[str] = SHORT,
    workers: int | None = None,
) -> Iterator[Price]:
    """Both mixtures on the same seeds, scenario after scenario."""
    numbers = range(first_seed, first_seed + seeds)
    tasks = [
        ENTRANTS[who].task(SCENARIOS[name], seed)
        for name in scenarios
        for who in (INFORMED, UNINFORMED)
        for seed in numbers
    ]
    records = iter(sweep(tasks, workers=workers, cache=None, progress=False))
    for name in scenarios:
        stated, unstated = (np.array([float(next(records).regret[-1]) for _ in numbers]) for _ in range(2))
        yield Price(name, stated, unstated)


def geometric_mean(prices: Sequence[Price]) -> MeanEstimate:
    """Geometric mean over scenarios of the ratio of mean regrets, with a 95% interval: seeds drawn again in pairs."""
    rng = np.random.default_rng(0)
    draws = np.array(
        [
            np.mean([one.log_ratio(rng.integers(one.stated.size, size=one.stated.size)) for one in prices])
            for _ in range(_DRAWS)
        ]
    )
    low, high = np.exp(np.quantile(draws, [0.025, 0.975]))
    centre = exp(float(np.mean([one.log_ratio() for one in prices])))
    return MeanEstimate(centre, centre * float(draws.std()), float(low), float(high))


def to_markdown(prices: Sequence[Price]) -> str:
    """The geometric means, and the least and the largest ratio."""
    right = [one for one in prices if one.scenario in WELL_SPECIFIED]
    of_all, of_right = geometric_mean(prices), geometric_mean(right)
    least, *_, largest = sorted(prices, key=Price.log_ratio)
    ends = " to ".join(f"{exp(one.log_ratio()):.2f} ({one.scenario})" for one in (least, largest))
    return (
        f"Regret with neither given over regret with both, {len(prices)} problems, {prices[0].stated.size} seeds in pairs: "
        f"geometric mean {of_all.mean:.2f}, 95% interval {of_all.low:.2f} to {of_all.high:.2f} (bootstrap over seeds), "
        f"from {ends}. On the {len(right)} problems in which a model is true and what is given is right: "
        f"{of_right.mean:.2f} ({of_right.low:.2f} to {of_right.high:.2f})."
    )


# -- units ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Units:
    """What the same problem is written in: rewards level + factor r, |r| <= 1, noise 0.1 factor, features x scale."""

    factor: float = 1.0
    level: float = 0.0
    scale: float = 1.0
    stated: State = field(default_factory=dict)


SETTINGS: dict[str, Units] = {
    "units right": Units(),
    "rewards x100": Units(factor=100.0),
    "rewards x100, noise stated": Units(factor=100.0, stated={"noise_std": 10.0}),
    "yield 50 ± 30": Units(factor=30.0, level=50.0),
    "yield 50 ± 30, noise and bound stated": Units(
        factor=30.0, level=50.0, stated={"noise_std": 3.0, "reward_bound": 80.0}
    ),
    "rewards x.001": Units(factor=0.001),
    "features x.001": Units(scale=0.001),
    "features x1000": Units(scale=1000.0),
}


def finds_the_model(units: Units, seed: int, steps: int = 60, n: int = 300) -> bool:
    """Whether model b of three, the true one, is the most probable after a run with all defaults."""
    rng = np.random.default_rng(seed)
    features = {name: rng.standard_normal((n, size)) / sqrt(size) for name, size in (("a", 4), ("b", 5), ("c", 6))}
    reward = features["b"] @ rng.standard_normal(5)
    reward = units.level + units.factor * reward / np.abs(reward).max()
    models = ModelClass.from_matrices({name: units.scale * block for name, block in features.items()})
    domain = FiniteSet(np.arange(n))
    environment = Environment(domain, reward, noise_std=0.1 * units.factor, random_state=seed)
    opt = EvidenceMixture(models, domain, random_state=seed, **units.stated)
    for _ in range(steps):
        trial = opt.ask()
        opt.tell(trial, environment.observe_index(trial.index))
    return int(np.argmax(opt.probabilities)) == 1


def right_models(seeds: int = SEEDS, first_seed: int = 0) -> dict[str, float]:
    """Share of runs that end with the true model in front, setting by setting."""
    numbers = range(first_seed, first_seed + seeds)
    return {name: float(np.mean([finds_the_model(units, k) for k in numbers])) for name, units in SETTINGS.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what stating nothing costs, or how often the true model is found in several units."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds per scenario and setting")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument(
        "--scenarios", nargs="+", default=list(SHORT), help="names of scenarios; all with n = 100 by default"
    )
    parser.add_argument("--units", action="store_true", help="one problem in several units, in place of the scenarios")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    given = parser.parse_args(arguments)
    if given.units:
        for name, share in right_models(given.seeds, given.first_seed).items():
            print(f"{name:40s} right model {share:.0%}")
    else:
        print(to_markdown(list(price(given.seeds, given.first_seed, given.scenarios, given.workers))))


if __name__ == "__main__":
    main()
