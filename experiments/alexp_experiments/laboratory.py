"""What failures and constraints of plates cost.

    python -m alexp_experiments.laboratory failures
    python -m alexp_experiments.laboratory constraints

*Failures*: on tables of 100 candidates of which a region of 30% fails, the experiments of 24 that fail, of the mixture
and of one that leaves out measured failures and learns nothing from them. *Constraints*: violations in random plates,
and the regret of limits that hardly bind as a multiple of that without.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from alexp.algorithms.base import Algorithm
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.common.arrays import BoolArray, FloatArray
from alexp.rivals.uniform import UniformRandom
from alexp.table.table import Table
from alexp_experiments.core.statistics import ratio

EXPERIMENTS, FAILING = 24, 0.3
FIRST_SEED = 97_000


# -- failures ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FailingTable:
    """Candidates, their rewards (N,), and which of them fail (N,)."""

    table: Table
    rewards: FloatArray
    fails: BoolArray

    @classmethod
    def of_numbers(cls, seed: int) -> FailingTable:
        """100 candidates with two numbers; a half-plane of them fails."""
        rng = np.random.default_rng(seed)
        inputs = rng.uniform(-1.0, 1.0, (100, 2))
        along, across = (inputs @ [np.cos(angle), np.sin(angle)] for angle in rng.uniform(0.0, 2.0 * np.pi, 2))
        rewards = 50.0 + 20.0 * along + 10.0 * np.sin(3.0 * inputs[:, 0]) + rng.normal(0.0, 1.0, 100)
        return cls(Table.from_frame(pd.DataFrame(inputs, columns=["u", "v"])), rewards, _largest(across))

    @classmethod
    def of_words(cls, seed: int) -> FailingTable:
        """5 x 5 x 4 words, whose effects add up; those with the largest sum of other effects fail."""
        rng = np.random.default_rng(seed)
        words = np.array(list(itertools.product(range(5), range(5), range(4))))
        effects = [sum(rng.normal(size=5)[column] for column in words.T) for _ in range(2)]
        names = {f"component {k}": [f"{'abc'[k]}{word}" for word in column] for k, column in enumerate(words.T)}
        rewards = 50.0 + 10.0 * effects[0] + rng.normal(0.0, 1.0, 100)
        return cls(Table.from_frame(pd.DataFrame(names)), rewards, _largest(np.asarray(effects[1])))

    def wasted(self, seed: int, plate: int, learns: bool) -> int:
        """Experiments that fail."""
        run, tried = EvidenceMixture(self.table, random_state=seed), np.zeros(self.rewards.size, dtype=bool)
        for _ in range(EXPERIMENTS // plate):
            for trial in run.ask(plate, available=~tried):
                tried[trial.index] = True
                if not self.fails[trial.index]:
                    run.tell(trial, self.rewards[trial.index])
                elif learns:
                    run.fail(trial)
                else:
                    run.abandon(trial)
        return int(np.sum(tried & self.fails))


def _largest(values: FloatArray) -> BoolArray:
    return np.asarray(values > np.quantile(values, 1.0 - FAILING))


TABLES: dict[str, Callable[[int], FailingTable]] = {
    "two numbers": FailingTable.of_numbers,
    "three words": FailingTable.of_words,
}


def failures(seeds: range) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield f"| table | plates of | excluded only, of {EXPERIMENTS} | learned, of {EXPERIMENTS} | ratio |"
    yield "|---|---|---|---|---|"
    for name, made in TABLES.items():
        for plate in (1, 8):
            counts = np.array([[made(s).wasted(s, plate, learns) for learns in (False, True)] for s in seeds])
            excluded, learned = counts.mean(axis=0)
            yield f"| {name} | {plate} | {excluded:.1f} | {learned:.1f} | {ratio(counts[:, 1], counts[:, 0])} |"


# -- constraints ---------------------------------------------------------------------------------------------------

LEVELS: dict[str, list[Any]] = {"ligand": list("abcdef"), "base": ["KOAc", "CsOAc"], "celsius": [90, 105, 120]}
FRAME = pd.DataFrame(itertools.product(*LEVELS.values()), columns=list(LEVELS))


def regret(seed: int, **asked: Any) -> tuple[float, list[int]]:
    """Summed distance to the best reward in four plates of four, and the candidates; effects add up, and some noise."""
    rng = np.random.default_rng(seed)
    columns = pd.get_dummies(FRAME.astype(str)).to_numpy(float)
    rewards = columns @ rng.normal(size=columns.shape[1]) + 0.3 * rng.normal(size=len(FRAME))
    run, rows = EvidenceMixture(Table.from_frame(FRAME), random_state=seed), list[int]()
    for _ in range(4):
        for trial in run.ask(4, **asked):
            rows.append(trial.index)
            run.tell(trial, float(rewards[trial.index]))
    return float(np.sum(rewards.max() - rewards[rows])), rows


def violations(plates: int, seed: int) -> tuple[int, int, int]:
    """Of random plates with random constraints: how many were made, violate theirs, and were refused."""
    rng, made, wrong, refused = np.random.default_rng(seed), 0, 0, 0
    kinds: tuple[type[Algorithm], ...] = (UniformRandom, EvidenceMixture)
    runs = [kind(*_posed(), random_state=seed, repeats=False) for kind in kinds]
    while made < plates:
        run = runs[made % 2]
        for trial in run.pending():
            run.abandon(trial)
        at_most = {name: int(rng.integers(1, 4)) for name in LEVELS if rng.random() < 0.5}
        together = [name for name in LEVELS if rng.random() < 0.25]
        hottest = int(rng.choice(LEVELS["celsius"]))
        asked: dict[str, Any] = {
            "at_most": at_most or None,
            "together": together or None,
            "where": f"celsius <= {hottest}",
        }
        try:
            plate = FRAME.iloc[[trial.index for trial in run.ask(int(rng.integers(2, 9)), **asked)]]
        except ValueError:
            refused += 1  # no such plate exists
            continue
        made += 1
        wrong += bool(
            plate.index.has_duplicates
            or plate["celsius"].max() > hottest
            or any(plate[name].value_counts().max() > most for name, most in at_most.items())
            or any(plate[name].nunique() > 1 for name in together)
        )
    return made, wrong, refused


def _posed() -> tuple[Any, Any]:
    table = Table.from_frame(FRAME)
    return table.models(), table.domain


def constraints(seeds: range, plates: int) -> Iterator[str]:
    """Lines in Markdown."""
    made, wrong, refused = violations(plates, seeds[0])
    yield f"Of {made:,} random plates {wrong} violate their constraints; {refused:,} more were refused."
    free = [regret(seed) for seed in seeds]
    yield from ("", "| at most, in plates of 4 | trials that differ | regret, with / without |", "|---|---|---|")
    for limit, asked in (
        ("4 with one ligand", {"at_most": {"ligand": 4}, "where": "celsius > 0"}),
        ("2", {"at_most": {"ligand": 2}}),
        ("1", {"at_most": {"ligand": 1}}),
    ):
        own = [regret(seed, **asked) for seed in seeds]
        differ = np.mean(np.array([rows for _, rows in own]) != np.array([rows for _, rows in free]))
        yield f"| {limit} | {differ:.0%} | {ratio([total for total, _ in own], [total for total, _ in free])} |"


def main() -> None:
    """Print what was named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("failures", "constraints"))
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--plates", type=int, default=1_000)
    given = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
    print("\n".join(failures(seeds) if given.what == "failures" else constraints(seeds, given.plates)))


if __name__ == "__main__":
    main()
