"""What not knowing the model costs, round by round: `python -m alexp.experiments.comparison.gap`.

On the twelve problems of the yardstick an untold entrant, the mixture with nothing stated unless another is named, is
held against the best told agent of every problem, under the same seeds. `Gap.spliced` asks when the difference is
paid: rounds up to k as the untold entrant played them, and the rounds after k as the told agent "told ids" did.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, one_of
from alexp.experiments.comparison.entries import ENTRANTS, TOLD
from alexp.experiments.core.statistics import MeanEstimate, locked
from alexp.experiments.core.tasks import run_task
from alexp.experiments.core.well_specified import TWELVE

UNTOLD, HEIR = "evidence-mixture, nothing stated", "told ids"
FIRST_SEED, SEEDS = 95_000, 40
ROUNDS = (5, 10, 20, 40)
_DRAWS = 2000  # of the bootstrap


@dataclass(frozen=True)
class Gap:
    """Cumulative regrets on one problem, (seeds, n): of the untold entrant, and of every told agent by its name."""

    scenario: str
    untold: FloatArray
    told: dict[str, FloatArray]

    def log_ratio(self, picks: slice | IntArray = slice(None)) -> float:
        """Logarithm of the untold entrant's mean regret over the best told agent's, on some of the seeds."""
        return float(np.log(np.mean(self.untold[picks, -1]) / self._best(picks)))

    def spliced(self, k: int) -> float:
        """Logarithm of the same ratio if the model was told after round k: later rounds are those of "told ids"."""
        later = self.told[HEIR][:, -1] - self.told[HEIR][:, k - 1]
        return float(np.log(np.mean(self.untold[:, k - 1] + later) / self._best()))

    def _best(self, picks: slice | IntArray = slice(None)) -> float:
        return min(float(np.mean(curves[picks, -1])) for curves in self.told.values())

    @property
    def n_locked(self) -> int:
        """Seeds that lose more than 0.1 a round over the last quarter."""
        return int(np.sum(locked(self.untold)))


def gaps(
    seeds: int = SEEDS, first_seed: int = FIRST_SEED, who: str = UNTOLD, scenarios: Sequence[str] = tuple(TWELVE)
) -> Iterator[Gap]:
    """The entrant and all told agents on the same seeds, problem after problem."""
    one_of("who", who, tuple(name for name, entrant in ENTRANTS.items() if not entrant.told))
    numbers = range(first_seed, first_seed + count("seeds", seeds, 2))
    for name in scenarios:
        one_of("scenario", name, tuple(TWELVE))
        curves = {
            one: np.array([run_task(ENTRANTS[one].task(TWELVE[name], seed)).regret for seed in numbers])
            for one in (who, *TOLD)
        }
        yield Gap(name, curves.pop(who), curves)


def geometric_mean(found: Sequence[Gap]) -> MeanEstimate:
    """Geometric mean over problems of the ratio, with a 95% interval: seeds are drawn again, told and untold alike."""
    rng = np.random.default_rng(0)
    sizes = [len(one.untold) for one in found]
    draws = [
        np.mean([one.log_ratio(rng.integers(n, size=n)) for one, n in zip(found, sizes, strict=True)])
        for _ in range(_DRAWS)
    ]
    low, high = np.exp(np.quantile(draws, [0.025, 0.975]))
    centre = float(np.exp(np.mean([one.log_ratio() for one in found])))
    return MeanEstimate(centre, centre * float(np.std(draws)), float(low), float(high))


def main(say: Callable[[str], None] = print) -> None:
    """Print a line per problem, the geometric mean, and when the difference is paid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds per problem")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--who", default=UNTOLD, help="an entrant of `alexp compare`")
    arguments = parser.parse_args()
    found = []
    for one in gaps(arguments.seeds, arguments.first_seed, arguments.who):
        found.append(one)
        told = "  ".join(f"{name} {curves[:, -1].mean():.2f}" for name, curves in one.told.items())
        ratio = float(np.exp(one.log_ratio()))
        say(f"{one.scenario:14s} {one.untold[:, -1].mean():6.2f}  {told}  ratio {ratio:.2f}  locked {one.n_locked}")
    runs, stuck = sum(len(one.untold) for one in found), sum(one.n_locked for one in found)
    say(f"geometric mean of the ratio to the best told agent: {geometric_mean(found)}")
    told_locked = {name: sum(int(np.sum(locked(one.told[name]))) for one in found) for name in TOLD}
    say(f"locked: {stuck} of {runs}; " + ", ".join(f"{name} {n}" for name, n in told_locked.items()))
    for k in ROUNDS:
        say(f"if the model was told after round {k}: {np.exp(np.mean([one.spliced(k) for one in found])):.2f}")


if __name__ == "__main__":
    main()
