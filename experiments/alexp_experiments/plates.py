"""What plates cost: regret of plates of eight against one trial at a time, and the time of restricted asks.

    python -m alexp_experiments.plates --seeds 12

A plate holds eight different candidates, so that even who knows the reward pays for the second to eighth best in every
plate. `excess` is the regret beyond that; one trial at a time may play the best candidate every time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.base import Algorithm
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.algorithms.lmucb import LMUCB
from alexp.common.arrays import FloatArray
from alexp.problem import FiniteSet, ModelClass
from alexp_experiments.core.scenarios import Scenario

PLATE, PLATES = 8, 13
ENTRIES: dict[str, tuple[type[Algorithm], dict[str, object]]] = {
    "EvidenceMixture": (EvidenceMixture, {}),
    "EvidenceMixture, ucb": (EvidenceMixture, {"rule": "ucb"}),
    "LM-UCB": (LMUCB, {}),
    "ALExp": (ALExp, {}),
}
SCENARIOS = {
    "s=3 σ=.1": Scenario(size=3, noise_std=0.1),
    "50 maps σ=.3": Scenario(family="gaussian", size=5, n_maps=50, resolution=500, noise_std=0.3),
}


@dataclass(frozen=True)
class PlateRegret:
    """Regret of every seed (seeds,): one at a time, in plates, and the least that plates can have."""

    single: FloatArray
    plates: FloatArray
    least: FloatArray

    def __str__(self) -> str:
        excess = self.plates - self.least
        ratio, beyond = self.plates.mean() / self.single.mean(), excess.mean() / self.single.mean()
        error = float(np.std(excess, ddof=1) / np.sqrt(excess.size) / self.single.mean()) if excess.size > 1 else np.nan
        means = f"{self.single.mean():6.2f} {self.plates.mean():6.2f} {self.least.mean():6.2f}"
        medians = f"{np.median(self.single):6.2f} {np.median(self.plates):6.2f}"
        return f"{means}   {medians}   {ratio:5.2f}   {beyond:5.2f} +- {error:.2f}"


def regret(name: str, scenario: Scenario, seed: int, size: int) -> FloatArray:
    """Regret of every trial, (104,), in plates of `size`; noise and bound are stated."""
    environment = scenario.environment(seed)
    kind, settings = ENTRIES[name]
    stated = {"noise_std": scenario.noise_std, "reward_bound": 1.0, "random_state": seed}
    algorithm = kind(environment.models, environment.domain, **stated, **settings)  # type: ignore[arg-type]
    gaps, out = environment.rewards.max() - environment.rewards, []
    for _ in range(PLATE * PLATES // size):
        plate = algorithm.ask(size)
        assert len({trial.index for trial in plate}) == size
        for trial in plate:
            out.append(gaps[trial.index])
            algorithm.tell(trial, environment.observe_index(trial.index))
    return np.array(out)


def outcome(name: str, scenario: Scenario, seeds: int) -> PlateRegret:
    """Both ways of one algorithm on one scenario."""
    single, plates = (np.array([regret(name, scenario, s, n).sum() for s in range(seeds)]) for n in (1, PLATE))
    rewards = [np.sort(scenario.environment(seed).rewards)[::-1][:PLATE] for seed in range(seeds)]
    return PlateRegret(single, plates, np.array([PLATES * (best[0] - best).sum() for best in rewards]))


def ask_seconds(name: str, n: int = 20_000, repetitions: int = 25) -> Iterator[tuple[str, float]]:
    """Least time of an ask after a reward: of any candidate, of nine tenths of them, and of what is not measured."""
    rng = np.random.default_rng(0)
    models = ModelClass.from_matrices({f"map {j}": rng.standard_normal((n, 16)) / 4.0 for j in range(3)})
    domain, mask = FiniteSet(np.arange(n)), rng.random(n) < 0.9
    kind, settings = ENTRIES[name]
    for way, repeats, available in (("plain", True, None), ("available", True, mask), ("no repeats", False, None)):
        stated = {"noise_std": 0.1, "reward_bound": 1.0, "repeats": repeats, "random_state": 0}
        algorithm, seconds = kind(models, domain, **stated, **settings), []  # type: ignore[arg-type]
        for _ in range(repetitions + 2):
            start = perf_counter()
            trial = algorithm.ask(available=available)
            seconds.append(perf_counter() - start)
            algorithm.tell(trial, float(rng.standard_normal()))
        yield way, min(seconds[2:])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    seeds = parser.parse_args().seeds
    print(f"{'':38} mean: single plates least   median: single plates   ratio   excess / single")
    for scenario, described in SCENARIOS.items():
        for name in ENTRIES:
            print(f"{scenario:14} {name:22} {outcome(name, described, seeds)}", flush=True)
    for name in ENTRIES:
        times = dict(ask_seconds(name))
        parts = [f"{way} {1e3 * s:.2f} ms (x{s / times['plain']:.2f})" for way, s in times.items()]
        print(f"ask at N = 20,000: {name:22} {', '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
