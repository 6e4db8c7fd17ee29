"""What not knowing the model costs, round by round: `python -m alexp_experiments.comparison.gap`.

On the twelve problems of the yardstick an entrant that does not know the model, `EvidenceMixture` given nothing unless
another is named, is compared with the best agent that does, under the same seeds. `Gap.spliced` asks when the
difference arises: rounds up to k as the entrant played them, and the rounds after k as "informed ids" did. The output
is the part "gap" of docs/less-regret.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, one_of
from alexp_experiments.comparison.entries import ENTRANTS, INFORMED, TWELVE
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.statistics import MeanEstimate, is_stuck

ENTRANT, HEIR = "evidence-mixture, nothing stated", "informed ids"
FIRST_SEED, SEEDS = 95_000, 40
ROUNDS = (5, 10, 20, 40)
_PARTS = ((0, 5), (5, 10), (10, 20), (20, 40), (40, 100))  # of the rounds, for the second table
_DRAWS = 2000  # of the bootstrap


@dataclass(frozen=True)
class Gap:
    """Cumulative regrets on one problem, (seeds, n): of the entrant, and of every informed agent by its name."""

    scenario: str
    own: FloatArray
    informed: dict[str, FloatArray]

    def log_ratio(self, picks: slice | IntArray = slice(None)) -> float:
        """Logarithm of the entrant's mean regret over the best informed agent's, on some of the seeds."""
        return float(np.log(np.mean(self.own[picks, -1]) / self._best(picks)))

    def spliced(self, k: int) -> float:
        """Logarithm of the same ratio with the model known after round k: later rounds are those of "informed ids"."""
        later = self.informed[HEIR][:, -1] - self.informed[HEIR][:, k - 1]
        return float(np.log(np.mean(self.own[:, k - 1] + later) / self._best()))

    def _best(self, picks: slice | IntArray = slice(None)) -> float:
        return min(float(np.mean(curves[picks, -1])) for curves in self.informed.values())

    @property
    def n_stuck(self) -> int:
        """Seeds that lose more than 0.1 a round over the last quarter."""
        return int(np.sum(is_stuck(self.own)))


def gaps(
    seeds: int = SEEDS,
    first_seed: int = FIRST_SEED,
    who: str = ENTRANT,
    scenarios: Sequence[str] = tuple(TWELVE),
    workers: int | None = None,
) -> Iterator[Gap]:
    """The entrant and all informed agents on the same seeds, problem after problem."""
    one_of("who", who, tuple(name for name, entrant in ENTRANTS.items() if not entrant.informed))
    numbers = range(first_seed, first_seed + count("seeds", seeds, 2))
    for name in scenarios:
        one_of("scenario", name, tuple(TWELVE))
    runs = [(name, one, seed) for name in scenarios for one in (who, *INFORMED) for seed in numbers]
    tasks = [ENTRANTS[one].task(TWELVE[name], seed) for name, one, seed in runs]
    records = iter(sweep(tasks, workers=workers, cache=None))
    for name in scenarios:
        curves = {one: np.array([next(records).regret for _ in numbers]) for one in (who, *INFORMED)}
        yield Gap(name, curves.pop(who), curves)


def geometric_mean(found: Sequence[Gap]) -> MeanEstimate:
    """Geometric mean over problems of the ratio, with a 95% interval: seeds are drawn again, the same for all."""
    rng = np.random.default_rng(0)
    sizes = [len(one.own) for one in found]
    draws = [
        np.mean([one.log_ratio(rng.integers(n, size=n)) for one, n in zip(found, sizes, strict=True)])
        for _ in range(_DRAWS)
    ]
    low, high = np.exp(np.quantile(draws, [0.025, 0.975]))
    centre = float(np.exp(np.mean([one.log_ratio() for one in found])))
    return MeanEstimate(centre, centre * float(np.std(draws)), float(low), float(high))


def to_markdown(found: Sequence[Gap]) -> str:
    """The two tables, and what follows from them."""
    lines = ["| problem | EvidenceMixture | best agent given the model | ratio | stuck |", "|---|---|---|---|---|"]
    for one in found:
        own, ratio = one.own[:, -1].mean(), np.exp(one.log_ratio())
        best = min(one.informed, key=lambda name: one.informed[name][:, -1].mean())
        who = best.removeprefix("informed ").replace("stated", "noise given")
        agent = f"{one.informed[best][:, -1].mean():.2f} ({who})"
        lines.append(f"| {one.scenario} | {own:.2f} | {agent} | {ratio:.2f} | {one.n_stuck} |")
    runs, stuck = sum(len(one.own) for one in found), sum(one.n_stuck for one in found)
    others = [sum(int(np.sum(is_stuck(one.informed[name]))) for one in found) for name in INFORMED]
    mean = geometric_mean(found)
    spliced = [f"{np.exp(np.mean([one.spliced(k) for one in found])):.2f} (k = {k})" for k in ROUNDS]
    lines += [
        "",
        f"Geometric mean of the ratio: **{mean.mean:.2f}**, 95% interval {mean.low:.2f} to {mean.high:.2f} (bootstrap "
        f"over seeds). Stuck runs: {stuck} of {runs}, of agents given the model {min(others)} to {max(others)}. If the "
        f"model became known after k rounds, the ratio would be {', '.join(spliced)}.",
        "",
        "| mean regret in rounds | " + " | ".join(f"{start + 1} to {end}" for start, end in _PARTS) + " |",
        "|" + "---|" * (len(_PARTS) + 1),
        f"| EvidenceMixture | {' | '.join(_by_rounds([one.own for one in found]))} |",
        f"| agent given the model (ids) | {' | '.join(_by_rounds([one.informed[HEIR] for one in found]))} |",
    ]
    return "\n".join(lines)


def _by_rounds(curves: Sequence[FloatArray]) -> Iterator[str]:
    """Regret of each part of the rounds, the mean over seeds and problems."""
    mean = np.append(0.0, np.mean([one.mean(axis=0) for one in curves], axis=0))
    yield from (f"{mean[end] - mean[start]:.2f}" for start, end in _PARTS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line per problem, the geometric mean, and when the difference arises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds per problem")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--who", default=ENTRANT, help="an entrant of `alexp compare`")
    parser.add_argument("--problems", nargs="+", default=list(TWELVE), help="names of problems; all by default")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    given = parser.parse_args(arguments)
    print(to_markdown(list(gaps(given.seeds, given.first_seed, given.who, given.problems, given.workers))))


if __name__ == "__main__":
    main()
